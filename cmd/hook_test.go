//go:build unix

package cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// hookBench is a project with a record in a directory of its own.
func hookBench(t testing.TB) Env {
	base := t.TempDir()
	env := Env{Now: time.Now, Location: time.UTC, User: "u", Host: "h", Cwd: filepath.Join(base, "tree"), Environ: []string{"HOME=" + base, "XDG_DATA_HOME=" + filepath.Join(base, "data")}}
	require.NoError(t, os.MkdirAll(filepath.Join(env.Cwd, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(env.Cwd, "f"), []byte("one\n"), 0o644))
	r, err := recorder.Open(context.Background(), recorder.Options{
		ReaderOptions: recorder.ReaderOptions{Disk: disk.OS, Where: project.Where{RootFlag: env.Cwd, Cwd: env.Cwd, DataHome: filepath.Join(base, "data")}, Clock: time.Now, Location: time.UTC},
		Create:        true, Actor: history.Actor{User: "u", Host: "h"},
	})
	require.NoError(t, err)
	_, err = r.Checkpoint(context.Background(), recorder.CheckpointOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return env
}

// hookOnce calls the hook and returns what it printed on stdout and stderr.
func hookOnce(t testing.TB, env Env, payload []byte, args ...string) (code int, stdout, stderr string) {
	return mainOnce(t, env, payload, append([]string{"hook"}, args...)...)
}

// mainOnce calls a command in this process and returns what it printed on stdout and stderr.
func mainOnce(t testing.TB, env Env, input []byte, args ...string) (code int, stdout, stderr string) {
	dir := t.TempDir()
	file := func(name string, data []byte) *os.File {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	env.Args = args
	env.Stdin, env.Stdout, env.Stderr = file("in", input), file("out", nil), file("err", nil)
	code = Main(env)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(data)
	}
	return code, read("out"), read("err")
}

// FuzzHook holds what a hook promises its agent, whatever comes in: the exit status is 0,
// nothing is on stdout, and at most a line on stderr.
func FuzzHook(f *testing.F) {
	env := hookBench(f)
	for _, name := range agent.Names() {
		for _, kind := range []agent.Kind{agent.Session, agent.Prompt, agent.ToolBefore, agent.ToolAfter, agent.TurnEnd, agent.SessionEnd} {
			for _, event := range agent.Events(name, kind) {
				f.Add(name, event, []byte(`{"session_id":"s","prompt":"p","cwd":"../..","tool_name":"Write","tool_input":{"file_path":"../../x"}}`))
			}
		}
	}
	f.Add("", "", []byte(nil))
	f.Add("codex", "UserPromptSubmit", []byte("{\"session_id\":\"\x00\",\"prompt\":\"\x1b[31m\",\"cwd\":\"/\x00\"}"))
	f.Add("--help", "-h", []byte("[]"))
	f.Fuzz(func(t *testing.T, name, event string, payload []byte) {
		code, stdout, stderr := hookOnce(t, env, payload, name, event)
		require.Zero(t, code)
		require.Empty(t, stdout)
		require.LessOrEqual(t, strings.Count(stderr, "\n"), 1, stderr)
	})
}

// A hook whose agent never ends what it sends is over by the deadline.
func TestHookWhoseInputDoesNotEnd(t *testing.T) {
	env := hookBench(t)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	_, err = out.WriteString(`{"session_id":"s","prompt":"p"`)
	require.NoError(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	env.Args = []string{"hook", "codex", "Interrupt"} // which Codex waits 3 s for
	env.Stdin, env.Stdout, env.Stderr = in, null, null
	require.Zero(t, Main(env))
}

// What an agent has sent whole counts, also where it leaves its end of the pipe open.
func TestHookWhoseInputStaysOpen(t *testing.T) {
	env := hookBench(t)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	_, err = out.WriteString(`{"sessionContext": {"rootSessionId": "s"}, "workspaceRoots": ["` + env.Cwd + `"]}`)
	require.NoError(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	env.Args = []string{"hook", "cline", "TaskStart"} // which has to be done within 4 s
	env.Stdin, env.Stdout, env.Stderr = in, null, null
	require.Zero(t, Main(env))

	r, err := recorder.OpenReader(recorder.ReaderOptions{Disk: disk.OS, Where: project.Where{RootFlag: env.Cwd, Cwd: env.Cwd, DataHome: filepath.Join(filepath.Dir(env.Cwd), "data")}, Clock: time.Now, Location: time.UTC})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	list, err := r.History().List(history.ListOptions{Keep: func(r *history.Record) bool { return r.Reason == history.Turn }})
	require.NoError(t, err)
	require.Len(t, list.Records, 1)
	require.Equal(t, "s", list.Records[0].Actor.Session)
}
