package worktree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"decree/disk"
	"decree/tree"
)

// Keeper stores what is displaced. *store.Writer is one.
type Keeper interface {
	// Keep makes sure that the content h is stored whole, if need be from what open
	// yields, and returns the hash that this had. Several goroutines call it at once.
	Keep(h tree.Hash, size int64, open func() (io.ReadCloser, error)) (tree.Hash, error)
	// Flush makes all that was stored durable.
	Flush() error
}

// txn is one transaction on its way.
type txn struct {
	t        *Tree
	id       string
	meta     json.RawMessage
	steps    *stepList
	journals disk.Dir
	keep     Keeper
	h        *handles
	sp       respelled
	stage    disk.Dir // .decree/tmp/txn-<id>
	staged   bool     // it is ours
	uid      uint32   // whose the staging directory is: ours
	dev      uint64   // its device
	dirMode  uint32   // the mode that it got
	manner
	// unflushed is what has to be durable before the journal gets its name; each
	// is called once; with false it only closes its file.
	unflushed []func(on bool) error
	flushAll  func() error       // flushes the whole file system; nil: each file is flushed
	elsewhere atomic.Bool        // something of it is on another device than the staging directory
	live      bool               // the process that began it: it knows what it made
	open      map[tree.Path]bool // Plan.Open
	began     int64              // in a recovery: when the journal was written, in ns since 1970
	ext       string             // what the journal's name says: extJournal and so on

	mu       sync.Mutex
	notes    []string
	slotDirs map[tree.Path]*tree.Path // the directories of slots beside their targets
	owners   map[tree.Path]*disk.Info // whose what is made in a directory is to be
}

// Move makes every step of plan, or none. keep sees to it that what will be
// displaced is stored; journals is where the journal lies while it happens.
//
// Where steps make no sense the error is about a path. All other errors are an
// *Error: with *ConflictError inside when the tree is not as the plan has it,
// *MismatchError when a content or a touched path has another hash than promised. After an error with RolledBack the tree is as it was.
func (t *Tree) Move(ctx context.Context, plan Plan, keep Keeper, journals disk.Dir) (*Outcome, error) {
	var m manner
	for {
		out, err := t.move(ctx, plan, keep, journals, m)
		var e *Error
		if !errors.As(err, &e) || !e.RolledBack || !m.other(e) {
			return out, err
		}
	}
}

// manner is how a transaction is made.
type manner struct {
	beside bool // all slots are beside their targets
	failed int  // whole flushes that have failed; see flushWhole
}

// other says whether after err another manner may come to the end, and makes m that one.
func (m *manner) other(err error) bool {
	switch {
	case !m.beside && errors.Is(err, syscall.EXDEV):
		m.beside = true // a mount that has the device of the tree around it: only a rename can tell.
	case m.failed < wholeTries && errors.As(err, new(*wholeError)):
		m.failed++
	default:
		return false
	}
	return true
}

func (t *Tree) move(ctx context.Context, plan Plan, keep Keeper, journals disk.Dir, how manner) (*Outcome, error) {
	if err := checkID(plan.ID); err != nil {
		return nil, err
	}
	if t.opt.Tmp == nil {
		return nil, errors.New("no directory for staging")
	}
	steps, err := plan.steps()
	if err != nil {
		return nil, err
	}
	if steps.n == 0 { // as some undos: their record is all that there is to make
		out := &Outcome{}
		if plan.Commit != nil {
			err = plan.Commit(out)
		}
		return out, err
	}
	x := &txn{
		t: t, id: plan.ID, meta: plan.Meta, steps: steps, journals: journals,
		keep: keep, h: newHandles(t.root), sp: markEarly(steps), manner: how, live: true, open: plan.Open,
	}
	defer func() { x.close() }()
	if err := x.prepareAll(ctx); err != nil {
		return nil, err
	}
	if err := x.moveAll(ctx); err != nil {
		return nil, x.undo(ctx, err)
	}
	if err := x.mark(extDone); err != nil {
		return nil, x.undo(ctx, &Error{Phase: "journal", Err: err})
	}
	_ = x.emptySlots() // all is settled and stored: the owner may need the room. clean names what stays.
	out := x.outcome()
	if plan.Commit != nil {
		if err := plan.Commit(out); err != nil {
			return out, err
		}
	}
	if err := x.clean(); err != nil {
		out.Notes = append(out.Notes, "the staging files of "+x.id+" stay until the next recovery: "+err.Error())
	}
	return out, nil
}

// prepareAll does all that changes nothing in the tree, up to the journal.
func (x *txn) prepareAll(ctx context.Context) error {
	for _, part := range [...]struct {
		phase string
		do    func(context.Context) error
	}{
		{"check", x.check},
		{"keep", x.keepOld},
		{"stage", x.stageAll},
		{"stage", x.draftJournal},
		{"stage", x.flush},
		{"journal", func(context.Context) error { return x.nameJournal() }},
		{"journal", x.noteMoves},
	} {
		err := part.do(ctx)
		if err == nil {
			continue
		}
		x.drop()
		dropped, cerr := x.abandon()
		if cerr != nil {
			err = errors.Join(err, cerr)
		}
		return &Error{Phase: part.phase, Path: pathOf(err), Err: err, Moved: !dropped, RolledBack: dropped}
	}
	return nil
}

// undo takes everything back after cause and says what came of it. The journal
// goes when the tree is settled, which it is not while a disk's error stands.
func (x *txn) undo(ctx context.Context, cause error) error {
	e := &Error{Phase: "move", Path: pathOf(cause), Err: cause, Moved: true}
	if c, ok := errors.AsType[*Error](cause); ok {
		e.Phase, e.Path, e.Err = c.Phase, c.Path, c.Err
	}
	done := x.ext == extDone
	err := x.mark(extBack)
	if done && err != nil {
		// The tree is all new, and the journal may still say done: if we died
		// while taking back, nobody would go on. All new it stays.
		e.Err = errors.Join(e.Err, err)
		return e
	}
	// Without the mark a later recovery may finish instead: also whole.
	if err = x.takeBack(context.WithoutCancel(ctx)); err == nil {
		e.RolledBack = len(x.steps.picked(func(s *facts) bool { return s.left != "" && !s.foreign })) == 0
		if err = x.mark(extUndone); err == nil {
			err = x.clean()
		} else if x.ext == extJournal {
			e.RolledBack = false // the next recovery may still finish it
		}
	}
	e.Left = x.leftOver()
	if err != nil {
		e.Err = errors.Join(e.Err, err)
	}
	return e
}

func (x *txn) outcome() *Outcome {
	out := &Outcome{Notes: x.notes, Left: x.leftOver()}
	for _, n := range x.steps.picked(func(s *facts) bool { return s.stayed }) {
		out.Stayed = append(out.Stayed, x.steps.at(int(n)).Path)
	}
	slices.Sort(out.Notes)
	return out
}

func (x *txn) leftOver() (out []Left) {
	for _, n := range x.steps.picked(func(s *facts) bool { return s.left != "" }) {
		s := x.steps.at(int(n))
		out = append(out, Left{s.Path, s.left})
	}
	return out
}

func (x *txn) note(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, text)
}

func (x *txn) close() {
	x.h.close()
	if x.stage != nil {
		x.stage.Close()
	}
}

// each calls do for those steps that pick wants, several at once.
func (x *txn) each(ctx context.Context, pick func(*facts) bool, do func(*step) error) error {
	list := x.steps.picked(pick)
	return each(ctx, x.t.workers(), len(list), func(i int) error {
		s := x.steps.at(int(list[i]))
		return at(s, do(s))
	})
}

// upward calls do for the picked steps one by one, children before parents.
func (x *txn) upward(ctx context.Context, pick func(*facts) bool, do func(*step) error) error {
	list := x.steps.picked(pick)
	slices.Reverse(list)
	return x.inTurn(ctx, list, do)
}

// downward calls do for the picked steps one by one, parents before children.
func (x *txn) downward(ctx context.Context, pick func(*facts) bool, do func(*step) error) error {
	return x.inTurn(ctx, x.steps.picked(pick), do)
}

func (x *txn) inTurn(ctx context.Context, list []int32, do func(*step) error) error {
	for _, n := range list {
		s := x.steps.at(int(n))
		if err := cmp.Or(ctx.Err(), at(s, do(s))); err != nil {
			return err
		}
	}
	return nil
}

// atNumber gives err the path of the step with the number n.
func (x *txn) atNumber(n int32, err error) error {
	if err == nil {
		return nil
	}
	return at(x.steps.at(int(n)), err)
}

// at gives err the step's path, unless it names its own.
func at(s *step, err error) error { return tree.At(s.Path, err) }

// pathOf returns the one path that err is about, or "".
func pathOf(err error) tree.Path {
	var has interface {
		error
		About() tree.Path
	}
	if errors.As(err, &has) {
		return has.About()
	}
	return ""
}
