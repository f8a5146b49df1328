package recorder

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/patch"
	"decree/plan"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

const (
	logFile     = history.RoutineLog
	diffFile    = history.ChangesFile
	failureFile = "failure-context.md"
)

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// openLog makes a new routine.log in the run directory and holds it open: a
// command that deletes the directory does not take the log along.
func (u *run) openLog() error {
	log, err := u.newLog()
	if u.begun && history.KeepsOut(err) {
		u.r.history.NoteKeptOut(u.rec.ID, err)
		log, err = u.hiddenLog()
	}
	if err != nil {
		return err
	}
	if u.log != nil {
		u.log.Close()
	}
	u.log = log
	u.capped = &cappedLog{f: u.log, max: leastLog(u.r.project.Config.LogMax)}
	return nil
}

func (u *run) newLog() (disk.File, error) {
	dir, err := u.r.history.EnsureRun(u.rec.ID)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	for _, name := range []string{logFile, u.o.LogCopy} {
		if err := u.dropLog(dir, name); err != nil {
			return nil, err
		}
	}
	return disk.CreateFile(dir, logFile, project.PrivateFile)
}

// hiddenLog is a log without a name, on the store's disk, for a run directory that takes none.
func (u *run) hiddenLog() (disk.File, error) {
	name := disk.Draft(logFile) // what a death leaves of it the next command removes
	f, err := disk.CreateFile(u.r.project.Store, name, project.PrivateFile)
	if err != nil {
		return nil, err
	}
	return f, u.r.project.Store.Remove(name)
}

// dropLog removes the log of the attempt before under one of its names. What else a
// command has put there is put aside.
func (u *run) dropLog(dir disk.Dir, name string) error {
	if name == "" {
		return nil
	}
	st, err := dir.Stat(name)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	if own, err := u.isLog(dir, name, st); err != nil || !own {
		return errors.Join(err, u.r.project.PutAside(dir, name))
	}
	return dir.Remove(name)
}

// isLog says whether the file of that name is the open log, or has its content.
func (u *run) isLog(dir disk.Dir, name string, st disk.Info) (bool, error) {
	if u.log == nil || st.Kind != disk.Regular {
		return false, nil
	}
	ours, err := u.log.Stat()
	if err != nil || st.SameFile(ours) || st.Size != ours.Size {
		return err == nil && st.SameFile(ours), err
	}
	other, err := dir.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer other.Close()
	was, is := sha256.New(), sha256.New()
	if err := cmp.Or(copyFile(was, u.log), copyFile(is, other)); err != nil {
		return false, err
	}
	return bytes.Equal(was.Sum(nil), is.Sum(nil)), nil
}

// closeLog puts a log that was cut in order.
func (u *run) closeLog() {
	capped, err := u.capped.finish()
	if err != nil {
		u.say("%s is out of order: its newest output comes before older output: %v", logFile, err)
	} else if capped {
		u.say("the command printed %d KiB; %s keeps the first and the last %d KiB of them (log.max)", u.capped.size>>10, logFile, u.capped.max>>11)
	}
}

// file keeps an attempt's diff and log before the next one overwrites them.
func (u *run) file(n int) error {
	err := u.writeFile(attemptFile(n, diffFile), func(w io.Writer) error {
		f, err := u.openDiff()
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
	if err != nil {
		return err
	}
	return u.nameLog(attemptFile(n, logFile))
}

// attemptFile is the name of an attempt's own copy of a file.
func attemptFile(n int, name string) string { return fmt.Sprintf("attempts/%d/%s", n, name) }

// nameLog gives the log another name in the run's directory. It is one file with
// two names, and a copy where the file system has no hard links, the name is taken
// by an earlier try, or the command has done something to the first name. A log or a
// directory that cannot be flushed is an error, whatever becomes of a copy.
func (u *run) nameLog(name string) error {
	if err := u.log.Sync(); err != nil {
		return err
	}
	if linked, err := u.linkLog(name); linked {
		return err
	}
	return u.writeFile(name, func(w io.Writer) error { return copyFile(w, u.log) })
}

// openDiff opens changes.diff of the last attempt.
func (u *run) openDiff() (io.ReadCloser, error) {
	if sum, alone := u.x.onlyInStore[u.rec.ID][diffFile]; alone {
		return stored{u.r.store, sum}.Open()
	}
	return u.r.history.OpenFile(u.rec.ID, diffFile)
}

func (u *run) writeFile(name string, write func(io.Writer) error) error {
	return u.r.writeFile(u.x, u.rec.ID, name, write)
}

func (u *run) linkLog(name string) (linked bool, err error) {
	run, err := u.r.history.EnsureRun(u.rec.ID)
	if err != nil {
		return false, err
	}
	defer run.Close()
	ours, err := u.log.Stat()
	if err != nil {
		return false, err
	}
	if st, err := run.Stat(logFile); err != nil || !st.SameFile(ours) {
		return false, cmp.Or(err, fs.ErrNotExist)
	}
	to := run
	for _, part := range strings.Split(path.Dir(name), "/") {
		if part == "." {
			break
		}
		next, err := project.MakeDir(to, part, project.PrivateDir)
		if err != nil {
			return false, err
		}
		defer next.Close()
		to = next
	}
	if err := run.Link(logFile, to, path.Base(name)); err != nil {
		return false, err
	}
	return true, to.Sync()
}

func copyFile(w io.Writer, f disk.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.NewSectionReader(f, 0, info.Size))
	return err
}

// examine walks after an attempt, under the frozen rules, and writes changes.diff.
func (u *run) examine(ctx context.Context, n int) error {
	r := u.r
	if err := r.project.EnsureDecree(); err != nil {
		return err
	}
	// The command has ended, so whoever sends a signal now wants decree itself to.
	heeding, seen, end := heedSignals(ctx, u.o.Signals, func() {
		r.note("still recording what the command changed; a second signal stops that, and leaves the tree as it is")
	})
	defer end()
	res, err := r.observe(heeding, u.x, captureOptions{phase: "comparing", frozen: frozenRules(u.opened), afterRun: true, outputs: ownOutputs(), ended: u.ended, unlimited: true})
	seen()
	if err != nil {
		return err
	}
	defer res.Close()
	changes, err := r.since(u.before, res)
	if err != nil {
		return err
	}
	changes = u.withoutUnread(changes)
	if err := u.x.w.Flush(); err != nil {
		return err
	}
	u.flushRewritten(heeding, res, changes)
	if err := r.noteMounted(u.rec, changesInMemory(changes)); err != nil {
		return err
	}
	if err := r.noteRenamed(u.rec, u.opened, changesInMemory(changes)); err != nil {
		return err
	}
	if err := res.Commit(); err != nil {
		return err
	}
	u.changes, u.vacated = changes, nil
	u.hiddenFiles = res.Hidden
	u.noteBelow(res)
	u.unreadable(res)
	if len(res.Outputs) > 0 {
		u.say("decree's own output goes to %s, which is no work of the run and is left as it is", some(res.Outputs))
	}
	u.tellLate(res.Late, changes)
	stat, sum, err := u.writeDiff(ctx)
	if err != nil {
		return err
	}
	u.rec.After, u.rec.DiffSHA256, u.rec.Changes = res.Tree, sum, counts(stat)
	if u.o.Attempts < 2 {
		return nil
	}
	return u.noteAttempt(n, changes, stat)
}

// tellLate names the changes that were made after the command had ended. late, which is sorted, may have more: a time ahead of the
// clock says nothing of a file that is as it was.
func (u *run) tellLate(late []tree.Path, changes []tree.Change) {
	var paths []tree.Path
	for _, c := range changes {
		if _, is := slices.BinarySearch(late, c.Path); is {
			paths = append(paths, c.Path)
		}
	}
	if len(paths) > 0 {
		u.say("written after the command had ended, perhaps by another process: %s; it counts as changed by the run", some(paths))
	}
}

// noteAttempt remembers the attempt n for failure-context.md, in the place of what an earlier look at it has found.
func (u *run) noteAttempt(n int, changes []tree.Change, stat patch.Stat) error {
	tail, err := tailOf(u.log)
	if err != nil {
		return err
	}
	u.attemptResults = slices.DeleteFunc(u.attemptResults, func(t attemptResult) bool { return t.number == n })
	u.attemptResults = append(u.attemptResults, attemptResult{n, u.res.Last, changes, stat, tail})
	return nil
}

// withoutUnread drops the files that only seem to be new: they were there before the command, and not recorded, since
// they could not be read or were too large.
func (u *run) withoutUnread(changes []tree.Change) []tree.Change {
	return slices.DeleteFunc(changes, func(c tree.Change) bool { return wasThere(c, u.unread) })
}

// wasThere says whether a change is of a path of which unread, before it, says that it was there though no record has it.
func wasThere(c tree.Change, unread []tree.Path) bool {
	return c.Old == nil && len(unread) > 0 && c.Path.Within(unread...)
}

// unreadable notes what cannot be read now and could be before: a put-back
// that needs it must not be tried.
func (u *run) unreadable(res *capture.Result) {
	before := u.unread
	known := func(p tree.Path) bool { return slices.Contains(before, p) }
	u.unreadableSince = slices.DeleteFunc(unreadable(res), known)
	u.rec.Unrecorded = unrecordedPaths(before, res.Unrecorded)
	u.tellVanished(before)
	if len(u.unreadableSince) > 0 {
		u.say("not readable after the command, and not recorded: %s", some(u.unreadableSince))
	}
	for _, l := range res.TooLarge {
		switch {
		case l.Known:
			u.unreadableSince = append(u.unreadableSince, l.Path)
			u.say("%s is now larger than capture.max_file, and its new content is not recorded", tree.Quote(l.Path))
		case !known(l.Path):
			u.say("%s is larger than capture.max_file: it is not recorded, and no revert changes it", tree.Quote(l.Path))
		}
	}
	var special []tree.Path
	for _, p := range res.Special {
		if !slices.Contains(u.notedSpecial, p) {
			special = append(special, p)
		}
	}
	u.notedSpecial = append(u.notedSpecial, special...)
	if len(special) > 0 {
		u.say("not recorded, neither file, directory nor link: %s", some(special))
	}
}

// tellVanished names what no record has, since it could not be read or was too large before the
// command, and what is not there any more: no change shows it, and no revert brings it back.
func (u *run) tellVanished(before []tree.Path) {
	var gone []tree.Path
	for _, p := range before {
		if _, err := disk.StatPath(u.r.project.Dir, string(p)); isMissing(err) && !slices.Contains(u.notedVanished, p) {
			gone = append(gone, p)
		}
	}
	u.notedVanished = append(u.notedVanished, gone...)
	if len(gone) > 0 {
		u.say("gone since the command ran, and in no record, as it was not read before: %s; no revert brings it back", some(gone))
	}
}

// writeDiff writes changes.diff into the run directory.
func (u *run) writeDiff(ctx context.Context) (patch.Stat, tree.Hash, error) {
	return u.r.writeDiff(ctx, u.x, u.rec.ID, changesInMemory(u.changes))
}

// writeDiff writes a record's changes.diff into its directory.
func (r *Recorder) writeDiff(ctx context.Context, x *writeSession, id string, changes changeSeq) (stat patch.Stat, sum tree.Hash, err error) {
	hash := sha256.New()
	err = r.writeFile(x, id, diffFile, func(w io.Writer) error {
		hash.Reset()
		stat, err = r.writeChanges(ctx, io.MultiWriter(w, hash), changes, nil, nil)
		return err
	})
	hash.Sum(sum[:0])
	return stat, sum, err
}

// giveUp ends a failed run: the tree goes back unless it is to be kept.
func (u *run) giveUp(ctx context.Context) error {
	u.rec.Status = history.StatusFailed
	if u.o.Keep {
		return nil
	}
	if u.res.Last.PTY && u.o.Confirm != nil && len(u.changes) > 0 {
		began := u.r.opt.Clock()
		var answer Answer
		ask := func() {
			answer = u.o.Confirm(PutBack{u.rec.ID, u.changes, u.rec.Changes, u.res.Last, began.Sub(u.rec.Started)})
		}
		if err := u.withoutLock(ctx, ask); err != nil {
			return u.unfinished("the record is not written", err)
		}
		u.promptTime += u.r.opt.Clock().Sub(began)
		if answer == No {
			return nil
		}
	}
	u.bringRootMode()
	if len(u.changes) == 0 && len(u.unreadableSince) == 0 {
		if _, err := u.bringLeftOut(); err != nil {
			u.say("not put back: %v", err)
			return nil
		}
		if len(u.vacated) == 0 {
			return nil
		}
	}
	err := u.putBack(ctx, "end")
	if u.res.PutBack {
		return err // the record's end was part of it
	}
	if err != nil {
		u.res.ExitCode = 125
		u.say("not put back: %v%s", err, NamedIn(err))
		if advice := project.RightsAdvice(err); advice != "" {
			u.say("%s; then 'decree revert %s' puts back", advice, u.rec.ID)
		}
		if advice := strandedAdvice(err); advice != "" {
			u.say("%s; then 'decree revert %s' puts back the rest", advice, u.rec.ID)
		}
		if lostContents(err) {
			u.say("'decree revert %s PATH...' takes back path by path what the store still has", u.rec.ID)
		}
	}
	return nil
}

// barred says what stands in the way of a put-back. A pipe that the command made in the place of a
// file is no edit of somebody's: the record has the file as deleted.
func (u *run) barred(items []plan.Item) error {
	conflict := &ConflictError{Verb: "run", Subject: "the command left", Items: items}
	if slices.ContainsFunc(items, func(it plan.Item) bool { return it.Reason != plan.NowSpecial }) {
		return conflict
	}
	what := "a pipe, socket or device stands"
	if len(items) > 1 {
		what = "pipes, sockets or devices stand"
	}
	return fmt.Errorf("%s where there were files%s; decree removes none; move them away, then 'decree revert %s' puts back", what, NamedIn(conflict), u.rec.ID)
}

// NamedIn are the first paths of a conflict, or of files that are too large, for a line of words.
func NamedIn(err error) string {
	var paths []tree.Path
	if conflict := new(*ConflictError); errors.As(err, conflict) {
		for _, item := range (*conflict).Items {
			paths = append(paths, item.Path)
		}
	}
	if limit := new(*capture.LimitError); errors.As(err, limit) {
		for _, large := range (*limit).TooLarge {
			paths = append(paths, large.Path)
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return ": " + some(paths)
}

// endPutBack closes the record while the put-back's journal is still there: a
// death before it makes the next command do it, a death after it changes nothing.
func (u *run) endPutBack() error {
	u.res.PutBack = true
	u.rec.Status = history.StatusReverted
	if err := u.undoParts(); err != nil {
		return u.unfinished("the record is not written", err)
	}
	if err := u.finish(); err != nil {
		return u.unfinished("the record is not written", err)
	}
	return nil
}

// undoParts has the end of the record undo what was made inside it and is put back now.
func (u *run) undoParts() (err error) {
	before := u.opened.Effects.Status
	u.opened.Effects.Status, err = u.r.takenBack(u.rec)
	done := u.r.messagesOf(slices.DeleteFunc(slices.Clone(u.opened.Effects.Status), func(e history.StatusEffect) bool {
		return slices.ContainsFunc(before, func(b history.StatusEffect) bool { return b.ID == e.ID })
	}))
	if len(done) > 0 {
		u.say("messages that were done inside it were put back with it, and stay in .decree/inbox/done: %s; move one from there into .decree/inbox to have it done again", some(done))
	}
	return err
}

// cleanSlate takes the tree back before the last attempt and tells it why the
// earlier ones failed.
func (u *run) cleanSlate(ctx context.Context, n int) error {
	if err := u.file(n); err != nil {
		return u.unfinished("the attempt is not kept", err)
	}
	u.bringRootMode()
	if err := u.putBack(ctx, "clean"); err != nil {
		return u.unfinished("the tree could not be put back for the last attempt", err)
	}
	u.slateCleaned = true
	if err := u.undoParts(); err != nil {
		return u.unfinished("the last attempt was not made", err)
	}
	if len(u.opened.Effects.Status) > 0 { // a recovery would not know that they are put back
		if err := u.r.saveDraft(u.opened, u.rec); err != nil {
			return u.unfinished("the last attempt was not made", err)
		}
	}
	text := failureContext(u.o.Args, u.o.Attempts, u.attemptResults)
	if err := u.writeFile(failureFile, history.Bytes(text)); err != nil {
		return u.unfinished(failureFile+" is not written", err)
	}
	return nil
}

// tellCleared names what went with the clean slate and did not come with the last attempt: it may be somebody's who worked beside
// it, and the record's own diff has it not.
func (u *run) tellCleared() {
	n := len(u.attemptResults)
	if n < 2 || u.attemptResults[n-1].number != u.o.Attempts {
		return
	}
	var cleared []tree.Path
	again := make(map[tree.Path]bool, len(u.attemptResults[n-1].changes))
	for _, c := range u.attemptResults[n-1].changes {
		again[c.Path] = true
	}
	for _, c := range u.attemptResults[n-2].changes {
		if !again[c.Path] && !(ofDirectory(c.Old) && ofDirectory(c.New)) {
			cleared = append(cleared, c.Path)
		}
	}
	if len(cleared) > 0 {
		at := ".decree/runs/" + u.rec.ID + "/" + attemptFile(u.o.Attempts-1, diffFile)
		u.say("changed while earlier attempts worked, and put back before the last one: %s; 'git apply --include=PATH %s' brings it", some(cleared), at)
	}
}

// putBackMeta is in the journal of a put-back, for a recovery: after the last
// attempt, a run whose tree is back has ended as reverted.
type putBackMeta struct {
	Run  string `json:"run"`
	Last bool   `json:"last"`
}

// putBackOnce takes the tree back to the manifest, by the same code as revert.
func (u *run) putBackOnce(ctx context.Context, which string) error {
	if len(u.unreadableSince) > 0 {
		return fmt.Errorf("%s cannot be read or is too large to be recorded, so what would be overwritten is not known; let it be read (chmod u+r), or move it away, then 'decree restore %s' puts back", some(u.unreadableSince), u.rec.ID)
	}
	changed := func(place tree.Path) bool {
		return slices.ContainsFunc(u.changes, func(c tree.Change) bool { return c.Path.Within(place) })
	}
	if other := u.r.stillMounted(u.rec, changed); other != nil {
		return fmt.Errorf("%s; %s", other.Msg, other.Advice)
	}
	stay, err := u.bringLeftOut()
	if err != nil {
		return err
	}
	changes, err := u.toPutBack()
	if err != nil || len(changes) == 0 {
		return err
	}
	p, notes, err := u.planPutBack(ctx, changes, stay)
	if err != nil {
		return err
	}
	if p.Empty() {
		if u.sayAll(notes); which == "end" {
			return u.endPutBack()
		}
		return nil
	}
	out, err := u.movePutBack(ctx, p, which)
	if err != nil {
		return err
	}
	for _, d := range out.Stayed {
		u.say("%s is kept: it holds ignored files or files made later, or something is mounted there", tree.Quote(d))
	}
	u.sayAll(append(out.Notes, notes...))
	u.tellNewGit()
	return nil
}

// planPutBack plans to put back changes of the command's, but for the paths stay. notes are
// what to say of it when it is done.
func (u *run) planPutBack(ctx context.Context, changes []tree.Change, stay []tree.Path) (p *plan.Plan, notes []string, err error) {
	p, err = plan.ForChanges(ctx, u.r.tree, changes, false)
	if err != nil {
		return nil, nil, err
	}
	if barred := withoutStaying(p, stay); len(barred) > 0 {
		return nil, nil, fmt.Errorf("what is not recorded is now in the place of %s; move it away, then 'decree restore %s' puts back", some(barred), u.rec.ID)
	}
	if c := p.Conflicts(); len(c) > 0 {
		return nil, nil, u.barred(c)
	}
	open, others := stillOpen(p, u.res.Last.Outside)
	if others {
		return nil, nil, &project.Error{Kind: project.Refused, Msg: openFiles(open),
			Advice: fmt.Sprintf("end that process, then 'decree revert %s' puts back", u.rec.ID)}
	}
	u.sayAll(open)
	notes, err = u.r.withoutRights(p, false)
	// The others are of no more use, and each path may have one.
	p.Items = slices.Clone(slices.DeleteFunc(p.Items, func(it plan.Item) bool { return it.Writing == nil }))
	return p, notes, err
}

// movePutBack carries out the plan of a put-back in one transaction.
func (u *run) movePutBack(ctx context.Context, p *plan.Plan, which string) (*worktree.Outcome, error) {
	// What the run's end needs to be recorded is in the log of open records
	// before anything moves: the tree will not have the work any more.
	u.opened.Record = u.rec
	if err := u.saveEnd(); err != nil {
		return nil, err
	}
	meta, err := json.Marshal(putBackMeta{u.rec.ID, which == "end"})
	if err != nil {
		return nil, err
	}
	packed, err := worktree.Pack(p.Steps)
	if err != nil {
		return nil, moveError(err)
	}
	// What changed is in the store, and needs no room while files are moved.
	p.Steps, u.changes = nil, nil
	defer u.readChanges()
	move := worktree.Plan{ID: u.rec.ID + "-" + which, Packed: packed, Open: p.Open(), Meta: meta}
	if which == "end" {
		move.Commit = func(*worktree.Outcome) error { return u.endPutBack() }
	}
	_, stop := u.finishing(ctx, "what the command changed is being put back")
	out, err := u.r.move(ctx, u.x, move)
	if unmoved(err) && disk.Full(err) && u.makeRoom(err) {
		out, err = u.r.move(ctx, u.x, move)
	}
	stop()
	return out, err
}

// readChanges brings back what the last attempt changed, for those who are told of it.
func (u *run) readChanges() {
	changes, err := u.r.history.Compare(u.before, u.rec.After)
	if err != nil {
		u.say("what the command changed cannot be listed: %v", err)
		return
	}
	if u.changes = u.withoutUnread(changes); u.res.Record != nil {
		u.res.Changes = u.changes
	}
}

// saveEnd makes the open record hold the end as far as it is known, so that a
// recovery after a death in the put-back need not look at the tree again.
func (u *run) saveEnd() error {
	files, err := u.store()
	if err != nil {
		return err
	}
	if err := u.markGone(); err != nil {
		return err
	}
	end, code := *u.rec, u.res.ExitCode
	end.ExitCode = &code
	return u.r.saveEnding(u.opened, &end, files)
}

// store puts the run directory's files into the store, durably, after writing
// again what the command deleted.
func (u *run) store() (map[string]tree.Hash, error) {
	if err := u.mend(); err != nil {
		return nil, err
	}
	if n := u.rec.Attempts; n > 1 {
		if err := u.file(n); err != nil {
			return nil, err
		}
	}
	heeding, stop := u.finishing(cmp.Or(u.x.storing, context.Background()), "what the command left in its record's directory is being stored; a second signal leaves there what is large of it")
	u.x.storing = heeding
	files, err := u.r.storeFiles(u.x, u.rec)
	stop()
	if err != nil {
		return nil, err
	}
	return files, u.x.w.Flush()
}

// finish closes the record.
func (u *run) finish() error {
	if u.res.Record != nil {
		return nil
	}
	code := u.res.ExitCode
	u.rec.ExitCode = &code
	if err := u.markGone(); err != nil {
		return err
	}
	files, err := u.store()
	if err != nil {
		return err
	}
	if err := u.flushWork(); err != nil {
		return err
	}
	if u.hiddenFiles > 0 {
		u.say("an ignore file that the command changed would hide recorded files (%d of them); they stay recorded in this run", u.hiddenFiles)
	}
	err = u.r.end(&ending{Record: u.rec, Files: files, effects: u.opened.Effects, asked: u.promptTime, mistake: u.res.Last.NotStarted != nil})
	if err != nil {
		return err
	}
	u.res.Record, u.res.Changes = u.rec, u.changes
	return nil
}
