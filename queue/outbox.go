package queue

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// What a routine sends lies in the outbox of its run until that has succeeded. A run that the
// routine makes itself has an outbox of its own, for the same reason: what is sent in it is
// passed on to the one around it when it has succeeded. So $DECREE_OUTBOX names the nearest one,
// and says alone to which message it belongs what a command sends: ids are given anew by the
// store of each project and of each layer.

// Outbox is that of a run that a command is a part of.
type Outbox struct {
	rec      *recorder.Recorder
	id, path string
	apart    bool // the command sees the tree in a clone, and the outbox at another place
}

// FindOutbox is the outbox to which belongs what a command sends that has the one at path: that, or where its run is over, that of the nearest run
// around it that is under way. It is nil where there is none, or path belongs to no run of rec's tree; ours says whether it belongs to one.
func FindOutbox(rec *recorder.Recorder, path string) (box *Outbox, ours bool) {
	if box = outboxAt(rec, path); box == nil {
		return nil, false
	}
	box, _ = box.nearest()
	return box, true
}

// outboxAt is the outbox at path; nil where that belongs to no run of rec's tree.
func outboxAt(rec *recorder.Recorder, path string) *Outbox {
	p, id := rec.Project(), filepath.Base(filepath.Dir(path))
	if !history.IsID(id) || filepath.Base(path) != outboxName {
		return nil
	}
	if p.InLayer && isCloneOf(p.Root, id) {
		return &Outbox{rec: rec, id: id, path: path, apart: true}
	}
	if b := outboxOf(rec, id); b.path == filepath.Clean(path) {
		return b
	}
	return nil
}

// outboxOf is that of the run id.
func outboxOf(rec *recorder.Recorder, id string) *Outbox {
	return &Outbox{rec: rec, id: id, path: filepath.Join(rec.Project().Root, ".decree", "runs", id, outboxName)}
}

// nearest is the outbox itself, or that of the nearest run around its run that is under way; nil where all are over. well says that those that
// are over have succeeded: of one that was pruned nobody knows that. An agent's turn, and a run that is no message's, have none, and are passed over.
func (b *Outbox) nearest() (open *Outbox, well bool) {
	well = true
	for {
		if b.underWay() {
			return b, well
		}
		around := b.rec.Project().Layer // the store of a layer does not have the layer's own run
		run, err := b.rec.History().Get(b.id)
		if err == nil {
			around = cmp.Or(run.Inside, around)
		}
		well = well && err == nil && (run.Status == history.StatusSucceeded || run.Status == history.StatusOpen || run.Reason == history.Turn)
		if around == "" {
			return nil, well
		}
		b = outboxOf(b.rec, around)
	}
}

// underWay says whether its run is: of a layer's own, that is so for whoever is in the layer.
func (b *Outbox) underWay() bool {
	if b.apart || b.id == b.rec.Project().Layer {
		return true
	}
	return b.rec.SendsNow(b.id)
}

// isCloneOf says whether root is the clone in which the command of the run id works. That of its
// last attempt lies one directory deeper.
func isCloneOf(root, id string) bool {
	of := filepath.Dir(root)
	return filepath.Base(of) == id || filepath.Base(filepath.Dir(of)) == id
}

// Path is where it lies.
func (b *Outbox) Path() string { return b.path }

// Drop puts a new message into it, as project.Drop does.
func (b *Outbox) Drop(name string, data []byte) error {
	dir, err := b.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	return project.DropInto(dir, name, data)
}

// TakeBack takes a message out of it again that came too late: its run has ended, and nothing has passed it on. taken: that is so.
func (b *Outbox) TakeBack(name string) (taken bool, err error) {
	if b.underWay() {
		return false, nil
	}
	dir, err := b.open()
	if err != nil {
		return false, err
	}
	defer dir.Close()
	err = dir.Remove(name)
	return err == nil, disk.UnlessMissing(err)
}

// open opens it. It is made if the command has deleted it.
func (b *Outbox) open() (disk.Dir, error) {
	p := b.rec.Project()
	if b.apart {
		return p.Disk.OpenRoot(b.path)
	}
	run, err := b.rec.History().EnsureRun(b.id)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return p.OwnDir(run, outboxName)
}

// PassOn passes on what lies in the outbox of the run id, which has succeeded: to the outbox at path, in whose run it was made, where that is over to
// that of the nearest run around it that is under way, and to the inbox where none is. Where one of those that are over has failed, and to the outbox of
// another tree, it passes on nothing.
func PassOn(rec *recorder.Recorder, id, path string) error {
	around := outboxAt(rec, path)
	if around == nil {
		return nil
	}
	names, err := sentFrom(rec, id)
	if err != nil {
		return err
	}
	return around.take(id, names)
}

// take is PassOn of some messages. The run that they are passed on to may end meanwhile.
func (b *Outbox) take(id string, names []string) error {
	for len(names) > 0 {
		open, well := b.nearest()
		if !well {
			return nil
		}
		from, err := openOutbox(b.rec, id)
		if err != nil {
			return err
		}
		if open == nil {
			err = toInbox(b.rec, from, names)
			from.Close()
			return err
		}
		names, err = open.takeFrom(from, names)
		from.Close()
		if err != nil || open.underWay() {
			return err
		}
		b, id = open, open.id
	}
	return nil
}

// toInbox moves messages from an outbox to the inbox. What is gone was passed on, as by the queue, which may take the same ones: a rename has one of the two win.
func toInbox(rec *recorder.Recorder, from disk.Dir, names []string) (err error) {
	for _, name := range names {
		if failed := bringIn(rec.Project(), from, name); !isMissing(failed) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, from.Sync())
}

// bringIn moves a file into the inbox under its name, or else the first free one like it, as an act: a run whose command deletes the inbox
// writes it again.
func bringIn(p *project.Project, from disk.Dir, name string) error {
	try := func(note func(...project.Act) error) error {
		if err := p.EnsureDecree(); err != nil {
			return err
		}
		inbox, err := p.OwnDirAs(p.Decree, project.InboxDir, 0o755)
		if err != nil {
			return err
		}
		defer inbox.Close()
		info, err := from.Stat(name)
		if err != nil {
			return err
		}
		data, err := project.ReadFile(from, name, message.MaxSize)
		if err != nil {
			return err
		}
		as, err := free(inbox, name, "")
		if err != nil {
			return err
		}
		if err := note(project.Act{Path: []byte(project.InboxDir + "/" + as), New: true, Mode: info.Mode, Ino: info.Ino, Data: data}); err != nil {
			return err
		}
		if err := moveOrCopy(from, name, inbox, as); err != nil {
			return err
		}
		return inbox.Sync()
	}
	for {
		if err := p.Act(try); !isExist(err) { // else somebody else took the name
			return err
		}
	}
}

// sentFrom are the messages that were sent in the run id.
func sentFrom(rec *recorder.Recorder, id string) ([]string, error) {
	unsent, err := Unsent(rec, id)
	return slices.DeleteFunc(unsent, func(name string) bool { return strings.Contains(name, "/") }), err // that was put into the inbox of a layer, and never sent
}

// takeFrom moves messages from another outbox; as are the names that they have here. What is gone was passed on.
func (b *Outbox) takeFrom(from disk.Dir, names []string) (as []string, err error) {
	to, err := b.open()
	if err != nil {
		return nil, err
	}
	defer to.Close()
	for _, name := range names {
		is, err := moveToFreeName(from, name, to, name)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return as, err
		}
		as = append(as, is)
	}
	return as, errors.Join(to.Sync(), from.Sync())
}

// passOnInner brings what runs inside the run rec have sent into its outbox, where their process died
// before it did that, or a candidate of a race was published by another. A run that failed, or was taken back, or is
// inside of such a one, sends nothing; what one in a layer did has to be published, since only one of a race's may be.
func passOnInner(rec *recorder.Recorder, of *history.Record) error {
	parts, err := rec.Parts(of)
	if err != nil {
		return err
	}
	box, good := outboxOf(rec, of.ID), []string{of.ID}
	for _, part := range parts {
		if part.Reason == history.Turn && slices.Contains(good, part.Inside) {
			good = append(good, part.ID)
			continue
		}
		counts := part.Isolated == "" || part.Draft != nil && part.Draft.State == history.DraftPublished
		if part.Reason != history.Run || part.Status != history.StatusSucceeded || !counts || !slices.Contains(good, part.Inside) {
			continue
		}
		good = append(good, part.ID)
		if err := box.takeAll(part.ID); err != nil {
			return err
		}
	}
	return nil
}

// takeAll moves what was sent in the run id to the outbox.
func (b *Outbox) takeAll(id string) error {
	names, err := sentFrom(b.rec, id)
	if len(names) == 0 || err != nil {
		return err
	}
	from, err := openOutbox(b.rec, id)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = b.takeFrom(from, names)
	return err
}

// Unsent are the messages in the outbox of the run id, in natural order, and what else of a
// layer's inbox lies there.
func Unsent(rec *recorder.Recorder, id string) (names []string, err error) {
	outbox, err := openOutbox(rec, id)
	if err != nil {
		return nil, unlessNoFile(err)
	}
	defer outbox.Close()
	list, err := messagesIn(outbox)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, compareNaturally)
	inbox, err := disk.OpenWritable(outbox, filepath.Base(project.LayerInbox))
	if isMissing(err) || ofFile(err) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	defer inbox.Close()
	of, err := messagesIn(inbox)
	for _, name := range of {
		list = append(list, filepath.Base(project.LayerInbox)+"/"+name)
	}
	return list, err
}

// messagesIn are the files in an outbox. Hidden ones and what is no file stay there.
func messagesIn(outbox disk.Dir) (names []string, err error) {
	list, err := outbox.List()
	for _, e := range list {
		if info, serr := outbox.Stat(e.Name); serr == nil && info.Kind == disk.Regular && e.Name[0] != '.' {
			names = append(names, e.Name)
		}
	}
	return names, err
}

// tellUnsent names what a routine has left in the outbox of its run id and is no file, as a link or a directory of follow-ups.
func (q *job) tellUnsent(outbox disk.Dir, id string) error {
	list, err := outbox.List()
	var names []string
	for _, e := range list {
		info, serr := outbox.Stat(e.Name)
		if serr == nil && info.Kind != disk.Regular && e.Name[0] != '.' && e.Name != filepath.Base(project.LayerInbox) {
			names = append(names, tree.Quote(e.Name))
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		q.note("%s: not sent, as a link or directory in the outbox is no message: %s; it stays in .decree/runs/%s/%s", tree.Quote(q.u.Name), strings.Join(names, ", "), id, outboxName)
	}
	return err
}

// outboxName is the directory of a run that is $DECREE_OUTBOX.
const outboxName = project.OutboxDir

func openOutbox(rec *recorder.Recorder, id string) (disk.Dir, error) {
	run, err := rec.History().OpenRun(id)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return disk.OpenWritable(run, outboxName)
}
