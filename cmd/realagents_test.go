//go:build unix

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRealAgents drives real clients, hooked by `decree agents install`, through the stories of
// a person's hour: whatever happens in it, decree's commands say and undo what the agent did.
func TestRealAgents(t *testing.T) {
	installed := os.Getenv("DECREE_AGENTS")
	if installed == "" {
		t.Skip("real agents are driven by 'make agents', which installs them with npm")
	}
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.line[0] = filepath.Join(installed, a.name, "node_modules", ".bin", a.line[0])
			if _, err := os.Stat(a.line[0]); err != nil {
				t.Skipf("%s is not installed: %v", a.name, err)
			}
			for _, story := range realStories {
				t.Run(story.name, func(t *testing.T) {
					if why := a.cannot[story.name]; why != "" {
						t.Skip(why)
					}
					story.tell(t, a)
				})
			}
		})
	}
}

// realBench is a machine of a test's own: a home, a tree with a file old.txt, decree in $PATH, and in the client.
type realBench struct {
	*testing.T
	agent           realAgent
	dir, root, home string
	model           *scriptedModel
	env             []string
}

func newRealBench(t *testing.T, a realAgent, scripts ...modelScript) *realBench {
	dir := t.TempDir()
	b := &realBench{T: t, agent: a, dir: dir, root: filepath.Join(dir, "tree"), home: filepath.Join(dir, "home")}
	bin := filepath.Join(dir, "bin")
	for _, d := range []string{filepath.Join(b.root, ".git"), b.home, bin, filepath.Join(dir, "tmp")} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	// No link: a hook starts the program that it is by the name that the system has for it.
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "decree"), program, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "old.txt"), []byte("old\n"), 0o644))
	b.model = startModel(t, b.root, scripts)
	b.configure("")
	// Nothing is to call home: what does not go to this machine meets a closed port.
	b.env = []string{"HOME=" + b.home, "TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=" + bin + ":" + pathWithoutDecree(), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"DO_NOT_TRACK=1", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1"}
	for _, e := range a.env {
		b.env = append(b.env, b.filled(e))
	}
	t.Cleanup(b.killRest)
	if a.setup != nil {
		words := []string{}
		for _, w := range a.setup[1:] {
			words = append(words, b.filled(w))
		}
		b.do(a.line[0], words...)
	}
	b.decree("agents", "install", a.name)
	return b
}

// pathWithoutDecree is $PATH but for where another decree is.
func pathWithoutDecree() string {
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "decree"))
		return err == nil
	})
	return strings.Join(dirs, ":")
}

func (b *realBench) filled(text string) string {
	return strings.ReplaceAll(text, "@URL@", b.model.url)
}

// configure writes the client's files, with what makes decree a server of it, unless "".
func (b *realBench) configure(mcp string) {
	for name, text := range b.agent.files {
		if text = strings.ReplaceAll(b.filled(text), "@MCP@", mcp); text == "" {
			continue
		}
		require.NoError(b, os.MkdirAll(filepath.Dir(filepath.Join(b.home, name)), 0o755))
		require.NoError(b, os.WriteFile(filepath.Join(b.home, name), []byte(text), 0o644))
	}
}

// killRest ends what a client has left behind, as Cline does: it is known by the home.
func (b *realBench) killRest() {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range all {
		if env, err := os.ReadFile(file); err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+b.home+"\x00")) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// command is a program in the tree, in a process group of its own.
func (b *realBench) command(program string, words ...string) *exec.Cmd {
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	b.Cleanup(stop)
	c := exec.CommandContext(ctx, program, words...)
	c.Dir, c.Env, c.SysProcAttr, c.WaitDelay = b.root, b.env, &syscall.SysProcAttr{Setpgid: true}, 5*time.Second
	return c
}

// do runs a program in the tree, and returns its stdout.
func (b *realBench) do(program string, words ...string) string {
	b.Helper()
	c := b.command(program, words...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	require.NoError(b, c.Run(), "%s %q\n%s\n%s", program, words, &out, &said)
	return out.String()
}

func (b *realBench) decree(words ...string) string {
	b.Helper()
	return b.do(filepath.Join(b.dir, "bin", "decree"), words...)
}

// refused is what decree prints where it refuses: its exit status is 4.
func (b *realBench) refused(words ...string) string {
	b.Helper()
	out, err := b.command(filepath.Join(b.dir, "bin", "decree"), words...).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(b, err, &exit, "%s", out)
	require.Equal(b, 4, exit.ExitCode(), "%s", out)
	return string(out)
}

// client is the client at a prompt, not started yet.
func (b *realBench) client(prompt string) *exec.Cmd {
	return b.command(b.agent.line[0], append(b.agent.line[1:len(b.agent.line):len(b.agent.line)], prompt)...)
}

// prompt has the client do what the model's script has for a prompt, to its answer, and returns what it printed.
func (b *realBench) prompt(prompt string) string {
	b.Helper()
	out, err := b.client(prompt).CombinedOutput()
	require.NoError(b, err, "%s", out)
	return string(out)
}

// resumed goes on with a session.
func (b *realBench) resumed(session, prompt string) {
	b.Helper()
	var words []string
	for _, w := range b.agent.resume[1:] {
		words = append(words, strings.ReplaceAll(w, sessionID, session))
	}
	out, err := b.command(b.agent.line[0], append(words, prompt)...).CombinedOutput()
	require.NoError(b, err, "%s", out)
}

// files are the tree's, with what is in them.
func (b *realBench) files() map[string]string {
	all := map[string]string{}
	require.NoError(b, filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(b.root, path)
		switch {
		case name == ".git" || name == ".decree":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		all[name] = string(text)
		return err
	}))
	return all
}

// recordedTurn is what the tests want to know of a turn's record.
type recordedTurn struct {
	ID, Status, Prompt, Continues string
	EndedBy                       string `json:"ended_by"`
	Overlaps                      []string
	Actor                         struct{ Agent, Session string }
	Changes                       struct{ Created, Modified, Deleted int }
}

// turns are all, newest first.
func (b *realBench) turns() (turns []recordedTurn) {
	b.Helper()
	require.NoError(b, json.Unmarshal([]byte(b.decree("turns", "--json")), &turns))
	return turns
}

// turn is the only one, of this client.
func (b *realBench) turn() recordedTurn {
	b.Helper()
	turns := b.turns()
	require.Len(b, turns, 1, "one prompt, one turn")
	assert.Equal(b, b.agent.name, turns[0].Actor.Agent)
	return turns[0]
}

// started is a client that works.
type started struct {
	*exec.Cmd
	said  bytes.Buffer
	ended chan error
}

func (b *realBench) start(prompt string) *started {
	s := &started{Cmd: b.client(prompt), ended: make(chan error, 1)}
	s.Stdout, s.Stderr = &s.said, &s.said
	require.NoError(b, s.Start())
	go func() { s.ended <- s.Wait() }()
	return s
}

// signal is sent to the client and all that it has started, as a terminal does; it is waited for.
func (b *realBench) signal(s *started, sig syscall.Signal) {
	_ = syscall.Kill(-s.Process.Pid, sig)
	<-s.ended
}

// pipe is a named pipe beside the tree. A command of the script that opens the other end waits.
func (b *realBench) pipe(name string) string {
	require.NoError(b, syscall.Mkfifo(filepath.Join(b.dir, name), 0o600))
	return filepath.Join(b.dir, name)
}

// told waits until a command of the script has written into a pipe.
func (b *realBench) told(s *started, pipe string) {
	b.Helper()
	told := make(chan struct{})
	go func() { _, _ = os.ReadFile(pipe); close(told) }()
	select {
	case <-told:
	case err := <-s.ended:
		b.Fatalf("%s ended by itself: %v\n%s", b.agent.name, err, &s.said)
	}
}
