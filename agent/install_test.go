package agent

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
)

func noEnv(string) string { return "" }

func file(t testing.TB, name string) File {
	files, err := Files(name, Places{Home: "/home/u", Getenv: noEnv}, "")
	require.NoError(t, err)
	return files[0]
}

// Files are where each agent looks for them.
func TestFiles(t *testing.T) {
	at := func(name, root string, env map[string]string) string {
		files, err := Files(name, Places{Home: "/home/u", Getenv: func(k string) string { return env[k] }}, root)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, f := range files {
			all = append(all, filepath.Join(f.Dir, f.Path))
		}
		return strings.Join(all, " ")
	}
	assert.Equal(t, "/home/u/.codex/hooks.json", at("codex", "", nil))
	assert.Equal(t, "/elsewhere/hooks.json", at("codex", "", map[string]string{"CODEX_HOME": "/elsewhere/"}))
	assert.Equal(t, "/home/u/.codex/hooks.json", at("codex", "", map[string]string{"CODEX_HOME": "relative"}))
	assert.Equal(t, "/p/.codex/hooks.json", at("codex", "/p", map[string]string{"CODEX_HOME": "/elsewhere"}))
	assert.Equal(t, "/home/u/.gemini/settings.json", at("gemini", "", nil))
	assert.Equal(t, "/home/u/.qwen/settings.json", at("qwen", "", nil))
	assert.Equal(t, "/home/u/.copilot/hooks/decree.json", at("copilot", "", nil))
	assert.Equal(t, "/p/.github/hooks/decree.json", at("copilot", "/p", nil))
	assert.Equal(t, "/home/u/.config/opencode/plugin/decree.js", at("opencode", "", nil))
	assert.Equal(t, "/x/opencode/plugin/decree.js", at("opencode", "", map[string]string{"XDG_CONFIG_HOME": "/x"}))
	assert.Equal(t, "/home/u/.pi/agent/extensions/decree.ts", at("pi", "", nil))
	assert.Equal(t, "/home/u/.config/marvin/hooks/decree.ts", at("marvin", "", nil))
	assert.Equal(t, "no hooks of a project", at("marvin", "/p", nil))
	assert.Equal(t, "/home/u/.claude/settings.json", at("claude", "", nil))
	assert.Equal(t, "/home/u/.cursor/hooks.json", at("cursor", "", nil))
	assert.Equal(t, "/home/u/.cline/hooks/TaskResume /home/u/.cline/hooks/TaskStart /home/u/.cline/hooks/UserPromptSubmit "+
		"/home/u/.cline/hooks/PreToolUse /home/u/.cline/hooks/PostToolUse /home/u/.cline/hooks/TaskCancel "+
		"/home/u/.cline/hooks/TaskComplete /home/u/.cline/hooks/TaskError /home/u/.cline/hooks/SessionShutdown", at("cline", "", nil))
}

// What is written where there was nothing.
func TestWithNothing(t *testing.T) {
	for name, want := range map[string]string{
		"copilot": `{
  "version": 1,
  "hooks": {
    "sessionStart": [{"type": "command", "bash": "decree hook copilot sessionStart || :", "timeoutSec": 20}],
`,
		"codex": `{
  "hooks": {
    "SessionStart": [{"hooks": [{"type": "command", "command": "decree hook codex SessionStart || :", "timeout": 20}]}],
`,
		"opencode": `// Made by 'decree agents install'; 'decree agents remove opencode' takes it away.
`,
		"cline": `#!/bin/sh
# Made by 'decree agents install'; 'decree agents remove cline' takes it away.
decree hook cline TaskResume || :
`,
	} {
		f := file(t, name)
		new, err := f.With(nil)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(new), want), "%s", new)
		if json.Valid(new) {
			assert.True(t, bytes.HasSuffix(new, []byte("}\n")))
		}
		gone, err := f.Without(new, nil)
		require.NoError(t, err)
		assert.Nil(t, gone, name)
	}
}

// The line that an agent runs must not change: a user would have to trust it again.
func TestCommandIsFrozen(t *testing.T) {
	new, err := file(t, "codex").With(nil)
	require.NoError(t, err)
	assert.Equal(t, "decree hook codex Stop || :", file(t, "codex").Command(new, "Stop"))
	assert.Contains(t, string(new), `"command": "decree hook codex Interrupt || :", "timeout": 3}`)
}

// Cursor takes a hook that prints no JSON for one that has failed: its lines print some, also where decree is gone.
func TestCursorIsAnswered(t *testing.T) {
	f := file(t, "cursor")
	new, err := f.With(nil)
	require.NoError(t, err)
	for event := range cursor.events {
		c := exec.Command("/bin/sh", "-c", f.Command(new, event))
		c.Env = []string{"PATH=/nowhere"}
		said, err := c.Output()
		require.NoError(t, err)
		var answer struct{ Continue *bool }
		require.NoError(t, json.Unmarshal(said, &answer), "%s: %q", event, said)
		if event == "beforeSubmitPrompt" {
			require.NotNil(t, answer.Continue)
			assert.True(t, *answer.Continue)
		}
	}
}

var merges = []struct{ about, old, with, without string }{
	{"other keys, comments and order stay", `{
	// the theme
	"theme": "dark", // at night
	"hooks": {
		"Stop": [ { "hooks": [ {"type": "command", "command": "other"} ] } ], /* mine */
	},
}
`, `{
	// the theme
	"theme": "dark", // at night
	"hooks": {
		"Stop": [ { "hooks": [ {"type": "command", "command": "other"} ] },{"hooks": [{"type": "command", "command": "decree hook one Stop || :", "timeout": 20}]} ], /* mine */
		"SessionStart": [{"hooks": [{"type": "command", "command": "decree hook one SessionStart || :", "timeout": 20}]}],
	},
}
`, ""},
	{"one line", `{"a":1}`, `{"a":1,"hooks":{"SessionStart":[{"hooks": [{"type": "command", "command": "decree hook one SessionStart || :", "timeout": 20}]}],"Stop":[{"hooks": [{"type": "command", "command": "decree hook one Stop || :", "timeout": 20}]}]}}`, ""},
	{"a comment behind the last", "{\n  \"a\": 1 // one\n}\n", `{
  "a": 1, // one
  "hooks": {
    "SessionStart": [{"hooks": [{"type": "command", "command": "decree hook one SessionStart || :", "timeout": 20}]}],
    "Stop": [{"hooks": [{"type": "command", "command": "decree hook one Stop || :", "timeout": 20}]}]
  }
}
`, ""},
	{"an earlier line and an event of no use give place; another time limit stays", `{"hooks":{"SessionStart":[{"hooks":[{"command":"decree hook one SessionStart || :","timeout":5}]}],"Stop":[{"hooks":[{"command":"decree hook one Stop"},{"command":"x"}]}],"Old":[{"hooks":[{"command":"decree hook one Old"}]}]}}`,
		`{"hooks":{"SessionStart":[{"hooks":[{"command":"decree hook one SessionStart || :","timeout":5}]}],"Stop":[{"hooks":[{"command":"x"}]},{"hooks": [{"type": "command", "command": "decree hook one Stop || :", "timeout": 20}]}]}}`,
		`{"hooks":{"Stop":[{"hooks":[{"command":"x"}]}]}}`},
	{"hooks of another agent, and those that only begin alike, are others'", `{"hooks":{"SessionStart":[{"hooks":[{"command":"decree hook one SessionStarted"},{"command":"decree hook two SessionStart || :"}]}]}}`,
		`{"hooks":{"SessionStart":[{"hooks":[{"command":"decree hook one SessionStarted"},{"command":"decree hook two SessionStart || :"}]},{"hooks": [{"type": "command", "command": "decree hook one SessionStart || :", "timeout": 20}]}],"Stop":[{"hooks": [{"type": "command", "command": "decree hook one Stop || :", "timeout": 20}]}]}}`, ""},
}

func one() File {
	return File{Path: "one.json", agent: &adapter{
		name: "one", events: map[string]Kind{"SessionStart": Session, "Stop": TurnEnd}, allows: codex.allows,
		place: placement{entry: timedHook, grouped: true},
	}}
}

func TestMerge(t *testing.T) {
	for _, c := range merges {
		f := one()
		with, err := f.With([]byte(c.old))
		require.NoError(t, err, c.about)
		assert.Equal(t, c.with, string(with), c.about)
		again, err := f.With(with)
		require.NoError(t, err, c.about)
		assert.Equal(t, c.with, string(again), "%s: twice is once", c.about)
		hooked, err := f.Hooked(with)
		require.NoError(t, err)
		assert.Equal(t, FullyHooked, hooked)

		back, err := f.Without(with, []byte(c.old))
		require.NoError(t, err, c.about)
		assert.Equal(t, c.old, string(back), "%s: byte for byte", c.about)
		if c.without == "" {
			c.without = c.old
		}
		back, err = f.Without(with, []byte("{}"))
		require.NoError(t, err, c.about)
		assert.Equal(t, c.without, string(back), "%s: without a copy", c.about)
	}
}

// What somebody else has changed since stays when decree's entries go.
func TestWithoutAfterEdits(t *testing.T) {
	f := one()
	with, err := f.With([]byte("{\n  \"a\": 1\n}\n"))
	require.NoError(t, err)
	edited := bytes.Replace(with, []byte(`"a": 1`), []byte(`"a": 2`), 1)
	edited = bytes.Replace(edited, []byte(`    "Stop": [`), []byte("    // my own words\n    \"Stop\": ["), 1)
	back, err := f.Without(edited, []byte("{\n  \"a\": 1\n}\n"))
	require.NoError(t, err)
	assert.Equal(t, "{\n  \"a\": 2,\n  \"hooks\": {\n    // my own words\n  }\n}\n", string(back))
}

func TestMergeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":`:                           "malformed JSON: line 1, column 6: parsing value: unexpected EOF",
		"{\n\"a\": tru\n}":                "malformed JSON: line 2, column 6: invalid literal: tru",
		`["a"]`:                           "it is no JSON object",
		`{"hooks": 1}`:                    `"hooks" in it is neither an object nor a list`,
		`{"hooks": []}`:                   `"hooks" in it is no object`,
		`{"hooks": {"Stop": {}}}`:         `"Stop" in its hooks is no list`,
		`{"hooks": {}, "hooks": {}}`:      `"hooks" stands twice in it`,
		`{"hooks":{"Stop":[],"Stop":[]}}`: `"Stop" stands twice in it`,
	} {
		_, err := one().With([]byte(text))
		assert.EqualError(t, err, want, text)
	}
	_, err := file(t, "opencode").With([]byte("// mine\n"))
	assert.EqualError(t, err, "another file has the name")
	kept, err := file(t, "opencode").Without([]byte("// mine\n"), nil)
	require.NoError(t, err)
	assert.Equal(t, "// mine\n", string(kept))
}

// A file that is JSON with comments stays so, loses no comment and no other value, and
// gets back what it had.
func FuzzMerge(f *testing.F) {
	for _, c := range merges {
		f.Add([]byte(c.old))
		f.Add([]byte(c.with))
	}
	f.Add([]byte("{ }"))
	f.Add([]byte("{ // a\r\n \"hooks\" : { /* b */ } , }"))
	f.Add([]byte(`{"hooks":{"Stop":[1,{"hooks":[{"command":"decree hook one Stop"} /*x*/ , ]}, [] ,]}}`))
	f.Fuzz(func(t *testing.T, old []byte) {
		fl := one()
		with, err := fl.With(old)
		if err != nil {
			return
		}
		again, err := fl.With(with)
		require.NoError(t, err)
		require.Equal(t, string(with), string(again))
		hooked, err := fl.Hooked(with)
		require.NoError(t, err)
		require.Equal(t, FullyHooked, hooked)
		without, err := fl.Without(with, []byte("{}"))
		require.NoError(t, err)
		if without == nil {
			return
		}
		if !bytes.Contains(old, []byte("decree hook")) {
			require.Equal(t, comments(old), comments(with))
			require.Equal(t, comments(old), comments(without))
			require.Equal(t, value(t, old), value(t, without))
			if json.Valid(old) {
				require.True(t, json.Valid(with), "strict JSON stays strict: %s", with)
				require.True(t, json.Valid(without), "strict JSON stays strict: %s", without)
			}
		}
	})
}

// comments are the comments of a file, in their order.
func comments(text []byte) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		n := 1
		switch {
		case text[i] == '"':
			for i+n < len(text) && text[i+n] != '"' {
				if text[i+n] == '\\' {
					n++
				}
				n++
			}
			n++
		case bytes.HasPrefix(text[i:], []byte("//")):
			if n = bytes.IndexByte(text[i:], '\n'); n < 0 {
				n = len(text) - i
			}
			b.Write(bytes.TrimSpace(text[i : i+n]))
		case bytes.HasPrefix(text[i:], []byte("/*")):
			n = bytes.Index(text[i+2:], []byte("*/")) + 4
			b.Write(text[i : i+n])
		}
		i += n
	}
	return b.String()
}

// value is what a file says, without an empty "hooks" or empty lists in it, which nobody misses.
func value(t *testing.T, text []byte) any {
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}
	}
	plain, err := hujson.Standardize(bytes.Clone(text))
	require.NoError(t, err)
	var v map[string]any
	require.NoError(t, json.Unmarshal(plain, &v))
	if hooks, ok := v["hooks"].(map[string]any); ok {
		for event, list := range hooks {
			if l, ok := list.([]any); ok && len(l) == 0 {
				delete(hooks, event)
			}
		}
		if len(hooks) == 0 {
			delete(v, "hooks")
		}
	}
	return v
}
