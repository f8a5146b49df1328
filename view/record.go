package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"unicode/utf8"

	"decree/history"
	"decree/recorder"
	"decree/tree"
)

// Labels are the labels of records, sorted, by record, as history's LabelsOf has them.
type Labels map[string][]string

func (l Labels) of(id string) []string { return append([]string{}, l[id]...) }

// Record is a record with its labels, as run.json has it: an indented object.
func Record(r *history.Record, labels Labels) json.RawMessage {
	return bytes.TrimRight(r.JSON(labels.of(r.ID)), "\n")
}

// ForeignRecord is Record for one that lies in .decree/runs and that this store has
// never seen: with `"foreign": true`.
func ForeignRecord(r *history.Record, labels Labels) json.RawMessage {
	marked := *r
	marked.Extra = append(slices.Clone(r.Extra), history.Field{Name: "foreign", Raw: json.RawMessage("true")})
	return Record(&marked, labels)
}

// EncodeRecords writes records as a list, one after the other as they come.
func EncodeRecords(w io.Writer, records []*history.Record, labels Labels) error {
	return encodeList(w, func(item func([]byte) error) error {
		var data []byte // one buffer for all: the history may be long
		for _, r := range records {
			data = r.AppendJSON(data[:0], labels.of(r.ID))
			if err := item(data); err != nil {
				return err
			}
		}
		return nil
	})
}

// OutsideReason stands, in lists, for what changed between records: no record has it.
const OutsideReason history.Reason = "outside"

// MomentPath is one path of a moment.
type MomentPath struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Change string `json:"change"`
	From   string `json:"from,omitempty"`
}

// outsideMoment is what a record found done by none.
type outsideMoment struct {
	ID      string         `json:"id"`
	Reason  history.Reason `json:"reason"`
	FoundBy string         `json:"found_by"`
	Started string         `json:"started"`
	Labels  []string       `json:"labels"`
	Paths   []MomentPath   `json:"paths"`
}

// Moment is what happened to paths at once, an indented object: a record with `paths`,
// or what a record found done, with the reason "outside", an empty id and `found_by`.
func Moment(m history.Moment, labels Labels) (json.RawMessage, error) {
	paths := []MomentPath{}
	for i, f := range m.Facts {
		p := MomentPath{Path: Path(f.Path), Op: string(f.Op), Change: OpWord(f.Op)}
		if i == 0 && m.From != "" {
			p.From = Path(m.From)
		}
		paths = append(paths, p)
	}
	if m.Outside {
		raw, err := plain(outsideMoment{
			Reason: OutsideReason, FoundBy: m.Record.ID, Started: m.Record.Started.UTC().Format(timeForm), Labels: []string{}, Paths: paths,
		})
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = json.Indent(&b, raw, "", "  ")
		return b.Bytes(), err
	}
	raw, err := plain(paths)
	if err != nil {
		return nil, err
	}
	// The record's object with one field more: as run.json has it, in its order.
	data := bytes.TrimRight(bytes.TrimSuffix(Record(m.Record, labels), []byte("}")), "\n")
	return append(append(append(data, ",\n  \"paths\": "...), raw...), "\n}"...), nil
}

// EncodeMoments writes moments as a list.
func EncodeMoments(w io.Writer, moments []history.Moment, labels Labels) error {
	return encodeList(w, func(item func([]byte) error) error {
		for _, m := range moments {
			data, err := Moment(m, labels)
			if err == nil {
				err = item(data)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Changes are a record's changes as run.json has them.
type Changes struct {
	Created      int `json:"created"`
	Modified     int `json:"modified"`
	Deleted      int `json:"deleted"`
	AddedLines   int `json:"added_lines"`
	RemovedLines int `json:"removed_lines"`
}

// File is a file, link or directory as it was at a point.
type File struct {
	Record string `json:"record"`
	After  bool   `json:"after"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Mode   string `json:"mode"`
	Type   string `json:"type,omitempty"`
	Target string `json:"target,omitempty"`
}

// FileAt is the File of a path at a point that is not now.
func FileAt(p recorder.Point, path tree.Path, e tree.Entry) File {
	out := File{
		Record: p.Record.ID, After: p.After, Path: Path(path),
		SHA256: e.SHA256.String(), Size: e.Size, Mode: tree.FormatMode(e.Mode),
	}
	switch e.Type {
	case tree.Symlink:
		out.Type, out.Target = "symlink", Path(e.Target)
	case tree.Dir:
		out.Type, out.SHA256 = "dir", ""
	}
	return out
}

// Found is a path and what happened to it last; Record is "" where it was there from the
// beginning.
type Found struct {
	Path    string `json:"path"`
	Exists  bool   `json:"exists"`
	Change  string `json:"change,omitempty"`
	Outside bool   `json:"outside,omitempty"` // by no record; Record found it
	Record  string `json:"record,omitempty"`
}

// Line is a line of a file and what brought it. Text is the line without its end; Bytes
// is it in base64 where it is not UTF-8, which JSON cannot hold.
type Line struct {
	Line    int     `json:"line"`
	Record  *string `json:"record"`
	Outside bool    `json:"outside"`
	FoundBy string  `json:"found_by,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Time    string  `json:"time,omitempty"`
	What    string  `json:"what"`
	Text    string  `json:"text"`
	Bytes   string  `json:"bytes,omitempty"`
}

// Blamed is line i of a file, counted from 0.
func Blamed(i int, l recorder.Blamed) Line {
	j := Line{Line: i + 1, Outside: l.Outside, What: WhatBrought(l.Culprit), Text: string(l.Text)}
	if !utf8.Valid(l.Text) {
		j.Bytes = base64.StdEncoding.EncodeToString(l.Text)
	}
	if l.Record == nil {
		return j
	}
	j.Time = l.Record.Started.UTC().Format(timeForm)
	if l.Outside {
		j.FoundBy = l.Record.ID
		return j
	}
	j.Record, j.Reason = &l.Record.ID, string(l.Record.Reason)
	return j
}

// WhatBrought says in words what brought a line.
func WhatBrought(l recorder.Culprit) string {
	switch {
	case l.Outside && l.Record == nil:
		return "since the last record"
	case l.Outside:
		return "found by " + l.Record.ID
	}
	return What(l.Record)
}
