package project

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"

	"decree/disk"
)

// inboxDir is where messages wait, below .decree.
const inboxDir = "inbox"

// InboxDraft begins the names of the files in the inbox that are not whole yet.
const InboxDraft = ".queue-"

// Drop puts a new message into .decree/inbox, whole or not at all: it is built in
// .decree/tmp, flushed, and moved in without overwriting; where the inbox is on another
// file system it is built there, under a hidden name. A name that is taken is an error
// with fs.ErrExist in its chain.
//
// It takes no lock, so that it works beside and inside a run. If the process dies before
// the move, the file in tmp is removed by the next writing command. Such a command may
// also remove it while it is being built: then it is built again.
func (p *Project) Drop(name string, data []byte) error {
	const most = 100 // commands, one after the other, each of which got in between
	for n := 1; ; n++ {
		err := p.drop(name, data)
		if !errors.Is(err, fs.ErrNotExist) || n == most {
			return err
		}
		// Inside a run all of .decree may have been deleted.
		if err := p.EnsureDecree(); err != nil {
			return err
		}
	}
}

func (p *Project) drop(name string, data []byte) error {
	inbox, err := MakeDir(p.Decree, inboxDir, 0o755)
	if err != nil {
		return err
	}
	defer inbox.Close()
	tmp, err := p.Decree.OpenDir("tmp")
	if err != nil {
		return err
	}
	defer tmp.Close()
	draft := fmt.Sprintf("message-%016x", rand.Uint64())
	err = build(tmp, draft, data, inbox, name)
	if errors.Is(err, syscall.EXDEV) {
		err = build(inbox, InboxDraft+draft, data, inbox, name)
	}
	if err != nil {
		return err
	}
	return errors.Join(inbox.Sync(), p.Decree.Sync())
}

// build writes a draft and moves it to where it must be new.
func build(at disk.Dir, draft string, data []byte, to disk.Dir, name string) error {
	if err := writeFile(at, draft, data); err != nil {
		return err
	}
	err := at.RenameNew(draft, to, name)
	if err != nil {
		_ = at.Remove(draft)
	}
	return err
}

// writeFile makes a file that others may read, durably.
func writeFile(d disk.Dir, name string, data []byte) error {
	f, err := CreateFile(d, name, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = d.Remove(name)
	}
	return err
}
