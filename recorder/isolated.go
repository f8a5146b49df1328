package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/layer/overlay"
	"decree/project"
	"decree/runner"
	"decree/runner/fence"
	"decree/tree"
)

// An isolated run sees the tree through a layer of its own, and changes only that: nothing
// is captured before it, and nothing is put back after it. Its record is a draft, which a
// publish brings into the tree. The layer has the record's id for its name, and goes with
// the publish or the discard; until then the store has all that the draft needs.

// IsolatedOptions say how a run is isolated.
type IsolatedOptions struct {
	Name        string // of the draft; "": its id alone
	Auto        bool   // publish when the command has succeeded
	Queued      bool   // return when no run in place is under way, so that the caller can publish; where no layer can be made: *WaitError
	Clone, Copy bool   // see layer
	ByConfig    bool   // nobody asked for it but the config
}

const (
	layersDir  = "layers"
	extraLayer = "layer" // in an open record: how the run's layer was made
	isolated   = "DECREE_ISOLATED=1"
)

// isolatedRun is an isolated run on its way.
type isolatedRun struct {
	*run
	i      IsolatedOptions
	place  *layer.Place
	layer  *layer.Layer
	mount  *overlay.Mount // nil: a clone
	unlock func() error
	sights *capture.Sightings
	had    map[tree.Path]*tree.Entry // of a layer that is entered; see layerHad

	how   layer.Mechanism // that was chosen for a whole race; "": none yet
	judge judge           // nil: none
}

// RunIsolated records a command that works in a layer. An error means that decree itself
// failed or refused; the tree is as it was, whatever the error.
func (r *Recorder) RunIsolated(ctx context.Context, o RunOptions, i IsolatedOptions) (*RunResult, error) {
	if r.project.InLayer {
		if i.ByConfig { // it is isolated already
			return r.Run(ctx, o)
		}
		return nil, notStarted(nestedLayer())
	}
	o.Attempts = max(o.Attempts, o.Spent+1, 1)
	limits, err := r.checkRun(o)
	if err != nil {
		return nil, err
	}
	beginning, begun, end := heedSignals(ctx, o.Signals, nil)
	defer end()
	x, err := r.enterFor(beginning, opRecord, inLayer)
	if err != nil {
		if errors.As(err, new(*BeginError)) || project.KindOf(err) == project.Refused {
			return nil, err
		}
		return nil, notStarted(err)
	}
	defer x.close()
	u := &isolatedRun{run: &run{r: r, x: x, o: o, limits: limits}, i: i}
	defer u.close()
	err = u.begin(beginning)
	begun()
	if err != nil {
		err = i.orInPlace(err)
		if !errors.As(err, new(*WaitError)) { // what is tried again until it can be made has not failed
			r.auditFailure(opRecord, err)
		}
		if o.Named != nil {
			err = errors.Join(err, o.Named(""))
		}
		return nil, notStarted(err)
	}
	if err := u.attempts(ctx); err != nil {
		return nil, err
	}
	if i.Queued {
		if err := u.awaitInPlace(ctx); err != nil {
			return nil, u.unpublished(err)
		}
	}
	r.retain(ctx, x, history.Run)
	if i.Auto && u.rec.Draft != nil && u.rec.Status == history.StatusSucceeded {
		_ = u.unlock()
		u.unlock = nil
		u.publish(ctx)
	}
	return &u.res, nil
}

// nestedLayer refuses a layer in a layer.
func nestedLayer() error {
	return &project.Error{Kind: project.Refused, Msg: "a run cannot be isolated here: this is a part of an isolated run, whose layer would have to hold another one",
		Advice: "run it in place: the tree stays as it is all the same"}
}

// orInPlace adds the other way out where the config alone, or a message, wanted a layer and none can be made.
func (i IsolatedOptions) orInPlace(err error) error {
	if !i.ByConfig && !i.Queued || !errors.As(err, new(*layer.Refusal)) {
		return err
	}
	if i.Queued { // the ways out of the refusal itself are flags of a run
		return &WaitError{&project.Error{Kind: project.KindOf(err), Err: err, Advice: "'decree doctor' says what helps; with 'isolated: false' in the message it is done in the tree itself"}}
	}
	advice := "'decree run --in-place' runs it in the tree itself"
	if hint := project.HintOf(err); hint != "" {
		advice = hint + "; or " + advice
	}
	return &project.Error{Kind: project.KindOf(err), Err: err, Advice: advice}
}

// publish is --auto. What keeps the work out of the tree is told, and the draft waits.
func (u *isolatedRun) publish(ctx context.Context) {
	res, err := u.r.publishUnasked(ctx, u.x, u.rec.ID)
	if err == nil {
		u.res.Published = res
		return
	}
	u.res.ExitCode = 125
	u.say("not published: %v%s", err, NamedIn(err))
	u.say("the draft waits: 'decree publish %s' tries again", u.rec.ID)
}

// publishUnasked is a publish that waits for nobody. In a run in place it is a part of that, as 'decree publish' is there.
func (r *Recorder) publishUnasked(ctx context.Context, x *writeSession, id string) (*MoveResult, error) {
	if err := r.noneInPlace(ctx, x); err != nil {
		return nil, err
	}
	return r.publishIn(ctx, x, PublishOptions{Ref: id, Unasked: true})
}

// errInPlace refuses a publish beside a run in place: what such a run finds changed when it ends counts as its own.
var errInPlace = errors.New("a run that changes the tree itself is under way")

// noneInPlace makes sure, before a publish, that nobody else's change of the tree is under way: the error is errInPlace, or
// *AliveError where a dead run's command still works. Whoever died beside this process, while the lock was
// free, was not there to be recovered when it was taken first, and what is published before would count as
// his.
func (r *Recorder) noneInPlace(ctx context.Context, x *writeSession) error {
	began := x.activity // it does not have this process's own lease, of which nothing is a part
	defer func() { x.activity = began }()
	now, err := r.currentActivity()
	if err == nil && now.othersInPlace() {
		return errInPlace
	}
	if err == nil {
		err = now.addTurns(r)
	}
	if err == nil {
		err = r.openWriter(ctx, x) // freeing space ends it
	}
	if err != nil {
		return err
	}
	open, damaged, err := r.unfinished(&now)
	if len(open)+len(damaged) == 0 || err != nil {
		return err
	}
	x.activity = now
	done, err := r.recover(ctx, x, false)
	for _, d := range done {
		r.note("%s", d.What)
	}
	return err
}

// aliveLook is how often a publish that waits for a dead run's command takes the lock to look again.
const aliveLook = 500 * time.Millisecond

// awaitInPlace gives the lock back until no run in place is under way, nor what is left of one.
// The lease stays, so that nobody recovers the run.
func (u *isolatedRun) awaitInPlace(ctx context.Context) error {
	for told := false; ; {
		err := u.r.noneInPlace(ctx, u.x)
		pause := leasePause
		if alive := new(*AliveError); errors.As(err, alive) {
			pause = aliveLook
		} else if !errors.Is(err, errInPlace) {
			return err
		}
		if !told {
			told = true
			u.r.note("the work of run %s waits: %v", u.rec.ID, err)
		}
		if err := u.freeLock(); err != nil {
			return err
		}
		err = u.untilNoLease(pause)
		if lerr := u.takeLock(ctx); err == nil {
			err = lerr
		}
		if err == nil {
			err = u.catchUp(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// untilNoLease waits at least for one pause, until no run in place has a lease.
func (u *isolatedRun) untilNoLease(pause time.Duration) error {
	for {
		select {
		case sig := <-u.o.Signals:
			return &Interrupted{sig}
		case <-time.After(pause):
		}
		if now, err := u.r.currentActivity(); err != nil || !now.othersInPlace() {
			return err
		}
	}
}

// unpublished is an error after the run was recorded.
func (u *isolatedRun) unpublished(err error) error {
	return &project.Error{Kind: project.KindOf(err), Err: err,
		State:  fmt.Sprintf("run %s is recorded, and nothing of it is in the tree", u.rec.ID),
		Advice: fmt.Sprintf("once the cause is gone 'decree publish %s' brings it in", u.rec.ID)}
}

func (u *isolatedRun) close() {
	if u.unlock != nil {
		_ = u.unlock()
	}
	if u.layer != nil {
		u.layer.Close()
	}
	if u.place != nil {
		closePlace(u.place)
	}
	if u.sights != nil {
		_ = u.sights.Close()
	}
	u.run.close()
}

// layers opens the place of the layers, which closePlace closes.
func (r *Reader) layers() (*layer.Place, error) {
	dir, err := project.MakeDir(r.project.Store, layersDir, project.PrivateDir)
	if err != nil {
		return nil, err
	}
	p := &layer.Place{Dir: dir, Root: r.project.Dir, Boot: runner.BootID()}
	if r.project.Decree != nil {
		if tmp, err := r.project.Decree.OpenDir("tmp"); err == nil {
			p.Clocks = append(p.Clocks, tmp)
		}
	}
	return p, nil
}

func closePlace(p *layer.Place) {
	p.Dir.Close()
	for _, c := range p.Clocks {
		c.Close()
	}
}

// begin makes the layer and opens the record. No walk of the tree stands before the command.
func (u *isolatedRun) begin(ctx context.Context) error {
	r := u.r
	if err := r.freeName(u.i.Name); err != nil {
		return err
	}
	id, started, err := u.newID()
	if err != nil {
		return err
	}
	if u.place, err = r.layers(); err != nil {
		return err
	}
	if err := u.openSights(ctx); err != nil {
		return err
	}
	if err := u.awaitTick(); err != nil {
		return err
	}
	if err := u.makeLayer(ctx, id); err != nil {
		return err
	}
	if err := u.openIn(id, started); err != nil {
		u.layer.Close()
		u.layer = nil
		return errors.Join(err, u.place.Remove(id))
	}
	return nil
}

// freeName refuses a draft's name that would mean another record too.
func (r *Recorder) freeName(name string) error {
	if name == "" {
		return nil
	}
	if err := history.CheckLabel(name); err != nil {
		return err
	}
	open, _, err := r.history.ListOpen()
	if err != nil {
		return err
	}
	for _, o := range open {
		if d := o.Record.Draft; d != nil && d.Name == name {
			return &nameTaken{name, o.Record.ID}
		}
	}
	ref, err := r.history.Resolve(name, r.opt.Location)
	if errors.Is(err, history.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	rec, err := r.history.Get(ref.ID)
	if err != nil || rec.Draft != nil && rec.Draft.Name == name && !rec.Draft.Waits() {
		return err
	}
	return &nameTaken{name, rec.ID}
}

// nameTaken says that a draft cannot have a name.
type nameTaken struct{ name, id string }

func (e *nameTaken) Error() string {
	return fmt.Sprintf("%s is the name of record %s", e.name, e.id)
}

// Category is Refused.
func (e *nameTaken) Category() project.Kind { return project.Refused }

// Hint is the next step to take.
func (e *nameTaken) Hint() string { return "take another --name" }

// makeLayer chooses how, makes the layer, and what the command's process will mount.
func (u *isolatedRun) makeLayer(ctx context.Context, id string) error {
	how, err := u.choose(ctx)
	if err != nil {
		return err
	}
	return u.makeLayerBy(ctx, id, how)
}

// makeLayerBy is makeLayer when it is known how.
func (u *isolatedRun) makeLayerBy(ctx context.Context, id string, how layer.Mechanism) error {
	o, err := u.cloning(ctx)
	if err != nil {
		return err
	}
	if u.layer, err = u.place.Make(id, how, o); err != nil {
		return refusedLayer(err)
	}
	if u.unlock, err = u.layer.Lock(); err == nil {
		u.mount, err = u.layer.Mount()
	}
	return err
}

// choose is the overlay where it works, else a clone, which has another path.
func (u *isolatedRun) choose(ctx context.Context) (layer.Mechanism, error) {
	if u.how != "" {
		return u.how, nil
	}
	if st, err := u.r.project.Dir.Stat(".git"); err == nil {
		const there = "what the command does with git there, such as a commit, is done at once and is no part of the draft"
		switch st.Kind {
		case disk.Regular:
			u.r.note("this tree's .git is a file, as in a linked worktree or a submodule: its repository lies elsewhere, and " + there)
		case disk.Symlink:
			u.r.note("this tree's .git is a link: where it leads out of the tree, " + there)
		}
	}
	asked := u.i.Clone || u.i.Copy
	var refused *layer.Refusal
	if !asked {
		err := u.r.machine.Overlay(u.place)
		if err == nil {
			return layer.Overlay, nil
		}
		if !errors.As(err, &refused) {
			return "", err
		}
	}
	if !u.i.Copy {
		if err := u.r.machine.Clone(u.place); err != nil {
			return "", cannotIsolate(refused, err)
		}
	}
	o, err := u.cloning(ctx)
	if err != nil {
		return "", err
	}
	found, err := u.place.Survey(ctx, o)
	if err != nil {
		return "", err
	}
	if n := len(found.Absolute); n > 0 && !asked {
		return "", &project.Error{Kind: project.Refused,
			Err:    fmt.Errorf("%w; and in a clone these links would lead into the tree itself: %s", refused, some(found.Absolute)),
			Advice: "say --clone to run in one nevertheless"}
	}
	if refused != nil {
		u.r.note("no overlay here: %s", refused.Reason)
	}
	u.r.note("the command works in a clone of %s, %s, at %s", entries(found.Entries), humanize.IBytes(uint64(found.Bytes)), filepath.Join(u.place.Dir.Path(), "..."))
	if len(found.Shared) > 0 {
		u.r.note("shared with the tree, where the command writes to the tree itself: %s", some(found.Shared))
	}
	return layer.Clone, nil
}

// cloning says how a clone of the tree is made.
func (u *isolatedRun) cloning(ctx context.Context) (layer.CloneOptions, error) {
	exclude, err := u.r.project.Stores(u.r.opt.Where)
	return layer.CloneOptions{Context: ctx, Copy: u.i.Copy, Exclude: exclude, Share: u.r.project.Config.Isolated.Share}, err
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return humanize.Comma(int64(n)) + " entries"
}

// cannotIsolate says why neither mechanism works; overlay is nil where it was not tried.
func cannotIsolate(overlay *layer.Refusal, err error) error {
	var clone *layer.Refusal
	if !errors.As(err, &clone) {
		return err
	}
	e := &project.Error{Kind: project.Refused, Msg: "a run cannot be isolated here", Err: clone, Advice: clone.Advice}
	if overlay != nil {
		e.Err = fmt.Errorf("%w; %w", overlay, clone)
		instead := strings.TrimSuffix(overlay.Advice, layer.OrClone) // that would be refused, too
		e.Advice = strings.Join(slices.DeleteFunc([]string{instead, clone.Advice}, func(s string) bool { return s == "" }), "; or ")
	}
	return e
}

func refusedLayer(err error) error {
	var refused *layer.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	return &project.Error{Kind: project.Refused, Msg: "a run cannot be isolated here", Err: err, Advice: refused.Advice}
}

// openIn opens the record of a command that is composed for the place where it sees the tree.
func (u *isolatedRun) openIn(id string, started time.Time) error {
	if u.o.Compose != nil {
		at := u.r.runPlace(id)
		at.Root = u.layer.Workspace()
		if err := u.composeAt(at); err != nil {
			return err
		}
	}
	return u.open(id, started)
}

// open takes the lease and opens the record, which says that there is a layer.
func (u *isolatedRun) open(id string, started time.Time) error {
	r := u.r
	err := u.makeRecord(id, started)
	if err != nil {
		return err
	}
	u.rec.Isolated = string(u.layer.Mechanism())
	if u.i.Name != "" { // a recovery gives it to the draft
		u.rec.Draft = &history.Draft{Name: u.i.Name, State: history.DraftWaiting}
	}
	if u.opened.Extra[extraLayer], err = json.Marshal(u.rec.Isolated); err != nil {
		return err
	}
	if u.o.Outbox { // it is a message's: see cameByActs
		acts, err := r.project.BeginActs(false)
		if err == nil {
			u.opened.Extra[extraActs], err = json.Marshal(acts)
		}
		if err != nil {
			return err
		}
	}
	if err := u.takeLease(); err != nil {
		return err
	}
	if err := r.history.Begin(u.opened); err != nil {
		return err
	}
	files := u.composedFiles([]history.RunFile{{Name: "run.json", Write: history.Bytes(u.rec.JSON(nil))}})
	err = r.history.BuildRun(id, files)
	if err == nil {
		err = u.makeOutbox()
	}
	if err == nil {
		err = u.openLog()
	}
	if err != nil {
		return errors.Join(err, r.history.Abandon(id))
	}
	return nil
}

// neverStarted takes back what was made for a command that was not executed.
func (u *isolatedRun) neverStarted(err error) error {
	err = u.cannotMount(err)
	if u.begun {
		return u.unrecorded(err)
	}
	return notStarted(errors.Join(u.i.orInPlace(err), u.drop()))
}

// drop removes what was made for a command that is not executed.
func (u *isolatedRun) drop() error {
	u.layer.Close()
	return errors.Join(u.r.history.Abandon(u.rec.ID), u.place.Remove(u.rec.ID))
}

// cannotMount explains an error that comes from the mount.
func (u *isolatedRun) cannotMount(err error) error {
	if _, ok := errors.AsType[*overlay.Error](err); !ok {
		return err
	}
	why := u.place.Explain(err)
	return &project.Error{Kind: project.Refused, Msg: "a run cannot be isolated here", Err: why, Advice: why.Advice}
}

// unrecorded is an error after the command has run.
func (u *isolatedRun) unrecorded(err error) error {
	state := "the command has run; the tree is as it was, and "
	if u.layer == nil {
		state += "the last attempt was not made"
	} else {
		state += "the work lies in " + u.layer.Path()
	}
	advice := fmt.Sprintf("once the cause is gone 'decree recover' records run %s", u.rec.ID)
	if disk.Full(err) && u.layer != nil {
		advice = roomAdvice(u.rec.ID, u.layer.Path())
	}
	return &project.Error{Kind: project.KindOf(err), Err: fmt.Errorf("what it changed is not recorded: %w", err), State: state, Advice: advice}
}

// roomAdvice is for a full disk, which may be full of what the run has written into its layer.
func roomAdvice(id, layer string) string {
	return fmt.Sprintf("free some space there: what the command wrote lies in %s, and what you delete of it is not recorded; then 'decree recover' records run %s", layer, id)
}

// dir is where the command works: where decree was called, as seen in the layer.
func (u *isolatedRun) dir() string {
	if u.mount != nil {
		return u.dirAsBegun()
	}
	return filepath.Join(u.layer.Workspace(), filepath.FromSlash(u.rec.Cwd))
}

// executeThere is execute for a command that works in the layer. In a clone its directory is opened without following
// a link: of root's layer in another user's store that user could put one in its place.
func (u *isolatedRun) executeThere(ctx context.Context, c runner.Command) (runner.Result, error) {
	if u.mount == nil {
		dir, err := u.openDir(c.Dir)
		if err != nil {
			return runner.Result{}, err
		}
		defer dir.Close()
		if fd, ok := disk.FD(dir); ok {
			c.At = fd
		}
	}
	return u.r.executeInTree(ctx, c)
}

// openDir opens a directory of a clone. What is shared with the root is a link in it.
func (u *isolatedRun) openDir(path string) (disk.Dir, error) {
	rel, err := filepath.Rel(u.layer.Workspace(), path)
	if err != nil {
		return nil, err
	}
	rel = filepath.ToSlash(rel)
	for _, shared := range u.r.project.Config.Isolated.Share {
		if rel == shared || strings.HasPrefix(rel, shared+"/") {
			return disk.OpenPath(u.r.project.Dir, rel)
		}
	}
	top, err := u.layer.OpenWorkspace()
	if err != nil || rel == "." {
		return top, err
	}
	defer top.Close()
	return disk.OpenPath(top, rel)
}

// fence is that of a run in place; in a clone the tree is the clone, and what is shared with
// the root may be written there.
func (u *isolatedRun) fence() fence.Fence {
	if u.mount != nil {
		return u.fenceFor(u.r.project.Root)
	}
	trees := []string{u.layer.Workspace()}
	for _, p := range u.r.project.Config.Isolated.Share {
		trees = append(trees, filepath.Join(u.r.project.Root, filepath.FromSlash(p)))
	}
	return u.fenceFor(trees...)
}

func (u *isolatedRun) environment(attempt int) []string {
	out := append(u.env(attempt), isolated)
	if u.mount == nil {
		out = append(out, "DECREE_ROOT="+u.layer.Workspace(), "PWD="+u.dir())
	}
	return out
}

// endDraft closes the record of a run in whose layer found was: as a draft, which keeps the
// layer, or, where nothing was changed, as a record alone. The judge, if any, comes before that.
// The notes are for who made the run.
func (r *Recorder) endDraft(ctx context.Context, x *writeSession, place *layer.Place, found *layer.Collected, o *history.Opened, rec *history.Record, judge judge, mistake bool) (notes []string, changes []tree.Change, err error) {
	draft := history.Draft{State: history.DraftWaiting, Git: found.Tally.Git}
	if rec.Draft != nil {
		draft.Name = rec.Draft.Name
	}
	changes, draft.NoBase = found.Changes()
	rec.Draft, rec.Unrecorded = nil, found.Unrecorded()
	if len(changes) > 0 || found.Tally.Git > 0 || len(rec.Unrecorded) > 0 { // what is not recorded is in the layer alone
		rec.Draft = &draft
	}
	if err := x.w.Flush(); err != nil {
		return nil, nil, err
	}
	files, err := r.draftFiles(ctx, x, rec, changes)
	if err != nil {
		return nil, nil, err
	}
	end := &ending{Record: rec, Files: files, effects: o.Effects, mistake: mistake}
	if judge != nil {
		if end.asked, err = judge(ctx, files); err != nil {
			return nil, nil, err
		}
	}
	notes = layerNotes(found, draft.NoBase)
	if found.NoRoom {
		notes = append(notes, fmt.Sprintf("once there is room 'decree enter %s -- true' records it", rec.ID))
	}
	err = r.end(end)
	if err == nil && rec.Draft == nil {
		r.removeLayer(place, rec.ID)
	}
	return notes, changes, err
}

// draftFiles writes the diff and the bases into the record's directory, and all of it into
// the store.
func (r *Recorder) draftFiles(ctx context.Context, x *writeSession, rec *history.Record, changes []tree.Change) (map[string]tree.Hash, error) {
	sum, stat, err := r.storeDiff(ctx, x, changes, nil)
	if err != nil {
		return nil, err
	}
	plain, manifest, _, bytes, err := partial(changes)
	if err != nil {
		return nil, err
	}
	rec.DiffSHA256, rec.Changes, rec.Bytes, rec.ManifestSHA256 = sum, counts(stat), bytes, manifest
	if err := x.w.Flush(); err != nil {
		return nil, err
	}
	write := func(w io.Writer) error { return r.copyObject(w, sum) }
	list := []history.RunFile{{Name: diffFile, Write: write}, plain}
	if n := rec.Attempts; n > 1 {
		list = append(list, history.RunFile{Name: attemptFile(n, diffFile), Write: write})
	}
	for _, f := range list {
		if err := r.unlessKeptOut(rec.ID, r.history.ReplaceFile(rec.ID, f.Name, f.Write)); err != nil {
			return nil, err
		}
	}
	files, err := r.storeFiles(x, rec)
	if err != nil {
		return nil, err
	}
	files[diffFile] = sum
	return files, x.w.Flush()
}

// collectLayer stores what was done in a layer.
func (r *Recorder) collectLayer(ctx context.Context, x *writeSession, l *layer.Layer, was basesFrom, stands standsFrom) (*layer.Collected, error) {
	return r.collectUpTo(ctx, 0, x, l, was, stands)
}

// collectUpTo is collectLayer for a disk that has no room for files above most bytes; 0: it has.
func (r *Recorder) collectUpTo(ctx context.Context, most int64, x *writeSession, l *layer.Layer, was basesFrom, stands standsFrom) (*layer.Collected, error) {
	o := layer.CollectOptions{Writer: x.w}
	var err error
	if o.ChangeOptions, err = r.layerOptions(); err != nil {
		return nil, err
	}
	o.Known, o.Stands = was, stands
	noRoom := most > 0 && (o.MaxFile == 0 || most < o.MaxFile)
	if noRoom {
		o.MaxFile = most
	}
	found, err := l.Collect(ctx, o)
	if err == nil {
		found.NoRoom = noRoom && len(found.Tally.Large) > 0
	}
	return found, err
}

// layerOptions say what counts as a change of a layer.
func (r *Recorder) layerOptions() (o layer.ChangeOptions, err error) {
	o.MaxFile, o.Keeps = r.project.Config.MaxFile, decreeWrites
	if o.Exclude, err = r.project.Stores(r.opt.Where); err != nil {
		return o, err
	}
	outer, err := r.project.GitExcludes(r.opt.Where)
	for _, f := range outer {
		o.Outer = append(o.Outer, layer.OuterRules(f))
	}
	return o, err
}

// layerNotes say what of the layer is not in the draft, and what stands in a publish's way.
func layerNotes(c *layer.Collected, noBase []tree.Path) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	var out []string
	if n := c.Tally.Git; n > 0 {
		out = append(out, fmt.Sprintf("%s in .git", filesIn(n)))
	}
	if n := c.Tally.Ignored; n > 0 {
		out = append(out, fmt.Sprintf("%s ignored", filesIn(n)))
	}
	if n := c.Tally.Decree; n > 0 {
		out = append(out, fmt.Sprintf("%s in .decree (%s)", filesIn(n), some(c.Tally.Wrote)))
	}
	if len(out) > 0 {
		add("not a part of the draft: %s", strings.Join(out, ", "))
	}
	if c.Unflushed != nil {
		add("what it did in .git may be lost if the power fails now: %v", c.Unflushed)
	}
	if len(c.Tally.Special) > 0 {
		add("not recorded, neither file, directory nor link: %s", some(c.Tally.Special))
	}
	if unread := slices.Concat(c.Unread, c.Tally.Unread); len(unread) > 0 {
		add("not readable after the command, and not recorded: %s", some(unread))
	}
	if c.NoRoom {
		add("not recorded, as there is no room for it on the disk, and nowhere but in the layer: %s", some(c.Tally.Large))
	} else if len(c.Tally.Large) > 0 {
		add("larger than capture.max_file, and not recorded: %s", some(c.Tally.Large))
	}
	if len(noBase) > 0 {
		add("edited in the tree while the command worked, so only --force publishes it: %s", some(noBase))
	}
	return notes
}

// decreeWrites are the names in a .decree that a decree in the layer writes.
var decreeWrites = append(slices.Collect(maps.Keys(notOwn)), project.InboxDir, project.IntoFile)

// unrecordedOf divides what a draft's record lacks: what its run wrote in a .decree, which is never a part of a draft, and the rest.
func unrecordedOf(rec *history.Record) (inDecree, rest []tree.Path) {
	for _, p := range rec.Unrecorded {
		if slices.Contains(strings.Split(string(p), "/"), ".decree") {
			inDecree = append(inDecree, p)
		} else {
			rest = append(rest, p)
		}
	}
	return inDecree, rest
}

func filesIn(n int) string {
	if n == 1 {
		return "1 file"
	}
	return humanize.Comma(int64(n)) + " files"
}

// endIsolated ends whoever still sees the layer of a run whose decree died. Nothing of the
// tree depends on him.
func (c *recovery) endIsolated(o *history.Opened) error {
	place, err := c.r.layers()
	if err != nil {
		return err
	}
	defer closePlace(place)
	return c.endMounted(place.MountName(o.Record.ID), fmt.Sprintf("what isolated run %s had left alive when its decree died", o.Record.ID))
}

// interruptedIsolated records what lies in the layer of a run whose process is gone.
func (c *recovery) interruptedIsolated(ctx context.Context, o *history.Opened) error {
	place, err := c.r.layers()
	if err != nil {
		return err
	}
	defer closePlace(place)
	if end, ok := endingOf(o); ok {
		return c.unjudged(place, o, end)
	}
	rec := *o.Record
	l, err := place.Open(rec.ID)
	lost := isMissing(err) || errors.Is(err, layer.ErrUnfinished)
	if err != nil && !lost {
		return err
	}
	begun, err := c.r.history.HasLeader(rec.ID)
	if err == nil && !begun {
		c.add(nil, "isolated run %s had not begun and was dropped; the tree is as it was", rec.ID)
		err = errors.Join(c.r.history.Abandon(rec.ID), place.Remove(rec.ID))
	}
	if err != nil || !begun {
		if l != nil {
			l.Close()
		}
		return err
	}
	now := c.r.opt.Clock().UTC()
	rec.Status, rec.Recovered = history.StatusInterrupted, &now
	notes, changes, err := c.recordLayer(ctx, place, l, o, &rec)
	if l != nil {
		defer l.Close()
	}
	if disk.Full(err) && l != nil {
		err = &project.Error{Kind: project.KindOf(err), Err: err, Advice: roomAdvice(rec.ID, l.Path())}
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("isolated run %s was interrupted, and is recorded; the tree is as it was", rec.ID)
	name, err := c.r.waitingMessage(&rec)
	switch {
	case err != nil:
		return err
	case name != "" && len(changes) > 0:
		what += fmt.Sprintf(", and message %s goes on with 'decree process' or the daemon; what the run did is a draft: 'decree diff %s' shows it", tree.Quote(name), rec.ID)
	case len(changes) > 0:
		what += fmt.Sprintf(", and its work is a draft: 'decree publish %s' brings it into the tree", rec.ID)
	}
	if l != nil && l.Rebooted() && len(changes) > 0 {
		what += "; the machine went down since the run began, so that files which it wrote last may be empty or torn: look at them first"
	}
	if len(notes) > 0 {
		what += "; " + strings.Join(notes, "; ")
	}
	c.add(&rec, "%s", what)
	return nil
}

// recordLayer ends the record of an interrupted run by what its layer l has; nil: the last
// attempt's layer was to be made. Where the disk is full, as it may be of what the command wrote, the
// large files are left out, and then the smaller ones: they stay in the layer, and the
// record names them. An open record would keep all other commands from working.
func (c *recovery) recordLayer(ctx context.Context, place *layer.Place, l *layer.Layer, o *history.Opened, rec *history.Record) (notes []string, changes []tree.Change, err error) {
	draft := rec.Draft
	for _, most := range []int64{0, 256 << 10, 16 << 10, 1} {
		rec.Draft = draft
		notes, changes, err = c.recordUpTo(ctx, most, place, l, o, rec)
		if !disk.Full(err) || l == nil {
			break
		}
		_ = c.x.w.Close() // what it had is lost
		c.x.w = nil
		if werr := c.r.openWriter(ctx, c.x); werr != nil {
			return nil, nil, errors.Join(err, werr)
		}
	}
	return notes, changes, err
}

// recordUpTo is recordLayer without the files above most bytes; 0: with all.
func (c *recovery) recordUpTo(ctx context.Context, most int64, place *layer.Place, l *layer.Layer, o *history.Opened, rec *history.Record) (notes []string, changes []tree.Change, err error) {
	found := &layer.Collected{}
	if l != nil {
		if found, err = c.r.collectUpTo(ctx, most, c.x, l, nil, nil); err == nil {
			err = c.r.bringWritten(l, o)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return c.r.endDraft(ctx, c.x, place, found, o, rec, nil, false)
}
