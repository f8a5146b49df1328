//go:build unix

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realAgent is how a real client is run without a person and with the scripted model. Its package is below
// $DECREE_AGENTS/NAME, where `make agents` installs it.
type realAgent struct {
	name string
	// files are what it needs below the home; @URL@ in them is the model's.
	files map[string]string
	env   []string
	line  []string // the program, its flags, and the prompt
	acp   []string // what has it speak the Agent Client Protocol; nil: it was not tried
}

var realAgents = []realAgent{
	{
		name: "codex",
		files: map[string]string{".codex/config.toml": `model = "gpt-5.5"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
apps = false
plugins = false
[model_providers.fake]
name = "fake"
base_url = "@URL@/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`},
		line: []string{"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "do it"},
	},
	{
		name:  "gemini",
		files: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": false}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		env:   []string{"GEMINI_API_KEY=fake", "GOOGLE_GEMINI_BASE_URL=@URL@", "GEMINI_CLI_NO_RELAUNCH=true"},
		line:  []string{"gemini", "--skip-trust", "--yolo", "-m", "gemini-2.5-pro", "-p", "do it"},
		acp:   []string{"--acp", "--skip-trust", "--yolo", "-m", "gemini-2.5-pro"},
	},
	{
		name:  "qwen",
		files: map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": false}, "privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		env:   []string{"OPENAI_API_KEY=fake", "OPENAI_BASE_URL=@URL@/v1", "OPENAI_MODEL=fake"},
		line:  []string{"qwen", "--yolo", "-p", "do it"},
	},
	{
		name: "copilot",
		env:  []string{"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "COPILOT_PROVIDER_BASE_URL=@URL@/v1", "COPILOT_PROVIDER_API_KEY=fake", "COPILOT_MODEL=fake"},
		line: []string{"copilot", "--no-color", "--allow-all-tools", "--allow-all-paths", "-p", "do it"},
	},
	{
		name:  "pi",
		files: map[string]string{".pi/agent/models.json": `{"providers": {"fake": {"baseUrl": "@URL@/v1", "api": "openai-completions", "apiKey": "fake", "models": [{"id": "fake"}]}}}`},
		env:   []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"},
		line:  []string{"pi", "--offline", "--provider", "fake", "--model", "fake", "-p", "do it"},
	},
	{
		name: "opencode",
		files: map[string]string{".config/opencode/opencode.json": `{"model": "fake/fake", "small_model": "fake/fake", "autoupdate": false, "share": "disabled", "enabled_providers": ["fake"],
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": {"baseURL": "@URL@/v1", "apiKey": "fake"}, "models": {"fake": {"name": "fake", "tool_call": true, "limit": {"context": 200000, "output": 8000}}}}},
 "permission": {"edit": "allow", "bash": "allow", "external_directory": "allow"}}`},
		env:  []string{"npm_config_fetch_retries=0", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		line: []string{"opencode", "run", "do it"},
		acp:  []string{"acp"},
	},
}

// TestRealAgents drives real clients, hooked by `decree agents install`: what one prompt
// made them do, by tool and by shell, is one record, which undo takes back.
func TestRealAgents(t *testing.T) {
	installed := os.Getenv("DECREE_AGENTS")
	if installed == "" {
		t.Skip("real agents are driven by 'make agents', which installs them with npm")
	}
	for _, a := range realAgents {
		t.Run(a.name, func(t *testing.T) {
			program := filepath.Join(installed, a.name, "node_modules", ".bin", a.line[0])
			if _, err := os.Stat(program); err != nil {
				t.Skipf("%s is not installed: %v", a.name, err)
			}
			if a.acp != nil {
				t.Run("acp", func(t *testing.T) { realACP(t, a, program) })
			}
			t.Run("story", func(t *testing.T) { realStory(t, a, program) })
			for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
				t.Run(sig.String(), func(t *testing.T) { realInterrupt(t, a, program, sig) })
			}
		})
	}
}

// realBench is a machine of a test's own: a home, a tree, decree in $PATH.
type realBench struct {
	*testing.T
	root string
	env  []string
}

func newRealBench(t *testing.T, a realAgent, script []modelTurn) *realBench {
	dir := t.TempDir()
	b := &realBench{T: t, root: filepath.Join(dir, "tree")}
	home, bin := filepath.Join(dir, "home"), filepath.Join(dir, "bin")
	for _, d := range []string{filepath.Join(b.root, ".git"), home, bin, filepath.Join(dir, "tmp")} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	// No link: a hook starts the program that it is by the name that the system has for it.
	program, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "decree"), program, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "old.txt"), []byte("old\n"), 0o644))
	url := startModel(t, b.root, script)
	for name, text := range a.files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(strings.ReplaceAll(text, "@URL@", url)), 0o644))
	}
	// Nothing is to call home: what does not go to this machine meets a closed port.
	b.env = []string{"HOME=" + home, "TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=" + bin + ":" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"DO_NOT_TRACK=1", "HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1"}
	for _, e := range a.env {
		b.env = append(b.env, strings.ReplaceAll(e, "@URL@", url))
	}
	return b
}

// do runs a program in the tree, and returns its stdout.
func (b *realBench) do(program string, words ...string) string {
	b.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program, words...)
	c.Dir, c.Env = b.root, b.env
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	require.NoError(b, c.Run(), "%s %q\n%s\n%s", program, words, &out, &said)
	return out.String()
}

func (b *realBench) decree(words ...string) string {
	b.Helper()
	return b.do(filepath.Join(filepath.Dir(b.root), "bin", "decree"), words...)
}

func realStory(t *testing.T, a realAgent, program string) {
	b := newRealBench(t, a, []modelTurn{
		{"I write a file.", []modelCall{{path: "hello.txt", content: "hello\nworld\n"}}},
		{"", []modelCall{{command: "mkdir -p sub && echo made by shell > sub/shell.txt && rm old.txt"}}},
		{"All done.", nil},
	})
	b.decree("agents", "install", a.name)
	b.do(program, a.line[1:]...)
	require.FileExists(t, filepath.Join(b.root, "sub", "shell.txt"), "the model's script was followed")

	turns := b.turns()
	require.Len(t, turns, 1, "one prompt, one turn")
	turn := turns[0]
	assert.Equal(t, a.name, turn.Actor.Agent)
	assert.Contains(t, turn.Prompt, "do it")
	assert.Equal(t, 2, turn.Changes.Created)
	assert.Equal(t, 1, turn.Changes.Deleted, "also what the shell deleted")

	b.decree("undo", "--yes")
	assert.NoFileExists(t, filepath.Join(b.root, "hello.txt"))
	assert.NoFileExists(t, filepath.Join(b.root, "sub"))
	assert.FileExists(t, filepath.Join(b.root, "old.txt"))
	b.decree("redo", "--yes")
	assert.FileExists(t, filepath.Join(b.root, "sub", "shell.txt"))
}

// recordedTurn is what the tests want to know of a turn's record.
type recordedTurn struct {
	ID, Reason, Status, Prompt string
	Actor                      struct{ Agent string }
	Changes                    struct{ Created, Modified, Deleted int }
}

func (b *realBench) turns() (turns []recordedTurn) {
	b.Helper()
	require.NoError(b, json.Unmarshal([]byte(b.decree("turns", "--json")), &turns))
	return turns
}

// realInterrupt ends the agent in the midst of a shell command: with or without a last
// event, what it had done by then is a turn, and undo takes it back.
func realInterrupt(t *testing.T, a realAgent, program string, sig syscall.Signal) {
	b := newRealBench(t, a, []modelTurn{
		{"", []modelCall{{path: "hello.txt", content: "hello\n"}}},
		{"", []modelCall{{command: "echo half > half.txt; rm old.txt; echo begun > ../begun; sleep 60"}}},
	})
	begun := filepath.Join(filepath.Dir(b.root), "begun")
	require.NoError(t, syscall.Mkfifo(begun, 0o600))
	b.decree("agents", "install", a.name)

	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	defer stop()
	c := exec.CommandContext(ctx, program, a.line[1:]...)
	c.Dir, c.Env, c.SysProcAttr, c.WaitDelay = b.root, b.env, &syscall.SysProcAttr{Setpgid: true}, time.Minute
	require.NoError(t, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	told := make(chan struct{})
	go func() { _, _ = os.ReadFile(begun); close(told) }()
	select {
	case <-told:
	case err := <-ended:
		t.Fatalf("%s ended by itself: %v", a.name, err)
	}
	require.NoError(t, syscall.Kill(-c.Process.Pid, sig))
	<-ended

	b.decree("undo", "--yes")
	assert.NoFileExists(t, filepath.Join(b.root, "hello.txt"))
	assert.NoFileExists(t, filepath.Join(b.root, "half.txt"))
	assert.FileExists(t, filepath.Join(b.root, "old.txt"))
	turns := b.turns()
	require.Len(t, turns, 1)
	assert.Equal(t, 2, turns[0].Changes.Created)
}
