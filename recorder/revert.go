package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"decree/capture"
	"decree/history"
	"decree/message"
	"decree/plan"
	"decree/project"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// MoveOptions are a revert's or apply's.
type MoveOptions struct {
	Refs               []string    // REF, A..B, CHAIN
	Paths              []tree.Path // relative to the root
	Exclude            []tree.Path // relative to the root: left out, with all below
	Merge              plan.Merging
	DryRun, Force, Yes bool
	From               string // apply: the root of another copy of the tree
	Choose             Chooser
	// Confirm asks before edits are overwritten and before records are used that this
	// store has never seen; foreign are their ids.
	Confirm func(p *plan.Plan, foreign []string) (bool, error)
	// Unasked: there is nobody to ask, and what another program has open for writing is waited for: *WaitError.
	Unasked bool
	// Show is given the plan of a dry run, while what it brings can be read, as PlanDiff does;
	// nil: nobody looks.
	Show func(*plan.Plan) error
}

// Revert takes records back.
func (r *Recorder) Revert(ctx context.Context, o MoveOptions) (*MoveResult, error) {
	return r.moveRecords(ctx, o, plan.Back)
}

// Apply brings records' changes again, or those of a record in another copy. Of a draft it
// is its publish.
func (r *Recorder) Apply(ctx context.Context, o MoveOptions) (*MoveResult, error) {
	if p, is, err := r.applied(o); err != nil {
		return nil, err
	} else if is {
		return r.Publish(ctx, p)
	}
	return r.moveRecords(ctx, o, plan.Forth)
}

// selection is what a revert or apply is about.
type selection struct {
	records []*history.Record
	sources []*plan.Source
	close   []io.Closer
	foreign bool // the records are another copy's
	notes   []string
	unknown []string // ids of records that lie in this tree and that its store has never seen
	// elsewhere says that one of the sources is of no record of this store's log, or is not what that says.
	elsewhere bool
}

func (t *selection) done() {
	for _, c := range t.close {
		c.Close()
	}
}

// moveRecords takes records back, or brings their changes again.
func (r *Recorder) moveRecords(ctx context.Context, o MoveOptions, d plan.Direction) (*MoveResult, error) {
	return r.moving(ctx, verb(d), o.DryRun, func(x *writeSession) (*MoveResult, error) { return r.moveRecordsLocked(ctx, x, o, d) })
}

// moving does what moves files under the lock, or, for a dry run, without it.
func (r *Recorder) moving(ctx context.Context, op string, dry bool, do func(x *writeSession) (*MoveResult, error)) (*MoveResult, error) {
	if dry {
		return r.before(do(nil))
	}
	x, err := r.enterToMove(ctx, op)
	if err != nil {
		return nil, err
	}
	defer x.close()
	res, err := do(x)
	if waits := new(*WaitError); err != nil && !errors.As(err, waits) { // what is tried again until it can be made has not failed
		r.auditFailure(op, err)
	}
	return res, err
}

// before adds to what a dry run says that what it is about may be another record then.
func (r *Recorder) before(res *MoveResult, err error) (*MoveResult, error) {
	if err != nil {
		return res, err
	}
	open, err := r.openTurns()
	for _, t := range open {
		res.Notes = append(res.Notes, fmt.Sprintf("an agent is at work in turn %s: its turn ends first, and what it did is then the newest change", t.Record.ID))
	}
	return res, err
}

// moveRecordsLocked is moveRecords under the lock; x is nil for a dry run.
func (r *Recorder) moveRecordsLocked(ctx context.Context, x *writeSession, o MoveOptions, d plan.Direction) (*MoveResult, error) {
	t, err := r.gather(ctx, o, d)
	if err != nil {
		return nil, err
	}
	defer t.done()
	p, err := plan.ForDiffs(ctx, r.tree, t.sources, plan.Options{Direction: d, Paths: o.Paths, Exclude: o.Exclude, Merge: o.Merge, Force: o.Force, Ignored: r.ignoredNow(ctx), Begun: r.broughtBy(nil, t.undoneBy(d)).begun})
	if err != nil {
		return nil, lookError(err)
	}
	r.leaveAlone(t, p, d)
	if err := r.refuse(t, p, o, d); err != nil {
		return nil, err
	}
	if err := r.refuseUnknownPaths(o.Paths, p); err != nil {
		return nil, err
	}
	if err := r.choose(ctx, p, t, o.Choose); err != nil {
		return nil, err
	}
	res := &MoveResult{Plan: p}
	if err := r.prepareMove(t, p, d, res, o); err != nil {
		return nil, err
	}
	return r.carryOut(ctx, x, t, o, res, func(p *plan.Plan) action { return r.actionOf(t, d, p) })
}

// leaveAlone takes out of a plan what is nobody's to move, edited or not, and notes it.
func (r *Recorder) leaveAlone(t *selection, p *plan.Plan, d plan.Direction) {
	t.notes = append(t.notes, r.leaveOutputs(p)...)
	if d == plan.Back {
		t.notes = append(t.notes, r.leaveRenamed(t.records, p)...)
	}
}

// prepareMove takes out of a plan what cannot be done, and notes what is to be known.
func (r *Recorder) prepareMove(t *selection, p *plan.Plan, d plan.Direction, res *MoveResult, o MoveOptions) error {
	full, err := r.leaveFullDirs(p)
	if err != nil {
		return err
	}
	res.Notes = slices.Concat(t.notes, full)
	for _, rec := range t.records {
		if d == plan.Back {
			moves := func(place tree.Path) bool {
				return slices.ContainsFunc(p.Steps, func(s worktree.Step) bool { return s.Path.Within(place) })
			}
			if other := r.stillMounted(rec, moves); other != nil {
				return other
			}
		}
		if len(rec.Unrecorded) > 0 && d == plan.Back {
			res.Notes = append(res.Notes, fmt.Sprintf("not recorded by %[2]s, and stays as it is: %[1]s", some(rec.Unrecorded), rec.ID))
		}
		if rec.DiffSHA256.IsZero() && rec.Reason == history.Run {
			return &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: fmt.Sprintf("what run %s changed could not be written down", rec.ID),
				Advice: fmt.Sprintf("'decree restore %s' returns to the tree before it, 'decree restore %s PATH...' path by path", rec.ID, rec.ID)}
		}
		if rec.DiffSHA256.IsZero() {
			res.Notes = append(res.Notes, fmt.Sprintf("%s is a checkpoint and changed nothing; 'decree restore %s' returns to it", rec.ID, rec.ID))
		}
	}
	p.Warnings, _ = stillOpen(p, nil)
	if o.Unasked && len(p.Warnings) > 0 {
		return &WaitError{&project.Error{Kind: project.Refused, State: project.Unchanged, Msg: openFiles(p.Warnings),
			Advice: fmt.Sprintf("end that program, or take the run back beside it: 'decree revert %s', which asks", t.records[0].ID)}}
	}
	if d != plan.Back {
		return nil
	}
	if hand := r.perhapsByHand(t, p); o.Yes || o.Confirm != nil {
		p.Warnings = append(p.Warnings, hand...)
	} else {
		res.Notes = append(res.Notes, hand...)
	}
	return nil
}

// perhapsByHand says what the plan takes back of records that this recorder has just made of interrupted runs, and that was changed
// after the last output of their commands: who asks for it may not have read of that yet.
func (r *Recorder) perhapsByHand(t *selection, p *plan.Plan) (lines []string) {
	for _, rec := range t.records {
		later := slices.DeleteFunc(slices.Clone(r.changedAfterOutput[rec.ID]), func(at tree.Path) bool {
			return !slices.ContainsFunc(p.Steps, func(s worktree.Step) bool { return s.Path == at })
		})
		if len(later) > 0 {
			lines = append(lines, fmt.Sprintf("run %s was interrupted, and what was changed after its last output, perhaps by hand, goes with it: %s", rec.ID, some(later)))
		}
	}
	return lines
}

// carryOut makes the plan of res, after a question where one is due, as the record that
// of describes; a dry run, and a plan that changes nothing, end here.
func (r *Recorder) carryOut(ctx context.Context, x *writeSession, t *selection, o MoveOptions, res *MoveResult, of func(*plan.Plan) action) (*MoveResult, error) {
	p := res.Plan
	if o.DryRun || o.Yes {
		res.Notes = append(res.Notes, p.Warnings...)
	}
	if o.DryRun {
		if len(t.unknown) > 0 {
			res.Notes = append(res.Notes, some(t.unknown)+" is foreign: this store has never seen it")
		}
		return res, show(o.Show, p)
	}
	a := of(p)
	if p.Empty() && !a.walked.Any() {
		return res, nil
	}
	if err := confirm(p, o, t.unknown); err != nil {
		return nil, err
	}
	t.sources = nil // what is still needed of them the plan's steps hold
	var err error
	res.Record, res.Outcome, err = r.perform(ctx, x, a)
	return res, err
}

func show(to func(*plan.Plan) error, p *plan.Plan) error {
	if to == nil {
		return nil
	}
	return to(p)
}

func verb(d plan.Direction) string {
	if d == plan.Back {
		return "revert"
	}
	return "apply"
}

// confirm asks before edits are overwritten, before files are moved away that
// somebody goes on writing to, and before the work of a record is
// brought that this store has never seen: anybody may have put it there.
func confirm(p *plan.Plan, o MoveOptions, unknown []string) error {
	forced := slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Verdict == plan.Forced })
	confirm := func(p *plan.Plan) (bool, error) { return o.Confirm(p, unknown) }
	switch {
	case o.Yes || !forced && len(unknown) == 0 && len(p.Warnings) == 0:
		return nil
	case o.Confirm == nil:
		confirm = nil
	}
	what := "--force overwrites edits"
	if len(p.Warnings) > 0 {
		what = openFiles(p.Warnings)
	}
	if len(unknown) > 0 {
		what = fmt.Sprintf("%s is foreign (this store has never seen it),", some(unknown))
	}
	return ask(p, confirm, what)
}

// ask is a question that needs a terminal or --yes.
func ask(p *plan.Plan, question func(*plan.Plan) (bool, error), what string) error {
	if question == nil {
		return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: what + " and there is no terminal to ask on", Advice: "repeat it with --yes, or look first with --dry-run"}
	}
	yes, err := question(p)
	if err == nil && !yes {
		err = &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "not confirmed"}
	}
	return err
}

// refuseUnknownPaths refuses PATHs that neither the records nor the tree know.
func (r *Recorder) refuseUnknownPaths(paths []tree.Path, p *plan.Plan) error {
	for _, path := range paths {
		found := path == "" || slices.ContainsFunc(p.Items, func(it plan.Item) bool { return it.Path.Within(path) })
		if found {
			continue
		}
		if e, err := r.tree.Look(path); err == nil && e != nil {
			continue
		}
		return noSuchPath(path)
	}
	return nil
}

// leaveFullDirs takes the removals out of a plan that cannot be made: directories
// with more in them than the plan removes. The notes name them.
func (r *Recorder) leaveFullDirs(p *plan.Plan) (notes []string, err error) {
	full := map[tree.Path]bool{}
	going := func(path tree.Path) bool {
		i, there := slices.BinarySearchFunc(p.Steps, path, func(s worktree.Step, path tree.Path) int { return s.Path.Compare(path) })
		return there && p.Steps[i].To == nil && !full[path]
	}
	dirs := r.tree.Dirs()
	defer dirs.Close()
	for _, s := range slices.Backward(p.Steps) { // children before their parents
		if s.MayStay {
			stay, err := holds(dirs, s.Path, going)
			if err != nil {
				return nil, err
			}
			if stay {
				full[s.Path] = true
				p.Stay = append(p.Stay, s.Path)
				notes = append(notes, tree.Quote(s.Path)+" is kept: it holds ignored files or files made later, or something is mounted there")
			}
		}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s worktree.Step) bool { return s.MayStay && full[s.Path] })
	p.Items = slices.DeleteFunc(p.Items, func(it plan.Item) bool { return full[it.Path] })
	slices.Sort(p.Stay)
	slices.Sort(notes)
	return notes, nil
}

// holds says whether the directory has a child that is not going.
func holds(dirs worktree.Dirs, path tree.Path, going func(tree.Path) bool) (bool, error) {
	list, err := dirs.List(path)
	for _, e := range list {
		if !going(path.Join(e.Name)) {
			return true, nil
		}
	}
	return false, lookError(err)
}

// gather reads the diffs that refs name, for a revert newest first.
func (r *Recorder) gather(ctx context.Context, o MoveOptions, d plan.Direction) (*selection, error) {
	t := &selection{}
	h, objects := r.history, plan.Objects(r.store)
	if o.From != "" {
		p, err := project.Open(r.opt.Disk, project.Where{RootFlag: o.From, RootName: "--from", Cwd: r.opt.Where.Cwd, Home: r.opt.Where.Home, DataHome: r.opt.Where.DataHome}, false)
		if err != nil {
			return nil, err
		}
		t.close = append(t.close, closer(p.Close))
		s, err := store.Open(p.Store, store.Options{})
		if err != nil {
			t.done()
			return nil, err
		}
		t.close = append(t.close, s)
		h, objects, t.foreign = history.Open(p, history.Options{Objects: s, Now: r.opt.Clock}), s, true
	}
	err := t.read(ctx, h, objects, o.Refs, r, d)
	if err != nil {
		t.done()
		return nil, err
	}
	return t, nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

func (t *selection) read(ctx context.Context, h *history.History, objects plan.Objects, refs []string, r *Recorder, d plan.Direction) error {
	ids, err := r.resolveAll(h, refs)
	if err != nil {
		return err
	}
	if d == plan.Back {
		slices.Reverse(ids)
	}
	for _, id := range ids {
		rec, err := h.Get(id)
		if err != nil {
			return err
		}
		if rec.Status == history.StatusOpen {
			return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: "record " + id + " is open", Advice: "wait until it has ended, or, if its process died, 'decree recover' closes it"}
		}
		if err := refuseDraft(rec, d); err != nil {
			return err
		}
		src, err := t.source(ctx, h, rec, objects)
		if err != nil {
			return err
		}
		t.records, t.sources = append(t.records, rec), append(t.sources, src)
		if t.foreign {
			continue
		}
		if is, err := h.Foreign(id); err != nil {
			return err
		} else if is {
			t.unknown = append(t.unknown, id)
		}
	}
	return nil
}

// resolveAll are the ids that refs name, oldest first, each once.
func (r *Recorder) resolveAll(h *history.History, refs []string) ([]string, error) {
	var recs []*history.Record
	seen := map[string]bool{}
	for _, ref := range refs {
		ids, err := r.resolve(h, ref)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			rec, err := h.Get(id)
			if err != nil {
				return nil, err
			}
			recs = append(recs, rec)
		}
	}
	recs = withoutParts(h, recs)
	slices.SortFunc(recs, history.Compare)
	out := make([]string, len(recs))
	for i, rec := range recs {
		out[i] = rec.ID
	}
	return out, nil
}

func (r *Recorder) resolve(h *history.History, ref string) ([]string, error) {
	a, b, isRange, err := history.SplitRange(ref)
	if err != nil {
		return nil, err
	}
	if !isRange {
		all, err := h.ResolveAll(ref, r.opt.Location)
		ids := make([]string, len(all))
		for i, one := range all {
			ids[i] = one.ID
		}
		if err == nil && strings.HasPrefix(ids[0], ref+"-") {
			return ofChain(h, ref, ids)
		}
		return ids, err
	}
	from, err := h.Resolve(a, r.opt.Location)
	if err != nil {
		return nil, err
	}
	to, err := h.Resolve(b, r.opt.Location)
	if err != nil {
		return nil, err
	}
	ids, err := h.Range(from.ID, to.ID)
	if err != nil {
		return nil, err
	}
	return ofTheTree(h, ids)
}

// ofChain are the records, oldest first, that a chain stands for, of which known have an id of it: a message that was tried again
// belongs to its chain, while its later run has an id of its own. Of several, a draft stands for what published it.
func ofChain(h *history.History, chain string, known []string) (out []string, err error) {
	var recs []*history.Record
	err = h.Newest(func(rec *history.Record) bool {
		if slices.Contains(known, rec.ID) || chainOfMessage(h, rec) == chain {
			recs = append(recs, rec)
		}
		return rec.ID != known[0]
	})
	if err != nil || len(recs) < 2 {
		return known, err
	}
	slices.Reverse(recs)
	for _, rec := range recs {
		switch {
		case rec.Isolated == "":
			out = append(out, rec.ID)
		case rec.Draft != nil:
			out = append(out, rec.Draft.By...)
		}
	}
	if len(out) == 0 {
		return known, nil
	}
	return out, nil
}

// chainOfMessage is the chain of the message whose run a record is of, "" where it is of none.
func chainOfMessage(h *history.History, rec *history.Record) string {
	if MessageOf(rec) == "" {
		return ""
	}
	f, err := h.OpenFile(rec.ID, MessageFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, message.MaxSize))
	if err != nil {
		return ""
	}
	m, err := message.Parse("", data)
	if err != nil {
		return ""
	}
	return m.Chain
}

// ofTheTree leaves out isolated runs: their work is in the tree only by a publish, which is
// a record of its own.
func ofTheTree(h *history.History, ids []string) ([]string, error) {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		rec, err := h.Get(id)
		if err != nil {
			return nil, err
		}
		if rec.Isolated == "" {
			out = append(out, id)
		}
	}
	return out, nil
}

// source reads a record's diff, whose hash must be the one in its run.json.
func (t *selection) source(ctx context.Context, h *history.History, rec *history.Record, objects plan.Objects) (*plan.Source, error) {
	unknown, err := h.Foreign(rec.ID)
	if err != nil {
		return nil, err
	}
	t.elsewhere = t.elsewhere || t.foreign || unknown
	want := rec.DiffSHA256
	if want.IsZero() && rec.Status != history.StatusOpen {
		return &plan.Source{ID: rec.ID}, nil // what lies in its directory by now is not of this record
	}
	// One that says that the run has not ended could not be written when it did.
	if plain, err := h.ReadRun(rec.ID); err == nil && (plain.Status != history.StatusOpen || rec.Status == history.StatusOpen) {
		if plain.DiffSHA256 != want && !want.IsZero() {
			t.notes = append(t.notes, fmt.Sprintf("run.json of %s is not the one that was recorded; the changed one is used", rec.ID))
		}
		t.elsewhere = t.elsewhere || plain.DiffSHA256 != want
		want = plain.DiffSHA256
	}
	f, err := h.OpenFile(rec.ID, diffFile)
	if isMissing(err) && want.IsZero() {
		return &plan.Source{ID: rec.ID}, nil
	}
	if project.KindOf(err) == project.Integrity {
		return nil, project.Unmoved(err)
	}
	if err != nil {
		return nil, &project.Error{Kind: project.Integrity, Msg: "changes.diff of " + rec.ID, Err: err, Advice: "'decree doctor' says what is wrong with the record"}
	}
	t.close = append(t.close, f)
	at, size, err := readerAt(f)
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(ctx, io.NewSectionReader(at, 0, size))
	if err != nil {
		return nil, err
	}
	if sum != want {
		return nil, &project.Error{Kind: project.Integrity, State: project.Unchanged, Msg: fmt.Sprintf("changes.diff of %s is not what was recorded (its hash is %s, run.json says %s)", rec.ID, sum, want),
			Advice: "'decree doctor --repair' writes it again from the store"}
	}
	src, err := plan.ReadSource(rec.ID, at, size, objects)
	if err != nil {
		return nil, project.Unmoved(fmt.Errorf("changes.diff of %s: %w", rec.ID, err))
	}
	return src, nil
}

// readerAt gives random access to what is a file, or was an object.
func readerAt(f io.Reader) (io.ReaderAt, int64, error) {
	type file interface {
		io.ReaderAt
		io.Seeker
	}
	if d, ok := f.(file); ok {
		size, err := d.Seek(0, io.SeekEnd)
		return d, size, err
	}
	data, err := io.ReadAll(f)
	return bytes.NewReader(data), int64(len(data)), err
}

// refuse turns conflicts into an error that names later records.
func (r *Recorder) refuse(t *selection, p *plan.Plan, o MoveOptions, d plan.Direction) error {
	items := p.Conflicts()
	if len(items) == 0 {
		return nil
	}
	if !t.foreign {
		r.nameLater(t, items)
	}
	subject := "the records left"
	if d == plan.Forth {
		subject = "the records began with"
	}
	if len(t.records) == 1 {
		subject = fmt.Sprintf("%s %s left", noun(t.records[0]), t.records[0].ID)
		if d == plan.Forth {
			subject = fmt.Sprintf("%s %s began with", noun(t.records[0]), t.records[0].ID)
		}
	}
	return &ConflictError{Verb: verb(d), Subject: subject, Items: items, Advice: conflictAdvice(t, o, d, items)}
}

// conflictAdvice is the next step that the options have not taken yet. What is no text,
// or was made or deleted on both sides, cannot be marked.
func conflictAdvice(t *selection, o MoveOptions, d plan.Direction, items []plan.Item) string {
	if o.Force {
		return inTheWay(items)
	}
	ref := t.records[0].ID
	look := fmt.Sprintf("see the edits with 'decree diff %s --now'", ref)
	if t.foreign {
		look, ref = "", fmt.Sprintf("--from %s %s", o.From, ref)
	}
	with := func(flags string) string { return fmt.Sprintf("'decree %s %s %s'", verb(d), flags, ref) }
	next := "or keep them: " + with("--merge")
	if t.foreign {
		next = "keep the edits with " + with("--merge")
	}
	switch o.Merge {
	case plan.Refuse:
		next = "mark the conflicts with " + with("--markers") + ", or leave these files alone with --skip-conflicts"
	case plan.Mark:
		next = "these cannot be marked: leave them alone with " + with("--merge --skip-conflicts")
	}
	switch {
	case look == "":
		return next
	case o.Merge == plan.Off:
		return look + ", " + next
	}
	return look + "; " + next
}

// inTheWay is the next step where even --force leaves what is at the paths: it stands where directories have to be.
func inTheWay(items []plan.Item) string {
	var paths []tree.Path
	for _, it := range items {
		paths = append(paths, it.Path)
	}
	return fmt.Sprintf("not even --force removes that: move %s out of the way, and repeat the command", some(paths))
}

func noun(rec *history.Record) string {
	switch rec.Reason {
	case history.Manual, history.Auto, history.Publish:
		if rec.DiffSHA256.IsZero() { // else it has published a draft
			return "checkpoint"
		}
	}
	return string(rec.Reason)
}

// nameLater adds the ids of the records after the oldest one that changed a
// conflicting path. What cannot be read is left out: it is a help, no decision.
func (r *Recorder) nameLater(t *selection, items []plan.Item) {
	mine := map[string]bool{}
	oldest := t.records[0]
	for _, rec := range t.records {
		mine[rec.ID] = true
		if history.Compare(rec, oldest) < 0 {
			oldest = rec
		}
	}
	list, err := r.history.List(history.ListOptions{Limit: laterLimit, Keep: func(rec *history.Record) bool {
		return history.Compare(rec, oldest) > 0 && !mine[rec.ID] && !rec.Walked.Any() && rec.Isolated == "" && rec.Status != history.StatusReverted && rec.Status != history.StatusUndone && !rec.DiffSHA256.IsZero()
	}})
	if err != nil {
		return
	}
	for _, rec := range slices.Backward(list.Records) {
		for i := range items {
			if ok, err := r.history.Touches(rec, items[i].Path); err == nil && ok {
				items[i].Later = append(items[i].Later, rec.ID)
			}
		}
	}
}

// laterLimit bounds how many records a refusal looks through.
const laterLimit = 200

// actionOf describes a revert or apply as a record.
func (r *Recorder) actionOf(t *selection, d plan.Direction, p *plan.Plan) action {
	a := action{reason: history.Revert, plan: p, elsewhere: t.elsewhere}
	word := "Revert of "
	if d == plan.Forth {
		a.reason, word = history.Apply, "Apply of "
	}
	var names []string
	for _, rec := range t.records {
		names = append(names, title(rec))
		if !t.foreign {
			a.parents = append(a.parents, rec.ID)
		}
	}
	a.description = word + someTitles(names)
	if !t.foreign {
		r.effects(t, &a, d, p)
	}
	return a
}

// title says what a record was, without ids.
func title(rec *history.Record) string {
	text := rec.Description
	if text == "" && rec.Turn != nil {
		text = strings.Join(strings.Fields(rec.Turn.Prompt), " ")
	}
	if text == "" {
		text = tree.ShellWords(rec.Command)
	}
	if text == "" {
		text = noun(rec)
	}
	text = strings.Map(func(c rune) rune {
		if c < 0x20 || c == 0x7f {
			return ' '
		}
		return c
	}, text)
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return text
}

// thisRecord stands in an effect for the record that is being made.
const thisRecord = "."

// effects are the statuses that change with the move.
func (r *Recorder) effects(t *selection, a *action, d plan.Direction, p *plan.Plan) {
	for _, rec := range t.records {
		r.effectsOf(rec, a, d, p)
	}
	a.effects = r.withDrafts(a.effects)
}

// effectsOf are those of moving one record: one that is taken back is undone, one that is
// taken back in part keeps its status and names who did, and what it had undone itself
// gets its old status again; one that is brought again gets back what it had before it
// was undone. What was made inside it goes with it.
func (r *Recorder) effectsOf(rec *history.Record, a *action, d plan.Direction, p *plan.Plan) {
	whole := slices.Contains(p.Touched, rec.ID)
	switch undone := rec.Status == history.StatusUndone; {
	case rec.DiffSHA256.IsZero():
	case d == plan.Back && !whole && !undone:
		a.effect(rec, history.StatusEffect{ID: rec.ID, Status: rec.Status, UndoneBy: thisRecord})
	case d == plan.Back && whole:
		if !undone {
			a.effect(rec, history.StatusEffect{ID: rec.ID, Status: history.StatusUndone})
			r.partsUndone(rec, a)
		}
		for _, u := range undoneBy(rec) {
			other, err := r.history.Get(u.ID)
			switch {
			case err != nil: // pruned
			case slices.Contains(p.Touched, u.ID):
				a.effect(other, history.StatusEffect{ID: u.ID, Status: history.StatusUndone})
			default:
				a.effect(other, history.StatusEffect{ID: u.ID, Status: u.Status, UndoneBy: u.UndoneBy})
			}
		}
	case d == plan.Forth && whole && undone:
		a.effect(rec, history.StatusEffect{ID: rec.ID, Status: r.statusBefore(rec)})
		r.partsAgain(rec, rec.UndoneBy, a)
	case d == plan.Forth && whole && rec.Status == history.StatusReverted && rec.Attempts == 1: // with more, an earlier one's may be meant
		r.partsAgain(rec, rec.ID, a)
	case d == plan.Forth && whole && rec.UndoneBy != "":
		a.effect(rec, history.StatusEffect{ID: rec.ID, Status: rec.Status})
		r.partsAgain(rec, rec.UndoneBy, a)
	}
}

// effect adds a change of rec's status, in the place of an earlier one of the same
// record, and remembers what it was.
func (a *action) effect(rec *history.Record, e history.StatusEffect) {
	a.effects = slices.DeleteFunc(a.effects, func(o history.StatusEffect) bool { return o.ID == rec.ID })
	a.effects = append(a.effects, e)
	if !slices.ContainsFunc(a.undone, func(u undoneRecord) bool { return u.ID == rec.ID }) {
		a.undone = append(a.undone, undoneRecord{rec.ID, rec.Status, rec.UndoneBy})
	}
}

// statusBefore is the status that an undone record had.
func (r *Recorder) statusBefore(rec *history.Record) history.Status {
	if by, err := r.history.Get(rec.UndoneBy); err == nil {
		for _, u := range undoneBy(by) {
			if u.ID == rec.ID {
				return u.Status
			}
		}
	}
	return history.StatusSucceeded
}

// undoneBy is what a record changed about others.
func undoneBy(rec *history.Record) []undoneRecord {
	return fieldOf[[]undoneRecord](rec, extraUndid)
}

// ignoredNow says whether today's rules ignore a path.
func (r *Reader) ignoredNow(ctx context.Context) func(path tree.Path, dir bool) (bool, error) {
	return func(path tree.Path, dir bool) (bool, error) {
		req, err := r.request(captureOptions{})
		if err != nil {
			return false, err
		}
		if dir {
			path += "/"
		}
		a, err := capture.Explain(ctx, req, []tree.Path{path})
		return err == nil && a[0].Ignored, err
	}
}

// partialError refuses a record that does not hold a whole tree.
func partialError(h *history.History, rec *history.Record) error {
	if rec.Isolated != "" {
		e := refuseDraft(rec, plan.Forth)
		return &project.Error{Kind: project.Refused, State: project.Unchanged, Advice: project.HintOf(e),
			Msg: fmt.Sprintf("isolated run %s is no state of the tree: it holds only the paths that it changed", rec.ID)}
	}
	near := ""
	list, err := h.List(history.ListOptions{Limit: 1, Keep: func(o *history.Record) bool {
		return history.Compare(o, rec) < 0 && o.Reason != history.Revert && o.Reason != history.Apply && o.Status != history.StatusOpen
	}})
	if err == nil && len(list.Records) > 0 {
		near = list.Records[0].ID
	}
	advice := ""
	if near != "" {
		advice = fmt.Sprintf("the nearest record of a whole tree is %s: 'decree restore %s', or take this one back with 'decree revert %s'", near, near, rec.ID)
	}
	return &project.Error{Kind: project.Refused, Advice: advice,
		State: project.Unchanged, Msg: fmt.Sprintf("%s %s holds only the paths that it touched", rec.Reason, rec.ID)}
}
