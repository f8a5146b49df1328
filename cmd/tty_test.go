//go:build unix

package cmd

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// ttyVariables are what a command on a script's terminal gets of the environment.
var ttyVariables = []string{"PATH", "HOME", "XDG_DATA_HOME", "SCRIPT_NOW", "TERM", "COLUMNS", "NO_COLOR", "PAGER", "DECREE_PAGER", "LC_ALL", "TZ", "WORK"}

// keys are answers that are one key.
var keys = map[string]string{"^C": "\x03", "^Z": "\x1a", "^D": "\x04"}

// tty CODE ANSWERS COMMAND... runs a command with a pseudo-terminal as its
// stdin, stdout and stderr and fails unless its exit status is CODE. Each line
// of the file ANSWERS is "TEXT => ANSWER": when TEXT has come, ANSWER is typed, ^C, ^D and ^Z as
// the one key.
// What came is in $WORK/screen, without carriage returns.
func tty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: tty CODE ANSWERS COMMAND [ARG...]")
	}
	cmd := exec.Command(args[2], args[3:]...)
	for _, dir := range strings.Split(ts.Getenv("PATH"), ":") {
		if path := dir + "/" + args[2]; isExecutable(path) {
			cmd.Path, cmd.Err = path, nil
			break
		}
	}
	cmd.Dir = ts.MkAbs(".")
	for _, key := range ttyVariables {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 100})
	ts.Check(err)
	screen := newScreen()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		screen.read(f)
	}()
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n") {
		prompt, answer, ok := strings.Cut(line, " =>")
		if !ok {
			continue
		}
		if !screen.wait(prompt) {
			ts.Fatalf("%q did not come; the screen is\n%s", prompt, screen.text())
		}
		answer = strings.TrimSpace(answer) + "\n"
		if key, ok := keys[strings.TrimSpace(answer)]; ok {
			answer = key
		}
		_, err := f.WriteString(answer)
		ts.Check(err)
	}
	err = cmd.Wait()
	<-ended
	f.Close()
	ts.Check(os.WriteFile(ts.Getenv("WORK")+"/screen", []byte(screen.text()), 0o644))
	ts.Logf("%s", screen.text())
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit status %d, should be %s", code, args[0])
	}
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// screen is what came out of a terminal. It is safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	more  *sync.Cond
	seen  bytes.Buffer
	from  int // where the next wait begins
	ended bool
}

func newScreen() *screen {
	s := &screen{}
	s.more = sync.NewCond(&s.mu)
	return s
}

// read takes what comes until the other side is closed, which is EIO on Linux.
func (s *screen) read(f *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		s.mu.Lock()
		s.seen.Write(bytes.ReplaceAll(buf[:n], []byte("\r"), nil))
		s.ended = err != nil && !errors.Is(err, syscall.EINTR)
		ended := s.ended
		s.mu.Unlock()
		s.more.Broadcast()
		if ended {
			return
		}
	}
}

// wait waits until text has come behind what the last wait found, and says
// whether it has.
func (s *screen) wait(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if i := strings.Index(s.seen.String()[s.from:], text); i >= 0 {
			s.from += i + len(text)
			return true
		}
		if s.ended {
			return false
		}
		s.more.Wait()
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}
