package acp

import (
	"encoding/json"
	"strings"
)

// message is one line: a request (Method and ID), a notification (Method alone) or an answer
// (ID alone). Fields that have another shape than the protocol gives them are empty.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// failed says whether an answer is an error: null beside a result is none.
func (m *message) failed() bool { return m.Error != nil && string(m.Error) != "null" }

// params are those of all methods that are read, and what is read of the answers to them.
type params struct {
	SessionID  string     `json:"sessionId"`
	Cwd        string     `json:"cwd"`
	Prompt     []block    `json:"prompt"`
	Update     toolUpdate `json:"update"`
	ToolCall   toolUpdate `json:"toolCall"`
	Path       string     `json:"path"`
	ModelID    string     `json:"modelId"`
	StopReason string     `json:"stopReason"`
	Models     struct {
		CurrentModelID string `json:"currentModelId"`
	} `json:"models"`
}

// block is a piece of a prompt.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"` // of a link to a resource
	Resource struct {
		URI string `json:"uri"`
	} `json:"resource"`
}

// toolUpdate says what is new of a tool's call: the other fields are as they were.
type toolUpdate struct {
	SessionUpdate string    `json:"sessionUpdate"`
	ToolCallID    string    `json:"toolCallId"`
	Kind          string    `json:"kind"`
	Status        string    `json:"status"`
	Content       []content `json:"content"`
	Locations     []content `json:"locations"`
}

// content is a piece of what a tool made, of type diff with a path, or a place where it works.
type content struct {
	Type string `json:"type"`
	Path string `json:"path"`
}

// read returns what can be read of a text: the rest of the fields stays empty.
func read[T any](text []byte) (v T) {
	_ = json.Unmarshal(text, &v) // what has another shape is left out, and the rest is there
	return v
}

// key is an id as the key of a map: the same number or text, however it is written.
func key(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil && string(id) != "null" {
		return `"` + text
	}
	return string(id)
}

// textOf is a prompt in words: its text, and the names of what is linked to.
func textOf(prompt []block) string {
	var b strings.Builder
	for _, p := range prompt {
		b.WriteString(p.Text)
		b.WriteString(p.URI)
		b.WriteString(p.Resource.URI)
	}
	return b.String()
}
