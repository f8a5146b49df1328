package recorder

import (
	"context"
	"encoding/json"
	"time"

	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/project"
	"decree/tree"
)

// keep makes a captured tree outlive the process, and then the cache the current one: in
// this order, since the cache says what need not be stored again.
func (r *Recorder) keep(x *writing, res *capture.Result) error {
	if err := x.w.Flush(); err != nil {
		return err
	}
	return res.Commit()
}

// partial is the manifest of some paths: what a revert's record holds.
func partial(changes []tree.Change, side func(tree.Change) *tree.Entry) ([]byte, int, int64, error) {
	var b sliceWriter
	files, size := 0, int64(0)
	for _, c := range changes {
		if e := side(c); e != nil && e.Type != tree.Dir {
			files, size = files+1, size+e.Size
		}
	}
	err := manifest.Encode(&b, history.OneSide(changes, side), true)
	return b, files, size, err
}

type sliceWriter []byte

func (b *sliceWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func oldSide(c tree.Change) *tree.Entry { return c.Old }

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

// twin is the newest record when its run directory may hold the manifest.json of the
// same tree, and that file's hash; "" otherwise.
func (r *Recorder) twin(id tree.Hash) (string, tree.Hash) {
	ref, err := r.history.Resolve("last", r.opt.Location)
	if err != nil {
		return "", tree.Hash{}
	}
	rec, err := r.history.Get(ref.ID)
	if err != nil || rec.Before != id || rec.Partial() || rec.ManifestSHA256.IsZero() {
		return "", tree.Hash{}
	}
	return rec.ID, rec.ManifestSHA256
}

// thin keeps the run directories small; gc looks at all of them. The records stand:
// what fails here is tried again after the next one.
func (r *Recorder) thin(all bool) {
	if err := r.history.ThinRuns(all); err != nil {
		r.note("the plain files of older records are kept as they are: %v", err)
	}
}

func encodeMeta(v any) (json.RawMessage, error) { return json.Marshal(v) }
