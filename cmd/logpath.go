package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"decree/history"
	"decree/patch"
	"decree/recorder"
)

// outsideReason stands, in log, for what changed between records: no record has it.
const outsideReason history.Reason = "outside"

// exactTime is how run.json writes a time, in UTC.
const exactTime = "2006-01-02T15:04:05.000000000Z"

// logPaths lists what happened at or below paths: by records, and between them.
func (s *session) logPaths(rec *recorder.Reader, o logOptions, paths []string, keep func(*history.Record) bool) error {
	var moments []history.Moment
	var unread []string // by -S
	warnings, err := rec.History().Past(history.PastOptions{Paths: paths, Follow: o.follow, Keep: keep}, func(m history.Moment) bool {
		wanted := o.reason == "" || m.Outside == (o.reason == string(outsideReason))
		if wanted && o.search != "" {
			var err error
			if wanted, err = s.changesText(rec, m, []byte(o.search)); err != nil {
				unread = append(unread, fmt.Sprintf("left out, its diff cannot be read: %s (%v)", m.Record.ID, err))
			}
		}
		if wanted {
			moments = append(moments, m)
		}
		return o.limit == 0 || len(moments) < o.limit
	})
	if err != nil {
		return err
	}
	for _, w := range append(warnings, unread...) {
		s.note(w)
	}
	if err := s.mustBeKnown(rec, s.words(), paths, func(string) (bool, error) { return false, nil }); err != nil {
		return err
	}
	if s.global.json {
		return s.print(func(w io.Writer) error { return s.writeMoments(w, moments) })
	}
	if len(moments) == 0 {
		s.say("no records")
		return nil
	}
	if o.patch {
		return s.page(func(w io.Writer) error { return s.writePatches(w, rec, moments) })
	}
	rows := make([]logRow, len(moments))
	for i, m := range moments {
		rows[i] = logRow{record: m.Record, outside: m.Outside, changes: momentInWords(m)}
	}
	return s.page(func(w io.Writer) error { return s.writeRows(w, rows) })
}

// momentDiff is the diff of a moment, of the paths that are its own.
func (s *session) momentDiff(rec *recorder.Reader, m history.Moment) *diffSource {
	paths := make([]string, len(m.Facts))
	for i, f := range m.Facts {
		paths[i] = f.Path
	}
	if m.Outside {
		return s.outsideDiff(rec, m.Record, paths)
	}
	return s.recordDiff(context.Background(), rec, m.Record, paths)
}

// changesText says whether a moment changed how often text occurs in one of its files.
// What a diff leaves to the store, such as large binary files, is not searched.
func (s *session) changesText(rec *recorder.Reader, m history.Moment, text []byte) (found bool, err error) {
	source := s.momentDiff(rec, m)
	err = source.read(func(r io.Reader) error {
		return eachSection(r, source.paths, func(sec *patch.Section) error {
			n := 0
			for i := range sec.Hunks {
				for line := range sec.Hunks[i].Lines() {
					switch line.Kind {
					case '+':
						n += bytes.Count(line.Text, text)
					case '-':
						n -= bytes.Count(line.Text, text)
					}
				}
			}
			found = found || n != 0
			return nil
		})
	})
	return found, err
}

// writePatches writes each moment's line and its diff below it.
func (s *session) writePatches(w io.Writer, rec *recorder.Reader, moments []history.Moment) error {
	p := s.paint(s.env.Stdout)
	for i, m := range moments {
		head := fmt.Sprintf("%s  %s  %s  %s", s.shortID(m.Record.ID), s.ago(m.Record.Started), m.Record.Status, whatOf(m.Record))
		if m.Outside {
			head = fmt.Sprintf("outside  %s  found by %s", s.ago(m.Record.Started), s.shortID(m.Record.ID))
		}
		if i > 0 {
			fmt.Fprintln(w)
		}
		if isTerminal(s.env.Stdout) {
			head = clip(head, s.columns(s.env.Stdout))
		}
		fmt.Fprintln(w, p.in(yellow, head))
		view, source := diffView{out: w, paint: p}, s.momentDiff(rec, m)
		err := source.read(func(r io.Reader) error {
			_, err := view.show(r, source.paths)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// momentInWords is what happened to one path, or to how many.
func momentInWords(m history.Moment) string {
	if m.From != "" {
		return "renamed from " + shownPath(m.From)
	}
	// Directories are not counted, as they are not in a record's changes.
	facts := slices.DeleteFunc(slices.Clone(m.Facts), func(f *patch.Section) bool { return isDirOp(f.Op) })
	if len(facts) == 0 {
		facts = m.Facts
	}
	if len(facts) == 1 {
		return factInWords(facts[0])
	}
	return count(len(facts), "path")
}

// factInWords says in words what happened to a path.
func factInWords(f *patch.Section) string {
	mode := ""
	if f.Old != nil && f.New != nil && f.Old.Mode != f.New.Mode && f.New.Type != patch.Symlink {
		mode = "mode " + patch.FormatMode(f.Old.Mode) + " -> " + patch.FormatMode(f.New.Mode)
	}
	word := opWord(f.Op)
	switch {
	case mode == "":
		return word
	case word == "mode":
		return mode
	}
	return word + ", " + mode
}

// momentPathJSON is one path of a moment; quoted as in the manifest.
type momentPathJSON struct {
	Path   string `json:"path"`
	Op     string `json:"op"`
	Change string `json:"change"`
	From   string `json:"from,omitempty"`
}

// outsideJSON is what a record found done, for programs.
type outsideJSON struct {
	ID      string           `json:"id"`
	Reason  history.Reason   `json:"reason"`
	FoundBy string           `json:"found_by"`
	Started string           `json:"started"`
	Labels  []string         `json:"labels"`
	Paths   []momentPathJSON `json:"paths"`
}

// writeMoments prints moments as a JSON array.
func (s *session) writeMoments(w io.Writer, moments []history.Moment) error {
	list := []json.RawMessage{}
	for _, m := range moments {
		data, err := s.momentJSON(m)
		if err != nil {
			return err
		}
		list = append(list, data)
	}
	if len(list) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	_, err := fmt.Fprintf(w, "[\n%s\n]\n", joinRaw(list))
	return err
}

func joinRaw(list []json.RawMessage) []byte {
	parts := make([][]byte, len(list))
	for i, l := range list {
		parts[i] = l
	}
	return bytes.Join(parts, []byte(",\n"))
}

func (s *session) momentJSON(m history.Moment) (json.RawMessage, error) {
	paths := []momentPathJSON{}
	for i, f := range m.Facts {
		p := momentPathJSON{Path: manifestPath(f.Path), Op: string(f.Op), Change: opWord(f.Op)}
		if i == 0 && m.From != "" {
			p.From = manifestPath(m.From)
		}
		paths = append(paths, p)
	}
	if m.Outside {
		return indented(outsideJSON{
			Reason: outsideReason, FoundBy: m.Record.ID, Started: m.Record.Started.UTC().Format(exactTime),
			Labels: []string{}, Paths: paths,
		})
	}
	data, err := s.recordJSON(m.Record)
	if err != nil {
		return nil, err
	}
	raw, err := plainJSON(paths)
	if err != nil {
		return nil, err
	}
	// The record's object with one field more: as run.json has it, in its order.
	data = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimRight(data, "\n"), []byte("}")), "\n")
	return append(append(append(data, ",\n  \"paths\": "...), raw...), "\n}"...), nil
}

// plainJSON is v on one line, without HTML escapes.
func plainJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// indented is v as an object of a list.
func indented(v any) (json.RawMessage, error) {
	raw, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, raw, "", "  ")
	return b.Bytes(), err
}
