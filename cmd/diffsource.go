package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"decree/history"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// diffSource finds out what diff is to show: a record's own, the way between
// two records, or the way from one to now.
func (s *session) diffSource(ctx context.Context, rec *recorder.Reader, o diffOptions) (*diffSource, error) {
	ref, words, err := s.diffWords(rec)
	if err != nil {
		return nil, err
	}
	paths, err := s.inTree(rec.Project().Root, words)
	if err != nil {
		return nil, err
	}
	var source *diffSource
	if o.edits {
		source, err = s.editsOf(ctx, rec, ref, paths)
	} else {
		source, err = s.diffOf(ctx, rec, cmp.Or(ref, "last"), paths, o.now)
	}
	if err != nil {
		return nil, err
	}
	return source, s.mustBeKnown(rec, words, paths, func(path tree.Path) (bool, error) { return source.has([]tree.Path{path}) })
}

// editsOf is what was changed by no record: before the one that ref names, or since the
// newest one where ref is "".
func (s *session) editsOf(ctx context.Context, rec *recorder.Reader, ref string, paths []tree.Path) (*diffSource, error) {
	if strings.Contains(ref, "..") {
		return nil, usagef("%s and --edits cannot be used together", ref).Hintf("--edits takes one REF, or none for what was edited since the newest record")
	}
	if ref != "" {
		point, err := s.resolve(rec, ref)
		if err != nil {
			return nil, err
		}
		return s.outsideDiff(rec, point.Record, paths), nil
	}
	from, err := s.resolve(rec, "last")
	if err != nil {
		return nil, err
	}
	from.After = from.Record.Status != history.StatusReverted
	return s.between(ctx, rec, recorder.DiffOptions{From: from, To: recorder.Point{Now: true}, Paths: paths}), nil
}

func (s *session) between(ctx context.Context, rec *recorder.Reader, o recorder.DiffOptions) *diffSource {
	return &diffSource{paths: o.Paths, write: func(w io.Writer) error {
		_, err := rec.Diff(ctx, w, o)
		return err
	}}
}

// outsideDiff is a record's outside.diff; nothing where it found nothing.
func (s *session) outsideDiff(rec *recorder.Reader, r *history.Record, paths []tree.Path) *diffSource {
	return &diffSource{paths: paths, write: func(w io.Writer) error {
		if _, ok := r.Outside(); !ok {
			return nil
		}
		return copyDiff(w, rec, r, history.OutsideFile)
	}}
}

// copyDiff copies a diff of a record, which is compared with the recorded hash.
func copyDiff(w io.Writer, rec *recorder.Reader, r *history.Record, name string) error {
	f, err := rec.OpenDiff(r, name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// diffOf is the diff that ref or A..B means.
func (s *session) diffOf(ctx context.Context, rec *recorder.Reader, ref string, paths []tree.Path, now bool) (*diffSource, error) {
	from, to, ranged := strings.Cut(ref, "..")
	if ranged && now {
		return nil, usagef("%s and --now cannot be used together", ref).Hintf("'decree diff A --now' compares the tree before A with the tree as it is now")
	}
	if !ranged && !now {
		point, err := s.resolve(rec, ref)
		if err != nil {
			return nil, err
		}
		source := s.recordDiff(rec, point.Record, paths)
		if r := point.Record; isCheckpoint(r) {
			source = s.outsideDiff(rec, r, paths)
			if found, err := source.has(paths); err != nil || found {
				source.note = fmt.Sprintf("%s is a checkpoint and changed nothing; this is what was edited before it, its outside.diff", r.ID)
				return source, err
			}
			source.note = fmt.Sprintf("%s is a checkpoint and changed nothing; 'decree diff %s --now%s' shows what changed since", r.ID, r.ID, s.lastWords(len(paths)))
		}
		return source, nil
	}
	options := recorder.DiffOptions{To: recorder.Point{Now: true}, Paths: paths}
	var err error
	if options.From, err = s.resolve(rec, from); err != nil {
		return nil, err
	}
	if ranged {
		if options.To, err = s.resolve(rec, to); err != nil {
			return nil, err
		}
		// From before A to after B; a TIME says itself which side it means.
		options.To.After = options.To.After || !strings.HasPrefix(to, "@")
	}
	source := s.between(ctx, rec, options)
	source.note = draftNote(options)
	return source, nil
}

// draftNote says of a comparison with a draft how far it goes.
func draftNote(o recorder.DiffOptions) string {
	from, to := o.From.Record.Isolated != "", o.To.Record != nil && o.To.Record.Isolated != ""
	switch {
	case from && to:
		return fmt.Sprintf("drafts are no states of the tree: this is how what %s left differs from what %s left, at the paths that both changed", o.To.Record.ID, o.From.Record.ID)
	case from && o.To.Now:
		return fmt.Sprintf("draft %s is no state of the tree: this is what has become of the paths that it changed, since its run began", o.From.Record.ID)
	case from:
		return fmt.Sprintf("draft %s is no state of the tree: only the paths that it changed are compared, as its run found them", o.From.Record.ID)
	case to:
		return fmt.Sprintf("draft %s is no state of the tree: only the paths that it changed are compared", o.To.Record.ID)
	}
	return ""
}

// lastWords are the line's last n words as one would type them, after a space.
func (s *session) lastWords(n int) string {
	words := s.words()
	if n == 0 || n > len(words) {
		return ""
	}
	return " " + commandLine(words[len(words)-n:])
}

// diffWords takes diff's words apart: a REF, A..B or A B, "" if there is none, and PATHs.
func (s *session) diffWords(rec *recorder.Reader) (ref string, paths []string, err error) {
	words := s.line.words
	refs := 0
	for refs < min(2, len(words)) && (refs == 0 || !strings.Contains(words[0], "..")) {
		is, err := s.isRef(rec, words[refs])
		if err != nil {
			return "", nil, err
		}
		if !is || refs == 1 && strings.Contains(words[1], "..") {
			break
		}
		refs++
	}
	return strings.Join(words[:refs], ".."), append(words[refs:len(words):len(words)], s.line.paths...), nil
}

// recordDiff is a record's changes.diff.
func (s *session) recordDiff(rec *recorder.Reader, r *history.Record, paths []tree.Path) *diffSource {
	return &diffSource{paths: paths, write: func(w io.Writer) error {
		err := copyDiff(w, rec, r, history.ChangesFile)
		if errors.Is(err, fs.ErrNotExist) {
			return s.noDiff(r)
		}
		return err
	}}
}

// noDiff says why a record has no changes.diff, or that it has none to show.
func (s *session) noDiff(r *history.Record) error {
	switch {
	case r.Status == history.StatusOpen && r.Isolated != "":
		return refusedf("%s has not ended: what it changed is in its layer, and not known yet", r.ID).Hintf("'decree log' says when it has ended")
	case r.Status == history.StatusOpen:
		return refusedf("%s has not ended: it has no changes.diff yet", r.ID).Hintf("see what changed so far with 'decree diff %s --now'", r.ID)
	case r.DiffSHA256.IsZero():
		return nil
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("the changes.diff of %s is missing", r.ID),
		Advice: "'decree doctor --repair' brings it back from the store"}
}
