package queue

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/recorder"
)

// What a person does to one message takes no lock (but for Retry), so that it works while another
// message is done. The message that is being done is refused, also one that begins in
// this moment: the queue notes durably which one begins and then looks whether its file
// is still there; a person's command takes the file away and then looks at what is noted.
// At least one of the two sees the other, and gives way.

// Doing is a message that is being done, and by which process.
type Doing struct {
	Name   string         // that it has in the inbox now
	begun  string         // that it had as it began
	Holder project.Holder // PID 0: the run is just beginning, or ending
}

// UnderWay are the messages that are being done now, by whatever process: those whose runs
// have a lease, and, of this host, one that whoever has the lock is at.
func UnderWay(p *project.Site, host string) (list []Doing, err error) {
	locks := []project.Holder{p.Holder()} // before the state: it may be noted in between
	s, err := readState(p.Store)
	if err != nil {
		return nil, err
	}
	leases, err := p.Leases()
	if err != nil || len(s.UnderWay) == 0 {
		return nil, err
	}
	locks = append(locks, p.Holder()) // the run may have ended in between, and its lease with it
	inbox, err := openInbox(p.Dir, "")
	if err != nil && !isMissing(err) && !disk.OtherKind(err) {
		return nil, err
	}
	if err == nil {
		defer inbox.Close()
	}
	for _, u := range s.UnderWay {
		by, working := project.Holder{}, false
		for _, lock := range locks {
			if lock.Working(host) && (lock.Run == "" || lock.Run == u.Record) {
				by, working = lock, true
			}
		}
		for _, l := range leases {
			if l.ID != u.Record {
				continue
			}
			working = true
			if l.Holder.PID != 0 { // else it is just being taken, or given back
				by = l.Holder // whoever has the lock works beside it
			}
		}
		if !working {
			continue
		}
		now := ""
		if inbox != nil {
			if now, err = u.calledIn(inbox); err != nil {
				return nil, err
			}
		}
		list = append(list, Doing{cmp.Or(now, u.Name), u.Name, by})
	}
	return list, nil
}

// refuseUnderWay is the refusal to touch a message that is being done.
func refuseUnderWay(p *project.Project, host, name string) error {
	list, err := UnderWay(&p.Site, host)
	if err != nil {
		return err
	}
	for _, m := range list {
		switch by := m.Holder.PID; {
		case name != m.Name && name != m.begun:
		case by == 0:
			return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: name + " is being done", Advice: "wait for its end"}
		default:
			return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("%s is being done by process %d", name, by),
				Advice: fmt.Sprintf("wait for its end, or end its routine: 'kill -INT %d' puts its changes back and leaves the message in the inbox (a daemon needs the signal twice)", by)}
		}
	}
	return nil
}

// Where finds a message by the name of its file: in the inbox (""), "dead" or "done",
// in this order.
func Where(p *project.Site, name string) (string, error) {
	for _, where := range []string{"", deadName, doneName} {
		dir, err := openInbox(p.Dir, where)
		if isMissing(err) || disk.OtherKind(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		info, err := dir.Stat(name)
		dir.Close()
		if err == nil && info.Kind == disk.Regular && isMessage(name) {
			return where, nil
		}
		if err != nil && !isMissing(err) {
			return "", err
		}
	}
	return "", noMessage(name)
}

func noMessage(name string) error {
	return &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: name + ": no such message",
		Advice: "'decree inbox' lists those that wait; --dead and --done list the others"}
}

// Cancel moves a message that waits to dead, with a reason, and returns its name there.
func Cancel(rec *recorder.Recorder, host, name, reason string) (as string, err error) {
	var w *takenAway
	err = rec.Project().Act(func(note noteActs) (err error) {
		w, err = takeNoting(note, rec, host, name, false, func(as string) string { return reason + "\n\nqueue it again: " + RetryCommand(as) + "\n" })
		return err
	})
	if err != nil {
		return "", err
	}
	defer w.close()
	return w.as, errors.Join(w.dead.Sync(), w.inbox.Sync())
}

// takenAway is a message that was taken out of the inbox, and lies in dead as as.
type takenAway struct {
	inbox, dead disk.Dir
	name, as    string
}

func (w *takenAway) close() {
	if w.dead != nil {
		w.dead.Close()
	}
	w.inbox.Close()
}

// noteActs notes what a person's command is about to do.
type noteActs = func(...project.Act) error

// takeNoting moves a message that waits to dead with a reason. One that has begun in the
// meantime is put back.
func takeNoting(note noteActs, rec *recorder.Recorder, host, name string, editing bool, reason func(as string) string) (*takenAway, error) {
	p := rec.Project()
	if err := refuseUnderWay(p, host, name); err != nil {
		return nil, err
	}
	inbox, err := openInbox(p.Dir, "")
	if isMissing(err) || disk.OtherKind(err) {
		return nil, noMessage(name)
	}
	if err != nil {
		return nil, err
	}
	w := &takenAway{inbox: inbox, name: name}
	if err = refuseEnded(rec, name, inbox, name, editing); err == nil {
		err = w.toDead(note, p, reason)
	}
	if err == nil {
		if err = cmp.Or(refuseUnderWay(p, host, name), refuseEnded(rec, name, w.dead, w.as, editing)); err != nil {
			err = errors.Join(err, w.putBack())
		}
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *takenAway) toDead(note noteActs, p *project.Project, reason func(as string) string) error {
	if info, err := w.inbox.Stat(w.name); err != nil || info.Kind != disk.Regular || !isMessage(w.name) {
		return errors.Join(noMessage(w.name), disk.UnlessMissing(err))
	}
	var err error
	if w.dead, err = ownDir(p, w.inbox, deadName); err != nil {
		return err
	}
	for {
		if w.as, err = free(w.dead, w.name, reasonEnd); err != nil {
			return err
		}
		err = p.DropNoting(note, project.DeadDir, reasonOf(w.as), []byte(reason(w.as)))
		if rerr := w.reopen(p); rerr != nil {
			return errors.Join(err, rerr)
		}
		if !isExist(err) {
			break
		}
	}
	if err == nil {
		err = note(moves(w.inbox, w.name, project.InboxDir, project.DeadDir, w.as)...)
	}
	if err == nil {
		err = moveOrCopy(w.inbox, w.name, w.dead, w.as)
	}
	if isMissing(err) { // somebody was faster
		err = noMessage(w.name)
	}
	if err != nil {
		_ = w.dead.Remove(reasonOf(w.as))
	}
	return err
}

// reopen opens the directories anew: a command may have deleted them meanwhile, and a run's end written them again.
func (w *takenAway) reopen(p *project.Project) error {
	inbox, err := openInbox(p.Dir, "")
	if err != nil {
		return err
	}
	dead, err := ownDir(p, inbox, deadName)
	if err != nil {
		inbox.Close()
		return err
	}
	w.close()
	w.inbox, w.dead = inbox, dead
	return nil
}

// putBack undoes toDead. Where another message has the name now, it waits beside it; where somebody has moved it out of dead
// meanwhile, it is where they have put it.
func (w *takenAway) putBack() error {
	err := move(w.dead, w.as, w.inbox, w.name)
	if disk.UnlessMissing(err) == nil {
		err = disk.UnlessMissing(w.dead.Remove(reasonOf(w.as)))
	}
	return err
}

// ErrEdited says that a message is not any more what it was when its editing began.
var ErrEdited error = &project.Error{Kind: project.Refused, Msg: "it was changed or taken away meanwhile"}

// Edit puts a new text in the place of a message that waits ("") or is dead; was is
// the text that was edited. Its place among those that wait stays.
func Edit(rec *recorder.Recorder, host, where, name string, was, text []byte) error {
	p := rec.Project()
	if _, err := message.Parse(name, text); err != nil {
		return err
	}
	if where == "" {
		return editWaiting(rec, host, name, was, text)
	}
	dir, err := openInbox(p.Dir, where)
	if err != nil {
		return err
	}
	defer dir.Close()
	return p.Act(func(note noteActs) error {
		info, err := unedited(dir, name, was)
		if err == nil {
			err = writeEdited(dir, name, text, info, noted(note, path.Join(project.InboxDir, where), text, inItsPlace(text, was)))
		}
		return err
	})
}

// noted is place, which gives a draft with that text its name in a directory at below .decree,
// after a note of it.
func noted(note noteActs, at string, text []byte, place func(string, disk.Dir, string) error) func(string, disk.Dir, string) error {
	return func(draft string, dir disk.Dir, name string) error {
		info, err := dir.Stat(draft)
		if err == nil {
			err = note(project.Act{Path: []byte(at + "/" + name), Mode: info.Mode, Ino: info.Ino, Data: text})
		}
		if err != nil {
			return err
		}
		return place(draft, dir, name)
	}
}

// writeEdited is writeAs without the lock. A queue that begins may take the draft for one that
// a death has left: then it is written again.
func writeEdited(dir disk.Dir, name string, text []byte, old disk.Info, place func(string, disk.Dir, string) error) error {
	const most = 10 // queues, one after the other
	for n := 1; ; n++ {
		err := writeAs(dir, fmt.Sprintf("%sedit-%d-", queueDraft, os.Getpid()), name, text, old, place)
		if !isMissing(err) || n == most {
			return err
		}
	}
}

// inItsPlace gives a draft that holds text the name of a message that held was. Where somebody moves that away in this moment, or saves
// it, what they did counts: it is not there twice, and the error is ErrEdited.
func inItsPlace(text, was []byte) func(string, disk.Dir, string) error {
	place := exchanged(text, was, func(_ disk.Dir, _ string, same bool) error {
		if !same {
			return ErrEdited
		}
		return nil
	})
	return func(draft string, dir disk.Dir, name string) error {
		err := place(draft, dir, name)
		if isMissing(err) {
			if there, herr := disk.Has(dir, name); !there {
				return errors.Join(ErrEdited, herr)
			}
		}
		return err
	}
}

// unedited looks at a message that must be as it was.
func unedited(dir disk.Dir, name string, was []byte) (disk.Info, error) {
	info, err := dir.Stat(name)
	var now []byte
	if err == nil {
		now, err = project.ReadFile(dir, name, message.MaxSize)
	}
	if isMissing(err) || err == nil && !bytes.Equal(now, was) {
		return info, ErrEdited
	}
	return info, err
}

// editWaiting has the message lie in dead while it gets its new text, so that no queue begins
// the old one meanwhile, and a death leaves one of them.
func editWaiting(rec *recorder.Recorder, host, name string, was, text []byte) error {
	return rec.Project().Act(func(note noteActs) error {
		w, err := takeNoting(note, rec, host, name, true, func(as string) string {
			return "the command that was editing it ended unexpectedly\n\nqueue it again: " + RetryCommand(as) + "\n"
		})
		if project.KindOf(err) == project.NotFound {
			return ErrEdited
		}
		if err != nil {
			return err
		}
		defer w.close()
		info, err := unedited(w.dead, w.as, was)
		if err == nil {
			err = w.backEdited(note, text, info)
		}
		if err != nil {
			return errors.Join(err, w.putBack())
		}
		return errors.Join(w.inbox.Sync(), disk.UnlessMissing(w.dead.Remove(reasonOf(w.as))), w.dead.Sync())
	})
}

// backEdited gives the message that was taken away its new text where it lies, and then moves it
// back: at each moment it is in one place. Where it cannot be moved it has its old text again.
func (w *takenAway) backEdited(note noteActs, text []byte, old disk.Info) error {
	was, err := project.ReadFile(w.dead, w.as, message.MaxSize)
	if err == nil {
		err = writeEdited(w.dead, w.as, text, old, noted(note, project.DeadDir, text, inItsPlace(text, was)))
	}
	if err != nil {
		return err
	}
	if err = note(append(moves(w.dead, w.as, project.DeadDir, project.InboxDir, w.name), gone(project.DeadDir, reasonOf(w.as))...)...); err == nil {
		err = w.carryBack(text)
	}
	if err != nil {
		err = errors.Join(err, writeEdited(w.dead, w.as, was, old, inItsPlace(was, text)))
	}
	return err
}

// carryBack moves the new text from dead to where the message waited. Somebody may just have moved it into the inbox; where it is
// not there either, a routine or a person has deleted it, and the edit did not happen.
func (w *takenAway) carryBack(text []byte) error {
	err := moveOrCopy(w.dead, w.as, w.inbox, w.name)
	if !isMissing(err) {
		return err
	}
	waiting, _ := files(w.inbox)
	for _, p := range waiting {
		if same, _ := identify(text).isAt(w.inbox, p.Name); same {
			return nil
		}
	}
	return err
}

// Retry moves a dead message back into the inbox, where its turn comes again
// with all its attempts. The caller holds the lock.
func Retry(p *project.Project, name string) (as string, err error) {
	if err := RefuseInLayer(p); err != nil {
		return "", err
	}
	inbox, err := ownDir(p, p.Decree, project.InboxDir)
	if err != nil {
		return "", err
	}
	defer inbox.Close()
	dead, err := inbox.OpenDir(deadName)
	if err == nil {
		defer dead.Close()
		var info disk.Info
		if info, err = dead.Stat(name); err == nil && info.Kind != disk.Regular {
			err = fmt.Errorf("%s: not a plain file", name)
		}
	}
	if isMissing(err) {
		return "", &project.Error{Kind: project.NotFound, State: project.Unchanged, Msg: fmt.Sprintf("%s: no such dead message", name), Advice: "'decree inbox --dead' lists them"}
	}
	if err != nil {
		return "", err
	}
	again := func(note noteActs) error {
		if as, err = free(inbox, name, ""); err != nil {
			return err
		}
		if err := noFollowUp(p, as); err != nil {
			return err
		}
		acts := append(moves(dead, name, project.DeadDir, project.InboxDir, as), gone(project.DeadDir, reasonOf(name))...)
		if err := note(acts...); err != nil {
			return err
		}
		return moveOrCopy(dead, name, inbox, as)
	}
	for err = p.Act(again); isExist(err); {
		err = p.Act(again) // somebody else took the name
	}
	if err != nil {
		return "", err
	}
	return as, errors.Join(inbox.Sync(), disk.UnlessMissing(dead.Remove(reasonOf(name))), dead.Sync())
}

// noFollowUp has a file that is about to come into the inbox be none of the runs under way: it counts as one that was
// there when they began. The caller holds the lock, and so sees what their processes have written last.
func noFollowUp(p *project.Project, name string) error {
	s, err := readState(p.Store)
	if err != nil {
		return err
	}
	isNew := false
	for _, u := range s.UnderWay {
		if !slices.Contains(u.Before, name) {
			u.Before, isNew = append(u.Before, name), true
		}
	}
	if !isNew {
		return nil
	}
	return s.write(p.Store)
}
