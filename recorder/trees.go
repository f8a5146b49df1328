package recorder

import (
	"context"
	"encoding/json"
	"time"

	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/project"
)

// keep stores a captured tree so that it outlives the process, and makes the
// cache the current one: in this order, since the cache says what need not be
// stored again.
func (r *Recorder) keep(x *writing, res *capture.Result) (*history.TreeSpec, error) {
	spec, err := r.history.SaveTree(x.w, history.NewTree{ID: res.Tree, Base: res.Base, Changes: res.Changes, Entries: res.Entries()})
	if err != nil {
		return nil, err
	}
	if err := x.w.Flush(); err != nil {
		return nil, err
	}
	return spec, res.Commit()
}

// saveAfter stores the tree that a run left. It is durable after the next flush.
func (r *Recorder) saveAfter(x *writing, res *capture.Result, before manifest.Hash, changes []manifest.Change) (*history.TreeSpec, error) {
	return r.history.SaveTree(x.w, history.NewTree{ID: res.Tree, Base: before, Changes: changes, Entries: res.Entries()})
}

// partial is the manifest of some paths: what a revert's record holds.
func partial(changes []manifest.Change, side func(manifest.Change) *manifest.Entry) ([]byte, int, int64, error) {
	var b sliceWriter
	files, size := 0, int64(0)
	e := manifest.NewEncoder(&b, true)
	for _, dirs := range []bool{false, true} {
		for _, c := range changes {
			entry := side(c)
			if entry == nil || (entry.Type == manifest.Dir) != dirs {
				continue
			}
			err := error(nil)
			if dirs {
				err = e.Dir(c.Path, entry.Mode)
			} else {
				files, size = files+1, size+entry.Size
				err = e.File(c.Path, *entry)
			}
			if err != nil {
				return nil, 0, 0, err
			}
		}
	}
	err := e.Close()
	return b, files, size, err
}

type sliceWriter []byte

func (b *sliceWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func oldSide(c manifest.Change) *manifest.Entry { return c.Old }
func newSide(c manifest.Change) *manifest.Entry { return c.New }

// sequence is one side of changes as a tree of its own.
func sequence(changes []manifest.Change, side func(manifest.Change) *manifest.Entry) manifest.Seq {
	return func(yield func(manifest.Item, error) bool) {
		for _, dirs := range []bool{false, true} {
			for _, c := range changes {
				entry := side(c)
				if entry == nil || (entry.Type == manifest.Dir) != dirs {
					continue
				}
				if !yield(manifest.Item{Path: c.Path, Entry: *entry}, nil) {
					return
				}
			}
		}
	}
}

// savePartial stores one side of changes.
func (r *Recorder) savePartial(x *writing, id manifest.Hash, changes []manifest.Change, side func(manifest.Change) *manifest.Entry) (*history.TreeSpec, error) {
	return r.history.SaveTree(x.w, history.NewTree{ID: id, Entries: sequence(changes, side), Partial: true})
}

// now is the clock, never before a record's start.
func (r *Recorder) now(started time.Time) time.Time {
	if now := r.opt.Clock().UTC(); now.After(started) {
		return now
	}
	return started
}

func (r *Recorder) audit(op, outcome string) history.Operation {
	return history.Operation{Op: op, Actor: r.opt.Actor, Outcome: outcome}
}

// auditFailure writes down an operation that failed; its own failure is the lesser one.
func (r *Recorder) auditFailure(op, record string, err error) {
	o := r.audit(op, err.Error())
	o.Record = record
	kind := project.KindOf(err)
	o.Mistake = kind == project.Usage || kind == project.NotFound
	_ = r.history.Audit(o)
}

// enterFor is enter for an operation whose refusal is written down: the lock is
// held, a run stands in the way, what a dead process left cannot be finished.
func (r *Recorder) enterFor(ctx context.Context, op string, k kind) (*writing, error) {
	x, err := r.enter(ctx, k)
	if err != nil {
		_ = r.history.AuditAside(r.audit(op, err.Error()))
	}
	return x, err
}

// twin is the newest record when its run directory may hold the manifest.json
// of the same tree; "" otherwise.
func (r *Recorder) twin(tree manifest.Hash) string {
	ref, err := r.history.Resolve("last", r.opt.Location)
	if err != nil {
		return ""
	}
	rec, err := r.history.Get(ref.ID)
	if err != nil || rec.Before != tree {
		return ""
	}
	return rec.ID
}

// thin keeps the run directories small; gc looks at all of them. The records stand:
// what fails here is tried again after the next one.
func (r *Recorder) thin(all bool) {
	if err := r.history.ThinRuns(all); err != nil {
		r.note("the plain files of older records are kept as they are: %v", err)
	}
}

func encodeMeta(v any) (json.RawMessage, error) { return json.Marshal(v) }
