package queue

import (
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

// FindOutbox is the outbox at path. It is nil where that belongs to no run of rec's tree that
// is under way; ours says whether it belongs to one of that tree, under way or over.
func FindOutbox(rec *recorder.Recorder, path string) (box *Outbox, ours bool) {
	p, run := rec.Project(), filepath.Dir(path)
	b := &Outbox{rec: rec, id: filepath.Base(run), path: path}
	if !history.IsID(b.id) || filepath.Base(path) != outboxName {
		return nil, false
	}
	b.apart = p.InLayer && isCloneOf(p.Root, b.id)
	if !b.apart && run != filepath.Join(p.Root, ".decree", "runs", b.id) {
		return nil, false
	}
	if _, err := rec.History().Opened(b.id); err != nil && !p.InLayer { // a layer shows nobody but its own run
		return nil, true
	}
	return b, true
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

// isOver says whether its run has ended by now: what was put into it may have come too late. In a layer that is not seen.
func (b *Outbox) isOver() bool {
	if b.rec.Project().InLayer {
		return false
	}
	_, err := b.rec.History().Opened(b.id)
	return err != nil
}

// TakeBack takes a message out of it again that came too late: its run has ended, and nothing has passed it on. taken: that is so.
func (b *Outbox) TakeBack(name string) (taken bool, err error) {
	if !b.isOver() {
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

// PassOn passes on what lies in the outbox of the run id, which has succeeded: to the outbox at path, in whose run it was made, or
// to the inbox where that has ended by then, and well. To the outbox of another tree it passes on nothing.
func PassOn(rec *recorder.Recorder, id, path string) error {
	box, ours := FindOutbox(rec, path)
	switch {
	case box != nil:
		return box.take(id)
	case !ours || !endedWell(rec, filepath.Base(filepath.Dir(path))):
		return nil
	}
	names, err := sentFrom(rec, id)
	if len(names) == 0 || err != nil {
		return err
	}
	from, err := openOutbox(rec, id)
	if err != nil {
		return err
	}
	defer from.Close()
	return toInbox(rec, from, names)
}

// take is PassOn to an outbox whose run may end meanwhile.
func (b *Outbox) take(id string) error {
	names, err := b.takeFrom(id)
	if err != nil || len(names) == 0 || !b.isOver() || !endedWell(b.rec, b.id) {
		return err
	}
	late, err := b.open()
	if err != nil {
		return err
	}
	defer late.Close()
	return toInbox(b.rec, late, names)
}

// endedWell says whether the run id, which is over, has not failed, as far as that is still known: a routine that fails sends nothing.
func endedWell(rec *recorder.Recorder, id string) bool {
	outer, err := rec.History().Get(id)
	return err != nil || outer.Status == history.StatusSucceeded
}

// toInbox moves messages from an outbox to the inbox. What is gone was passed on, as by the queue, which may take the same ones: a rename has one of the two win.
func toInbox(rec *recorder.Recorder, from disk.Dir, names []string) (err error) {
	for _, name := range names {
		if failed := bringIn(rec.Project(), from, name); !isMissing(failed) {
			err = errors.Join(err, failed)
		}
	}
	return err
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
		return moveOrCopy(from, name, inbox, as)
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

// takeFrom moves what was sent in the run id to the outbox; names are those that the messages have there.
func (b *Outbox) takeFrom(id string) (names []string, err error) {
	sent, err := sentFrom(b.rec, id)
	if len(sent) == 0 || err != nil {
		return nil, err
	}
	from, err := openOutbox(b.rec, id)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := b.open()
	if err != nil {
		return nil, err
	}
	defer to.Close()
	for _, name := range sent {
		as, err := moveToFreeName(from, name, to, name)
		if err != nil {
			return names, err
		}
		names = append(names, as)
	}
	return names, errors.Join(to.Sync(), from.Sync())
}

// passOnInner brings what runs inside the run rec have sent into its outbox, where their process died
// before it did that, or a candidate of a race was published by another. A run that failed, or was taken back, or is
// inside of such a one, sends nothing; what one in a layer did has to be published, since only one of a race's may be.
func passOnInner(rec *recorder.Recorder, of *history.Record) error {
	parts, err := rec.Parts(of)
	if err != nil {
		return err
	}
	box, good := &Outbox{rec: rec, id: of.ID}, []string{of.ID}
	for _, part := range parts {
		counts := part.Isolated == "" || part.Draft != nil && part.Draft.State == history.DraftPublished
		if part.Reason != history.Run || part.Status != history.StatusSucceeded || !counts || !slices.Contains(good, part.Inside) {
			continue
		}
		good = append(good, part.ID)
		if _, err := box.takeFrom(part.ID); err != nil {
			return err
		}
	}
	return nil
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
