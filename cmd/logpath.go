package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"decree/history"
	"decree/patch"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// logPaths lists what happened at or below paths: by records, and between them.
func (s *session) logPaths(rec *recorder.Reader, o logOptions, paths []tree.Path, keep func(*history.Record) bool) error {
	var moments []history.Moment
	var unread []string // by -S
	warnings, err := rec.History().Past(history.PastOptions{Paths: paths, Follow: o.follow, Keep: keep}, func(m history.Moment) bool {
		wanted := o.reason == "" || m.Outside == (o.reason == string(view.OutsideReason))
		if wanted && o.search != "" {
			var err error
			if wanted, err = s.changesText(rec, m, []byte(o.search)); err != nil {
				unread = append(unread, fmt.Sprintf("not all of %s can be searched: %v", m.Record.ID, err))
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
	if err := s.mustBeKnown(rec, s.words(), paths, func(tree.Path) (bool, error) { return false, nil }); err != nil {
		return err
	}
	if s.global.json {
		labels, err := s.allLabels()
		if err != nil {
			return err
		}
		return s.print(func(w io.Writer) error { return view.EncodeMoments(w, moments, labels) })
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
	paths := make([]tree.Path, len(m.Facts))
	for i, f := range m.Facts {
		paths[i] = f.Path
	}
	if m.Outside {
		return s.outsideDiff(rec, m.Record, paths)
	}
	return s.recordDiff(rec, m.Record, paths)
}

// changesText says whether a moment changed how often text occurs in one of its files. err: some of their contents cannot be read.
func (s *session) changesText(rec *recorder.Reader, m history.Moment, text []byte) (found bool, err error) {
	source := s.momentDiff(rec, m)
	var unread error
	err = source.read(func(r io.Reader) error {
		return patch.EachSection(r, source.paths, func(sec *patch.Section) error {
			n := 0
			switch {
			case sec.Stored:
				was, err := occurrencesIn(rec, sec.Old, text)
				is, newErr := occurrencesIn(rec, sec.New, text)
				if err := cmp.Or(err, newErr); err != nil {
					unread = fmt.Errorf("%s: %w", shownPath(sec.Path), err)
					return nil
				}
				n = is - was
			case sec.Binary:
				n = bytes.Count(sec.NewData, text) - bytes.Count(sec.OldData, text)
			}
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
	return found, cmp.Or(err, unread)
}

// occurrencesIn is how often text occurs in the stored content of an entry, 0 where that has none.
func occurrencesIn(rec *recorder.Reader, e *tree.Entry, text []byte) (n int, err error) {
	if !e.IsFile() {
		return 0, nil
	}
	content, err := rec.OpenContent(e.SHA256)
	if err != nil {
		return 0, err
	}
	defer content.Close()
	buf := make([]byte, 1<<20+len(text))
	have := 0
	for {
		read, err := content.Read(buf[have:])
		have += read
		rest := buf[:have]
		for at := bytes.Index(rest, text); at >= 0; at = bytes.Index(rest, text) {
			n++
			rest = rest[at+len(text):]
		}
		have = copy(buf, rest[max(0, len(rest)-len(text)+1):]) // what may be the beginning of one
		switch {
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// writePatches writes each moment's line and its diff below it.
func (s *session) writePatches(w io.Writer, rec *recorder.Reader, moments []history.Moment) error {
	p := s.paint(s.env.Stdout)
	for i, m := range moments {
		head := fmt.Sprintf("%s  %s  %s  %s", s.shortID(m.Record.ID), s.ago(m.Record.Started), m.Record.Status, view.What(m.Record))
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
	if f.Old != nil && f.New != nil && f.Old.Mode != f.New.Mode && f.New.Type != tree.Symlink {
		mode = "mode " + tree.FormatMode(f.Old.Mode) + " -> " + tree.FormatMode(f.New.Mode)
	}
	word := view.OpWord(f.Op)
	switch {
	case mode == "":
		return word
	case word == "mode":
		return mode
	}
	return word + ", " + mode
}
