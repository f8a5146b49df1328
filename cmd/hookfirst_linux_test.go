package cmd

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/disk"
	"decree/project"
)

// startHook calls a hook and does not wait for it. What it prints on stderr is in said.
func (p *proving) startHook(agent, event, payload string) (c *exec.Cmd, said *strings.Builder) {
	p.t.Helper()
	c, said = exec.Command(p.bin, "hook", agent, event), &strings.Builder{}
	c.Dir, c.Env, c.Stdin, c.Stderr = p.root, p.env, strings.NewReader(payload), said
	require.NoError(p.t, c.Start())
	return c, said
}

func (p *proving) hook(agent, event, payload string) string {
	p.t.Helper()
	c, said := p.startHook(agent, event, payload)
	require.NoError(p.t, c.Wait())
	return said.String()
}

func (p *proving) write(path, content string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(filepath.Join(p.root, path)), 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(p.root, path), []byte(content), 0o644))
}

// TestFirstCaptureInTheBackground: a prompt whose tree is not recorded by the deadline is no
// turn, the capture goes on, and the next prompt is one. The capture takes as long as somebody
// else has the store's lock.
func TestFirstCaptureInTheBackground(t *testing.T) {
	p := newProving(t, nil)
	p.write("f", "one\n")
	p.write(".git/HEAD", "")
	p.write(".decree/config.yml", "agents: {deadline: 1s}\n")
	p.must("init")
	stores, err := filepath.Glob(filepath.Join(p.base, "data", "decree", "*", "store.json"))
	require.NoError(t, err)
	require.Len(t, stores, 1)
	name := filepath.Join(filepath.Dir(stores[0]), "lock")
	require.NoError(t, os.MkdirAll(name, 0o700))
	lock, err := os.Open(name)
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))

	said := p.hook("codex", "UserPromptSubmit", `{"session_id":"s","prompt":"one"}`)
	require.Contains(t, said, "goes on in the background")
	require.Equal(t, 1, strings.Count(said, "\n"))
	require.Empty(t, p.hook("codex", "PostToolUse", `{"session_id":"s","tool_name":"Bash"}`))
	captures := func() int {
		out, err := exec.Command("ps", "-eo", "args").Output()
		require.NoError(t, err)
		return strings.Count(string(out), "-C "+p.root+" -q checkpoint")
	}
	require.Equal(t, 1, captures())
	noteHolder(t, name)
	said = p.hook("codex", "UserPromptSubmit", `{"session_id":"s","prompt":"one more"}`)
	require.Contains(t, said, "goes on in the background")
	require.Equal(t, 1, captures(), "it is under way already")
	_, out := p.decree("turns")
	require.Contains(t, out, "turns are recorded once that is done")
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_UN))

	for out = ""; !strings.Contains(out, "session"); out = p.must("label") {
	}
	_, out = p.decree("turns")
	require.Contains(t, out, "no turns: the tree is recorded since 20")
	require.Empty(t, p.hook("codex", "UserPromptSubmit", `{"session_id":"s","prompt":"two"}`))
	p.write("f", "two\n")
	require.Empty(t, p.hook("codex", "Stop", `{"session_id":"s"}`))
	require.Equal(t, map[string]string{"two": "succeeded"}, p.turns())
	p.must("undo")
	data, err := os.ReadFile(filepath.Join(p.root, "f"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(data))
}

// noteHolder notes that this process holds a lock, as who takes it does.
func noteHolder(t *testing.T, lock string) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	data, err := json.Marshal(project.Holder{PID: os.Getpid(), Host: host})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(lock+".json", data, 0o600))
}

// askedFor is a context that says it has ended when it is asked the n-th time.
type askedFor struct {
	context.Context
	left int
}

func (a *askedFor) Err() error {
	if a.left--; a.left > 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// TestToolsWaitForNoOther: while another holds the lock and no record is open, a tool of an agent that waits for its
// prompt's hook does not wait for the other; one of an agent that does not, waits.
func TestToolsWaitForNoOther(t *testing.T) {
	env := hookBench(t)
	env.Host, _ = os.Hostname()
	s := &session{env: env}
	p, err := project.Open(disk.OS, s.where(), false)
	require.NoError(t, err)
	defer p.Close()
	noteHolder(t, filepath.Join(p.StorePath, "lock"))
	require.True(t, p.Holder().Working(env.Host))
	for name, looks := range map[string]int{"codex": 1, "cline": 3} {
		h, ctx := &hooked{s: s, where: s.where(), project: p, event: agent.Event{Agent: name}}, &askedFor{Context: t.Context(), left: 3}
		h.awaitPrompt(ctx)
		require.Equal(t, looks, 3-ctx.left, name)
	}
}

// TestDeadlineOfTheConfig: the config's deadline is also that of what hangs.
func TestDeadlineOfTheConfig(t *testing.T) {
	env := hookBench(t)
	require.NoError(t, os.WriteFile(filepath.Join(env.Cwd, ".decree", "config.yml"), []byte("agents: {deadline: 1s}\n"), 0o644))
	h := &hooked{s: &session{env: env}, deadline: time.Now().Add(time.Hour), limit: time.NewTimer(time.Hour)}
	found, err := h.find()
	require.NoError(t, err)
	require.True(t, found)
	defer h.project.Close()
	<-h.limit.C
}

// TestDeadlineBeforeTheProject: the config counts also where nothing is recorded yet.
func TestDeadlineBeforeTheProject(t *testing.T) {
	p := newProving(t, nil)
	p.write("f", "one\n")
	p.write(".decree/config.yml", "agents: {deadlin: 1s}\n")
	require.Contains(t, p.hook("codex", "UserPromptSubmit", `{"session_id":"s","prompt":"one"}`), "agents.deadlin")
}

// TestFirstToolBesideItsPrompt: an agent that does not wait for its prompt's hook has its first
// tool wait for it, also where that hook makes the project. What the tool names is its turn's.
func TestFirstToolBesideItsPrompt(t *testing.T) {
	p := newProving(t, nil)
	p.write("f", "one\n")
	p.write("mine", "one\n")
	p.write(".git/HEAD", "")
	begins, _ := p.startHook("cline", "TaskStart", `{"taskId":"s","taskStart":{"taskMetadata":{"initialTask":"work"}}}`)
	tool := `{"taskId":"s","preToolUse":{"toolName":"write_to_file","parameters":{"path":"f"}}}`
	require.Empty(t, p.hook("cline", "PreToolUse", tool))
	p.write("f", "two\n")
	p.write("mine", "two\n")
	require.NoError(t, begins.Wait())
	require.Empty(t, p.hook("cline", "TaskComplete", `{"taskId":"s"}`))
	require.Equal(t, map[string]string{"work": "succeeded"}, p.turns())
	require.Equal(t, "f\n", p.must("diff", "--name-only", "turn-1"))
	var shown struct{ Outside struct{ Modified int } }
	require.NoError(t, json.Unmarshal([]byte(p.must("show", "--json", "turn-1")), &shown))
	require.Equal(t, 1, shown.Outside.Modified)
}
