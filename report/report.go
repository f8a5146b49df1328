package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"decree/history"
	"decree/page"
	"decree/project"
	"decree/recorder"
	"decree/timeline"
	"decree/tree"
	"decree/view"
)

// Options are what a report needs beside its subject.
type Options struct {
	Reader *recorder.Reader
	Labels map[string][]string // by record
	Clock  page.Clock
	By     string // the program and its version, for the last line
}

// source is a diff that can be read as often as it is needed.
type source struct {
	open  func() (io.ReadCloser, error)
	none  string // why there is none; "" where open gives one
	proof string // what of it was compared with a hash, once it was read
}

// changesOf is the diff of a record.
func (o *Options) changesOf(r *history.Record) source {
	name := history.ChangesFile
	switch found, any := r.Outside(); {
	case r.Status == history.StatusOpen:
		return source{none: "It goes on: what it changes is known when it ends."}
	case view.IsCheckpoint(r) && !any:
		return source{none: "It is a checkpoint, and changed nothing."}
	case view.IsCheckpoint(r):
		_, name = found, history.OutsideFile
	case r.DiffSHA256.IsZero(), r.DiffSHA256 == tree.EmptySum:
		return source{none: "It changed nothing."}
	}
	return source{proof: name + " has the recorded SHA-256", open: func() (io.ReadCloser, error) {
		f, err := o.Reader.OpenDiff(r, name)
		if errors.Is(err, fs.ErrNotExist) {
			err = &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("the %s of %s is missing", name, r.ID),
				Advice: "'decree doctor --repair' brings it back from the store"}
		}
		return f, err
	}}
}

// between is the diff between two states.
func (o *Options) between(ctx context.Context, s *Subject) source {
	return source{proof: "every content was compared with its SHA-256", open: func() (io.ReadCloser, error) {
		return recorder.Piped(func(w io.Writer) error {
			_, err := o.Reader.Diff(ctx, w, recorder.DiffOptions{From: s.From, To: s.To})
			return err
		}), nil
	}}
}

// read hands the diff over; of one that is not there nothing.
func (s source) read(use func(io.Reader) error) error {
	if s.none != "" {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	return use(f)
}

// files are the first files of a diff, and how many it has.
func (s source) files(most int) (list []page.File, total page.Total, err error) {
	err = s.read(func(r io.Reader) (err error) {
		list, total, err = page.Files(r, 0, most)
		return err
	})
	return list, total, err
}

// title says in a line what the subject is.
func title(s *Subject) string {
	first := s.Records[0]
	switch {
	case s.ranged():
		return "From " + first.ID + " to " + s.To.Record.ID
	case s.Kind == timeline.Race:
		return "Race " + view.OneLine(s.Name) + ", " + view.Count(len(s.Records), "candidate")
	case s.Kind == timeline.Session:
		return "Session of " + view.OneLine(first.Actor.Agent) + ", " + view.Count(len(s.Records), "record")
	}
	return clip(named(first))
}

// longestTitle is how many characters a heading has; the facts have all of it.
const longestTitle = 100

func clip(text string) string {
	if r := []rune(text); len(r) > longestTitle {
		return string(r[:longestTitle]) + "…"
	}
	return text
}

// named is what a record is called: what it was about, or its id.
func named(r *history.Record) string { return cmp.Or(view.What(r), r.ID) }

// sum counts what records changed.
func sum(records []*history.Record) (c history.Changes) {
	for _, r := range records {
		c.Created += r.Changes.Created
		c.Modified += r.Changes.Modified
		c.Deleted += r.Changes.Deleted
		c.AddedLines += r.Changes.AddedLines
		c.RemovedLines += r.Changes.RemovedLines
	}
	return c
}

// command is what one types to see the same.
func command(s *Subject) string {
	switch {
	case s.ranged():
		return "decree diff " + tree.ShellWord(s.Name)
	case s.Kind == timeline.Session:
		return "decree turns --session " + tree.ShellWord(s.Records[0].Actor.Session)
	case s.Kind == timeline.Race:
		return "decree drafts"
	}
	return "decree diff " + s.Records[0].ID
}
