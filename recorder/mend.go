package recorder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// mend writes again what the command deleted of .decree: the run's own files,
// the other records from the store, the config.
func (u *run) mend() error {
	if err := u.log.Sync(); err != nil {
		return err
	}
	if err := u.mendRun(); err != nil {
		return err
	}
	if err := u.r.bringManifest(u.rec); err != nil {
		return err
	}
	return u.r.project.HoldActs(u.mendOthers)
}

// mendRun writes the run's own files again. Of an isolated run it is somebody beside it who has deleted them, as by `git clean -xfd`.
func (u *run) mendRun() error {
	ours, err := u.log.Stat()
	if err != nil {
		return err
	}
	if err := u.mendFiles(); err != nil {
		return err
	}
	if now, err := u.r.statFile(u.rec.ID, logFile); err == nil && now.SameFile(ours) {
		return nil
	}
	u.logGone = true
	if err := u.noteOtherLog(); err != nil {
		return err
	}
	return u.writeFile(logFile, func(w io.Writer) error { return copyFile(w, u.log) })
}

// mendOthers writes the other records again where .decree/runs is another directory
// than before, or the run's own log was deleted there, and the user's own files one by one: all that is missing of them
// went while the command ran.
func (u *run) mendOthers() error {
	now, err := u.r.project.Decree.Stat("runs")
	if err != nil {
		return err
	}
	if err := u.r.clearOwn(u.own.files); err != nil {
		return err
	}
	narrowed, err := u.r.takeBackRights(u.modes, u.r.suspectOwn(u.own))
	if err != nil {
		return err
	}
	u.sayAll(narrowed)
	missing, blocked, err := u.r.missingOwn(u.own)
	if err == nil {
		err = u.noteGone(missing)
	}
	if err != nil {
		return err
	}
	if err := u.mendRecords(now); err != nil {
		return err
	}
	if len(blocked) > 0 {
		u.say("the command left something unreadable in place of decree's own files: .decree/%s; what was there is not restored", some(blocked))
	}
	if onlyDeadMessages(missing) {
		missing = u.r.displaced(missing)
	}
	missing = slices.DeleteFunc(missing, func(f ownFile) bool { return f.act == 0 && f.Path == u.o.Task })
	brought, err := u.r.bringOwn(missing)
	if err != nil {
		return err
	}
	if names := ownNames(brought); len(names) > 0 {
		u.say("deleted while the command ran, and written again: %s", some(names))
	}
	if ours := slices.DeleteFunc(brought, func(f ownFile) bool { return f.Dir || strings.HasPrefix(f.Path, project.InboxDir+"/") }); u.headMoved && len(ours) > 0 {
		u.say("written again, and perhaps not in the commit that git has gone to: %s; then delete them, as git will not write over them", some(ownNames(ours)))
	}
	u.nameUncopied()
	born, err := u.r.noteBorn(u.born)
	if err != nil {
		return err
	}
	u.runs, u.born, u.logGone = now, born, false // not before: what failed is tried again
	return nil
}

// mendRecords writes the other records again where .decree/runs, which is now, was deleted, or the run's own log there.
func (u *run) mendRecords(now disk.Info) error {
	what := ".decree/runs"
	switch {
	case !now.SameFile(u.runs):
	case u.logGone:
		what = "records in " + what
	default:
		return nil
	}
	n, err := u.r.bringBack()
	if err == nil && n > 0 {
		u.say("the command deleted %s; %s written again", what, recordsWere(n))
	}
	return err
}

// nameUncopied names what is gone of .decree and has no copy.
func (u *run) nameUncopied() {
	u.uncopied = slices.DeleteFunc(u.uncopied, func(name string) bool { // so that it is said once
		gone := u.r.lacks(name)
		if gone {
			u.say(".decree/%s is gone: it was deleted while the command ran, and decree has no copy of it", name)
		}
		return gone
	})
}

// noteGone makes it durable what went while the command ran, before any of it is
// written again: a recovery could not tell it from what a person has deleted since.
func (u *run) noteGone(missing []ownFile) error {
	if len(missing) == 0 {
		return nil
	}
	noted := slices.Clone(missing)
	for i, f := range noted {
		if f.act != 0 {
			noted[i].Hash = tree.Hash{} // the store need not have it
		}
	}
	raw, err := encodeOwn(noted)
	if err != nil || bytes.Equal(raw, u.opened.Extra[extraDeleted]) {
		return err
	}
	return u.r.saveExtra(u.opened, u.rec, extraDeleted, raw)
}

// bringDeleted writes again what was deleted of .decree while a record was open of whose command nobody has seen the end: a run's whose
// decree died, or an agent's turn, beside which people delete things too. It says so in words.
func (r *Recorder) bringDeleted(o *history.Opened) (words []string, err error) {
	err = r.project.HoldActs(func() error {
		if words, err = r.bringOthers(o); err != nil {
			return err
		}
		_, err = r.noteBorn(noteOf(o).Born)
		return err
	})
	return words, err
}

// bringOthers is bringDeleted while the log of acts is held.
func (r *Recorder) bringOthers(o *history.Opened) (words []string, err error) {
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	what := noun(o.Record) + " " + o.Record.ID
	turn, swept := o.Record.Reason == history.Turn, false
	if turn {
		if born := noteOf(o).Born; born != 0 && born != r.decreeBorn() {
			swept = true
			turns, err := r.turnsSince(born)
			if err != nil {
				return words, err
			}
			if len(turns) > 0 { // the one that began last knows best what .decree held
				o = turns[len(turns)-1].Opened
			}
		}
	}
	if !turn || swept {
		n, err := r.bringBack()
		if err != nil {
			return words, err
		}
		if n > 0 {
			swept = true // who deletes records too is a command that sweeps all away
			say("%s missing from .decree/runs; now written again", recordsWere(n))
		}
	}
	own, unread := r.ownOf(o)
	if !turn {
		swept = swept || slices.ContainsFunc(own, func(f ownFile) bool { return f.Path == "." && r.isAnother(f, own) })
	}
	if unread != nil {
		say("it cannot be told which of your files in .decree were deleted while %s went on (%v); nothing of them was written again", what, unread)
		return words, nil
	}
	if err := r.clearOwn(own); err != nil {
		return words, err
	}
	rights, err := r.rightsTakenBack(o, own)
	for _, w := range rights {
		say("%s: %s", what, w)
	}
	if err != nil {
		return words, err
	}
	missing, _, err := r.missingOwn(ownSet{files: own, acts: actsOf(o), began: o.Record.Started.UnixNano()})
	if err != nil || len(missing) == 0 {
		return words, err
	}
	var unclear []ownFile
	switch {
	case swept:
	case turn:
		missing = r.goneTogether(own, missing)
	default:
		missing, unclear = r.goneWhileItRan(o, own, missing)
	}
	kept, err := r.bringMissing(what, missing, unclear)
	return append(words, kept...), err
}

// rightsTakenBack takes back the rights that a record's command has given others, and says so, and whether the root has another mode.
func (r *Recorder) rightsTakenBack(o *history.Opened, own []ownFile) (words []string, err error) {
	modes := modesOf(o)
	if modes == nil {
		return nil, nil
	}
	if words, err = r.takeBackRights(modes, own); err != nil {
		return nil, err
	}
	if root := r.rootMode(modes); root != "" {
		words = append(words, root)
	}
	return words, nil
}

// bringMissing writes again what a command has deleted, and beside its place what it may have deleted (unclear). what names its record.
func (r *Recorder) bringMissing(what string, missing, unclear []ownFile) (words []string, err error) {
	brought, err := r.bringOwn(missing)
	if err == nil {
		err = r.project.ConfigBack()
	}
	if err != nil {
		return nil, err
	}
	unclear, words, err = r.bringDeadMessages(what, unclear)
	if err != nil {
		return words, err
	}
	if _, err = r.bringOwn(aside(unclear)); err != nil {
		return words, err
	}
	if names := ownNames(brought); len(names) > 0 {
		words = append(words, fmt.Sprintf("deleted while %s went on, and written again: %s", what, some(names)))
	}
	if names := ownNames(aside(unclear)); len(names) > 0 {
		words = append(words, fmt.Sprintf("deleted since %s began, by its command or by somebody later, and kept as %s", what, some(names)))
	}
	return words, nil
}

// decreeBorn is when .decree, or the records' directory in it, was made last, as disk.Dir.Born: another time than at a turn's prompt says that a
// command has swept them away since.
func (r *Recorder) decreeBorn() int64 {
	return max(r.project.Dir.Born(".decree"), r.project.Decree.Born("runs"))
}

// noteBorn has the open turns that noted .decree as it was know that what was swept away until now is written again: what is deleted from now
// on is deleted by itself. It returns decreeBorn.
func (r *Recorder) noteBorn(was int64) (born int64, err error) {
	born = r.decreeBorn()
	if was == 0 || was == born {
		return born, nil
	}
	turns, err := r.turnsSince(was)
	for _, t := range turns {
		t.note.Born = born
		raw, merr := json.Marshal(t.note)
		err = cmp.Or(err, merr, r.saveExtra(t.Opened, t.Record, extraTurn, raw))
	}
	return born, err
}

// turnsSince are the open turns that began while .decree was the one that was made at born.
func (r *Recorder) turnsSince(born int64) ([]*openTurn, error) {
	turns, err := r.openTurns()
	return slices.DeleteFunc(turns, func(t *openTurn) bool { return t.note.Born != born }), err
}

// goneTogether are those that a turn's command has swept away without the records: of config.yml, the routines and the cron jobs at least two are
// gone, or the only directory of these that there was, as after 'git clean -fd'. What else is deleted by itself in a turn stays deleted: the agent
// was asked for that, or a person or a queue has done it.
func (r *Recorder) goneTogether(own, missing []ownFile) []ownFile {
	var gone []string
	had, dirs := 0, 0
	for _, f := range own {
		if f.Path == "." || f.Path == project.InboxDir || path.Dir(f.Path) != "." {
			continue
		}
		had++
		if _, err := r.project.Decree.Stat(f.Path); isMissing(err) {
			gone = append(gone, f.Path)
			if f.Dir {
				dirs++
			}
		}
	}
	if len(gone) < 2 && (had > 1 || dirs == 0) {
		return nil
	}
	return slices.DeleteFunc(missing, func(f ownFile) bool {
		top, _, _ := strings.Cut(f.Path, "/")
		return !slices.Contains(gone, top)
	})
}

// bringDeadMessages is for those of the files that were messages; it returns the others.
func (r *Recorder) bringDeadMessages(what string, files []ownFile) (others []ownFile, words []string, err error) {
	var messages []ownFile
	for _, f := range files {
		if f.waited() {
			messages = append(messages, f)
		} else {
			others = append(others, f)
		}
	}
	cause := fmt.Sprintf("deleted since %s began, by its command or by somebody later", what)
	messages, err = r.bringDead(messages, cause)
	if names := ownNames(messages); len(names) > 0 {
		words = append(words, fmt.Sprintf("%s: %s; 'decree inbox retry NAME' queues one again", cause, some(names)))
	}
	return others, words, err
}

// bringBack writes again the run directories that are gone, and returns how
// many there were. Plain manifests come back for the newest records only. One whose line is damaged
// has no copy, and is named by the listing.
func (r *Recorder) bringBack() (n int, err error) {
	list, err := r.history.List(history.ListOptions{})
	if err != nil {
		return 0, err
	}
	newest := map[string]bool{}
	for i, rec := range list.Records {
		newest[rec.ID] = i < history.PlainManifests
	}
	for _, id := range list.Missing {
		_, err := r.history.RestoreRun(id, newest[id])
		if err == nil {
			n++
		}
		if err := r.unlessKeptOut(id, err); err != nil && !errors.As(err, new(*history.LineError)) {
			return n, err
		}
	}
	return n, nil
}
