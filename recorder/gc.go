package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"decree/history"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// Collected is what a gc did.
type Collected struct {
	Freed   int64 // bytes of the store
	Objects int64 // contents and trees that went
	Packs   int   // that went or were written anew
	Store   int64 // bytes of the store afterwards
	Damaged []string
}

// Gc frees what no record names: packs that are half dead or more, after what
// lives in them was copied.
func (r *Recorder) Gc(ctx context.Context) (*Collected, error) {
	x, err := r.enterForSpace(ctx, opGc)
	if err != nil {
		return nil, err
	}
	defer x.close()
	r.thinRuns(true)
	c, err := r.collectUntilThereIsRoom(ctx, x, collectOptions{})
	if err != nil {
		r.auditFailure(opGc, err)
		return nil, err
	}
	return c, nil
}

const opGc = "gc"

type collectOptions struct {
	force bool // also packs that are dead in part only
	// except are contents that go although records name them.
	except map[tree.Hash]bool
}

// collect frees what no record names. It ends the writer of x. A death at any
// step costs space until the next time.
func (r *Recorder) collect(ctx context.Context, x *writeSession, o collectOptions) (*Collected, error) {
	before, err := r.storeSize()
	if err != nil {
		return nil, err
	}
	r.progress(Progress{Phase: "finding what records need"})
	if err := r.history.Settle(); err != nil {
		return nil, err
	}
	live, err := r.needed(o.except)
	if err != nil {
		return nil, err
	}
	free := store.CompactOptions{Force: o.force}
	if len(o.except) == 0 { // else what is to go may have been put since
		if free.Since, err = r.history.OpenSince(); err != nil {
			return nil, err
		}
	}
	// Compacting takes no other writer beside it.
	err = x.w.Close()
	x.w = nil
	if err != nil {
		return nil, err
	}
	if err := r.project.MarkCollected(); err != nil {
		return nil, err
	}
	r.progress(Progress{Phase: "freeing"})
	res, err := r.store.Compact(ctx, func(h tree.Hash) bool { _, ok := live[h]; return ok }, free)
	if err != nil {
		return nil, err
	}
	c := &Collected{Objects: res.Objects, Packs: res.Packs, Damaged: res.Kept}
	if c.Store, err = r.storeSize(); err != nil {
		return nil, err
	}
	c.Freed = max(0, before-c.Store)
	if res.Packs == 0 {
		return c, nil
	}
	op := r.audit(opGc, "done")
	op.Detail = fmt.Sprintf("%d objects, %d bytes", c.Objects, c.Freed)
	return c, r.history.Audit(op)
}

// needed are the objects of all closures but for those of except, and what the journals of
// interrupted transactions move.
func (r *Recorder) needed(except map[tree.Hash]bool) (map[tree.Hash]struct{}, error) {
	if err := r.nothingUnreadable(); err != nil {
		return nil, err
	}
	live := map[tree.Hash]struct{}{}
	if err := r.namedByJournals(func(h tree.Hash) { live[h] = struct{}{} }); err != nil {
		return nil, err
	}
	err := r.history.Closures(nil, history.Once(), func(p *history.Part) error {
		live[p.Object] = struct{}{}
		return p.Err
	})
	if err != nil {
		return nil, &project.Error{Kind: project.KindOf(err), Msg: "nothing was freed, because some records cannot be read, and so it is not known what they need", Err: err,
			Advice: cmp.Or(project.HintOf(err), "'decree verify --all' lists what is damaged")}
	}
	for h := range except {
		delete(live, h)
	}
	return live, nil
}

// nothingUnreadable refuses where it is not known which contents are needed: of an
// open record or a journal that was set aside because it cannot be read.
func (r *Recorder) nothingUnreadable() error {
	paths, err := r.setAside()
	if err != nil || len(paths) == 0 {
		return err
	}
	return &project.Error{Kind: project.Refused, Err: errors.New("contents that it needs may not be freed; nothing was freed"),
		Msg:    paths[0] + " is unfinished work",
		Advice: "move it away once you need nothing of it any more"}
}
