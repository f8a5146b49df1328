package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"decree/manifest"
	"decree/project"
	"decree/store"
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
	x, err := r.enterFor(ctx, opGc)
	if err != nil {
		return nil, err
	}
	defer x.close()
	c, err := r.collect(ctx, x, collectOptions{})
	if err != nil {
		r.auditFailure(opGc, "", err)
		return nil, err
	}
	return c, nil
}

const opGc = "gc"

type collectOptions struct {
	force bool // also packs that are dead in part only
	// except are contents that go although records name them.
	except map[manifest.Hash]bool
}

// collect frees what no record names. It ends the writer of x. A death at any
// step costs space until the next time.
func (r *Recorder) collect(ctx context.Context, x *writing, o collectOptions) (*Collected, error) {
	if err := r.nothingWaits(); err != nil {
		return nil, err
	}
	before, err := sizeOf(r.project.Store)
	if err != nil {
		return nil, err
	}
	r.progress(Progress{Phase: "looking for what is named"})
	if err := r.history.Rebase(x.w, x.w.Flush); err != nil {
		return nil, fmt.Errorf("trees are not written anew: %w", err)
	}
	live := map[manifest.Hash]struct{}{}
	if err := r.history.Live(func(h manifest.Hash) { live[h] = struct{}{} }); err != nil {
		return nil, &project.Error{Kind: project.KindOf(err), Msg: "nothing is freed, since not all that is named can be read", Err: err,
			Advice: cmp.Or(project.HintOf(err), "'decree verify --all' lists what is damaged")}
	}
	for h := range o.except {
		delete(live, h)
	}
	// Compacting takes no other writer beside it.
	err = x.w.Close()
	x.w = nil
	if err != nil {
		return nil, err
	}
	r.progress(Progress{Phase: "freeing"})
	res, err := r.store.Compact(ctx, func(h manifest.Hash) bool { _, ok := live[h]; return ok }, store.CompactOptions{Force: o.force})
	if err != nil {
		return nil, err
	}
	c := &Collected{Objects: res.Objects, Packs: res.Packs, Damaged: res.Kept}
	if c.Store, err = sizeOf(r.project.Store); err != nil {
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

// nothingWaits refuses where contents are needed that no record names: of an
// open record, also of one that was set aside because it cannot be read, and of
// an interrupted transaction.
func (r *Recorder) nothingWaits() error {
	var waiting []string
	for _, in := range []string{"open", "txn"} {
		dir, err := r.project.Store.OpenDir(in)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		list, err := dir.List()
		dir.Close()
		if err != nil {
			return err
		}
		for _, e := range list {
			waiting = append(waiting, in+"/"+e.Name)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	advice := "'decree recover' finishes or takes back what was begun"
	if strings.HasSuffix(waiting[0], ".damaged") {
		advice = "move it away once you need nothing of it any more"
	}
	return &project.Error{Kind: project.Refused, Err: errors.New("contents that it names must not go; nothing was freed"),
		Msg: fmt.Sprintf("%s/%s waits", r.project.StorePath, waiting[0]), Advice: advice}
}
