package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// Recovered is one thing that a dead process left and that was put right.
type Recovered struct {
	Record *history.Record // nil: a transaction without a record, or one taken back
	What   string          // in words
	// Later are the paths changed after the run's output ended: they may be
	// edits by hand.
	Later []tree.Path
	// Aside is the file that was set aside since it cannot be read: what it told is
	// in no record.
	Aside string
}

// NotRecovered is the error of a recovery that has set work aside unread, or nil.
func NotRecovered(done []Recovered) error {
	var aside []string
	for _, d := range done {
		if d.Aside != "" {
			aside = append(aside, d.Aside)
		}
	}
	if len(aside) == 0 {
		return nil
	}
	return &project.Error{Kind: project.Failed,
		Msg:    strings.Join(aside, ", ") + ": cannot be read and was set aside; what its command changed is still in the tree, or in the layer of an isolated run, and in no record",
		Advice: asideAdvice}
}

// asideAdvice is about unfinished work that was set aside since it cannot be read.
const asideAdvice = "'decree diff --edits' shows what differs from the last record; move the file away once you need nothing of it any more, since nothing is freed from the store before"

// setAside lists the unfinished work that was set aside since it cannot be read.
func (r *Reader) setAside() (paths []string, err error) {
	for _, in := range []string{"open", "txn"} {
		dir, err := r.project.Store.OpenDir(in)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list, err := dir.List()
		dir.Close()
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if strings.HasSuffix(e.Name, ".damaged") {
				paths = append(paths, r.inStore(in, e.Name))
			}
		}
	}
	slices.Sort(paths)
	return paths, nil
}

func (r *Reader) inStore(dir, name string) string {
	return filepath.Join(r.project.StorePath, dir, name)
}

// Recover finishes or takes back what a dead process left. With kill, what still
// runs of a dead process's command is ended first.
func (r *Recorder) Recover(ctx context.Context, kill bool) ([]Recovered, error) {
	r.spareReserve()
	x, err := r.lock(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	return r.recover(ctx, x, kill)
}

// RecoverElsewhere is Recover also of what processes of other machines left, which the caller knows to be gone.
func (r *Recorder) RecoverElsewhere(ctx context.Context, kill bool) ([]Recovered, error) {
	r.elsewhereGone = true
	defer func() { r.elsewhereGone = false }()
	return r.Recover(ctx, kill)
}

// An ElsewhereError is the refusal to recover a run whose process was one of another machine: it may live.
type ElsewhereError struct{ refusal *project.Error }

func (e *ElsewhereError) Error() string { return e.refusal.Error() }
func (e *ElsewhereError) Unwrap() error { return e.refusal }

// refuseElsewhere refuses to recover a run whose lease names a process of another machine.
func (r *Recorder) refuseElsewhere(open []*history.Opened, damaged []history.Damage) error {
	if r.elsewhereGone || len(open)+len(damaged) == 0 {
		return nil
	}
	leases, err := r.project.Unheld()
	if err != nil {
		return err
	}
	self := r.Holder()
	for _, l := range leases {
		isOpen := slices.ContainsFunc(open, func(o *history.Opened) bool { return o.Record.ID == l.ID }) ||
			slices.ContainsFunc(damaged, func(d history.Damage) bool { return d.ID == l.ID })
		h := l.Holder
		if !isOpen || !h.Elsewhere(self.Host, self.Boot) {
			continue
		}
		return &ElsewhereError{&project.Error{Kind: project.Refused, State: project.Unchanged,
			Msg: fmt.Sprintf("run %s is that of process %d on %s, which began at %s, and from this machine, %s, decree cannot tell whether that process still works",
				l.ID, h.PID, tree.Quote(h.Host), h.Start.Format(time.RFC3339), tree.Quote(self.Host)),
			Advice: fmt.Sprintf("wait for its end, or run 'decree recover' on %s; when you know that the process is gone, run 'decree recover --yes' here", tree.Quote(h.Host))}}
	}
	return nil
}

// Waiting says in words what a recovery would have to do; it changes nothing.
func (r *Reader) Waiting() ([]string, error) {
	r.catchUp()
	open, damaged, err := r.unfinished(nil)
	if err != nil {
		return nil, err
	}
	var out []string
	if r.project.Swapping() {
		out = append(out, "a restore of a backup is not finished")
	}
	for _, o := range open {
		out = append(out, fmt.Sprintf("%s %s is open", noun(o.Record), o.Record.ID))
	}
	for _, d := range damaged {
		if errors.As(d.Err, new(*history.NewerError)) {
			out = append(out, fmt.Sprintf("open record %s is a newer decree's", d.ID))
			continue
		}
		out = append(out, fmt.Sprintf("open record %s is damaged", d.ID))
	}
	return out, nil
}

// recovery is one recovery on its way.
type recovery struct {
	r    *Recorder
	x    *writeSession
	done []Recovered
}

// newerWaits refuses to recover beside unfinished work that a newer decree wrote.
func newerWaits(err error) error {
	return &BeginError{&project.Error{Kind: project.Refused, State: project.Unchanged,
		Msg: "work that a newer decree has not finished stands here, and is left as it is", Err: err,
		Advice: "let that decree finish it: 'decree recover' of the newer version"}}
}

func (r *Recorder) recover(ctx context.Context, x *writeSession, kill bool) ([]Recovered, error) {
	open, damaged, err := r.unfinished(&x.activity)
	if err != nil {
		return nil, &BeginError{err}
	}
	c := &recovery{r: r, x: x}
	for _, d := range damaged {
		if errors.As(d.Err, new(*history.NewerError)) {
			return nil, newerWaits(d.Err)
		}
	}
	if err := r.refuseElsewhere(open, damaged); err != nil {
		return nil, &BeginError{err}
	}
	for _, d := range damaged {
		if err := r.history.SetAside(d.ID); err != nil {
			return nil, err
		}
		c.add(nil, "the open record %s is damaged (%v) and was set aside", d.ID, d.Err)
		c.done[len(c.done)-1].Aside = r.inStore("open", d.ID+".damaged")
	}
	if err := c.allDead(open, kill, func(activity, *history.Opened) bool { return true }); err != nil {
		return nil, err
	}
	if err := c.damagedLayers(); err != nil {
		return c.done, c.notBegun(err)
	}
	if err := c.transactions(ctx); err != nil {
		return c.done, err
	}
	if open, _, err = r.unfinished(&x.activity); err != nil {
		return c.done, err
	}
	for _, o := range innermostFirst(open) {
		if err := c.orAnyway(o, c.record(ctx, o)); err != nil {
			err = fmt.Errorf("record %s: %w", o.Record.ID, err)
			if ctx.Err() != nil {
				err = c.notBegun(&project.Error{Kind: project.KindOf(err), Msg: "what an earlier command left is not recorded yet", Err: err,
					Advice: "'decree recover' records it; the tree was left as it is"})
			}
			return c.done, err
		}
		if err := r.auditRecovery(o.Record.ID); err != nil {
			c.add(nil, "the audit does not have the recovery of %s: %v", o.Record.ID, err)
		}
	}
	if err := c.tidy(ctx); err != nil {
		return c.done, c.notBegun(err)
	}
	return c.done, nil
}

// innermostFirst has what was made inside an open record come before that, as records end: what ended after it would be no part of it.
func innermostFirst(open []*history.Opened) []*history.Opened {
	inside := map[string]string{}
	for _, o := range open {
		inside[o.Record.ID] = o.Record.Inside
	}
	depth := func(o *history.Opened) (n int) {
		for id := o.Record.Inside; id != "" && n < len(open); id = inside[id] { // no more, where they are damaged
			n++
		}
		return n
	}
	return slices.SortedStableFunc(slices.Values(open), func(a, b *history.Opened) int { return depth(b) - depth(a) })
}

// tidy removes, and ends, what dead processes left besides records and transactions.
func (c *recovery) tidy(ctx context.Context) error {
	r := c.r
	for _, step := range []func() error{
		r.history.Tidy,
		r.project.TidyLeases,
		r.tidyOwnLogs,
		func() error { return c.entered(ctx) },
		func() error { return c.finishGit(ctx) },
		c.tidyLayers,
		func() error {
			_, err := r.history.FinishRemove(r.audit(opPrune, "done"))
			return err
		},
		func() error { return c.runs(ctx) },
		func() error { return c.forget(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Recorder) auditRecovery(id string) error {
	o := r.audit(history.OpRecover, "done")
	o.Record = id
	return r.history.Audit(o)
}

func (c *recovery) add(rec *history.Record, format string, args ...any) {
	c.done = append(c.done, Recovered{Record: rec, What: fmt.Sprintf(format, args...)})
}

// allDead is ensureDead for all of open, and where what lives is ended, for what has died of that: the decree of a run inside a dead one, whose own
// command goes on. of says whether an open record counts.
func (c *recovery) allDead(open []*history.Opened, kill bool, of func(activity, *history.Opened) bool) (err error) {
	ended := map[string]bool{}
	for len(open) > 0 {
		for _, o := range open {
			if err := c.ensureDead(o, kill); err != nil {
				return err
			}
			ended[o.Record.ID] = true
		}
		if !kill {
			return nil
		}
		if c.x.activity, err = c.r.currentActivity(); err == nil {
			err = c.x.activity.addTurns(c.r)
		}
		if err == nil {
			open, _, err = c.r.unfinished(&c.x.activity)
		}
		if err == nil {
			open = slices.DeleteFunc(open, func(o *history.Opened) bool { return ended[o.Record.ID] || !of(c.x.activity, o) })
			err = c.r.refuseElsewhere(open, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ensureDead refuses to touch a run whose command still lives. One without a leader
// was never executed.
func (c *recovery) ensureDead(o *history.Opened, kill bool) error {
	_, isolated := o.Extra[extraLayer]
	if isolated {
		if err := c.endIsolated(o); err != nil {
			return err
		}
	}
	var leader started
	if ok, err := c.r.history.Leader(o.Record.ID, &leader); err != nil || !ok {
		return err
	}
	what := fmt.Sprintf("what run %s had left alive when its decree died", o.Record.ID)
	if isolated { // what works in a clone has no mount by which it is found
		left, err := c.endGroup(leader.Leader, what)
		c.addLeft(what, left)
		return err
	}
	if kill {
		left, err := c.endGroup(leader.Leader, what)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			c.nameOutside(o, leader.Leader)
			return nil
		}
		return &project.Error{Kind: project.Refused,
			State: project.Unchanged, Msg: fmt.Sprintf("of run %s, whose decree died, the store names processes that belong to another user than the store, and they were left alone: %s", o.Record.ID, processNames(left)),
			Advice: "wait until they have ended, or end them yourself if they are that run's, and run 'decree recover' again"}
	}
	live, err := runner.Alive(leader.Leader)
	if err != nil {
		return err
	}
	if len(live) == 0 {
		c.nameOutside(o, leader.Leader)
		return nil
	}
	return &AliveError{&project.Error{Kind: project.Refused,
		State: project.Unchanged, Msg: fmt.Sprintf("decree died during run %s, but its command still runs: %s", o.Record.ID, processNames(live)),
		Advice: "wait until it has ended, or end it with 'decree recover --kill'"}}
}

// AliveError is the refusal to record a run whose decree died as long as its command works.
type AliveError struct{ refusal *project.Error }

func (e *AliveError) Error() string { return e.refusal.Error() }
func (e *AliveError) Unwrap() error { return e.refusal }

// WaitError is a refusal for what a person, or another process, has to end first. Nothing is wrong with what was to be done.
type WaitError struct{ refusal *project.Error }

func (e *WaitError) Error() string { return e.refusal.Error() }
func (e *WaitError) Unwrap() error { return e.refusal }

// processNames names processes, for people.
func processNames(list []runner.Process) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = fmt.Sprintf("%d (%s)", p.PID, tree.Quote(p.Name))
	}
	return strings.Join(names, ", ")
}

// transactions finishes or takes back every journal, and its owner's record
// with it, and empties .decree/tmp.
func (c *recovery) transactions(ctx context.Context) error {
	t, journals, done, err := c.r.mover(false)
	if err != nil {
		return c.notBegun(err)
	}
	defer done()
	pending, err := worktree.Pending(journals)
	if err != nil {
		return c.notBegun(err)
	}
	for _, j := range pending {
		if j.Err != nil && j.Err.Newer {
			return newerWaits(j.Err)
		}
	}
	for _, j := range pending {
		if err := c.clearStage(j.Stage()); err != nil {
			return c.notBegun(err)
		}
		j.Commit = func(res worktree.Result, out *worktree.Outcome) error { return c.closeOwner(j, res, out) }
		_, _, err := t.Recover(ctx, j)
		if bad, ok := errors.AsType[*worktree.JournalError](err); ok {
			c.add(nil, "%v", bad)
			if bad.Kept != "" {
				c.done[len(c.done)-1].Aside = c.r.inStore("txn", bad.Kept)
			}
			continue
		}
		if err != nil {
			return moveError(err)
		}
	}
	kept, err := t.Tidy(journals, c.unsettled)
	if err != nil {
		return c.notBegun(err)
	}
	for _, k := range kept {
		if err := c.keepStage(k); err != nil {
			return c.notBegun(err)
		}
	}
	if err := c.r.history.CleanTmp(); err != nil {
		return c.notBegun(err)
	}
	return nil
}

// unsettled says whether the record that a transaction belongs to is open, and no line tells of its end. The id of a
// put-back is its run's with something behind it.
func (c *recovery) unsettled(id string) bool {
	for {
		if _, err := c.r.history.Opened(id); err == nil {
			recorded, err := c.r.history.Recorded(id)
			return err != nil || !recorded
		}
		at := strings.LastIndexByte(id, '-')
		if at < 0 {
			return false
		}
		id = id[:at]
	}
}

// keepStage puts aside what a move without a journal has left in .decree/tmp: with another store than the one that it
// began with, or a journal that is lost, nobody knows what of it is only there.
func (c *recovery) keepStage(k worktree.Kept) error {
	tmp, err := c.r.project.Decree.OpenDir("tmp")
	if err != nil {
		return err
	}
	defer tmp.Close()
	to, err := c.r.project.KeepAside(tmp, k.Stage)
	if err != nil {
		return err
	}
	where := "what it took out of the tree, or was to bring there, is kept in " + to
	if len(k.Beside) > 0 {
		where += " and as " + some(k.Beside)
	}
	c.add(nil, "an interrupted transaction, %s, may have moved a part of its paths, and its journal is not in the store: nothing was finished or taken back; %s. "+
		"'decree diff --edits' shows what differs from the last record", k.ID, where)
	if o, err := c.r.history.Opened(k.ID); err == nil && o.Record.Reason != history.Run {
		return c.r.history.Abandon(k.ID)
	}
	return nil
}

// clearStage puts aside what is no directory in the place of a transaction's staging directory in .decree/tmp.
func (c *recovery) clearStage(name string) error {
	tmp, err := c.r.project.Decree.OpenDir("tmp")
	if err != nil {
		return err
	}
	defer tmp.Close()
	st, err := tmp.Stat(name)
	if isMissing(err) || err == nil && st.Kind == disk.Directory {
		return nil
	}
	if err != nil {
		return err
	}
	return c.r.project.PutAside(tmp, name)
}

// notBegun says of an error that nothing was changed, if nothing was.
func (c *recovery) notBegun(err error) error {
	if len(c.done) > 0 {
		return err
	}
	return &BeginError{err}
}

// closeOwner closes or drops the record that a transaction belongs to, while the
// journal is still there: after a death in between it is called again.
func (c *recovery) closeOwner(j worktree.Journal, res worktree.Result, out *worktree.Outcome) error {
	for _, l := range out.Left {
		c.add(nil, "%s was left alone: %s", l.Path, l.Reason)
	}
	for _, n := range out.Notes {
		c.add(nil, "%s", n)
	}
	var meta putBackMeta
	if len(j.Meta) > 0 && json.Unmarshal(j.Meta, &meta) == nil && meta.Run != "" {
		return c.settlePutBack(meta, res)
	}
	o, err := c.r.history.Opened(j.ID)
	if isMissing(err) {
		c.add(nil, "an interrupted transaction was %s", res)
		return nil
	}
	if err != nil {
		return err
	}
	if res == worktree.RolledBack {
		c.add(nil, "an interrupted %s was taken back; the tree is as it was before it", o.Record.Reason)
		return c.r.history.Abandon(j.ID)
	}
	return c.orAnyway(o, c.finishAction(o))
}

// settlePutBack ends a run whose tree is back for good.
func (c *recovery) settlePutBack(meta putBackMeta, res worktree.Result) error {
	o, err := c.r.history.Opened(meta.Run)
	if isMissing(err) {
		return nil
	}
	if err != nil || res != worktree.Finished || !meta.Last {
		return err
	}
	end, ok := endingOf(o)
	if !ok {
		return nil
	}
	if recorded, err := c.r.history.Recorded(meta.Run); err != nil || recorded {
		return err // what is missing of it is written when the open records are closed
	}
	return c.orAnyway(o, c.putBack(o, end))
}

// putBack ends a failed run whose tree is back and whose work is in its ending.
func (c *recovery) putBack(o *history.Opened, end *ending) error {
	now := c.r.opt.Clock().UTC()
	rec := end.Record
	if err := c.bringEnding(end); err != nil {
		return err
	}
	var err error
	if o.Effects.Status, err = c.r.takenBack(rec); err != nil {
		return err
	}
	rec.Status, rec.Recovered = history.StatusReverted, &now
	if err := c.close(o, end); err != nil {
		return err
	}
	what := fmt.Sprintf("run %s had failed, and its changes are now put back", rec.ID)
	if gone := namesIn(rec, extraGone); len(gone) > 0 {
		what = fmt.Sprintf("run %s had failed, and what else it changed is now put back; not recorded, so not put back: %s", rec.ID, strings.Join(gone, ", "))
	}
	c.add(rec, "%s", what)
	return nil
}

// bringEnding makes the run directory hold what the ending has stored of it,
// whatever was deleted or begun anew since, and the ending what else lies there. What the
// store has lost is noted, and does not come back.
func (c *recovery) bringEnding(end *ending) error {
	id := end.Record.ID
	if err := c.clearLog(id); err != nil {
		return err
	}
	files, err := c.r.storeFiles(c.x, end.Record)
	if err != nil {
		return err
	}
	for name, sum := range end.Files {
		if has, ok := files[name]; ok && (name != diffFile || has == sum) {
			continue
		}
		err := c.r.unlessKeptOut(id, c.r.history.RewriteFile(id, history.RecordFile{Name: name, SHA256: sum}))
		if err := c.unlessLost(id, err); err != nil {
			return err
		}
		files[name] = sum
	}
	end.Files = files
	if err := c.unlessLost(id, c.r.bringManifest(end.Record)); err != nil {
		return err
	}
	return c.x.w.Flush()
}

// bringManifest writes a run's manifest.json again where it is missing.
func (r *Recorder) bringManifest(rec *history.Record) error {
	if st, err := r.statFile(rec.ID, "manifest.json"); !isMissing(err) && (err != nil || st.Kind == disk.Regular) {
		return err
	}
	h := r.history
	return r.unlessKeptOut(rec.ID, h.ReplaceFile(rec.ID, "manifest.json", func(w io.Writer) error { return h.WriteManifest(rec, w) }))
}

// recordsWere is "3 records were".
func recordsWere(n int) string {
	if n == 1 {
		return "1 record was"
	}
	return fmt.Sprintf("%d records were", n)
}

// bringDeleted writes again what a run's command has deleted of .decree.
func (c *recovery) bringDeleted(o *history.Opened) error {
	words, err := c.r.bringDeleted(o)
	for _, w := range words {
		c.add(nil, "%s", w)
	}
	return err
}

// close ends the record of a run that is gone, after writing again what its command has
// deleted.
func (c *recovery) close(o *history.Opened, end *ending) error {
	if err := c.bringDeleted(o); err != nil {
		return err
	}
	end.effects = o.Effects
	return c.r.end(end)
}

// finishAction closes the record of a revert, apply or restore whose move is done.
func (c *recovery) finishAction(o *history.Opened) error {
	end, ok := endingOf(o)
	if !ok {
		return fmt.Errorf("open record %s: its ending is missing", o.Record.ID)
	}
	recorded, err := c.r.history.Recorded(o.Record.ID)
	if err != nil {
		return err
	}
	if recorded {
		err = c.complete(o)
	} else {
		now := c.r.opt.Clock().UTC()
		end.Record.Recovered, end.effects = &now, o.Effects
		c.r.buildMove(end)
		err = c.r.end(end)
	}
	if err != nil {
		return err
	}
	c.add(end.Record, "an interrupted %s was finished: record %s", o.Record.Reason, o.Record.ID)
	return nil
}

// complete writes what is missing of a record that stands in the log.
func (c *recovery) complete(o *history.Opened) error {
	rec, err := c.r.history.Get(o.Record.ID)
	if err != nil {
		return err
	}
	return c.r.history.End(history.Closing{Record: rec, Effects: o.Effects, Audit: c.r.auditOf(rec)})
}

// record closes an open record that has no journal (any more).
func (c *recovery) record(ctx context.Context, o *history.Opened) error {
	recorded, err := c.r.history.Recorded(o.Record.ID)
	if err != nil {
		return err
	}
	if recorded {
		if err := c.complete(o); err != nil {
			return err
		}
		c.add(nil, "record %s had ended; what was missing of it was written", o.Record.ID)
		return nil
	}
	if o.Record.Reason != history.Run {
		kept, err := c.r.setAside()
		if err != nil {
			return err
		}
		journal := c.r.inStore("txn", o.Record.ID+".damaged")
		if slices.Contains(kept, journal) {
			c.add(nil, "an interrupted %s may have moved a part of its paths; its journal is damaged, so nothing was finished or taken back. "+
				"'decree diff --edits' shows what differs from the last record; 'decree restore last' goes back to that", o.Record.Reason)
			return c.r.history.Abandon(o.Record.ID)
		}
		c.add(nil, "an interrupted %s had moved nothing yet and was dropped", o.Record.Reason)
		return c.r.history.Abandon(o.Record.ID)
	}
	if _, isolated := o.Extra[extraLayer]; isolated {
		return c.interruptedIsolated(ctx, o)
	}
	return c.interrupted(ctx, o)
}

// lostContents says whether err means that the store has lost what was in it.
func lostContents(err error) bool {
	var missing *store.MissingError
	var damaged *store.DamagedError
	return errors.As(err, &missing) || errors.As(err, &damaged) || errors.Is(err, history.ErrNotKept)
}

// unlessLost passes over that the store has lost a content of a record, which is told.
func (c *recovery) unlessLost(id string, err error) error {
	if !lostContents(err) {
		return err
	}
	c.add(nil, "record %s is closed without what the store has lost: %v; 'decree verify %s' names it", id, err, id)
	return nil
}

// orAnyway closes a record whose contents the store has lost with what is known
// of it: nothing can bring them back, and an open record that can never be closed
// would stand in the way of every other command.
func (c *recovery) orAnyway(o *history.Opened, err error) error {
	if !lostContents(err) {
		return err
	}
	cause := err
	recorded, err := c.r.history.Recorded(o.Record.ID)
	if err != nil {
		return err
	}
	if recorded {
		err = c.complete(o)
	} else if err = c.keepLayer(o); err == nil {
		err = c.close(o, c.bareEnding(o))
	}
	if err != nil {
		return err
	}
	return c.unlessLost(o.Record.ID, cause)
}

// keepLayer moves the layer of a run whose record will lack what it did out of the way, since nothing else has that.
func (c *recovery) keepLayer(o *history.Opened) error {
	if _, isolated := o.Extra[extraLayer]; !isolated {
		return nil
	}
	place, err := c.r.layers()
	if err != nil {
		return err
	}
	defer closePlace(place)
	if _, err := place.Dir.Stat(o.Record.ID); isMissing(err) {
		return nil
	} else if err != nil {
		return err
	}
	return c.layerAside(place, o.Record.ID, "the layer of isolated run "+o.Record.ID, "its record lacks what the run did, so copy from there what you want of it")
}

// bareEnding is the end of a record as far as its open record tells it.
func (c *recovery) bareEnding(o *history.Opened) *ending {
	end, ok := endingOf(o)
	if !ok {
		rec := *o.Record
		end = &ending{Record: &rec}
	}
	now := c.r.opt.Clock().UTC()
	rec := end.Record
	if rec.Reason == history.Run {
		rec.Status = history.StatusInterrupted
	}
	rec.Recovered = &now
	return end
}

// frozenRules are the ignore rules as they were when a run began, for the walks after it;
// never nil, which would mean the present ones.
func frozenRules(o *history.Opened) []history.Rule {
	if o.Rules == nil {
		return []history.Rule{}
	}
	return o.Rules
}

// interrupted records what an interrupted run did so far. Its changes stay.
func (c *recovery) interrupted(ctx context.Context, o *history.Opened) error {
	r := c.r
	r.note("the process of run %s is gone: finding out what the run changed, and recording it", o.Record.ID)
	began := besideOf(o)
	outputs := append(ownOutputs(), infosOf(began.Outputs)...)
	res, err := r.observe(ctx, c.x, captureOptions{phase: "recording", frozen: frozenRules(o), afterRun: true, outputs: outputs, unlimited: true})
	if err != nil {
		return err
	}
	defer res.Close()
	rec := *o.Record
	if end, ok := endingOf(o); ok && res.Tree == rec.Before && len(res.Unrecorded) == 0 {
		// It was put back for its last attempt, which has not changed anything.
		return errors.Join(res.Commit(), c.putBack(o, end))
	}
	edits, changes, later, err := c.changedIn(o, &rec, res)
	if err != nil {
		return err
	}
	if err := r.keep(c.x, res); err != nil {
		return err
	}
	if err := c.besideRun(ctx, &rec, edits); err != nil {
		return err
	}
	if err := r.closeTurnsIn(ctx, c.x, rec.ID); err != nil {
		return err
	}
	files, err := c.interruptedFiles(ctx, o, &rec, changes)
	if err != nil {
		return err
	}
	now := r.opt.Clock().UTC()
	rec.Status, rec.Recovered, rec.After = history.StatusInterrupted, &now, res.Tree
	if err := c.close(o, &ending{Record: &rec, Files: files}); err != nil {
		return err
	}
	what := whatWasInterrupted(rec.ID, res.Unrecorded, edits, later)
	if moved, err := r.project.GitMoved(r.opt.Where, began.Head); err == nil && moved != "" {
		what += "; " + moved
	}
	c.done = append(c.done, Recovered{Record: &rec, What: what, Later: later})
	if r.changedAfterOutput == nil {
		r.changedAfterOutput = map[string][]tree.Path{}
	}
	r.changedAfterOutput[rec.ID] = later
	return nil
}

// changedIn is what was changed since an interrupted run began, as the capture res shows it: edits that cannot be the run's, the run's changes,
// and which of these were made after its last output. The record gets what a look at the tree tells beside them.
func (c *recovery) changedIn(o *history.Opened, rec *history.Record, res *capture.Result) (edits []tree.Change, changes changeSeq, later []tree.Path, err error) {
	r, before := c.r, rec.Unrecorded
	all, err := r.each(rec.Before, res)
	if err != nil {
		return nil, nil, nil, err
	}
	all = withoutChanges(all, func(c tree.Change) bool { return wasThere(c, before) })
	rec.Unrecorded = unrecordedPaths(before, res.Unrecorded)
	if edits, changes, err = c.sinceStart(o, all); err == nil {
		later, err = r.changedAfter(rec.ID, changes)
	}
	if err == nil {
		err = r.noteMounted(rec, changes)
	}
	if err == nil {
		err = r.noteRenamed(rec, o, changes)
	}
	return edits, changes, later, err
}

// extraBeside is the place in an open record of what a recovery must know that is not the tree's.
const extraBeside = "beside"

// besideIt is where git's HEAD was as a run began, and into which files decree wrote what it said.
type besideIt struct {
	Head    project.GitHead `json:"head"`
	Outputs []runner.File   `json:"outputs,omitempty"`
}

func besideOf(o *history.Opened) (b besideIt) {
	if json.Unmarshal(o.Extra[extraBeside], &b) != nil {
		return besideIt{} // of an older decree
	}
	return b
}

// interruptedFiles writes and stores the files of an interrupted run's record; they are durable when it returns.
func (c *recovery) interruptedFiles(ctx context.Context, o *history.Opened, rec *history.Record, changes changeSeq) (map[string]tree.Hash, error) {
	if err := c.clearLog(rec.ID); err != nil {
		return nil, err
	}
	c.x.keepAlone(rec.ID, aloneOf(o))
	stat, sum, err := c.r.writeDiff(ctx, c.x, rec.ID, changes)
	if err != nil {
		return nil, err
	}
	rec.Changes, rec.DiffSHA256 = counts(stat), sum
	if err := c.r.bringManifest(rec); err != nil {
		return nil, err
	}
	files, err := c.r.storeFiles(c.x, rec)
	if err != nil {
		return nil, err
	}
	return files, c.x.w.Flush()
}

// sinceStart takes out of the changes of a run those that its command cannot have made, since the system was
// started anew after it: files that were written, by their times, since then.
func (c *recovery) sinceStart(o *history.Opened, changes changeSeq) (edits []tree.Change, run changeSeq, err error) {
	var leader started
	ok, err := c.r.history.Leader(o.Record.ID, &leader)
	if boot := runner.BootID(); err != nil || !ok || leader.BootID == "" || boot == "" || leader.BootID == boot {
		return nil, changes, err
	}
	start := runner.BootTime()
	last, _ := c.r.lastOutput(o.Record.ID)
	if start.IsZero() || !o.Record.Started.Before(start) || last >= start.UnixNano() { // the clock is not what it was
		return nil, changes, nil
	}
	dirs := worktree.Open(c.r.project.Dir, worktree.Options{}).Dirs()
	defer dirs.Close()
	theirs := map[tree.Path]bool{}
	for ch, err := range changes {
		if err != nil {
			return nil, nil, err
		}
		if ch.New == nil {
			continue
		}
		if info, err := dirs.Stat(ch.Path); err == nil && min(info.Mtime, info.Ctime) > start.UnixNano() {
			theirs[ch.Path] = true
			edits = append(edits, ch)
		}
	}
	if edits == nil {
		return nil, changes, nil
	}
	return edits, withoutChanges(changes, func(ch tree.Change) bool { return theirs[ch.Path] }), nil
}

// besideRun puts edits, which are not the run's, into its outside.diff.
func (c *recovery) besideRun(ctx context.Context, rec *history.Record, edits []tree.Change) error {
	if len(edits) == 0 {
		return nil
	}
	found, _ := rec.Outside()
	out, err := c.r.withEdits(ctx, c.x, found.SHA256, edits)
	if err != nil {
		return err
	}
	if err := c.x.w.Flush(); err != nil {
		return err
	}
	return out.mark(rec)
}

// whatWasInterrupted says what became of the run id. edits were made since the system was started anew, and later
// are the paths that were changed after its last output.
func whatWasInterrupted(id string, unrecorded []tree.Path, edits []tree.Change, later []tree.Path) string {
	what := fmt.Sprintf("run %s was interrupted, and is recorded; its changes stay, 'decree revert %s' takes them back", id, id)
	if len(unrecorded) > 0 {
		what += "; not recorded, because they cannot be read or are too large: " + some(unrecorded)
	}
	if len(edits) > 0 {
		var paths []tree.Path
		for _, c := range edits {
			paths = append(paths, c.Path)
		}
		what += "; changed since the system was started anew, and so not by the run, in its outside.diff: " + some(paths)
	}
	if len(later) > 0 {
		what += "; changed after its last output, perhaps by hand: " + some(later)
	}
	return what
}

// unrecordedPaths are the paths that were not recorded before a run or after it.
func unrecordedPaths(before, after []tree.Path) []tree.Path {
	all := slices.Concat(before, after)
	slices.Sort(all)
	return slices.Compact(all)
}

// changedAfter are the changed files with a later mtime than the run's log.
func (r *Recorder) changedAfter(id string, changes changeSeq) (out []tree.Path, err error) {
	end, said := r.lastOutput(id)
	if !said { // then every file is later than its log, also what the command itself wrote
		return nil, nil
	}
	dirs := worktree.Open(r.project.Dir, worktree.Options{}).Dirs()
	defer dirs.Close()
	for c, err := range changes {
		if err != nil {
			return nil, err
		}
		if c.New == nil || c.New.Type == tree.Dir {
			continue
		}
		if info, err := dirs.Stat(c.Path); err == nil && info.Mtime > end {
			out = append(out, c.Path)
		}
	}
	return out, nil
}

// lastOutput is when a run's command wrote last, in ns since 1970; 0 where that is
// not known. It was at work until then, at least. said: it has written something.
func (r *Recorder) lastOutput(id string) (at int64, said bool) {
	dir, err := r.history.OpenRun(id)
	if err != nil {
		return 0, false
	}
	defer dir.Close()
	log, err := dir.Stat(logFile)
	if err != nil {
		return 0, false
	}
	return log.Mtime, log.Size > 0
}

// runs writes damaged run directories again from the store's copies, and those of the
// newest record and of what was recorded beside it, which a death or an error between the
// line in the log and the rename leaves out. Others that are missing a person has deleted.
// One that cannot be written is named and stands in nobody's way: the store's copy counts.
func (c *recovery) runs(ctx context.Context) error {
	h := c.r.history
	list, err := h.List(history.ListOptions{Limit: history.PlainManifests, Known: true, Keep: func(rec *history.Record) bool { return rec.Status != history.StatusOpen }})
	if err != nil {
		return err
	}
	for _, rec := range list.Records {
		if !rec.Ended.Before(list.Records[0].Started) && slices.Contains(list.Missing, rec.ID) {
			c.rewrite(rec.ID, true, "record %s was missing from .decree/runs and was written again")
		}
		if slices.Contains(list.Edited, rec.ID) {
			c.writeEnded(ctx, rec)
		}
		if rec.Draft != nil && slices.Contains(list.Edited, rec.ID) { // a discard or publish that came to an end in the log alone
			c.rewrite(rec.ID, true, "run.json of draft %s was written again")
		}
	}
	for _, d := range list.Damaged {
		if known, err := h.Recorded(d.ID); err != nil {
			return err
		} else if known {
			c.rewrite(d.ID, len(list.Records) < history.PlainManifests || d.ID > list.Records[len(list.Records)-1].ID,
				"the damaged files of record %s were restored from the store")
		}
	}
	return nil
}

// writeEnded writes the files of a record again whose run.json says that it has not ended: what it recorded at its
// end was kept out of .decree/runs, by a full disk or by rights, and those that lie there are an earlier attempt's.
// run.json is the last one, so that what stops this is done again.
func (c *recovery) writeEnded(ctx context.Context, rec *history.Record) {
	plain, err := c.r.history.ReadRun(rec.ID)
	if err != nil || plain.Status != history.StatusOpen || rec.Status == history.StatusOpen {
		return
	}
	files, err := c.r.history.RecordFiles(rec.ID)
	v := &verifier{r: c.r.Reader}
	for _, f := range files {
		if err == nil && v.file(ctx, rec.ID, f) != nil {
			err = c.r.rewrite(rec, f)
		}
	}
	if err == nil {
		c.rewrite(rec.ID, true, "the files of record %s, which were kept out of .decree/runs when it ended, were written again")
	} else if !history.KeepsOut(err) {
		c.add(nil, "the files of record %s could not be written to .decree/runs again: %v; its copy in the store is whole", rec.ID, err)
	}
}

func (c *recovery) rewrite(id string, plainManifest bool, done string) {
	_, err := c.r.history.RestoreRun(id, plainManifest)
	switch {
	case errors.As(err, new(*history.LineError)): // there is no copy; the listing names it
	case history.KeepsOut(err): // it was told when the record ended, and the listing names it
	case err != nil:
		c.add(nil, "the files of record %s could not be written to .decree/runs again: %v; its copy in the store is whole", id, err)
	default:
		c.add(nil, done, id)
	}
}
