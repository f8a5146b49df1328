//go:build unix

package cmd

import (
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
// speak: each request that declares tools takes the next answer of the script; after the last one it is "done".
type scriptedModel struct {
	root  string // where the agent works
	mu    sync.Mutex
	turns []modelTurn
	calls int
}

// modelTurn is one answer: words, and tools to call. Without calls it ends the agent's turn.
type modelTurn struct {
	text  string
	calls []modelCall
}

// modelCall writes a file or runs a command, by whatever tool the agent declares for that.
type modelCall struct{ path, content, command string }

// declaredTool is one that a request offers.
type declaredTool struct {
	name, kind string
	properties map[string]json.RawMessage
}

// toolCall is a call in the agent's words.
type toolCall struct {
	id, name, kind string
	arguments      map[string]any
	patch          string // instead of arguments, of a kind that takes text
}

func startModel(t *testing.T, root string, turns []modelTurn) (url string) {
	m := &scriptedModel{root: root, turns: turns}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return server.URL
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &request)
	tools := declaredTools(data)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/responses"):
		events(w, responseEvents(m.answer(tools)))
	case strings.HasSuffix(path, "/chat/completions"):
		text, calls := m.answer(tools)
		if request["stream"] != true {
			reply(w, map[string]any{"id": "c", "object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": chatMessage(text, calls), "finish_reason": chatEnd(calls)}}})
			return
		}
		events(w, chatEvents(text, calls))
	case strings.HasSuffix(path, ":streamGenerateContent"):
		events(w, []modelEvent{{"", geminiAnswer(m.answer(tools))}})
	case strings.HasSuffix(path, ":generateContent"):
		reply(w, geminiAnswer(m.answer(tools)))
	case strings.HasSuffix(path, ":countTokens"):
		reply(w, map[string]any{"totalTokens": 100})
	case strings.HasSuffix(path, "/models"):
		reply(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": "fake", "object": "model"}}, "models": []any{}})
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

// answer takes the next turn of the script; a request for a title declares no tools and takes none.
func (m *scriptedModel) answer(tools []declaredTool) (string, []toolCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(tools) == 0 || len(m.turns) == 0 {
		return "done", nil
	}
	turn := m.turns[0]
	m.turns = m.turns[1:]
	var calls []toolCall
	for _, c := range turn.calls {
		m.calls++
		call := m.inAgentsWords(c, tools)
		call.id = fmt.Sprintf("call_%04d", m.calls)
		calls = append(calls, call)
	}
	return turn.text, calls
}

var toolNames = map[bool][]string{
	true:  {"exec_command", "shell_command", "shell", "bash", "run_shell_command"},
	false: {"write_file", "write", "create", "apply_patch"},
}

func (m *scriptedModel) inAgentsWords(c modelCall, tools []declaredTool) toolCall {
	path := filepath.Join(m.root, c.path)
	words := map[string]any{
		"file_path": path, "filePath": path, "path": path, "content": c.content, "file_text": c.content,
		"cmd": c.command, "command": c.command, "description": "scripted",
	}
	for _, name := range toolNames[c.command != ""] {
		i := slices.IndexFunc(tools, func(t declaredTool) bool { return t.name == name })
		if i < 0 {
			continue
		}
		call := toolCall{name: name, kind: tools[i].kind, arguments: map[string]any{}}
		if call.kind == "custom" {
			call.patch = "*** Begin Patch\n*** Add File: " + path + "\n+" + strings.ReplaceAll(strings.TrimSuffix(c.content, "\n"), "\n", "\n+") + "\n*** End Patch\n"
		}
		for property := range tools[i].properties {
			if value, known := words[property]; known {
				call.arguments[property] = value
			}
		}
		return call
	}
	return toolCall{name: "none", kind: "function"}
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
