//go:build linux || darwin

package runner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A screen is a user at a terminal in which a program runs.
type screen struct {
	t             *testing.T
	master, slave *os.File
	cmd           *exec.Cmd
	result        *os.File // where the helper's report comes
	before        unix.Termios

	mu   sync.Mutex
	seen bytes.Buffer
	more *sync.Cond
	over bool
}

// terminalWith runs args in a terminal of 40 rows and 100 columns. Streams that are
// not nil take the terminal's place as stdin, stdout and stderr.
func terminalWith(t *testing.T, stdio [3]*os.File, env []string, args ...string) *screen {
	t.Helper()
	blocking, slave, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(slave, &pty.Winsize{Rows: 40, Cols: 100}))
	// A pending read of a blocking handle would put off its closing.
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, blocking.Close())
	require.NoError(t, unix.SetNonblock(fd, true))
	master := os.NewFile(uintptr(fd), "terminal")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	for i := range stdio {
		if stdio[i] == nil {
			stdio[i] = slave
		}
	}
	s := &screen{t: t, master: master, slave: slave, result: r}
	s.before = s.settings()
	s.more = sync.NewCond(&s.mu)
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = append(append(os.Environ(), "TERM=dumb", "GORACE=atexit_sleep_ms=0"), env...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = stdio[0], stdio[1], stdio[2]
	s.cmd.ExtraFiles = []*os.File{w, slave}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 4}
	require.NoError(t, s.cmd.Start())
	require.NoError(t, w.Close())
	go s.watch()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		_ = slave.Close()
		_ = master.Close()
		_ = r.Close()
	})
	return s
}

// decree runs a shell script under the helper on a terminal.
func decree(t *testing.T, stdio [3]*os.File, script string) *screen {
	t.Helper()
	return terminalWith(t, stdio, []string{helperEnv + "=1"}, os.Args[0], "sh", "-c", script)
}

func (s *screen) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.seen.Write(buf[:n])
		s.over = err != nil
		s.more.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// patience is when a text that does not come is a failure.
const patience = 30 * time.Second

// await waits until text has appeared n times.
func (s *screen) await(text string, n int) {
	s.t.Helper()
	late := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		s.more.Broadcast()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for strings.Count(s.seen.String(), text) < n {
		if s.over {
			require.Fail(s.t, "the terminal ended", "waiting for %q, saw %q", text, s.seen.String())
		}
		s.more.Wait()
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

func (s *screen) typeKeys(keys string) {
	s.t.Helper()
	_, err := s.master.WriteString(keys)
	require.NoError(s.t, err)
}

func (s *screen) settings() unix.Termios {
	s.t.Helper()
	st, err := unix.IoctlGetTermios(int(s.slave.Fd()), getTermios)
	require.NoError(s.t, err)
	return *st
}

// finish waits for the end of the helper and returns what it reported.
func (s *screen) finish() report {
	s.t.Helper()
	require.NoError(s.t, s.result.SetReadDeadline(time.Now().Add(patience)))
	b, err := io.ReadAll(s.result)
	require.NoError(s.t, err, s.text())
	require.NoError(s.t, s.cmd.Wait(), s.text())
	var r report
	require.NoError(s.t, json.Unmarshal(b, &r), "%s", s.text())
	require.Empty(s.t, r.Err)
	require.Empty(s.t, r.NoPTY)
	return r
}

func TestTerminalInside(t *testing.T) {
	s := decree(t, [3]*os.File{}, "test -t 0 && test -t 1 && test -t 2 && stty size && tty && ps -o tpgid= -o pgid= -o sid= -p $$; exit 3")
	r := s.finish()
	assert.Equal(t, 3, r.ExitCode)
	assert.True(t, r.PTY)
	assert.Contains(t, r.Log, "40 100\r\n")
	assert.NotContains(t, r.Log, s.slave.Name()+"\r\n", "a terminal of its own")
	lines := strings.Split(strings.TrimSpace(r.Log), "\r\n")
	ids := strings.Fields(lines[len(lines)-1])
	require.Len(t, ids, 3, r.Log)
	assert.Equal(t, ids[0], ids[1], "the command is in the foreground")
	if runtime.GOOS == "linux" {
		assert.NotEqual(t, ids[1], ids[2], "and can be stopped, since not all parents are in other sessions")
	} else {
		assert.Equal(t, ids[1], ids[2], "and leads a session")
	}
	assert.Equal(t, s.before, s.settings(), "the terminal is as it was")
	s.await("40 100\r\n", 1)
}

// TestStopsItself: a program that takes Ctrl-Z as a key, as editors do, stops its own
// group. Where decree cannot be stopped, nobody being there to continue it, both go on.
func TestStopsItself(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the command leads its session, and is not stopped")
	}
	s := decree(t, [3]*os.File{}, `trap 'echo continued' CONT; kill -TSTP 0; echo back; exit 4`)
	s.await("continued", 1)
	r := s.finish()
	assert.Equal(t, 4, r.ExitCode)
	assert.Equal(t, "continued\r\nback\r\n", r.Log)
	assert.Equal(t, s.before, s.settings(), "the terminal is as it was")
}

// TestLeaderTellsTheEnd: what ends the command is told as if it were decree's child.
func TestLeaderTellsTheEnd(t *testing.T) {
	for script, want := range map[string]report{
		"kill -SEGV $$":            {ExitCode: 139, Signal: "SIGSEGV"},
		"kill -QUIT $$":            {ExitCode: 131, Signal: "SIGQUIT"},
		"kill -KILL $$":            {ExitCode: 137, Signal: "SIGKILL"},
		"kill -HUP 0":              {ExitCode: 129, Signal: "SIGHUP"},
		"trap '' TERM INT; exit 9": {ExitCode: 9},
	} {
		r := decree(t, [3]*os.File{}, "ulimit -c 0; "+script).finish()
		assert.Equal(t, want.ExitCode, r.ExitCode, script)
		assert.Equal(t, want.Signal, r.Signal, script)
	}
}

func TestKeys(t *testing.T) {
	s := decree(t, [3]*os.File{}, `echo ready; read x; echo "got:$x"`)
	s.await("ready", 1)
	st := s.settings()
	assert.Zero(t, st.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG), "raw mode")
	s.typeKeys("hello\r")
	s.await("got:hello\r\n", 1)
	r := s.finish()
	assert.Zero(t, r.ExitCode)
	assert.Equal(t, "ready\r\nhello\r\ngot:hello\r\n", r.Log, "with the echo of the inner terminal, once")
	st = s.settings()
	assert.NotZero(t, st.Lflag&unix.ICANON)
	assert.NotZero(t, st.Lflag&unix.ECHO)
}

func TestControlKeysAreTheCommands(t *testing.T) {
	t.Run("interrupt caught", func(t *testing.T) {
		s := decree(t, [3]*os.File{}, `trap 'echo caught; exit 7' INT; echo ready; cat`)
		s.await("ready", 1)
		s.typeKeys("echoed\r")
		s.await("echoed", 2) // once by the terminal, once by cat: it runs
		s.typeKeys("\x03")
		r := s.finish()
		assert.Equal(t, 7, r.ExitCode)
		assert.Empty(t, r.Interrupted, "decree got no signal")
		assert.Contains(t, r.Log, "caught")
	})
	t.Run("interrupt ends", func(t *testing.T) {
		s := decree(t, [3]*os.File{}, `echo ready; exec cat`)
		s.await("ready", 1)
		s.typeKeys("\x03")
		r := s.finish()
		assert.Equal(t, 130, r.ExitCode)
		assert.Equal(t, "SIGINT", r.Signal)
		assert.Empty(t, r.Interrupted)
	})
	t.Run("end of file", func(t *testing.T) {
		s := decree(t, [3]*os.File{}, `echo ready; exec cat`)
		s.await("ready", 1)
		s.typeKeys("line\r\x04")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
	})
	t.Run("raw bytes", func(t *testing.T) {
		s := decree(t, [3]*os.File{}, `stty raw -echo; printf ready; head -c 6 | od -An -tx1; stty sane`)
		s.await("ready", 1)
		s.typeKeys("\x03\x1a\x11\x13\r\xff")
		r := s.finish()
		assert.Contains(t, r.Log, "03 1a 11 13 0d ff")
	})
}

func TestWindowSizeFollows(t *testing.T) {
	s := decree(t, [3]*os.File{}, `trap 'stty size; exit' WINCH; echo ready; sleep 1000 & wait`)
	s.await("ready", 1)
	require.NoError(t, pty.Setsize(s.slave, &pty.Winsize{Rows: 11, Cols: 22}))
	r := s.finish()
	assert.Contains(t, r.Log, "11 22\r\n")
}

func TestSignalsToDecreeOnATerminal(t *testing.T) {
	s := decree(t, [3]*os.File{}, `trap 'echo caught; exit 0' TERM; echo ready; sleep 1000 & wait`)
	s.await("ready", 1)
	require.NoError(t, s.cmd.Process.Signal(unix.SIGTERM))
	r := s.finish()
	assert.Equal(t, 143, r.ExitCode)
	assert.Equal(t, "terminated", r.Interrupted)
	assert.Contains(t, r.Log, "caught")
	assert.Equal(t, s.before, s.settings())
}

func TestHangUp(t *testing.T) {
	s := decree(t, [3]*os.File{}, `echo ready; exec cat`)
	s.await("ready", 1)
	require.NoError(t, s.slave.Close())
	require.NoError(t, s.master.Close())
	r := s.finish()
	assert.Equal(t, "hangup", r.Interrupted)
	assert.Equal(t, 129, r.ExitCode)
}

// TestKilledOnATerminal: where decree dies its terminal goes, and the command is hung up as by any terminal that goes;
// also one that is stopped.
func TestKilledOnATerminal(t *testing.T) {
	for what, stop := range map[string]string{"at work": "", "stopped": "kill -STOP $$; "} {
		t.Run(what, func(t *testing.T) {
			if stop != "" && runtime.GOOS != "linux" {
				t.Skip("the command leads its session, and is not stopped")
			}
			path := filepath.Join(t.TempDir(), "hung up")
			require.NoError(t, unix.Mkfifo(path, 0o600))
			told, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
			require.NoError(t, err)
			defer told.Close()
			require.NoError(t, told.SetReadDeadline(time.Now().Add(patience)))
			s := decree(t, [3]*os.File{}, `trap 'echo $$ >"`+path+`"; kill -KILL 0' HUP; echo group $$ ready; `+stop+`sleep 1000 & wait`)
			s.await("ready", 1)
			group, err := strconv.Atoi(strings.Fields(s.text())[1])
			require.NoError(t, err)
			t.Cleanup(func() { _ = unix.Kill(-group, unix.SIGKILL) })
			require.NoError(t, s.cmd.Process.Kill())
			line, err := bufio.NewReader(told).ReadString('\n')
			require.NoError(t, err, "it goes on without a terminal")
			assert.Equal(t, strconv.Itoa(group), strings.TrimSpace(line))
		})
	}
}

func TestNotFoundLeavesTheTerminal(t *testing.T) {
	s := terminalWith(t, [3]*os.File{}, []string{helperEnv + "=1"}, os.Args[0], t.TempDir())
	r := s.finish()
	assert.Equal(t, 126, r.ExitCode)
	assert.NotZero(t, s.settings().Lflag&unix.ICANON)
}

func TestJobsOfAnInnerShellAreStragglers(t *testing.T) {
	// With job control on, the background job has a group of its own.
	s := decree(t, [3]*os.File{}, `set -m; trap '' HUP; sh -c 'echo up; exec sleep 1000' & read x; exit 5`)
	s.await("up", 1)
	s.typeKeys("\r")
	r := s.finish()
	assert.Equal(t, 5, r.ExitCode)
	assert.Len(t, r.Stragglers, 1)
}

// TestPartTerminal has some streams elsewhere; what is no terminal stays plain.
func TestPartTerminal(t *testing.T) {
	t.Run("stdout to a file", func(t *testing.T) {
		out := output(t)
		s := decree(t, [3]*os.File{1: out}, `test -t 0 && test -t 2 && ! test -t 1 && printf 'a\nb' && echo ready >&2 && read x && echo "$x"`)
		s.await("ready", 1)
		s.typeKeys("key\r")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.True(t, r.PTY)
		assert.Equal(t, "a\nbkey\n", content(t, out))
	})
	t.Run("stdin from a file", func(t *testing.T) {
		in := output(t)
		_, err := in.WriteString("line\n")
		require.NoError(t, err)
		_, err = in.Seek(0, io.SeekStart)
		require.NoError(t, err)
		s := decree(t, [3]*os.File{in}, `! test -t 0 && test -t 1 && read x && echo "$x" && read y </dev/tty && echo "tty:$y"`)
		s.await("line", 1)
		s.typeKeys("key\r")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.True(t, r.PTY)
		assert.Contains(t, r.Log, "tty:key\r\n")
	})
	t.Run("stdout to a pipe", func(t *testing.T) {
		pr, pw, err := os.Pipe()
		require.NoError(t, err)
		defer pr.Close()
		s := decree(t, [3]*os.File{1: pw}, `test -t 0 && test -t 2 && ! test -t 1 && stty size >&2 && read x && echo "got:$x" && echo end >&2`)
		require.NoError(t, pw.Close())
		s.await("40 100", 1)
		assert.NotZero(t, s.settings().Lflag&unix.ICANON, "the terminal is still the pipeline's")
		s.typeKeys("key\r")
		b, err := io.ReadAll(pr)
		require.NoError(t, err)
		assert.Equal(t, "got:key\n", string(b))
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.True(t, r.PTY)
		assert.Contains(t, r.Log, "40 100\n")
		s.await("end\r\n", 1)
		assert.NotContains(t, s.text(), "\r\r")
	})
	t.Run("stdin from a pipe", func(t *testing.T) {
		pr, pw, err := os.Pipe()
		require.NoError(t, err)
		_, err = pw.WriteString("line\n")
		require.NoError(t, err)
		require.NoError(t, pw.Close())
		s := decree(t, [3]*os.File{pr}, `! test -t 0 && test -t 1 && read x && echo "$x" && read y </dev/tty && echo "tty:$y"`)
		s.await("line", 1)
		s.typeKeys("key\r")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.Contains(t, r.Log, "tty:key\n")
	})
	t.Run("stdin alone", func(t *testing.T) {
		out := output(t)
		s := decree(t, [3]*os.File{1: out, 2: out}, `tty; ps -o tpgid= -o pgid= -p $$; echo ready >/dev/tty; read x; echo "$x"`)
		s.await("ready", 1)
		s.typeKeys("key\r")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.False(t, r.PTY)
		lines := strings.Split(content(t, out), "\n")
		require.Len(t, lines, 4, content(t, out))
		assert.Equal(t, s.slave.Name(), lines[0])
		ids := strings.Fields(lines[1])
		assert.Equal(t, ids[0], ids[1], "the command is in the foreground")
		assert.Equal(t, "key", lines[2])
		front, err := foregroundGroup(s.master)
		require.NoError(t, err)
		assert.NotEqual(t, ids[1], front)
	})
	t.Run("none, but it asks the terminal", func(t *testing.T) {
		out := output(t)
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		s := decree(t, [3]*os.File{null, out, out}, `echo ready >/dev/tty; read x </dev/tty; echo "$x"`)
		s.await("ready", 1)
		s.typeKeys("key\r")
		r := s.finish()
		assert.Zero(t, r.ExitCode)
		assert.Equal(t, "key\n", content(t, out))
	})
}

// shellAt is an interactive shell with job control at a terminal.
func shellAt(t *testing.T) *screen {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	s := terminalWith(t, [3]*os.File{}, []string{"PS1=at> ", "HISTFILE="}, bash, "--norc", "--noprofile", "--noediting", "-i")
	s.await("at> ", 1)
	return s
}

func TestJobControlOfTheOuterShell(t *testing.T) {
	helper := helperEnv + "=1 '" + os.Args[0] + "' "
	t.Run("the command stops itself", func(t *testing.T) {
		s := shellAt(t)
		s.typeKeys(helper + `sh -c 'echo read""y; kill -STOP $$; echo resu""med; read x; echo got:$x'` + "\r")
		s.await("ready", 1)
		s.await("at> ", 2) // stopped, and the shell is back
		assert.NotZero(t, s.settings().Lflag&unix.ISIG, "out of raw mode")
		s.typeKeys("fg\r")
		s.await("resumed", 1)
		s.typeKeys("key\r")
		s.await("got:key\r\n", 1)
		s.await("at> ", 3)
		s.typeKeys("exit\r")
		_, err := io.Copy(io.Discard, s.result)
		require.NoError(t, err)
	})
	t.Run("Ctrl-Z with the terminal handed over", func(t *testing.T) {
		s := shellAt(t)
		s.typeKeys(helper + `sh -c 'echo read""y >/dev/tty; read x; echo got:$x >/dev/tty' >/dev/null 2>&1` + "\r")
		s.await("ready", 1)
		s.typeKeys("\x1a")
		s.await("at> ", 2)
		s.typeKeys("fg\r")
		s.typeKeys("key\r")
		s.await("got:key\r\n", 1)
		s.await("at> ", 3)
	})
	t.Run("Ctrl-Z in a pipeline", func(t *testing.T) {
		s := shellAt(t)
		s.typeKeys(helper + `sh -c 'echo read""y; read x; echo got:$x' | cat` + "\r")
		s.await("ready", 1)
		s.typeKeys("\x1a")
		s.await("at> ", 2)
		s.typeKeys("fg\r")
		s.typeKeys("key\r")
		s.await("got:key\r\n", 1)
		s.await("at> ", 3)
	})
	t.Run("in the background", func(t *testing.T) {
		s := shellAt(t)
		s.typeKeys(helper + `sh -c 'echo read""y; read x; echo got:$x' &` + "\r")
		s.await("ready", 1)
		s.typeKeys("echo sh''ell\r")
		s.await("shell\r\n", 1) // keys are the shell's
		s.typeKeys("fg\r")
		s.await("sh -c", 2)
		s.typeKeys("key\r")
		s.await("got:key\r\n", 1)
	})
}
