//go:build linux || darwin

package runner

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestExit(t *testing.T) {
	tests := map[string]struct {
		script, signal string
		code           int
	}{
		"success":          {"exit 0", "", 0},
		"failure":          {"exit 3", "", 3},
		"128 is no signal": {"exit 130", "", 130},
		"killed":           {"kill -KILL $$", "SIGKILL", 137},
		"terminated":       {"kill -TERM $$", "SIGTERM", 143},
		"hung up":          {"kill -HUP $$", "SIGHUP", 129},
		"broken pipe":      {"kill -PIPE $$", "SIGPIPE", 141},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			if tt.signal == "SIGHUP" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("under nohup a shell cannot be hung up")
			}
			res := run(t, shell(tt.script))
			assert.Equal(t, tt.code, res.ExitCode)
			assert.Equal(t, tt.signal, res.Signal)
			assert.Positive(t, res.Duration)
			assert.Nil(t, res.Interrupted)
			assert.False(t, res.TimedOut || res.PTY)
			assert.Empty(t, res.Stragglers)
		})
	}
}

func TestArgumentsAndPlace(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	args := []string{"", "a b", "$HOME", "*", "'\"", "\xff\n"}
	c := shell(`pwd -P; printf '%s|' "$0" "$X" "$@"`, args...)
	c.Dir, c.Stdout = dir, output(t)
	c.Env = append(c.Env, "X=old", "X=new")
	run(t, c)
	assert.Equal(t, dir+"\nsh|new|"+strings.Join(args, "|")+"|", content(t, c.Stdout))
}

func TestBytesPassThrough(t *testing.T) {
	data := make([]byte, 1<<20+7)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(data)
	in := output(t)
	_, err := in.Write(data)
	require.NoError(t, err)
	_, err = in.Seek(0, io.SeekStart)
	require.NoError(t, err)
	var log bytes.Buffer
	c := Command{Args: []string{"cat"}, Env: os.Environ(), Stdin: in, Stdout: output(t), Stderr: output(t), Log: &log}
	run(t, c)
	assert.True(t, bytes.Equal(data, []byte(content(t, c.Stdout))), "stdout")
	assert.True(t, bytes.Equal(data, log.Bytes()), "log")
	assert.Empty(t, content(t, c.Stderr))
}

func TestStreamsStayApart(t *testing.T) {
	var log bytes.Buffer
	c := shell("echo out; echo err >&2")
	c.Stdout, c.Stderr, c.Log = output(t), output(t), &log
	run(t, c)
	assert.Equal(t, "out\n", content(t, c.Stdout))
	assert.Equal(t, "err\n", content(t, c.Stderr))
	assert.ElementsMatch(t, []string{"out", "err"}, strings.Fields(log.String()))
}

func TestOneStreamKeepsItsOrder(t *testing.T) {
	const script = `i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done`
	var want strings.Builder
	for i := range 200 {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	var log bytes.Buffer
	c := shell(script)
	c.Stdout = output(t)
	c.Stderr, c.Log = c.Stdout, &log
	run(t, c)
	assert.Equal(t, want.String(), content(t, c.Stdout))
	assert.Equal(t, want.String(), log.String())
}

func TestNoStdin(t *testing.T) {
	res := run(t, shell("cat"))
	assert.Zero(t, res.ExitCode)
}

func TestStdinIsHandedOver(t *testing.T) {
	// What the command leaves unread stays for the next reader.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString("one\ntwo\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	c := shell("read x; echo $x")
	c.Stdin, c.Stdout = r, output(t)
	run(t, c)
	assert.Equal(t, "one\n", content(t, c.Stdout))
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, "two\n", string(rest))
}

func TestBrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	var log bytes.Buffer
	c := Command{Args: []string{"yes"}, Env: os.Environ(), Stdout: w, Log: &log}
	first := make(chan string)
	go func() {
		line, _ := bufio.NewReaderSize(r, 16).ReadString('\n')
		_ = r.Close()
		first <- line
	}()
	res := run(t, c)
	require.NoError(t, w.Close())
	assert.Equal(t, "y\n", <-first)
	assert.Equal(t, "SIGPIPE", res.Signal)
	assert.Equal(t, 141, res.ExitCode)
	require.NoError(t, res.Output)
	assert.True(t, strings.HasPrefix(log.String(), "y\ny\n"))
}

func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full")
	}
	defer full.Close()
	log := &bytes.Buffer{}
	c := shell("echo one; echo two; head -c 1000000 /dev/zero; echo three; exit 5")
	c.Stdout, c.Log = full, log
	res := run(t, c)
	assert.Equal(t, 5, res.ExitCode, "a full disk is no reason to end the command")
	assert.ErrorIs(t, res.Output, syscall.ENOSPC)
	assert.True(t, strings.HasPrefix(log.String(), "one\ntwo\n"))
	assert.True(t, strings.HasSuffix(log.String(), "three\n"))
}

// A fullLog takes so many bytes and no more.
type fullLog struct {
	room int
	got  bytes.Buffer
}

func (l *fullLog) Write(b []byte) (int, error) {
	n := min(len(b), l.room)
	l.got.Write(b[:n])
	l.room -= n
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func TestFullLog(t *testing.T) {
	log := &fullLog{room: 3}
	c := shell("echo one; echo two; exit 5")
	c.Stdout, c.Log = output(t), log
	res, err := Run(t.Context(), c)
	require.ErrorIs(t, err, ErrLog)
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.Equal(t, 5, res.ExitCode)
	assert.Equal(t, "one\ntwo\n", content(t, c.Stdout))
	assert.Equal(t, "one", log.got.String())
}

func TestStarting(t *testing.T) {
	var l Leader
	c := shell("echo $$; read x")
	in, release, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	c.Stdin, c.Stdout = in, output(t)
	c.Starting = func(got Leader) error {
		l = got
		alive, err := Alive(l)
		assert.NoError(t, err)
		assert.Len(t, alive, 1)
		return release.Close()
	}
	run(t, c)
	assert.Equal(t, strconv.Itoa(l.PID)+"\n", content(t, c.Stdout))
	assert.Equal(t, l.PID, l.PGID)
	assert.Equal(t, BootID(), l.BootID)
	if runtime.GOOS == "linux" {
		assert.NotZero(t, l.StartTime)
		assert.NotEmpty(t, l.BootID)
	}
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
}

func TestTimeout(t *testing.T) {
	t.Run("obeyed", func(t *testing.T) {
		c := shell("exec sleep 1000")
		c.Timeout = time.Millisecond
		res := run(t, c)
		assert.Equal(t, 124, res.ExitCode)
		assert.Equal(t, "SIGTERM", res.Signal)
		assert.True(t, res.TimedOut)
		assert.Nil(t, res.Interrupted)
	})
	t.Run("ignored", func(t *testing.T) {
		c := shell("trap '' TERM; echo ready; while :; do sleep 1000; done")
		c.Grace = 50 * time.Millisecond
		res := runReady(t, c)
		assert.Equal(t, 124, res.ExitCode)
		assert.Equal(t, "SIGKILL", res.Signal)
		assert.True(t, res.TimedOut)
	})
	t.Run("own exit", func(t *testing.T) {
		c := shell("trap 'exit 0' TERM; echo ready; sleep 1000 & wait")
		res := runReady(t, c)
		assert.Equal(t, 124, res.ExitCode)
		assert.Empty(t, res.Signal)
		assert.True(t, res.TimedOut)
	})
	t.Run("stopped", func(t *testing.T) {
		c := shell("kill -STOP $$; exit 9")
		c.Timeout = 100 * time.Millisecond
		res := run(t, c)
		assert.Equal(t, 124, res.ExitCode)
		assert.Equal(t, "SIGTERM", res.Signal)
	})
	t.Run("not reached", func(t *testing.T) {
		c := shell("exit 2")
		c.Timeout = time.Hour
		res := run(t, c)
		assert.Equal(t, 2, res.ExitCode)
		assert.False(t, res.TimedOut)
	})
}

// runReady runs c with a timeout that is long enough for it to say that it is ready:
// on a busy machine a shell may take any time to set its trap.
func runReady(t *testing.T, c Command) Result {
	t.Helper()
	for c.Timeout = 50 * time.Millisecond; ; c.Timeout *= 2 {
		ready := notify("ready")
		c.Log = ready
		if res := run(t, c); ready.told {
			return res
		}
		require.Less(t, c.Timeout, time.Minute, "never ready")
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	c := shell("exec sleep 1000")
	c.Starting = func(Leader) error { cancel(errors.New("enough")); return nil }
	res, err := Run(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, "SIGTERM", res.Signal)
}

func TestInterrupted(t *testing.T) {
	t.Run("command exits well", func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		ready := notify("ready")
		go func() { <-ready.there; signals <- unix.SIGINT }()
		c := shell("trap 'echo caught; exit 0' INT; echo ready; sleep 1000 & wait")
		c.Signals, c.Log = signals, ready
		res := run(t, c)
		assert.Equal(t, 130, res.ExitCode)
		assert.Equal(t, unix.SIGINT, res.Interrupted)
		assert.Contains(t, ready.seen.String(), "caught")
	})
	t.Run("second kills", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		ready, first := notify("ready"), notify("first")
		go func() {
			<-ready.there
			signals <- unix.SIGTERM
			<-first.there
			signals <- unix.SIGTERM
		}()
		c := shell("trap 'echo first' TERM; echo ready; while :; do sleep 1000 & wait; done")
		c.Signals, c.Log = signals, io.MultiWriter(ready, first)
		res := run(t, c)
		assert.Equal(t, 143, res.ExitCode)
		assert.Equal(t, "SIGKILL", res.Signal)
		assert.Equal(t, unix.SIGTERM, res.Interrupted)
	})
	t.Run("straggler's grace cut short", func(t *testing.T) {
		signals := make(chan os.Signal, 2)
		ready := notify("still here")
		go func() { <-ready.there; signals <- unix.SIGHUP; signals <- unix.SIGHUP }()
		c := shell(`sh -c 'trap "echo still here" TERM; echo ready; while :; do sleep 1000 & wait; done' & read x; exit 3`)
		in, release, err := os.Pipe()
		require.NoError(t, err)
		defer in.Close()
		up := notify("ready")
		go func() { <-up.there; _ = release.Close() }()
		c.Stdin, c.Signals, c.Log, c.Grace = in, signals, io.MultiWriter(up, ready), time.Hour
		res := run(t, c)
		assert.Nil(t, res.Interrupted, "the command itself had ended")
		assert.Equal(t, unix.SIGHUP, res.Late)
		assert.Equal(t, 3, res.ExitCode)
		assert.NotEmpty(t, res.Stragglers)
		assert.Empty(t, res.Survivors)
	})
	t.Run("channel closed", func(t *testing.T) {
		signals := make(chan os.Signal)
		close(signals)
		c := shell("exit 1")
		c.Signals = signals
		res := run(t, c)
		assert.Equal(t, 1, res.ExitCode)
		assert.Nil(t, res.Interrupted)
	})
}

func TestInterruptedWhileTheReaderIsSlow(t *testing.T) {
	// Nobody takes what the command left in the pipe; an interrupt gives it up, and the command has succeeded all the same.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	signals := make(chan os.Signal, 2)
	var l Leader
	c := shell("head -c 120000 /dev/zero; echo done >&2")
	done := notify("done")
	c.Stdout, c.Log, c.Signals, c.Grace = w, done, signals, 10*time.Millisecond
	c.Starting = func(got Leader) error { l = got; return nil }
	go func() {
		<-done.there
		for unix.Kill(l.PID, 0) == nil { // until it has ended, and decree has taken note
			runtime.Gosched()
		}
		signals <- unix.SIGINT
		signals <- unix.SIGINT
	}()
	res := run(t, c)
	assert.Zero(t, res.ExitCode)
	assert.Nil(t, res.Interrupted)
	assert.Equal(t, unix.SIGINT, res.Late)
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
}

func TestStraggler(t *testing.T) {
	var log bytes.Buffer
	c := shell("sleep 1000 & echo $!")
	c.Stdout, c.Log = output(t), &log
	res := run(t, c)
	assert.Zero(t, res.ExitCode)
	require.Len(t, res.Stragglers, 1)
	if runtime.GOOS == "linux" {
		// Its name is the shell's until it executes sleep.
		assert.Contains(t, []string{"sh", "sleep"}, res.Stragglers[0].Name)
		assert.Equal(t, content(t, c.Stdout), strconv.Itoa(res.Stragglers[0].PID)+"\n")
	}
	assert.Empty(t, res.Survivors)
}

func TestStragglerThatIgnoresTERM(t *testing.T) {
	c := shell("sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & read x; exit 4")
	in, release, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	ready := notify("ready")
	go func() { <-ready.there; _ = release.Close() }()
	var l Leader
	c.Stdin, c.Log, c.Grace, c.Starting = in, ready, 20*time.Millisecond, func(got Leader) error { l = got; return nil }
	res := run(t, c)
	assert.Equal(t, 4, res.ExitCode)
	assert.NotEmpty(t, res.Stragglers)
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
}

// A daemon has left the group and holds the output open. It ends with the input.
const daemon = `mkfifo "$1/up"; exec 3<&0; setsid sh -c 'echo up >"$1/up"; exec cat <&3' sh "$1" & read x <"$1/up"; `

func TestDaemonHoldsTheOutput(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("no setsid")
	}
	in, release, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer release.Close()
	var log bytes.Buffer
	c := shell(daemon+"echo $!; head -c 60000 /dev/zero; exit 6", t.TempDir())
	c.Stdin, c.Stdout, c.Log = in, output(t), &log
	res := run(t, c)
	assert.Equal(t, 6, res.ExitCode)
	assert.Empty(t, res.Stragglers)
	pid, rest, _ := strings.Cut(content(t, c.Stdout), "\n")
	assert.Len(t, rest, 60000)
	assert.Equal(t, content(t, c.Stdout), log.String())
	if runtime.GOOS == "linux" {
		require.Len(t, res.Outside, 1)
		assert.Equal(t, pid, strconv.Itoa(res.Outside[0].PID))
	}
}

func TestOutsideWorksInTheRoot(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
	tests := map[string]struct {
		dir, redirect, id string
		want              bool
	}{
		"working directory":   {"$1/root/sub", "", "", true},
		"open file":           {"/", "4>$1/root/file", "", true},
		"elsewhere":           {"/", "", "", false},
		"a neighbour's name":  {"$1/root2", "", "", false},
		"not of this command": {"$1/root/sub", "", "DECREE_RUN_ID=another", false},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "real/root/sub"), 0o755))
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "real/root2"), 0o755))
			// The root's name may go through a link; the system knows the real one.
			require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
			in, release, err := os.Pipe()
			require.NoError(t, err)
			defer in.Close()
			defer release.Close()
			c := shell(`mkfifo "$1/up"; exec 3<&0; (cd "`+tt.dir+`" && exec env `+tt.id+` setsid sh -c 'echo $$ >"$1/up"; read end <&3' sh "$1" `+
				tt.redirect+` >/dev/null 2>&1) & read pid <"$1/up"; echo $pid`, filepath.Join(dir, "link"))
			c.Stdout = output(t)
			c.Stdin, c.Root = in, filepath.Join(dir, "link/root")
			res := run(t, c)
			assert.Zero(t, res.ExitCode)
			if !tt.want {
				assert.Empty(t, res.Outside)
				return
			}
			require.Len(t, res.Outside, 1)
			assert.Equal(t, content(t, c.Stdout), strconv.Itoa(res.Outside[0].PID)+"\n")
		})
	}
}

// TestDrain has output that came before the deadline but is read after it.
func TestDrain(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close() // stays open: there is no end to wait for
	data := bytes.Repeat([]byte("0123456789"), 6000)
	_, err = w.Write(data)
	require.NoError(t, err)
	require.NoError(t, r.SetReadDeadline(time.Now().Add(-time.Second)))
	var log bytes.Buffer
	c := &copier{from: r, to: output(t), log: &tee{log: &log}, done: make(chan struct{})}
	c.run()
	<-c.done
	require.NoError(t, c.failed)
	assert.Equal(t, string(data), content(t, c.to))
	assert.Equal(t, string(data), log.String())
}

func TestClosedLogIsNotWritten(t *testing.T) {
	var log bytes.Buffer
	l := &tee{log: &log}
	l.write([]byte("a"))
	require.NoError(t, l.close())
	l.write([]byte("b"))
	assert.Equal(t, "a", log.String())
}

func TestNonBlockingOutput(t *testing.T) {
	// Someone who shares decree's stdout made it non-blocking behind its back.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fd, err := unix.Dup(int(w.Fd()))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	out := os.NewFile(uintptr(fd), "out") // blocking now, as far as this handle knows
	require.NoError(t, unix.SetNonblock(fd, true))
	all := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(r)
		all <- b
	}()
	data := bytes.Repeat([]byte("x"), 1<<20)
	require.NoError(t, writeAll(out, data))
	require.NoError(t, out.Close())
	assert.Len(t, <-all, len(data))
}
