package view

import (
	"encoding/json"
	"slices"

	"decree/history"
	"decree/recorder"
)

// WaitingDrafts are the drafts that wait: records, with `conflicts`, the paths that keep a
// publish of the whole from being made now (null where that is not known), and
// `layer_bytes`, null where the layer is gone.
func WaitingDrafts(list []recorder.WaitingDraft, labels Labels) []json.RawMessage {
	out := []json.RawMessage{}
	for _, d := range list {
		bytes, conflicts := any(d.Layer), any(inTheWay(d.Conflicts))
		if d.Layer < 0 {
			bytes = nil
		}
		if d.Unknown != nil {
			conflicts = nil
		}
		rec := *d.Record
		rec.Extra = append(slices.Clone(rec.Extra), field("conflicts", conflicts), field("layer_bytes", bytes))
		out = append(out, Record(&rec, labels))
	}
	return out
}

func field(name string, v any) history.Field {
	raw, err := plain(v)
	if err != nil {
		raw = []byte("null")
	}
	return history.Field{Name: name, Raw: raw}
}
