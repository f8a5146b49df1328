package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/acp"
	"decree/agent"
)

// told is what a conversation tells: its lines begin with > from the editor and < from the
// agent; "." is the agent's end.
func told(t *testing.T, lines string) string {
	talk := acp.New("a")
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		line = strings.TrimSpace(line)
		var events []agent.Event
		switch line[0] {
		case '>':
			events = talk.FromEditor([]byte(line[1:]), 0)
		case '<':
			events = talk.FromAgent([]byte(line[1:]))
		case '.':
			events = talk.Ended()
		}
		for _, e := range events {
			require.Equal(t, "a", e.Agent)
			fmt.Fprintf(&out, "%s %s", e.Kind, e.Session)
			for _, s := range []string{e.Directory, e.Model, e.Prompt, e.Tool, strings.Join(e.Paths, ","), e.Stop} {
				if s != "" {
					fmt.Fprintf(&out, " %q", s)
				}
			}
			if e.Edits {
				out.WriteString(" edits")
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

const prompted = `>{"id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}` + "\n"

// update is a tool_call_update.
func update(fields string) string {
	return `<{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"t",` + fields + "}}}\n"
}

func TestWhatAConversationTells(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"a session", `>{"id":"x","method":"session/new","params":{"cwd":"/w"}}
			<{"id":"x","result":{"sessionId":"s","models":{"currentModelId":"m"}}}
			>{"method":"session/set_model","id":4,"params":{"sessionId":"s","modelId":"n"}}
			>{"id":5,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"look at "},{"type":"resource_link","uri":"file:///f"},{"type":"image","data":"00"},{"type":"resource","resource":{"uri":"file:///g"}}]}}
			<{"id":5,"result":{"stopReason":"max_tokens"}}`,
			"session s \"/w\" \"m\"\nprompt s \"/w\" \"n\" \"look at file:///ffile:///g\"\nturn-end s \"/w\" \"n\" \"max_tokens\"\n"},
		{"what a loaded session did once", `>{"id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/w"}}
			` + update(`"kind":"edit","locations":[{"path":"f"}]`) + `<{"id":1,"result":null}`, "session s \"/w\"\n"},
		{"a session that is refused", `>{"id":1,"method":"session/new","params":{"cwd":"/w"}}
			<{"id":1,"error":{"code":-32000}}`, ""},
		{"a model's error", prompted + `<{"id":2,"error":{"code":-32603}}`, "prompt s \"go\"\nturn-end s \"error\"\n"},
		{"an error that is null is none", `>{"id":1,"method":"session/new","params":{"cwd":"/w"}}
			<{"id":1,"result":{"sessionId":"s"},"error":null}
			` + prompted + `<{"id":2,"result":{"stopReason":"end_turn"},"error":null}`,
			"session s \"/w\"\nprompt s \"/w\" \"go\"\nturn-end s \"/w\" \"end_turn\"\n"},
		{"cancelled", prompted + `>{"method":"session/cancel","params":{"sessionId":"s"}}
			<{"id":2,"result":{"stopReason":"cancelled"}}`, "prompt s \"go\"\nturn-end s \"cancelled\"\n"},
		{"the agent's own requests have numbers of their own", prompted + `<{"id":2,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/f"}}
			>{"id":2,"result":{"content":""}}
			<{"id":"2","result":{}}
			.`, "prompt s \"go\"\nsession-end s\n"},
		{"a file that the editor writes", prompted + `<{"id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/f","content":""}}`,
			"prompt s \"go\"\ntool-before s \"write_text_file\" \"/f\" edits\n"},
		{"a command that the editor runs", prompted + `<{"id":1,"method":"terminal/create","params":{"sessionId":"s","command":"rm"}}`,
			"prompt s \"go\"\ntool-before s \"terminal\"\n"},
		{"an edit names its files late", prompted + update(`"kind":"edit","status":"pending"`) + update(`"status":"in_progress"`) +
			update(`"content":[{"type":"diff","path":"/f"},{"type":"content","path":"/no"}]`) + update(`"locations":[{"path":"/f"}]`) + update(`"status":"completed"`) + update(`"content":[]`) +
			`<{"id":2,"result":{}}`,
			"prompt s \"go\"\ntool-before s \"edit\" \"/f\" edits\ntool-after s \"edit\" \"/f\" edits\nturn-end s\n"},
		{"an edit that names none", prompted + update(`"kind":"edit","status":"pending"`) + update(`"status":"failed"`), "prompt s \"go\"\ntool-after s \"edit\"\n"},
		{"an edit that nobody ends", prompted + update(`"kind":"edit","status":"pending"`) + ".", "prompt s \"go\"\ntool-before s \"edit\"\nsession-end s\n"},
		{"an edit that asks first", prompted + `<{"id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t","kind":"delete","locations":[{"path":"/f"}]}}}`,
			"prompt s \"go\"\ntool-before s \"delete\" \"/f\" edits\n"},
		{"a move that names one side", prompted + update(`"kind":"move","locations":[{"path":"/f"}]`) + update(`"status":"completed"`), "prompt s \"go\"\ntool-after s \"move\"\n"},
		{"a shell", prompted + update(`"kind":"execute"`) + update(`"status":"in_progress"`) + update(`"status":"completed"`), "prompt s \"go\"\ntool-before s \"execute\"\ntool-after s \"execute\"\n"},
		{"a tool of no kind", prompted + update(`"status":"pending"`) + update(`"status":"in_progress"`), "prompt s \"go\"\ntool-before s \"other\"\n"},
		{"a reader", prompted + update(`"kind":"search","status":"in_progress"`) + update(`"status":"completed"`) + ".", "prompt s \"go\"\nsession-end s\n"},
		{"fields of other shapes", prompted + update(`"kind":7,"locations":{"path":"/f"},"status":"in_progress"`), "prompt s \"go\"\ntool-before s \"other\"\n"},
		{"what is no message", ">\n<\n>[]\n<7\n>{\"method\":7}\n<{\"id\":null}\n>{\"id\":1,\"method\":\"session/prompt\"}\n>{\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\"}}\n.", ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, told(t, c.lines)) })
	}
}
