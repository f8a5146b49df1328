//go:build unix

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// longWait is when a text that does not come is given up.
const longWait = 90 * time.Second

// screenVariables are what a program on a screen gets of the script's environment.
var screenVariables = []string{"PATH", "HOME", "XDG_DATA_HOME", "SCRIPT_NOW", "NO_COLOR", "LC_ALL", "TZ", "WORK", "EDITOR"}

// driven is a program on a screen of tmux's.
type driven struct {
	ts     *testscript.TestScript
	socket string
}

// onScreen is screen COLUMNSxROWS STORY COMMAND... runs a command on a screen of tmux's and does what the file STORY
// says, a line each:
//
//	see TEXT        wait until the screen has the text
//	gone TEXT       wait until it has not
//	keys KEY...     press keys, as tmux names them
//	type TEXT       type it
//	mouse X Y       click there, from 0
//	resize CxR      give the screen another size
//	shell LINE      have sh do something beside it
//	title TEXT      fail if the window's title has the text
//	plain, styled   fail if there are colours on the screen, if there are none
//	ended N         wait until the command has ended with that status
//
// It needs no pauses: what follows a key waits for what the key makes appear.
func onScreen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: screen COLUMNSxROWS STORY COMMAND [ARG...]")
	}
	dir, err := os.MkdirTemp("", "screen") // a socket's path must be short
	ts.Check(err)
	d := &driven{ts: ts, socket: filepath.Join(dir, "s")}
	defer func() {
		_ = exec.Command("tmux", "-S", d.socket, "kill-server").Run()
		_ = os.RemoveAll(dir)
	}()
	columns, rows, _ := strings.Cut(args[0], "x")
	// What is suspended is gone on with at the next line that is typed.
	line := `set -m; "$@"; r=$?; while [ $r = 148 ]; do echo "suspended"; read x; fg >/dev/null; r=$?; done; echo "ended $r"; exec cat`
	words := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "-c", ts.MkAbs("."), "bash", "-c", line, "bash"}, args[2:]...)
	d.tmux(words...)
	for n, step := range strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		if word == "" || word[0] == '#' {
			continue
		}
		if err := d.step(word, strings.TrimSpace(rest)); err != nil {
			ts.Fatalf("line %d, %q: %v; the screen is\n%s", n+1, step, err, d.tmux("capture-pane", "-p"))
		}
	}
}

func (d *driven) step(word, rest string) error {
	switch word {
	case "see":
		return d.wait(func(text string) bool { return strings.Contains(text, rest) })
	case "gone":
		return d.wait(func(text string) bool { return !strings.Contains(text, rest) })
	case "ended":
		return d.wait(func(text string) bool { return strings.Contains(text, "ended "+rest) })
	case "keys":
		d.tmux(append([]string{"send-keys"}, strings.Fields(rest)...)...)
	case "type":
		d.tmux("send-keys", "-l", rest)
	case "mouse":
		var x, y int
		if _, err := fmt.Sscan(rest, &x, &y); err != nil {
			return err
		}
		d.tmux("send-keys", "-l", fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<0;%d;%dm", x+1, y+1, x+1, y+1))
	case "resize":
		columns, rows, _ := strings.Cut(rest, "x")
		d.tmux("resize-window", "-x", columns, "-y", rows)
	case "shell":
		c := exec.Command("sh", "-ec", rest)
		c.Dir, c.Env = d.ts.MkAbs("."), d.environ()
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	case "plain", "styled":
		colours := strings.Contains(d.tmux("capture-pane", "-p", "-e"), "\x1b[38;")
		if colours == (word == "plain") {
			return fmt.Errorf("the screen is not %s", word)
		}
	case "title": // what a name could have set it to is not it
		if got := d.tmux("display-message", "-p", "#{pane_title}"); strings.Contains(got, rest) {
			return fmt.Errorf("the title is %q", got)
		}
	default:
		return fmt.Errorf("no such step")
	}
	return nil
}

func (d *driven) wait(there func(text string) bool) error {
	for end := time.Now().Add(longWait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if there(d.tmux("capture-pane", "-p")) {
			return nil
		}
	}
	return fmt.Errorf("it did not come")
}

func (d *driven) environ() []string {
	var out []string
	for _, key := range screenVariables {
		if v := d.ts.Getenv(key); v != "" {
			out = append(out, key+"="+v)
		}
	}
	return append(out, "TERM=xterm-256color")
}

func (d *driven) tmux(args ...string) string {
	c := exec.Command("tmux", append([]string{"-u", "-S", d.socket}, args...)...)
	c.Env = d.environ()
	out, err := c.CombinedOutput()
	if err != nil {
		d.ts.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}
