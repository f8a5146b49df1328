package agent

import (
	"encoding/json"
	"strings"
)

// Payload returns what the agent would send for an event, as far as Read asks for
// it: the inverse of Read for an event without a tool.
func Payload(e Event) []byte {
	a := find(e.Agent)
	if a == nil {
		return nil
	}
	top := map[string]any{}
	for _, f := range []struct {
		names []string
		value string
	}{
		{a.fields.session, e.Session}, {a.fields.turn, e.Turn}, {a.fields.model, e.Model},
		{a.fields.prompt, e.Prompt}, {a.fields.directory, e.Directory}, {a.fields.transcript, e.Transcript},
	} {
		if len(f.names) > 0 && f.value != "" {
			put(top, strings.Split(f.names[0], "."), f.value)
		}
	}
	text, err := json.Marshal(top)
	if err != nil {
		panic(err) // it is made of texts
	}
	return text
}

// put puts value where names lead.
func put(in map[string]any, names []string, value string) {
	if len(names) == 1 {
		in[names[0]] = value
		return
	}
	below, ok := in[names[0]].(map[string]any)
	if !ok {
		below = map[string]any{}
		in[names[0]] = below
	}
	put(below, names[1:], value)
}
