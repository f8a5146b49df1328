package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"decree/capture"
	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/store"
	"decree/tree"
	"decree/worktree"
)

// Level grades a check.
type Level string

const (
	OK      Level = "ok"
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Check is one thing that doctor looked at.
type Check struct {
	Level Level
	Name  string // what was looked at: "records"
	Text  string // what was found
	Hint  string // what to do about it
	Fixed bool   // it was found wrong and mended
	// Profile is what a file of the system's should hold, as it is; "": there is none.
	Profile string
}

const repairHint = "'decree doctor --repair' repairs it"

// Doctor looks at the project in small checks.
func (r *Reader) Doctor(ctx context.Context) ([]Check, error) {
	r.catchUp()
	d := &doctor{r: r}
	err := d.all(ctx)
	return d.checks, err
}

// CheckUp is Doctor as a page can show it each time that it is looked at: contents that are more than a moment's reading
// are not read, which is said.
func (r *Reader) CheckUp(ctx context.Context) ([]Check, error) {
	r.catchUp()
	d := &doctor{r: r, most: momentsReading, recent: recentRecords}
	err := d.all(ctx)
	return d.checks, err
}

// momentsReading is how many bytes of packs are read in some tenths of a second.
const momentsReading = 32 << 20

// recentRecords is of how many records the files are hashed in as long.
const recentRecords = 1000

// Repair is Doctor, and mends what can be mended without deleting anything that holds
// a user's bytes.
func (r *Recorder) Repair(ctx context.Context) ([]Check, error) {
	d := &doctor{r: r.Reader, rec: r}
	r.project.Repair = func(f project.StandIn) {
		text := f.String()
		if f.Lost != "" {
			text += "; " + f.Lost + " went with what was there before"
		}
		d.add(Error, "store", text, "", true)
	}
	defer func() { r.project.Repair = nil }()
	x, err := r.enterForRepair(ctx, d)
	if err != nil {
		return d.checks, err
	}
	defer x.close()
	d.x = x
	err = d.all(ctx)
	return d.checks, err
}

// enterForRepair locks and recovers, and counts what was recovered as mended. Labels that cannot be read would stop the
// recovery of whatever sets one, and a line that cannot that of the open record it belongs to, so they go aside before it.
func (r *Recorder) enterForRepair(ctx context.Context, d *doctor) (*writeSession, error) {
	r.spareReserve()
	x, err := r.lock(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	if err := d.labels(ctx, true); err != nil {
		x.close()
		return nil, err
	}
	c := &recovery{r: r, x: x}
	err = d.linesAside(c)
	if err == nil {
		var done []Recovered
		done, err = r.recover(ctx, x, false)
		c.done = append(c.done, done...)
	}
	for _, f := range c.done {
		d.add(Warning, "recovery", f.What, "", true)
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

type doctor struct {
	r      *Reader
	rec    *Recorder     // of a repair; nil: nothing is mended
	x      *writeSession // of a repair
	checks []Check
	blind  bool  // the store cannot be looked at any further
	most   int64 // bytes of packs that are read; 0: all
	recent int   // records, the newest, whose files are hashed; 0: all

	listed *history.Listing // of all records, as long as nothing of them was mended
}

// list lists all records, once for several checks: of a long history that takes a while.
func (d *doctor) list() (*history.Listing, error) {
	if d.listed != nil {
		return d.listed, nil
	}
	list, err := d.r.history.List(history.ListOptions{})
	if err == nil {
		d.listed = list
	}
	return list, err
}

func (d *doctor) all(ctx context.Context) error {
	for _, check := range []func(context.Context, bool) error{
		d.place, d.private, d.standIns, d.waiting, d.hooks, d.labels, d.records, d.files, d.packs, d.forgotten, d.audit, d.machine,
	} {
		if err := check(ctx, d.rec != nil); err != nil || d.blind {
			return err
		}
	}
	return nil
}

func (d *doctor) add(l Level, name, text, hint string, fixed bool) {
	d.checks = append(d.checks, Check{Level: l, Name: name, Text: text, Hint: hint, Fixed: fixed})
}

func (d *doctor) place(context.Context, bool) error {
	p := d.r.project
	d.add(OK, "project", fmt.Sprintf("root %s, store %s", p.Root, p.StorePath), "", false)
	if info, err := p.Dir.Stat(".decree"); err != nil || info.Kind != disk.Directory {
		d.add(Warning, "project", ".decree is missing", repairHint, false)
	}
	for _, name := range ignoreFiles {
		if info, err := p.Dir.Stat(name); err == nil && info.Kind == disk.Symlink {
			d.add(Warning, "project", name+" is a link, and is not read: what it leaves out is recorded", "make it a file", false)
		}
	}
	return nil
}

// ignoreFiles are the names of ignore files, of which no link is followed.
var ignoreFiles = []string{".gitignore", ".decreeignore"}

// private looks at the store's mode: it holds copies of everything.
func (d *doctor) private(context.Context, bool) error {
	info, err := d.r.project.Store.Self()
	if err != nil {
		return err
	}
	open, err := d.r.openToOthers()
	if err != nil {
		return err
	}
	if len(open) > 0 {
		d.add(Warning, "privacy", fmt.Sprintf("every user of this machine can write to %s: what is put there may be executed as your routine or message", some(open)),
			fmt.Sprintf("look at what is there, then 'chmod -R o-w %s'", tree.ShellWord(d.r.project.Root+"/.decree")), false)
	}
	if info.Mode&0o077 == 0 {
		d.add(OK, "privacy", "the store is yours alone", "", false)
		return nil
	}
	d.add(Warning, "privacy", fmt.Sprintf("the store's mode is %o, so others can read it", info.Mode), "the next writing command makes it private again", false)
	return nil
}

// openToOthers are .decree and what lies in it, as far as every user may write there.
func (r *Reader) openToOthers() (open []string, err error) {
	const write = 0o002
	decree, err := r.project.Dir.OpenDir(".decree")
	if err != nil {
		return nil, nil //nolint:nilerr // place and records tell of it
	}
	defer decree.Close()
	if info, err := decree.Self(); err == nil && info.Mode&write != 0 {
		open = append(open, ".decree")
	}
	list, err := decree.List()
	for _, e := range list {
		info, err := decree.Stat(e.Name)
		if err == nil && info.Mode&write != 0 && (info.Kind == disk.Directory || info.Kind == disk.Regular) {
			open = append(open, ".decree/"+e.Name)
		}
	}
	return open, err
}

// standIns looks for what is in the place of the store's own files. Where one of them cannot
// be made anew, what follows could not be read.
func (d *doctor) standIns(context.Context, bool) error {
	found, err := d.r.project.StandIns()
	for _, f := range found {
		text, hint := f.String(), "the next command that writes moves it away and makes the file anew"
		if f.Lost != "" {
			d.blind = true
			text += "; writing commands are refused"
			hint = fmt.Sprintf("if it was moved away, or there is a copy of it, put it back; else 'decree doctor --repair' moves what is there away and goes on without %s", f.Lost)
		}
		d.add(Error, "store", text, hint, false)
	}
	return err
}

// waiting looks for what a dead process left; a repair has put it right already.
func (d *doctor) waiting(context.Context, bool) error {
	list, err := d.r.Waiting()
	if err != nil {
		return err
	}
	journals, err := d.r.project.Store.OpenDir("txn")
	if err == nil {
		defer journals.Close()
		pending, err := worktree.Pending(journals)
		if err != nil {
			return err
		}
		for _, j := range pending {
			text := "transaction " + j.ID + " was interrupted"
			if j.Err != nil {
				text = j.Err.Error()
			}
			list = append(list, text)
		}
	} else if !isMissing(err) {
		return err
	}
	aside, err := d.r.setAside()
	if err != nil {
		return err
	}
	if len(aside) > 0 {
		d.add(Error, "recovery", "unfinished work cannot be read and was set aside: "+strings.Join(aside, ", "), asideAdvice, false)
	}
	if len(list) == 0 {
		d.add(OK, "recovery", "nothing waits", "", false)
		return nil
	}
	d.add(Warning, "recovery", strings.Join(list, "; "), "'decree recover' finishes it or takes it back, unless its process still runs", false)
	return nil
}

// hooks tells what hooks of coding agents could not record.
func (d *doctor) hooks(context.Context, bool) error {
	lines, err := d.r.HooksLog()
	if err == nil && len(lines) > 0 {
		d.add(Warning, "hooks", UnrecordedHooks(lines), "remove the cause; what the agent does from its next prompt on is recorded", false)
	}
	return err
}

// labels looks whether the labels can be read.
func (d *doctor) labels(_ context.Context, repair bool) error {
	_, err := d.r.history.Labels()
	if err == nil || project.HintOf(err) == "" { // of another version, or the disk's
		return err
	}
	text, fixed := err.Error(), false
	if repair {
		to, err := d.r.project.StoreAside(history.LabelsFile)
		if err != nil {
			return err
		}
		text, fixed = text+"; it is now "+to, true
	}
	d.add(Error, "labels", text, project.HintOf(err), fixed)
	return nil
}

// records compares .decree/runs with the store.
func (d *doctor) records(_ context.Context, repair bool) error {
	list, err := d.list()
	if err != nil {
		return err
	}
	broken, err := d.r.history.Broken()
	if err != nil {
		return err
	}
	if broken != nil { // there is no copy to write again
		hint := "an older backup may have them: 'decree backup list'"
		if broken.Lines > 0 {
			hint = "'decree doctor --repair' sets the lines aside; " + hint
		}
		d.add(Error, "records", broken.Error(), hint, false)
	}
	warnings := list.Warnings()
	if n := len(list.Foreign); n > 0 {
		d.add(Info, "records", fmt.Sprintf("%d in .decree/runs are foreign (this store has never seen them): %s", n, some(list.Foreign)),
			"'decree show ID' shows one; they are not part of the history, and can be moved away", false)
	}
	d.clock(list.Records)
	if len(warnings) == 0 {
		if broken == nil {
			d.add(OK, "records", fmt.Sprintf("%d, all readable", len(list.Records)), "", false)
		}
		return nil
	}
	level := Warning
	if len(list.Damaged) > 0 {
		level = Error
	}
	if !repair {
		for _, w := range warnings {
			d.add(level, "records", w, repairHint, false)
		}
		return nil
	}
	d.listed = nil
	return d.mendRecords(list, level)
}

// linesAside moves damaged lines of the log aside, beside which nothing could be freed, and before them the layers of which
// nothing would tell any more.
func (d *doctor) linesAside(c *recovery) error {
	moved, err := c.r.history.SetLinesAside(c.untoldLayers)
	if moved == nil || err != nil {
		return err
	}
	text := fmt.Sprintf("damaged lines of records.jsonl (%d) are now in %s", moved.Lines, moved.Path)
	if len(moved.Records) > 0 {
		text += ", among them those of " + some(moved.Records)
	}
	text += "; gc keeps what .decree/runs has of their records, and frees what else they alone named"
	d.add(Error, "records", text, "", true)
	return nil
}

// mendRecords writes again what the store has of the records.
func (d *doctor) mendRecords(list *history.Listing, level Level) error {
	if list.Unknown > 0 {
		d.add(Warning, "records", fmt.Sprintf("records.jsonl has lines that this decree does not understand (%d)", list.Unknown), "they are kept: a newer decree may have written them", false)
	}
	rep, err := d.r.history.Repair()
	if err != nil {
		return err
	}
	if n := len(rep.Rewritten); n > 0 {
		d.add(level, "records", fmt.Sprintf("run.json written again: %s", some(rep.Rewritten)), "", true)
	}
	if n := len(rep.Restored); n > 0 {
		d.add(level, "records", fmt.Sprintf("brought back from the store: %s", some(rep.Restored)), "", true)
	}
	for id, lost := range rep.Lost {
		d.add(Error, "records", fmt.Sprintf("%s: the store has no copy of %s", id, some(lost)), "the other files of the record are back", false)
	}
	var out []string
	var cause error
	for _, l := range rep.Left {
		switch {
		case history.KeepsOut(l.Err):
			out, cause = append(out, l.ID), l.Err
		case errors.As(l.Err, new(*history.NewerError)):
			d.add(Warning, "records", fmt.Sprintf("%s: %v", l.ID, l.Err), "it was left as it is: use the newer decree for it", false)
		case !isLineError(l):
			d.add(Error, "records", fmt.Sprintf("%s: %v", l.ID, l.Err), "it was left where it is; move it away if it is of no use", false)
		}
	}
	if len(out) > 0 {
		d.add(Error, "records", fmt.Sprintf("not written to .decree/runs: %s: %v", some(out), cause), cmp.Or(project.SealedAdvice(cause), "the store has them")+"; repair again once that is possible", false)
	}
	for _, l := range list.Damaged {
		if isLineError(l) { // there is no copy to write again
			d.add(Error, "records", fmt.Sprintf("%s: %v", l.ID, l.Err), project.HintOf(l.Err), false)
		}
	}
	return nil
}

// clock tells of records that began long before the one that was made before them.
func (d *doctor) clock(newestFirst []*history.Record) {
	for i := 0; i+1 < len(newestFirst); i++ {
		rec, before := newestFirst[i], newestFirst[i+1]
		if behind := before.Started.Sub(rec.Started); behind > time.Minute {
			d.add(Info, "clock", fmt.Sprintf("it was set back by %s between %s and %s: their times are what it said, their order is kept", history.SetBack(behind), before.ID, rec.ID), "", false)
		}
	}
}

func isLineError(d history.Damage) bool { return errors.As(d.Err, new(*history.LineError)) }

// files hashes the plain files of the records.
func (d *doctor) files(ctx context.Context, repair bool) error {
	list, err := d.list()
	if err != nil {
		return err
	}
	v := &verifier{r: d.r}
	if err := v.newest(); err != nil {
		return err
	}
	closed := slices.DeleteFunc(slices.Clone(list.Records), func(rec *history.Record) bool { return rec.Status == history.StatusOpen })
	older := 0
	if d.recent > 0 && len(closed) > d.recent {
		older, closed = len(closed)-d.recent, closed[:d.recent]
	}
	if err := v.noteRecords(closed); err != nil {
		return err
	}
	good := 0
	for _, rec := range closed {
		files, err := d.r.history.RecordFiles(rec.ID)
		if err != nil {
			return err
		}
		if f, ok := v.manifestFile(rec); ok && d.r.history.HasRun(rec.ID) {
			files = append(files, f)
		}
		if !d.r.history.HasRun(rec.ID) {
			continue // told as a missing record
		}
		for _, f := range files {
			bad := v.file(ctx, rec.ID, f)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if bad == nil {
				good++
				continue
			}
			if gone, err := d.r.history.Gone(rec.ID); err == nil && gone && v.logged[rec.ID] {
				break // another process removed it meanwhile
			}
			fixed, hint := false, repairHint
			if _, ok := errors.AsType[*newerFile](bad); ok {
				hint = "it was left where it is; move it away if it is of no use"
			} else if repair {
				fixed = d.rec.rewrite(rec, f) == nil
			}
			d.add(Error, "files", fmt.Sprintf("%s of %s: %v", f.Name, rec.ID, bad), hint, fixed)
		}
	}
	d.add(OK, "files", fmt.Sprintf("%d files of records match their hashes", good), "", false)
	if older > 0 {
		d.add(Info, "files", fmt.Sprintf("those of the %d oldest records were not read", older), "'decree doctor' reads them", false)
	}
	return nil
}

// rewrite writes a plain file of a record again from the store.
func (r *Recorder) rewrite(rec *history.Record, f history.RecordFile) error {
	if f.Name != "manifest.json" {
		return r.history.RewriteFile(rec.ID, f)
	}
	return r.history.ReplaceFile(rec.ID, f.Name, func(w io.Writer) error { return r.history.WriteManifest(rec, w) })
}

// packs reads every content, and asks what a record needs of what is damaged or
// not there at all: that is lost. A repair makes the index anew without
// them, drops the stat cache that says they are stored, and stores again what the
// records' plain files have; the next record stores again what the tree still
// has. A damaged place that nobody needs (any more) stays, and is no fault: packs
// are only appended to.
func (d *doctor) packs(ctx context.Context, repair bool) error {
	stats, err := d.r.store.Stats()
	if err != nil {
		d.add(Error, "store", err.Error(), "'decree verify --all' says which records it concerns", false)
		return nil
	}
	if d.most > 0 && stats.Bytes > d.most {
		d.add(Info, "store", fmt.Sprintf("%d contents in %d packs, %d bytes, which were not read", stats.Objects, stats.Packs, stats.Bytes), "'decree doctor' reads them", false)
		return nil
	}
	problems, err := d.r.store.Check(ctx)
	if err != nil {
		return err
	}
	gone := d.gone()
	if len(problems) == 0 && !gone {
		d.addSound(stats)
		return nil
	}
	where := fmt.Sprintf("contents are missing, %d packs are there", stats.Packs)
	if len(problems) > 0 {
		where = fmt.Sprintf("damaged in %d places, the first: %s at %d: %v", len(problems), problems[0].Pack, problems[0].Offset, problems[0].Err)
	}
	misled := d.indexMisleads(problems)
	if repair && misled {
		if err := d.forgetDamaged(ctx); err != nil {
			return err
		}
	}
	lost, err := d.lostContents(ctx)
	if repair && err == nil && len(lost) > 0 {
		if lost, err = d.storeAgainFiles(ctx); err == nil {
			err = capture.Forget(d.r.project.Store)
		}
	}
	if err != nil {
		return err
	}
	d.addDamaged(where, lost, repair, misled, gone)
	return nil
}

// addSound says that the store is as it should be.
func (d *doctor) addSound(s store.Stats) {
	contents, packs := fmt.Sprintf("%d contents", s.Objects), fmt.Sprintf("%d packs", s.Packs)
	if s.Objects == 1 {
		contents = "1 content"
	}
	if s.Packs == 1 {
		packs = "1 pack"
	}
	d.add(OK, "store", fmt.Sprintf("%s in %s, %d bytes, all sound", contents, packs, s.Bytes), "", false)
}

// addDamaged says what is wrong with the store, where it is, and what of it records need
// and have lost.
func (d *doctor) addDamaged(where string, lost []string, repair, misled, gone bool) {
	hint := "'decree doctor --repair' stores again what the records' files have, and lets the next record store what the tree still has"
	switch {
	case repair && (misled || gone && len(lost) == 0):
		d.add(Error, "store", where, "", true)
	case misled && len(lost) == 0:
		d.add(Error, "store", where+"; nothing that a record names is lost", repairHint, false)
	case len(lost) == 0:
		d.add(Info, "store", where+"; no record needs what was there, or it is stored elsewhere", "", false)
	case !repair:
		d.add(Error, "store", where, hint, false)
	}
	if len(lost) > 0 {
		if repair {
			hint = "the next record stores again what the tree still has of it; 'decree verify --all' names all that is lost"
		}
		d.add(Error, "store", fmt.Sprintf("lost: %s", some(lost)), hint, false)
	}
}

// gone says whether something that a record names is not there at all, as when
// packs were taken away. That is asked of the index alone: what is there was read. What
// only foreign records name, as in a copy of a tree, was never here.
func (d *doctor) gone() bool {
	gone := false
	logged := func(string) bool { return true }
	err := d.r.history.Closures(logged, history.Once(), func(p *history.Part) error {
		if !gone && !p.Object.IsZero() && !d.r.store.Has(p.Object) {
			gone = !Forgotten(d.r.store.Verify(p.Object))
		}
		return p.Err
	})
	return gone || lostContents(err)
}

// indexMisleads says whether the index leads to a damaged place, or disagrees with the
// packs: a content that is met again would then not be stored again.
func (d *doctor) indexMisleads(problems []store.Problem) bool {
	return slices.ContainsFunc(problems, func(p store.Problem) bool {
		var damaged *store.DamagedError
		return p.Mendable() || !p.Hash.IsZero() && errors.As(d.r.store.Verify(p.Hash), &damaged)
	})
}

// lostContents are the contents that records name and the store does not have sound.
func (d *doctor) lostContents(ctx context.Context) ([]string, error) {
	v, err := d.r.verifyAll(ctx)
	if err != nil {
		return nil, err
	}
	return v.lost, nil
}

func (d *doctor) forgetDamaged(ctx context.Context) error {
	// Rebuilding writes the index itself and wants no other writer.
	if err := d.x.w.Close(); err != nil {
		return err
	}
	d.x.w = nil
	if _, err := d.r.store.Rebuild(ctx); err != nil {
		return err
	}
	if err := capture.Forget(d.r.project.Store); err != nil {
		return err
	}
	return d.rec.openWriter(ctx, d.x)
}

// storeAgainFiles stores again the files of records whose plain copies are sound, and
// returns what is lost all the same.
func (d *doctor) storeAgainFiles(ctx context.Context) ([]string, error) {
	list, err := d.r.history.List(history.ListOptions{})
	if err != nil {
		return nil, err
	}
	v := &verifier{r: d.r}
	for _, rec := range list.Records {
		files, err := d.r.history.RecordFiles(rec.ID)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if d.x.w.Has(f.SHA256) && d.r.store.Verify(f.SHA256) == nil || v.file(ctx, rec.ID, f) != nil {
				continue
			}
			if err := d.put(rec.ID, f); err != nil {
				return nil, err
			}
		}
	}
	if err := d.storeAgainTrees(list.Records); err != nil {
		return nil, err
	}
	if err := d.x.w.Flush(); err != nil {
		return nil, err
	}
	return d.lostContents(ctx)
}

// storeAgainTrees keeps again the trees that the store has lost and a sound plain
// manifest.json still has.
func (d *doctor) storeAgainTrees(list []*history.Record) error {
	done := map[tree.Hash]bool{}
	for _, rec := range list {
		if done[rec.Before] || rec.Partial() || d.r.history.VerifyTree(rec.Before) == nil {
			continue
		}
		entries, err := d.r.plainTree(rec, rec.Before)
		if err != nil {
			continue
		}
		if err := d.r.history.Resave(d.x.w, rec.Before, entries); err != nil {
			return err
		}
		done[rec.Before] = true
	}
	return nil
}

func (d *doctor) put(id string, f history.RecordFile) error {
	rc, err := d.r.history.OpenPlain(id, f.Name)
	if err != nil {
		return err
	}
	defer rc.Close()
	_, _, err = d.x.w.Put(rc, 0)
	return err
}

// forgotten tells what is missing on purpose.
func (d *doctor) forgotten(context.Context, bool) error {
	list, err := store.ReadForgotten(d.r.project.Store)
	if err != nil {
		d.add(Error, "forgotten", err.Error(), "what was forgotten now counts as missing; move the file away if it cannot be mended", false)
		return nil
	}
	switch {
	case len(list.Pending) > 0:
		d.add(Warning, "forgotten", "a forget was interrupted", "'decree recover' finishes it", false)
	case len(list.Contents) > 0:
		d.add(Info, "forgotten", fmt.Sprintf("%d contents, of %s", len(list.Contents), some(list.Paths())), "", false)
	}
	return nil
}

func (d *doctor) audit(context.Context, bool) error {
	report, err := d.r.history.ReadAudit(func(*history.Operation) error { return nil })
	if err != nil {
		return err
	}
	if report.Broken == 0 {
		d.add(OK, "audit", fmt.Sprintf("%d operations, the chain is whole", report.Lines), "", false)
		return nil
	}
	d.add(Error, "audit", fmt.Sprintf("the chain is broken at line %d", report.Broken), "what came before that line can be trusted", false)
	return nil
}

// SetLabel gives a record a label; with ref "" it takes the label away.
func (r *Recorder) SetLabel(ctx context.Context, name, ref string) (id string, err error) {
	if err := history.CheckLabel(name); err != nil {
		return "", err
	}
	x, err := r.enterFor(ctx, "label", besideRuns)
	if err != nil {
		return "", err
	}
	defer x.close()
	if ref == "" {
		err = r.history.DeleteLabel(name)
	} else {
		var to history.Ref
		if to, err = r.history.Resolve(ref, r.opt.Location); err == nil {
			id, err = to.ID, r.history.SetLabel(name, to.ID)
		}
	}
	if err != nil {
		r.auditFailure("label", err)
		return "", err
	}
	o := r.audit("label", "done")
	o.Record, o.Detail = id, "set "+name
	if ref == "" {
		o.Detail = "deleted " + name
	}
	return id, r.history.Audit(o)
}
