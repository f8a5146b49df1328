package project

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"

	"decree/disk"
)

// InboxDraft begins the names of the files in the inbox that are not whole yet.
const InboxDraft = ".queue-"

// wholeDraft follows InboxDraft in the name of a new message that is being built: who builds it tries again.
const wholeDraft = "message-"

// OutboxDir is the directory of a run where the routine of a message leaves what is
// to follow it.
const OutboxDir = "outbox"

// LayerInbox is where in a run's directory lies what the routine of an isolated message put
// into the inbox, until it is taken over.
const LayerInbox = OutboxDir + "/inbox"

// Drop puts a new message into the inbox, which is made if it is missing, whole or not at
// all: it is built there under a hidden name, flushed, and renamed without overwriting. A name that is taken is an error with
// fs.ErrExist in its chain.
//
// It takes no lock but that of acts, so that it works beside and inside a run. If the process dies before
// the move, the hidden file is removed when the next message is chosen. That may also
// happen while it is being built: then it is built again.
func (p *Project) Drop(name string, data []byte) error {
	return p.Act(func(note func(...Act) error) error { return p.DropNoting(note, InboxDir, name, data) })
}

// The directories of .decree with the messages: those that wait, those that are done, and those that failed.
const (
	InboxDir = "inbox"
	DoneDir  = InboxDir + "/done"
	DeadDir  = InboxDir + "/dead"
)

// DropNoting is Drop as a part of an act, into the inbox or a directory below it.
func (p *Project) DropNoting(note func(...Act) error, to, name string, data []byte) error {
	const most = 100 // commands, one after the other, each of which got in between
	for n := 1; ; n++ {
		noted := false
		err := p.drop(func(acts ...Act) error { noted = true; return note(acts...) }, to, name, data)
		if errors.Is(err, fs.ErrExist) && n > 1 {
			if is, iserr := p.isDropped(note, to, name, data); is || iserr != nil {
				return iserr
			}
		}
		if !errors.Is(err, fs.ErrNotExist) || n == most {
			return err
		}
		if noted { // else the next try would pass for another file of this name
			if err := note(Act{Path: []byte(to + "/" + name), Gone: true}); err != nil {
				return err
			}
		}
		// Inside a run all of .decree may have been deleted.
		if err := p.EnsureDecree(); err != nil {
			return err
		}
	}
}

// isDropped says whether a file has come from the note of an earlier try, as a run whose command had deleted the directory has written it
// again. It is noted anew.
func (p *Project) isDropped(note func(...Act) error, to, name string, data []byte) (is bool, err error) {
	dir, err := p.makeBelow(to)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	st, err := dir.Stat(name)
	if err != nil {
		return false, disk.UnlessMissing(err)
	}
	has, err := ReadFile(dir, name, int64(len(data)))
	if errors.Is(err, ErrTooLarge) || err == nil && !bytes.Equal(has, data) {
		return false, nil
	}
	if err == nil {
		err = note(Act{Path: []byte(to + "/" + name), Mode: st.Mode, Ino: st.Ino, Data: data})
	}
	return err == nil, err
}

func (p *Project) drop(note func(...Act) error, to, name string, data []byte) error {
	dir, err := p.makeBelow(to)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dropInto(dir, note, to, name, data); err != nil {
		return err
	}
	return p.Decree.Sync()
}

// DropInto is Drop for a directory that is open and is no inbox, such as an outbox: nothing is noted.
func DropInto(dir disk.Dir, name string, data []byte) error {
	return dropInto(dir, func(...Act) error { return nil }, "", name, data)
}

func dropInto(dir disk.Dir, note func(...Act) error, to, name string, data []byte) error {
	how := disk.Replacement{Perm: 0o644, Flush: true, Temp: fmt.Sprintf("%s%s%016x", InboxDraft, wholeDraft, rand.Uint64())}
	how.Place = func(draft string, _ disk.Dir, name string) error {
		st, err := dir.Stat(draft)
		if err == nil {
			err = note(Act{Path: []byte(to + "/" + name), New: true, Mode: st.Mode, Ino: st.Ino, Data: data})
		}
		if err != nil {
			return err
		}
		return dir.RenameNew(draft, dir, name)
	}
	return disk.Replace(dir, name, how, disk.Content(data))
}

// makeBelow opens a directory below .decree and makes what is missing of its path;
// what stands in its place is put aside.
func (p *Project) makeBelow(to string) (disk.Dir, error) {
	first, rest, deeper := strings.Cut(to, "/")
	const perm = 0o755
	dir, err := p.OwnDirAs(p.Decree, first, perm)
	for err == nil && deeper {
		var next disk.Dir
		first, rest, deeper = strings.Cut(rest, "/")
		next, err = p.OwnDirAs(dir, first, perm)
		dir.Close()
		dir = next
	}
	return dir, err
}
