package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"decree/disk"
)

// The store's directory is decree's own. All the same somebody may put a directory, a
// link, a pipe or a socket in the place of what decree keeps there: a stand-in. The next
// command that takes the lock moves it to aside in the store where decree makes the file
// anew. Where only the file itself can say what was in it, that command is refused, since
// the file may still be somewhere; a repair moves the stand-in away all the same.

// storeEntry is what decree keeps under a name in the store.
type storeEntry struct {
	kind disk.Kind
	lost string // what is lost with it; "" for what is made anew
}

const packsDir = "packs"

// QueueFile in the store says which messages are under way, and under which records.
const QueueFile = "queue.json"

// inStoreDir is what is in the store's directory. [memoryFile] is not in it: without
// that nobody knows that it is a store.
var inStoreDir = map[string]storeEntry{
	"audit.jsonl":    {disk.Regular, "the audit"},
	"cache":          {disk.Regular, ""},
	"cap.json":       {disk.Regular, ""},
	"cron.json":      {disk.Regular, "when each cron job fired last"},
	"daemon":         {disk.Directory, ""},
	"edits":          {disk.Directory, ""},
	"forgotten.json": {disk.Regular, "what was forgotten"},
	hooksLog:         {disk.Regular, ""},
	"index":          {disk.Regular, ""},
	"index.log":      {disk.Regular, ""},
	"labels.json":    {disk.Regular, "the labels"},
	"layers":         {disk.Directory, "the work of isolated runs that are not recorded yet"},
	leasesDir:        {disk.Directory, ""},
	lockDir:          {disk.Directory, ""},
	lockFile:         {disk.Regular, ""},
	"open":           {disk.Directory, "what is needed to record runs that were interrupted"},
	OwnLogs:          {disk.Directory, ""},
	packsDir:         {disk.Directory, "the contents of all records"},
	QueueFile:        {disk.Regular, "which message is under way"},
	"records.jsonl":  {disk.Regular, "the list of all records"},
	"reserve":        {disk.Regular, ""},
	swapDir:          {disk.Directory, "what is needed to finish a restore that was interrupted"},
	"txn":            {disk.Directory, "what is needed to finish moves that were interrupted"},
}

// inStoreDirs is what is in directories of the store, by the end of its names.
var inStoreDirs = []struct {
	dir, end string
	kept     storeEntry
}{
	{packsDir, ".pack", storeEntry{disk.Regular, "the contents in it"}},
	{OwnLogs, ".jsonl", storeEntry{disk.Regular, ""}},
}

// StandIn is something else in the place of what decree keeps in its store.
type StandIn struct {
	Path string    // of what decree keeps
	Kind disk.Kind // what is there instead
	Lost string    // what is lost with it; "" for what decree makes anew
	Now  string    // where it was moved to; "" for nowhere
	// Alien: it is a file, and of another user than the store.
	Alien bool

	dir      string // one of inStoreDirs, or "" for the store's directory
	name     string
	expected storeEntry // what has to be there
}

// String says what is where.
func (s StandIn) String() string {
	what := kindWords[s.Kind]
	if s.Alien {
		what = "another user's than the store"
	}
	text := fmt.Sprintf("%s is %s, and decree's own %s has to be there", s.Path, what, fileOrDir[s.expected.kind])
	if s.Now != "" {
		text = fmt.Sprintf("%s was in the place of decree's own files and is now %s", s.Path, s.Now)
	}
	return text
}

var (
	kindWords = map[disk.Kind]string{disk.Regular: "a file", disk.Directory: "a directory", disk.Symlink: "a symbolic link", disk.Special: "a pipe, socket or device"}
	fileOrDir = map[disk.Kind]string{disk.Regular: "file", disk.Directory: "directory"}
)

// StandIns are the stand-ins in the store, in order of their paths.
func (s *Site) StandIns() (found []StandIn, err error) {
	list, err := s.Store.List()
	if err != nil {
		return nil, err
	}
	isDraft := func(name string) bool {
		return strings.HasSuffix(name, disk.Draft("")) || name == "index.tmp"
	}
	alien, err := s.aliens()
	if err != nil {
		return nil, err
	}
	if found, err = standIns(s.Store, "", list, alien, func(name string) (is storeEntry, own bool) {
		if is, own = inStoreDir[name]; !own && isDraft(name) {
			return storeEntry{kind: disk.Regular}, true
		}
		return is, own
	}); err != nil {
		return nil, err
	}
	for _, in := range inStoreDirs {
		further, err := s.standInsBelow(in.dir, alien, func(name string) (is storeEntry, own bool) { return in.kept, strings.HasSuffix(name, in.end) })
		if err != nil {
			return nil, err
		}
		found = append(found, further...)
	}
	return found, nil
}

// standInsBelow are the stand-ins in a directory of the store; none where it is missing, or is one itself.
func (s *Site) standInsBelow(name string, alien func(disk.Info) bool, own func(name string) (storeEntry, bool)) ([]StandIn, error) {
	dir, err := s.Store.OpenDir(name)
	if err != nil {
		return nil, disk.UnlessMissingOrOther(err)
	}
	defer dir.Close()
	list, err := dir.List()
	if err != nil {
		return nil, err
	}
	return standIns(dir, name, list, alien, own)
}

// aliens says of files whether they are not the store's owner's. Only as root in another
// user's store we could write to such a file; an empty one we left unfinished.
func (s *Site) aliens() (func(disk.Info) bool, error) {
	self, err := s.Store.Self()
	if err != nil || os.Geteuid() != 0 || self.UID == 0 {
		return nil, err
	}
	return func(st disk.Info) bool {
		return st.Kind == disk.Regular && st.UID != self.UID && (st.UID != 0 || st.Size > 0 || st.Nlink > 1)
	}, nil
}

func standIns(dir disk.Dir, at string, list []disk.Entry, alien func(disk.Info) bool, own func(name string) (storeEntry, bool)) (found []StandIn, err error) {
	for _, e := range list {
		is, mine := own(e.Name)
		if !mine {
			continue
		}
		f := StandIn{Path: filepath.Join(dir.Path(), e.Name), Kind: e.Kind, dir: at, name: e.Name, expected: is}
		if e.Kind == disk.Unknown || alien != nil {
			st, err := dir.Stat(e.Name)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			f.Kind, f.Alien = st.Kind, err == nil && alien != nil && alien(st)
		}
		if f.Kind != disk.Unknown && (f.Kind != is.kind || f.Alien) {
			f.Lost = is.lost
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b StandIn) int { return strings.Compare(a.Path, b.Path) })
	return found, nil
}

// clearStore moves stand-ins away, or refuses. The lock is held.
func (p *Project) clearStore() error {
	found, err := p.StandIns()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(found, func(f StandIn) bool { return f.Lost != "" }); i >= 0 && p.Repair == nil {
		first := "if it was moved away, or there is a copy of it, put it back"
		if found[i].Alien {
			first = "if it is the store's own, give it to the store's owner"
		}
		return &Error{Kind: Refused, Msg: found[i].String(),
			Advice: fmt.Sprintf("%s; else 'decree doctor --repair' moves what is there to %s and goes on without %s",
				first, filepath.Join(p.Store.Path(), asideDir), found[i].Lost)}
	}
	for _, f := range found {
		if err := p.clearStandIn(p.Store, f); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) clearStandIn(store disk.Dir, f StandIn) error {
	dir := store
	if f.dir != "" {
		sub, err := store.OpenDir(f.dir)
		if err != nil {
			return err
		}
		defer sub.Close()
		dir = sub
	}
	now, err := storeAside(store, dir, f.name, path.Join(f.dir, f.name))
	if err != nil {
		return err
	}
	f.Now = now
	if p.Repair != nil {
		p.Repair(f)
	} else {
		p.note("%s", f)
	}
	return nil
}

// storeAside moves name in dir, which is at in the store, to aside there, and returns where
// that is.
func storeAside(store, dir disk.Dir, name, at string) (string, error) {
	aside, err := MakeDir(store, asideDir, PrivateDir)
	if err != nil {
		return "", err
	}
	defer aside.Close()
	to, err := moveAside(dir, name, aside, strings.ReplaceAll(at, "/", "-"))
	return filepath.Join(aside.Path(), to), err
}

// StoreAside moves what is of no use in the store, at a path there, to aside there, and
// returns where it is. The caller has the lock.
func (p *Project) StoreAside(at string) (string, error) {
	to := ""
	err := disk.InDir(p.Store, path.Dir(at), func(dir disk.Dir) (err error) {
		to, err = storeAside(p.Store, dir, path.Base(at), at)
		return err
	})
	return to, err
}

// How often the store's own lock is tried, and for how long.
const (
	storePause = time.Millisecond
	storeWait  = 5 * time.Second
)

// openLock opens the directory whose lock is the project's. A stand-in of it is moved away
// under a lock on the store itself, which nobody has for long: two processes that see it at
// once must not move away what the other has made.
func (p *Project) openLock(store disk.Dir) (disk.Dir, error) {
	dir, err := MakeDir(store, lockDir, PrivateDir)
	if !disk.OtherKind(err) {
		return dir, err
	}
	unlock, err := disk.LockWithin(context.Background(), store, storePause, storeWait)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	st, err := store.Stat(lockDir)
	if err == nil && st.Kind != disk.Directory {
		err = p.clearStandIn(store, StandIn{Path: filepath.Join(store.Path(), lockDir), Kind: st.Kind, name: lockDir, expected: inStoreDir[lockDir]})
	}
	if disk.UnlessMissing(err) != nil {
		return nil, err
	}
	return MakeDir(store, lockDir, PrivateDir)
}
