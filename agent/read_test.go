package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/events.txt anew")

type sample struct {
	agent, event string
	payload      []byte
}

// samples are what the real agents' hooks got on stdin; in testdata/documented is what an agent's
// documentation or source says that they get. A payload that was no JSON stands as a string.
func samples(t testing.TB) []sample {
	files, err := filepath.Glob("testdata/*.jsonl")
	require.NoError(t, err)
	documented, err := filepath.Glob("testdata/documented/*.jsonl")
	require.NoError(t, err)
	var all []sample
	for _, file := range append(files, documented...) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		for line := range bytes.Lines(data) {
			var s struct {
				Event string
				Stdin json.RawMessage
			}
			require.NoError(t, json.Unmarshal(line, &s))
			if text := ""; json.Unmarshal(s.Stdin, &text) == nil {
				s.Stdin = []byte(text)
			}
			all = append(all, sample{name, s.Event, s.Stdin})
		}
	}
	return all
}

// table shows an event in one line; fields without a value are left out.
func table(e Event) string {
	kind := string(e.Kind)
	if kind == "" {
		kind = "-"
	}
	b := fmt.Sprintf("%-9s%-20s %-12s", e.Agent, e.Name, kind)
	for _, f := range []struct{ name, value string }{
		{"session", e.Session}, {"turn", e.Turn}, {"model", e.Model}, {"prompt", e.Prompt}, {"in", e.Directory},
		{"transcript", filepath.Base(e.Transcript)}, {"tool", e.Tool}, {"id", e.ToolID},
	} {
		if f.value != "" && f.value != "." {
			b += fmt.Sprintf(" %s=%q", f.name, f.value)
		}
	}
	if e.Edits {
		b += fmt.Sprintf(" edits %q", e.Paths)
	}
	if e.Reads {
		b += " reads"
	}
	return b
}

// Every payload that a real agent sent is read as testdata/events.txt says.
func TestReadSamples(t *testing.T) {
	var got strings.Builder
	for _, s := range samples(t) {
		e, err := Read(s.agent, s.event, s.payload)
		if len(s.payload) > 0 {
			assert.NoError(t, err, "%s %s", s.agent, s.event)
		}
		fmt.Fprintln(&got, table(e))
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/events.txt", []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/events.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String())
}

// Each event that an adapter is hooked into has a sample, so that none is only guessed;
// the exceptions are events that no client sent in any trial.
func TestEveryEventHasASample(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range samples(t) {
		seen[s.agent+" "+s.event] = true
	}
	for _, a := range adapters {
		for event := range a.events {
			if !seen[a.name+" "+event] {
				assert.Contains(t, a.unseen, event, "%s %s has no sample", a.name, event)
			}
		}
	}
}

// What is broken gives what stands in front of the fault.
func TestReadBroken(t *testing.T) {
	for _, c := range []struct{ about, agent, event, payload, want, err string }{
		{"empty", "codex", "Stop", "", `codex    Stop                 turn-end    `, "nothing was sent"},
		{"blank", "codex", "Stop", " \n", `codex    Stop                 turn-end    `, "nothing was sent"},
		{"a list", "codex", "Stop", `["a"]`, `codex    Stop                 turn-end    `, "what was sent is no JSON object"},
		{"a prompt that is cut off", "codex", "UserPromptSubmit", `{"session_id":"s","cwd":"/p","prompt":"do it \ud83d\ude00\n and mo`,
			`codex    UserPromptSubmit     prompt       session="s" prompt="do it 😀\n and mo" in="/p"`, "what was sent ends too early"},
		{"cut off in an escape", "codex", "UserPromptSubmit", `{"session_id":"s","prompt":"do it \ud83d\ude`,
			`codex    UserPromptSubmit     prompt       session="s" prompt="do it "`, "what was sent ends too early"},
		{"cut off in a character", "codex", "UserPromptSubmit", "{\"session_id\":\"s\",\"prompt\":\"do it \xf0\x9f",
			`codex    UserPromptSubmit     prompt       session="s" prompt="do it "`, "what was sent ends too early"},
		{"a file's text that is cut off behind the path", "gemini", "BeforeTool", `{"session_id":"s","tool_name":"write_file","tool_input":{"file_path":"/p/a","content":"lo`,
			`gemini   BeforeTool           tool-before  session="s" tool="write_file" edits ["/p/a"]`, "what was sent ends too early"},
		{"a file's text that is cut off in front of the path: it may be any", "gemini", "BeforeTool", `{"session_id":"s","tool_name":"write_file","tool_input":{"content":"lo`,
			`gemini   BeforeTool           tool-before  session="s" tool="write_file"`, "what was sent ends too early"},
		{"a half of a pair, and bytes that are no text", "codex", "UserPromptSubmit", "{\"session_id\":\"s\",\"prompt\":\"a\\ud83d b\xff\"}",
			`codex    UserPromptSubmit     prompt       session="s" prompt="a� b�"`, ""},
		{"something behind it", "codex", "Stop", `{"session_id":"s"} junk`, `codex    Stop                 turn-end     session="s"`, ""},
		{"other types than text", "codex", "UserPromptSubmit", `{"session_id":7,"cwd":["/p","/q"],"prompt":{"a":1},"model":null}`,
			`codex    UserPromptSubmit     prompt       session="7" in="/p"`, ""},
		{"a name that comes twice", "codex", "Stop", `{"session_id":"","session_id":"s"}`, `codex    Stop                 turn-end     session="s"`, ""},
		{"nested without an end", "codex", "Stop", `{"session_id":"s","a":` + strings.Repeat("[", 20000),
			`codex    Stop                 turn-end     session="s"`, "what was sent is malformed JSON"},
		{"an event that decree has no use for", "codex", "PreCompact", `{"session_id":"s"}`, `codex    PreCompact           -            session="s"`, ""},
		{"an agent that is not known", "nobody", "Stop", `{"session_id":"s"}`, `nobody   Stop                 -           `, `no agent "nobody" is known`},
		{"a session that goes on after its conversation was shortened", "codex", "SessionStart", `{"session_id":"s","source":"compact"}`,
			`codex    SessionStart         -            session="s"`, ""},
		{"a request to the model that no prompt begins", "qwen", "UserPromptSubmit", `{"session_id":"s","prompt":""}`,
			`qwen     UserPromptSubmit     -            session="s"`, ""},
		{"an error that the agent recovers from", "copilot", "errorOccurred", `{"sessionId":"s","recoverable":true}`,
			`copilot  errorOccurred        -            session="s"`, ""},
		{"one that it does not", "copilot", "errorOccurred", `{"sessionId":"s","recoverable":false}`,
			`copilot  errorOccurred        turn-end     session="s"`, ""},
		{"a session that ends without a word", "cline", "SessionShutdown", "", `cline    SessionShutdown      session-end `, "nothing was sent"},
		{"a prompt without words", "qwen", "UserPromptSubmit", `{"session_id":"s","submitted_prompt":""}`,
			`qwen     UserPromptSubmit     prompt       session="s"`, ""},
	} {
		e, err := Read(c.agent, c.event, []byte(c.payload))
		assert.Equal(t, c.want, table(e), c.about)
		if c.err == "" {
			assert.NoError(t, err, c.about)
		} else {
			assert.EqualError(t, err, c.err, c.about)
		}
	}
}

// The files of a patch are all that it names, once.
func TestPatchPaths(t *testing.T) {
	e, err := Read("codex", "PreToolUse", []byte(`{"tool_name":"apply_patch","tool_input":{"command":"*** Begin Patch\n*** Update File: b c.go\n*** Move to: d.go\n@@\n-*** Add File: no\n*** Delete File: /p/a\r\n*** Update File: /p/a\n*** Add File: \n*** End Patch"}}`))
	require.NoError(t, err)
	assert.True(t, e.Edits)
	assert.Equal(t, []string{"/p/a", "b c.go", "d.go"}, e.Paths)
}

func TestDeadline(t *testing.T) {
	assert.Equal(t, 10*time.Second, Deadline("codex", "Stop"))
	assert.Equal(t, 1500*time.Millisecond, Deadline("codex", "Interrupt"))
	assert.Equal(t, 4*time.Second, Deadline("nobody", "Stop"))
	for _, a := range adapters {
		for event := range a.events {
			assert.Positive(t, Deadline(a.name, event), "%s %s", a.name, event)
		}
	}
}

// Whatever comes in, an event comes out with the names that were asked for, and never more
// than the payload can have said.
func FuzzRead(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.agent, s.event, s.payload)
		f.Add(s.agent, s.event, s.payload[:len(s.payload)*2/3])
	}
	f.Fuzz(func(t *testing.T, agentName, eventName string, payload []byte) {
		e, err := Read(agentName, eventName, payload)
		assert.Equal(t, agentName, e.Agent)
		assert.Equal(t, eventName, e.Name)
		assert.False(t, e.Edits && e.Reads)
		assert.Equal(t, e.Edits, len(e.Paths) > 0)
		if len(payload) == 0 {
			assert.Error(t, err)
		}
		again, _ := Read(agentName, eventName, payload)
		assert.Equal(t, e, again)
		assert.Positive(t, Deadline(agentName, eventName))
	})
}

// What is made up for an agent is read as it was meant.
func TestPayload(t *testing.T) {
	for _, a := range adapters {
		for event, kind := range a.events {
			if kind == ToolBefore || kind == ToolAfter {
				continue
			}
			e := Event{Agent: a.name, Kind: kind, Name: event, Session: "s", Directory: "/p q"}
			if kind == Prompt {
				e.Prompt = "do \"it\"\x1b\n"
			}
			if len(a.fields.turn) > 0 {
				e.Turn = "7"
			}
			got, err := Read(a.name, event, Payload(e))
			require.NoError(t, err)
			if a.name == "copilot" && event == "errorOccurred" {
				continue
			}
			assert.Equal(t, e, got, "%s %s", a.name, event)
		}
	}
}
