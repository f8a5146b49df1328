package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"time"

	"decree/history"
	"decree/layer"
	"decree/project"
	"decree/runner"
	"decree/tree"
	"decree/worktree"
)

// EnterOptions say what works in a draft's layer. Args and the streams are needed.
type EnterOptions struct {
	Ref                   string // "": the only draft that waits
	Args                  []string
	Dir                   string // absolute; where it is not in the root, the root
	Stdin, Stdout, Stderr *os.File
	Env                   []string
	Grace                 time.Duration
	Signals               <-chan os.Signal
	// Begins, if not nil, is called before the command is executed, with where it works.
	Begins func(rec *history.Record, workspace string)
}

// opEnter is the audit's word for it.
const opEnter = "enter"

// Enter has a command work in the layer of a draft that waits, and renews the draft: its
// record's diff is what the layer has then. The result's record is the renewed one, and its
// changes are all of the draft's. The tree is as it was, whatever the error.
func (r *Recorder) Enter(ctx context.Context, o EnterOptions) (*RunResult, error) {
	beginning, begun, end := heedSignals(ctx, o.Signals, nil)
	defer end()
	x, err := r.enterFor(beginning, opEnter, inLayer)
	if err != nil {
		return nil, err
	}
	defer x.close()
	u := &isolatedRun{run: &run{r: r, x: x, o: RunOptions{
		Args: o.Args, Dir: o.Dir, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Env: o.Env, Attempts: 1, Grace: o.Grace, Signals: o.Signals,
	}}}
	defer u.close()
	err = u.enter(beginning, o.Ref)
	begun()
	if err != nil {
		r.auditFailure(opEnter, err)
		return nil, err
	}
	if o.Begins != nil {
		o.Begins(u.rec, u.layer.Workspace())
	}
	if err := u.workAgain(ctx); err != nil {
		return nil, err
	}
	return &u.res, nil
}

// enter opens and marks the layer of the draft ref, and takes its lock and the lease.
func (u *isolatedRun) enter(ctx context.Context, ref string) (err error) {
	r := u.r
	if u.rec, err = r.draft(ref); err != nil {
		return err
	}
	if u.place, err = r.layers(); err != nil {
		return err
	}
	u.layer, err = u.place.Open(u.rec.ID)
	if isMissing(err) || errors.Is(err, layer.ErrUnfinished) {
		return layerGone(u.rec)
	}
	if err != nil {
		return err
	}
	if u.unlock, err = u.layer.Lock(); err != nil {
		return busyLayer(u.rec, err)
	}
	if err := r.wholeLayer(u.layer, u.rec); err != nil {
		return err
	}
	if u.mount, err = u.layer.Mount(); err != nil {
		return err
	}
	if err := u.takeLease(); err != nil {
		return err
	}
	if u.mount != nil { // the tree is not seen through a clone
		if err := u.openSights(ctx); err != nil {
			return err
		}
	}
	if u.had, err = u.layerHad(ctx); err != nil {
		return err
	}
	return u.layer.Enter()
}

// layerHad is what the layer has at paths of which the draft tells nothing: that is what they were when the run began, as of a file that
// the run has written and that is as before, or of a directory above a change. Nil stands for nothing.
func (u *isolatedRun) layerHad(ctx context.Context) (map[tree.Path]*tree.Entry, error) {
	changes, err := u.r.history.DiffChanges(u.rec)
	if err != nil {
		return nil, err
	}
	inDraft, published := map[tree.Path]bool{}, map[tree.Path]bool{}
	for _, c := range changes {
		inDraft[c.Path] = true
	}
	for _, path := range u.rec.Unrecorded {
		inDraft[path] = true
	}
	for _, paths := range u.rec.Draft.Outdated {
		for _, path := range paths {
			published[path] = true
		}
	}
	o := layer.CollectOptions{Writer: u.x.w}
	if o.ChangeOptions, err = u.r.layerOptions(); err != nil {
		return nil, err
	}
	had, err := u.layer.Has(ctx, o, func(path tree.Path) bool { return inDraft[path] }, func(path tree.Path) bool { return published[path] })
	return had, errors.Join(err, u.x.w.Flush())
}

// layerGone says what can still be done with a draft whose layer is removed.
func layerGone(rec *history.Record) *project.Error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("the layer of draft %s is gone, so nothing can work in it", draftName(rec)),
		Advice: fmt.Sprintf("its work is recorded: 'decree publish %s' brings it into the tree", draftName(rec))}
}

// wholeLayer refuses a layer that has something of its draft otherwise than it was recorded, where the
// machine went down since: what is torn must not be taken for the work. That is in the store as
// long as the draft tells of it. What a command has done that was noted in this boot is not torn.
func (r *Recorder) wholeLayer(l *layer.Layer, rec *history.Record) error {
	if !l.Rebooted() {
		return nil
	}
	if by, err := enteredBy(l); err != nil || by.BootID != "" && by.BootID == runner.BootID() {
		return err
	}
	torn, err := r.tornIn(l, rec)
	if err != nil || len(torn) == 0 {
		return err
	}
	return &project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg:    fmt.Sprintf("the machine went down since the layer of draft %s was made, which has otherwise than recorded, or lacks: %s", draftName(rec), some(torn)),
		Advice: fmt.Sprintf("'decree publish %s' brings what is recorded; what the layer has is in %s", draftName(rec), l.Path())}
}

// tornIn are the paths of a draft that who worked in its layer now would see otherwise than recorded.
func (r *Recorder) tornIn(l *layer.Layer, rec *history.Record) (torn []tree.Path, err error) {
	changes, err := r.history.DiffChanges(rec)
	if err != nil {
		return nil, err
	}
	top, err := l.Top()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	files := worktree.Open(top, worktree.Options{})
	decides, err := l.Decides()
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		from := r.tree
		if decides(c.Path) {
			from = files
		}
		seen, err := from.Look(c.Path)
		if errors.As(err, new(*worktree.SpecialError)) && from == files {
			err = nil // a deletion
		}
		if err != nil || !tree.SameEntry(seen, c.New) {
			torn = append(torn, c.Path)
		}
	}
	return torn, nil
}

// workAgain runs the command and renews the draft.
func (u *isolatedRun) workAgain(ctx context.Context) error {
	r := u.r
	res, err := u.executeThere(ctx, runner.Command{
		Args: u.o.Args, Dir: u.dirAgain(), Env: append(u.environment(1), "PWD="+u.dirAgain()), Overlay: u.mount,
		Stdin: u.o.Stdin, Stdout: u.o.Stdout, Stderr: u.o.Stderr, Log: io.Discard,
		Grace: u.o.Grace, Signals: u.o.Signals, Root: u.layer.Workspace(),
		Starting: func(leader runner.Leader) error {
			note, err := json.Marshal(leader)
			if err == nil {
				err = u.layer.NoteEntered(note)
			}
			if err == nil {
				err = u.freeLock()
			}
			return err
		},
	})
	started := err == nil && res.NotStarted == nil || res.Duration > 0
	if lerr := u.takeLock(ctx); lerr != nil {
		return u.notRenewed(lerr)
	}
	if cerr := u.catchUp(ctx); cerr != nil {
		return u.notRenewed(cerr)
	}
	u.res.Record, u.res.Last, u.res.ExitCode = u.rec, res, res.ExitCode
	if !started {
		if err != nil {
			err = u.cannotMount(err)
		}
		return errors.Join(err, u.layer.Leave())
	}
	if err != nil {
		u.say("%v", err)
	}
	res.Outside = nil
	u.noteOtherProcesses(res)
	rec, changes, notes, err := r.renewDraft(ctx, u.x, u.layer, u.rec, u.seenBefore, u.had)
	if err != nil {
		return u.notRenewed(err)
	}
	u.sayAll(notes)
	u.res.Record, u.res.Changes = rec, changes
	a := r.audit(opEnter, "done")
	a.Record = rec.ID
	return errors.Join(r.history.Audit(a), u.layer.Leave())
}

// dirAgain is where the command works: where decree was called, if that is in the root.
func (u *isolatedRun) dirAgain() string {
	rel, err := filepath.Rel(u.r.project.Root, realPath(u.o.Dir))
	if err != nil || !filepath.IsLocal(rel) {
		rel = "."
	}
	return filepath.Join(u.layer.Workspace(), rel)
}

// notRenewed is an error after the command has worked in the layer.
func (u *isolatedRun) notRenewed(err error) error {
	return &project.Error{Kind: project.KindOf(err), Err: fmt.Errorf("what it changed is not recorded: %w", err),
		State:  fmt.Sprintf("the command has run; the tree is as it was, and the work lies in %s", u.layer.Path()),
		Advice: fmt.Sprintf("once the cause is gone 'decree recover' renews draft %s", draftName(u.rec))}
}

// renewDraft has the record was tell what its layer has now. The notes are for who worked
// in it. seen tells what the tree had as that began, and had is the layerHad of then.
func (r *Recorder) renewDraft(ctx context.Context, x *writeSession, l *layer.Layer, was *history.Record, seen basesFrom, had map[tree.Path]*tree.Entry) (rec *history.Record, changes []tree.Change, notes []string, err error) {
	before, err := r.history.DiffChanges(was)
	if err != nil {
		return nil, nil, nil, err
	}
	back, err := r.backAtBase(was, before)
	if err != nil {
		return nil, nil, nil, err
	}
	before = append(before, back...)
	found, err := r.collectAgain(ctx, x, l, was, before, seen, had)
	if err != nil {
		return nil, nil, nil, err
	}
	renewed, draft := *was, *was.Draft
	renewed.Draft, draft.Git = &draft, found.Tally.Git
	changes, draft.NoBase = found.Changes()
	renewed.Unrecorded = found.Unrecorded()
	if draft.Outdated, err = r.outdated(was, before, changes); err != nil {
		return nil, nil, nil, err
	}
	if err := x.w.Flush(); err != nil { // the diff is written from it
		return nil, nil, nil, err
	}
	sum, stat, err := r.storeDiff(ctx, x, changes, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	_, plain, _, bytes, err := partial(changes)
	if err != nil {
		return nil, nil, nil, err
	}
	renewed.DiffSHA256, renewed.Changes, renewed.Bytes, renewed.ManifestSHA256 = sum, counts(stat), bytes, plain
	if err := x.w.Flush(); err != nil {
		return nil, nil, nil, err
	}
	notes = layerNotes(found, draft.NoBase)
	if back := r.takenBackIn(&draft, draft.By, changes); len(back) > 0 {
		notes = append(notes, fmt.Sprintf("published, and as before in the draft again, so that its next publish takes back: %s", some(back)))
	}
	return &renewed, changes, notes, r.history.RenewDraft(&renewed, sum)
}

// collectAgain is collectLayer for a layer whose draft has the changes before. What their
// paths were when the run began is recorded, whatever the tree has by now; had is layerHad, nil where that is not known.
func (r *Recorder) collectAgain(ctx context.Context, x *writeSession, l *layer.Layer, was *history.Record, before []tree.Change, seen basesFrom, had map[tree.Path]*tree.Entry) (*layer.Collected, error) {
	found, err := r.collectLayer(ctx, x, l, seen, nil)
	if err != nil {
		return nil, err
	}
	if err := r.addUntold(x, l, found, before); err != nil {
		return nil, err
	}
	earlier, recorded := map[tree.Path]tree.Change{}, map[tree.Path]bool{}
	noDir := map[tree.Path]bool{} // that the draft has no directory there, so that nobody has seen what the tree has below
	for _, c := range before {
		earlier[c.Path], recorded[c.Path] = c, true
		noDir[c.Path] = !c.New.IsDir()
	}
	touched := found.Touched[:0]
	for _, t := range found.Touched {
		c, is := earlier[t.Path]
		had, known := had[t.Path]
		switch {
		case known && had.IsFile() && !tree.SameEntry(had, t.New) && !r.store.Has(had.SHA256):
			t.NoBase = true // a gc beside the command has freed what it was
		case known:
			t.Old, t.NoBase = had, false
		case is && tree.SameEntry(c.Old, c.New): // see backAtBase
			t.Old, t.NoBase = c.Old, !tree.SameEntry(c.Old, t.New)
		case is:
			t.Old, t.NoBase = c.Old, baseless(was.Draft.NoBase, t.Path)
		case t.New == nil:
			if hidden, _ := lowestAbove(noDir, t.Path); hidden || l.Hid(t.Path) {
				continue // it came into the tree since the run began
			}
		}
		if t.NoBase || !tree.SameEntry(t.Old, t.New) {
			touched = append(touched, t)
		}
	}
	found.Touched = onOneBase(touched, recorded)
	return found, nil
}

// backAtBase are the paths that records have published, and of which the draft tells nothing any more, as what it has is their base again: with what
// the tree had there before the first publish, which is another base where that was forced or merged with an edit.
func (r *Recorder) backAtBase(draft *history.Record, told []tree.Change) (back []tree.Change, err error) {
	if len(draft.Draft.Outdated) == 0 {
		return nil, nil
	}
	known := map[tree.Path]bool{}
	for _, c := range told {
		known[c.Path] = true
	}
	err = r.eachPublished(draft, func(id string, c tree.Change) {
		if !known[c.Path] && slices.Contains(draft.Draft.Outdated[id], c.Path) {
			known[c.Path] = true
			back = append(back, tree.Change{Path: c.Path, Old: c.Old, New: c.Old})
		}
	})
	return back, err
}

// eachPublished calls each with what the records that published a part of the draft have brought, the oldest first. Of one that was removed
// nothing is known.
func (r *Recorder) eachPublished(draft *history.Record, each func(id string, c tree.Change)) error {
	publishes, err := r.publishesOf(draft)
	if err != nil {
		return err
	}
	for _, id := range publishes {
		rec, err := r.history.Get(id)
		if err != nil {
			continue // it was removed
		}
		changes, err := r.history.DiffChanges(rec)
		if err != nil {
			return err
		}
		for _, c := range changes {
			each(id, c)
		}
	}
	return nil
}

// addUntold adds what a layer has at the paths of its draft of which its walk has told nothing: there it has what the tree has, or the rules ignore by now
// what it has, or it is a clone that has nothing. What cannot be read is told as that.
func (r *Recorder) addUntold(x *writeSession, l *layer.Layer, found *layer.Collected, before []tree.Change) error {
	told := map[tree.Path]bool{}
	for _, t := range found.Touched {
		told[t.Path] = true
	}
	decides, err := l.Decides()
	if err != nil {
		return err
	}
	unread := found.Unrecorded()
	for _, c := range before {
		inUnread := len(unread) > 0 && c.Path.Within(unread...)
		if told[c.Path] || inUnread && decides(c.Path) {
			continue
		}
		now := c.New
		switch {
		case decides(c.Path):
			now, err = l.Own(x.w, c.Path)
		case l.Had(c.Path):
			if now, err = r.tree.Look(c.Path); errors.As(err, new(*worktree.LinkError)) || errors.As(err, new(*worktree.SpecialError)) {
				now, err = nil, nil
			}
		}
		if errors.Is(err, fs.ErrPermission) {
			found.Unread = append(found.Unread, c.Path)
			continue
		}
		if err != nil {
			return err
		}
		if !inUnread || tree.SameEntry(now, c.New) {
			found.Touched = append(found.Touched, layer.Touched{Change: tree.Change{Path: c.Path, New: now}})
		}
	}
	slices.SortFunc(found.Touched, func(a, b layer.Touched) int { return a.Path.Compare(b.Path) })
	return nil
}

// outdated are, for the records that have published a part of the draft, undone since or not, the paths of them that are other ones in the draft now: those
// are still to be published.
func (r *Recorder) outdated(draft *history.Record, before, now []tree.Change) (map[string][]tree.Path, error) {
	is := map[tree.Path]tree.Change{}
	for _, c := range now {
		is[c.Path] = c
	}
	other := map[tree.Path]bool{}
	for _, c := range before {
		has := c.Old // its base, where the draft does not change it any more
		if n, there := is[c.Path]; there {
			has = n.New
		}
		other[c.Path] = !tree.SameEntry(has, c.New)
	}
	out := map[string][]tree.Path{}
	err := r.eachPublished(draft, func(id string, c tree.Change) {
		if other[c.Path] || slices.Contains(draft.Draft.Outdated[id], c.Path) {
			out[id] = append(out[id], c.Path)
		}
	})
	return out, err
}

// takenBackIn are the paths that the records by have published, and that are no changes of the draft any more; none of these has taken them back since.
func (r *Recorder) takenBackIn(draft *history.Draft, by []string, changes []tree.Change) (paths []tree.Path) {
	if len(draft.Outdated) == 0 {
		return nil
	}
	told, brought := map[tree.Path]bool{}, r.broughtBy(draft, by)
	for _, c := range changes {
		told[c.Path] = true
	}
	for _, id := range by {
		for _, path := range draft.Outdated[id] {
			if !told[path] && !brought.whole(path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// entered renews the drafts in whose layers a process worked that is gone.
func (c *recovery) entered(ctx context.Context) error {
	return c.r.eachLayer(func(place *layer.Place, name string) error {
		if c.x.activity.live(name) {
			return nil
		}
		rec, err := c.r.history.Get(name)
		if diskTrouble(err) {
			return err
		}
		if err != nil || !rec.Draft.Waits() {
			return nil //nolint:nilerr // tidyLayers looks at it
		}
		l, err := place.Open(name)
		if diskTrouble(err) {
			return err
		}
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		defer l.Close()
		if is, err := l.Entered(); err != nil || !is {
			return err
		}
		unlock, err := l.Lock()
		if err != nil {
			return nil //nolint:nilerr // somebody reads it
		}
		defer func() { _ = unlock() }()
		what := "what worked in draft " + draftName(rec) + " when its decree died"
		if err := c.endMounted(place.MountName(name), what); err != nil {
			return err
		}
		if err := c.endNoted(l, what); err != nil {
			return err
		}
		if err := c.r.wholeLayer(l, rec); err != nil && ctx.Err() == nil {
			c.add(nil, "draft %s is as it was before a command worked in it: %v; nothing but a discard removes %s", draftName(rec), err, l.Path())
			return nil
		}
		renewed, _, _, err := c.r.renewDraft(ctx, c.x, l, rec, nil, nil)
		if err != nil && ctx.Err() == nil { // it may be the draft's own trouble, and must not hold up others
			c.add(nil, "draft %[1]s is as it was before a command worked in it: what its layer %[2]s has since cannot be recorded: %[3]v; 'decree enter %[1]s' shows it, and nothing but a discard removes it", draftName(rec), l.Path(), err)
			return nil
		}
		if err != nil {
			return err
		}
		c.add(renewed, "a command worked in draft %s and was not recorded then; the draft is what its layer has now", draftName(rec))
		return l.Leave()
	})
}

// endNoted ends the command that is noted as working in a layer: one in a clone has no mount by
// which it is found.
func (c *recovery) endNoted(l *layer.Layer, what string) error {
	leader, err := enteredBy(l)
	if err != nil || leader.PID == 0 {
		return err // else it was not started
	}
	left, err := c.endGroup(leader, what)
	c.addLeft(what, left)
	return err
}

// enteredBy is the command that is noted as working in a layer; none where none was started.
func enteredBy(l *layer.Layer) (leader runner.Leader, err error) {
	note, err := l.EnteredBy()
	if isMissing(err) {
		return leader, nil
	}
	if err != nil || json.Unmarshal(note, &leader) != nil {
		return runner.Leader{}, err
	}
	return leader, nil
}
