package queue

import (
	"errors"

	"decree/disk"
	"decree/tree"
)

// A person may save another text in the file of a message in the very moment in which it is
// moved away. Its move therefore has two steps: under its name into one of takenDirs, where
// nobody saves, is it looked at, and only then moved on. What a death leaves there goes back.
// The second of them is for when the first cannot be used, such as an immutable one.
var takenDirs = []string{queueDraft + "taken", queueDraft + "taken-2"}

// takenOut is a file of the inbox on its way.
type takenOut struct {
	inbox, dir disk.Dir
	in         string // dir's name
	name       string
}

// takeOut takes a file out of the inbox; the caller calls moveTo or putBack. fs.ErrNotExist
// where there is none of this name any more.
func (q *job) takeOut(d *dirs, name string) (*takenOut, error) {
	t, cause := q.takeInto(d, takenDirs[0], name)
	if !ofFile(cause) {
		return t, cause
	}
	t, err := q.takeInto(d, takenDirs[1], name)
	if ofFile(err) { // then it is the message itself that cannot be moved
		return nil, cause
	}
	if err == nil && q.passed[takenDirs[0]] == 0 {
		q.passed[takenDirs[0]] = 1
		q.note("%s cannot be used, and %s is in its place: %v", takenDirs[0], takenDirs[1], cause)
	}
	return t, err
}

// takeInto is takeOut into the directory in.
func (q *job) takeInto(d *dirs, in, name string) (*takenOut, error) {
	dir, err := q.project().OwnDirAs(d.inbox, in, dirMode)
	if err != nil {
		return nil, err
	}
	t := &takenOut{inbox: d.inbox, dir: dir, in: in, name: name}
	if err := moveOrCopy(d.inbox, name, dir, name); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// moveTo moves it on, to the name that is wanted or one beside it, durably: a power loss may
// leave two names, and never none.
func (t *takenOut) moveTo(to disk.Dir, wanted string) (as string, err error) {
	as, err = moveToFreeName(t.dir, t.name, to, wanted)
	if err == nil {
		err = errors.Join(to.Sync(), t.inbox.Sync())
		t.close()
	}
	return as, err
}

// putBack undoes takeOut. Where another file has its name now, it waits beside it.
func (t *takenOut) putBack() error {
	_, err := t.moveTo(t.inbox, t.name)
	return err
}

func (t *takenOut) close() {
	t.dir.Close()
	_ = t.inbox.Rmdir(t.in) // something else in it is put back when the next message is chosen
}

// takenBack puts back what an earlier move has left on its way.
func (q *job) takenBack(d *dirs) error {
	for _, in := range takenDirs {
		if err := q.takenBackFrom(d, in); err != nil {
			return err
		}
	}
	return nil
}

func (q *job) takenBackFrom(d *dirs, in string) error {
	dir, err := d.inbox.OpenDir(in)
	if err != nil {
		return unlessNoFile(err)
	}
	defer dir.Close()
	list, err := dir.List()
	for _, e := range list {
		if err == nil {
			err = move(dir, e.Name, d.inbox, e.Name)
		}
		if at := in + "/" + e.Name; ofFile(err) { // such as an immutable one
			if q.passed[at] == 0 {
				q.note("%s stays in %s: %v", tree.Quote(e.Name), in, err)
			}
			q.passed[at], err = 1, nil
		}
	}
	if err != nil {
		return err
	}
	q.list.stale = true
	_ = d.inbox.Rmdir(in)
	return nil
}
