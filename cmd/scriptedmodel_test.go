//go:build unix

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A scripted model answers the requests of real agents, by three of the protocols that they
// speak: each request that declares tools takes the next answer of its prompt's script; after the last one it is "done".
type scriptedModel struct {
	t       *testing.T
	root    string // where the agent works
	url     string
	mu      sync.Mutex
	scripts []modelScript
	calls   int
	failed  chan struct{} // has an element for each answer that was an error
}

// modelScript is what the model answers to one prompt; "" is any. Where a conversation has several, the last one counts.
type modelScript struct {
	prompt string
	turns  []modelTurn
}

// modelTurn is one answer: words, and tools to call. Without calls it ends the agent's turn.
type modelTurn struct {
	text  string
	calls []modelCall
	// status is that of an answer that is an error; as the last of a script it stays.
	status int
	// before is called before the answer. May be nil.
	before func()
}

// modelCall writes a file, edits one (old is replaced by content), runs a command, by whatever tool the agent declares
// for that, or calls a tool of decree's MCP server.
type modelCall struct {
	path, old, content, command string
	tool                        string
	// arguments are those of the tool; conversation is all that the agent has sent.
	arguments func(conversation []byte) map[string]any
}

// declaredTool is one that a request offers.
type declaredTool struct {
	name, kind string
	properties map[string]json.RawMessage
}

// toolCall is a call in the agent's words.
type toolCall struct {
	id, name, kind string
	namespace      string // of a tool that is not declared
	arguments      map[string]any
	patch          string // instead of arguments, of a kind that takes text
}

func startModel(t *testing.T, root string, scripts []modelScript) *scriptedModel {
	m := &scriptedModel{t: t, root: root, scripts: scripts, failed: make(chan struct{}, 1000)}
	server := httptest.NewServer(m)
	t.Cleanup(server.CloseClientConnections)
	m.url = server.URL
	return m
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &request)
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, ":countTokens"):
		reply(w, map[string]any{"totalTokens": 100})
		return
	case strings.HasSuffix(path, "/models"):
		reply(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "fake", "object": "model"}}, "models": []any{}})
		return
	}
	text, calls, status := m.answer(data)
	switch {
	case status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, jsonOf(map[string]any{"error": map[string]any{"message": "scripted error", "type": "server_error", "code": status}}))
		m.failed <- struct{}{}
	case strings.HasSuffix(path, "/responses"):
		events(w, responseEvents(text, calls))
	case strings.HasSuffix(path, "/chat/completions") && request["stream"] != true:
		reply(w, map[string]any{"id": "c", "object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": chatMessage(text, calls), "finish_reason": chatEnd(calls)}}})
	case strings.HasSuffix(path, "/chat/completions"):
		events(w, chatEvents(text, calls))
	case strings.HasSuffix(path, ":streamGenerateContent"):
		events(w, []modelEvent{{"", geminiAnswer(text, calls)}})
	case strings.HasSuffix(path, ":generateContent"):
		reply(w, geminiAnswer(text, calls))
	default:
		http.NotFound(w, r)
	}
}

func declaredTools(body []byte) (out []declaredTool) {
	type function struct {
		Name, Type                       string
		Parameters, ParametersJSONSchema struct{ Properties map[string]json.RawMessage }
		InputSchema                      struct{ Properties map[string]json.RawMessage } `json:"input_schema"`
	}
	var request struct {
		Tools []struct {
			function
			Function             *function
			FunctionDeclarations []function
		}
	}
	_ = json.Unmarshal(body, &request)
	add := func(f function, kind string) {
		properties := f.Parameters.Properties
		if properties == nil {
			properties = f.ParametersJSONSchema.Properties
		}
		if f.Name != "" {
			out = append(out, declaredTool{f.Name, kind, properties})
		}
	}
	for _, t := range request.Tools {
		if t.Function != nil {
			add(*t.Function, "function")
		}
		for _, f := range t.FunctionDeclarations {
			add(f, "function")
		}
		add(t.function, t.Type)
	}
	return out
}

// answer takes the next turn of the request's script; a request for a title declares no tools and takes none.
func (m *scriptedModel) answer(body []byte) (text string, calls []toolCall, status int) {
	tools := declaredTools(body)
	if len(tools) == 0 {
		return "done", nil, 0
	}
	turn := m.next(body)
	if turn.before != nil {
		turn.before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range turn.calls {
		m.calls++
		call := m.inAgentsWords(c, tools, body)
		call.id = fmt.Sprintf("call_%04d", m.calls)
		calls = append(calls, call)
	}
	return turn.text, calls, turn.status
}

func (m *scriptedModel) next(body []byte) modelTurn {
	m.mu.Lock()
	defer m.mu.Unlock()
	var script *modelScript
	at := -1
	for i, s := range m.scripts {
		if last := bytes.LastIndex(body, []byte(s.prompt)); last > at {
			script, at = &m.scripts[i], last
		}
	}
	if script == nil || len(script.turns) == 0 {
		return modelTurn{text: "done"}
	}
	turn := script.turns[0]
	if turn.status == 0 || len(script.turns) > 1 {
		script.turns = script.turns[1:]
	}
	return turn
}

// The names that agents give to the tool that writes a file, edits one, runs a command.
var (
	writers = []string{"write_file", "write", "create", "apply_patch", "editor"}
	editors = []string{"replace", "edit", "edit_file", "apply_patch", "editor"}
	shells  = []string{"exec_command", "shell_command", "shell", "bash", "run_shell_command", "run_commands"}
)

func (m *scriptedModel) inAgentsWords(c modelCall, tools []declaredTool, conversation []byte) toolCall {
	if c.tool != "" {
		return mcpCall(c, tools, conversation)
	}
	names, path := writers, filepath.Join(m.root, c.path)
	words := map[string]any{
		"file_path": path, "filePath": path, "path": path, "content": c.content, "file_text": c.content, "new_text": c.content,
		"cmd": c.command, "command": c.command, "commands": []string{c.command}, "description": "scripted", "instruction": "scripted",
	}
	switch {
	case c.command != "":
		names = shells
	case c.old != "":
		names = editors
		for word, value := range map[string]string{"old": c.old, "new": c.content} {
			for _, as := range []string{"_string", "String", "_str", "Text", "_text"} {
				words[word+as] = value
			}
		}
		words["edits"] = []any{map[string]any{"oldText": c.old, "newText": c.content}}
	}
	for _, name := range names {
		i := slices.IndexFunc(tools, func(t declaredTool) bool { return t.name == name })
		if i < 0 {
			continue
		}
		call := toolCall{name: name, kind: tools[i].kind, arguments: map[string]any{}}
		if call.kind == "custom" {
			call.patch = patchOf(c, path)
		}
		for property := range tools[i].properties {
			if value, known := words[property]; known {
				call.arguments[property] = value
			}
		}
		return call
	}
	m.t.Errorf("the agent declares none of %q: %+v", names, tools)
	return toolCall{name: "none", kind: "function"}
}

// mcpCall calls a tool of decree's by the name that the agent has given it. Codex does not
// declare those of servers to models that it knows.
func mcpCall(c modelCall, tools []declaredTool, conversation []byte) toolCall {
	call := toolCall{name: c.tool, kind: "function", namespace: "mcp__decree", arguments: c.arguments(conversation)}
	for _, t := range tools {
		if strings.Contains(t.name, "decree") && strings.HasSuffix(t.name, c.tool) {
			call.name, call.namespace = t.name, ""
		}
	}
	return call
}

// patchOf is a call as the text of a patch.
func patchOf(c modelCall, path string) string {
	lines := func(mark, text string) string {
		return mark + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+mark) + "\n"
	}
	body := "*** Add File: " + path + "\n" + lines("+", c.content)
	if c.old != "" {
		body = "*** Update File: " + path + "\n@@\n" + lines("-", c.old) + lines("+", c.content)
	}
	return "*** Begin Patch\n" + body + "*** End Patch\n"
}

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, jsonOf(v))
}

// modelEvent is one of a stream; a text is sent as it is.
type modelEvent struct {
	name string
	data any
}

func events(w http.ResponseWriter, list []modelEvent) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range list {
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		text, plain := e.data.(string)
		if !plain {
			text = jsonOf(e.data)
		}
		fmt.Fprintf(w, "data: %s\n\n", text)
	}
}

func chatEnd(calls []toolCall) string {
	if len(calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func chatMessage(text string, calls []toolCall) map[string]any {
	message := map[string]any{"role": "assistant", "content": text}
	var list []any
	for i, c := range calls {
		list = append(list, map[string]any{"index": i, "id": c.id, "type": "function",
			"function": map[string]any{"name": c.name, "arguments": jsonOf(c.arguments)}})
	}
	if list != nil {
		message["tool_calls"] = list
	}
	return message
}

func chatEvents(text string, calls []toolCall) []modelEvent {
	chunk := func(delta any, end any) modelEvent {
		return modelEvent{"", map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": end}}}}
	}
	return []modelEvent{chunk(chatMessage(text, calls), nil), chunk(map[string]any{}, chatEnd(calls)), {"", "[DONE]"}}
}

func geminiAnswer(text string, calls []toolCall) any {
	parts := []any{}
	if text != "" {
		parts = append(parts, map[string]any{"text": text})
	}
	for _, c := range calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"id": c.id, "name": c.name, "args": c.arguments}})
	}
	return map[string]any{
		"candidates":    []any{map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}, "finishReason": "STOP"}},
		"usageMetadata": map[string]any{"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
	}
}

func responseEvents(text string, calls []toolCall) []modelEvent {
	items := []map[string]any{}
	if text != "" {
		items = append(items, map[string]any{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}})
	}
	for _, c := range calls {
		item := map[string]any{"id": "it_" + c.id, "call_id": c.id, "name": c.name, "status": "completed", "type": "function_call", "arguments": jsonOf(c.arguments)}
		if c.kind == "custom" {
			item = map[string]any{"id": "it_" + c.id, "call_id": c.id, "name": c.name, "status": "completed", "type": "custom_tool_call", "input": c.patch}
		}
		if c.namespace != "" {
			item["namespace"] = c.namespace
		}
		items = append(items, item)
	}
	whole := map[string]any{"id": "resp_1", "object": "response", "status": "completed", "output": items,
		"usage": map[string]any{"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}}
	list := []modelEvent{{"response.created", map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}}}}
	for i, item := range items {
		list = append(list, modelEvent{"response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": i, "item": item}})
	}
	return append(list, modelEvent{"response.completed", map[string]any{"type": "response.completed", "response": whole}})
}
