package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"decree/history"
	"decree/project"
	"decree/recorder"
)

// diffSource finds out what diff is to show: a record's own, the way between
// two records, or the way from one to now.
func (s *session) diffSource(ctx context.Context, rec *recorder.Recorder, now bool) (*diffSource, error) {
	ref, words, err := s.diffWords(rec)
	if err != nil {
		return nil, err
	}
	paths, err := s.inTree(rec.Project(), words)
	if err != nil {
		return nil, err
	}
	source, err := s.diffOf(ctx, rec, ref, paths, now)
	if err != nil {
		return nil, err
	}
	return source, s.mustBeKnown(rec, words, paths, source.has)
}

// diffOf is the diff that ref or A..B means.
func (s *session) diffOf(ctx context.Context, rec *recorder.Recorder, ref string, paths []string, now bool) (*diffSource, error) {
	from, to, ranged := strings.Cut(ref, "..")
	if ranged && now {
		return nil, usagef("%s and --now exclude each other", ref).hint("'decree diff A --now' goes from before A to the tree as it is")
	}
	if !ranged && !now {
		point, err := s.resolve(rec, ref)
		if err != nil {
			return nil, err
		}
		source := s.recordDiff(ctx, rec, point.Record, paths)
		if r := point.Record; isCheckpoint(r) {
			source.note = fmt.Sprintf("%s is a checkpoint and changed nothing; 'decree diff %s --now' shows what changed since", r.ID, r.ID)
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
	return &diffSource{paths: paths, write: func(w io.Writer) error {
		_, err := rec.Diff(ctx, w, options)
		return err
	}}, nil
}

// diffWords takes diff's words apart: a REF, A..B or A B, the newest record if there
// is none, and PATHs.
func (s *session) diffWords(rec *recorder.Recorder) (ref string, paths []string, err error) {
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
	ref = "last"
	if refs > 0 {
		ref = strings.Join(words[:refs], "..")
	}
	return ref, append(words[refs:len(words):len(words)], s.line.paths...), nil
}

// recordDiff is a record's changes.diff, whose hash is compared while it is read.
func (s *session) recordDiff(_ context.Context, rec *recorder.Recorder, r *history.Record, paths []string) *diffSource {
	return &diffSource{paths: paths, write: func(w io.Writer) error {
		f, err := rec.History().OpenFile(r.ID, "changes.diff")
		if errors.Is(err, fs.ErrNotExist) {
			return s.noDiff(r)
		}
		if err != nil {
			return err
		}
		defer f.Close()
		// As revert does, it goes by the run.json that lies beside it.
		if plain, err := rec.History().ReadRun(r.ID); err == nil {
			r = plain
		}
		return copyChecked(w, f, r)
	}}
}

// noDiff says why a record has no changes.diff, or that it has none to show.
func (s *session) noDiff(r *history.Record) error {
	switch {
	case r.Status == history.StatusOpen:
		return refusedf("%s has not ended: it has no changes.diff yet", r.ID).hint("see what changed so far with 'decree diff %s --now'", r.ID)
	case r.DiffSHA256.IsZero():
		return nil
	}
	return &failure{kind: project.Integrity, msg: fmt.Sprintf("the changes.diff of %s is missing", r.ID),
		advice: "'decree doctor --repair' brings it back from the store"}
}
