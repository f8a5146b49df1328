package project

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"

	"decree/disk"
)

// InboxDraft begins the names of the files in the inbox that are not whole yet.
const InboxDraft = ".queue-"

// OutboxDir is the directory of a run where the routine of a message leaves what is
// to follow it.
const OutboxDir = "outbox"

// Drop puts a new message into a directory below .decree (the inbox, or an outbox), which
// is made if it is missing, whole or not at all: it is built there under a hidden name,
// flushed, and renamed without overwriting. A name that is taken is an error with
// fs.ErrExist in its chain.
//
// It takes no lock, so that it works beside and inside a run. If the process dies before
// the move, the hidden file is removed when the next message is chosen. That may also
// happen while it is being built: then it is built again.
func (p *Project) Drop(to, name string, data []byte) error {
	const most = 100 // commands, one after the other, each of which got in between
	for n := 1; ; n++ {
		err := p.drop(to, name, data)
		if !errors.Is(err, fs.ErrNotExist) || n == most {
			return err
		}
		// Inside a run all of .decree may have been deleted.
		if err := p.EnsureDecree(); err != nil {
			return err
		}
	}
}

func (p *Project) drop(to, name string, data []byte) error {
	dir, err := p.makeBelow(to)
	if err != nil {
		return err
	}
	defer dir.Close()
	draft := fmt.Sprintf("%smessage-%016x", InboxDraft, rand.Uint64())
	if err := WriteNew(dir, name, draft, data, 0o644); err != nil {
		return err
	}
	return p.Decree.Sync()
}

// makeBelow opens a directory below .decree and makes what is missing of its path;
// what stands in its place is put aside.
func (p *Project) makeBelow(to string) (disk.Dir, error) {
	first, rest, deeper := strings.Cut(to, "/")
	perm := PrivateDir
	if first == "inbox" {
		perm = 0o755
	}
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
