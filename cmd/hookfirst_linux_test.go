package cmd

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
