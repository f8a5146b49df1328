package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"decree/disk"
)

// gitignore keeps a user's `git status` as it was: all in .decree but what a
// person writes there.
const gitignore = "# written by decree: what it makes is nobody's to commit\n/*\n!/config.yml\n!/routines/\n!/cron/\n"

// Site is where an open project lies, for those who look at it and change nothing. It
// does not change as long as the project is open, and is safe for concurrent use.
type Site struct {
	Disk      disk.Disk
	Root      string   // real path
	Dir       disk.Dir // of the root
	Store     disk.Dir // <base>/<id>
	StorePath string
	ID        string
	Config    Config
}

// Project is an open project. Its handles stay valid whatever a command does
// to the paths. It is safe for concurrent use but for EnsureDecree and Close.
type Project struct {
	Site
	Decree disk.Dir // .decree; nil when it is absent and the project was opened for reading
	// Notes are what the user should be told of: moved, copied, adopted, the store's
	// odd place. Once Tell is set, it takes those that come later.
	Notes []string
	Tell  func(string)

	form   form           // of the store
	base   string         // as project.json has it
	marks  []string       // of what lies in .decree/tmp, this process's own first
	roots  []func() error // release the root's lock, and those on directories that became the root since
	locked bool           // this process has the lock
	leased bool           // this process has a lease
}

// Open finds the root and opens its project.
//
// With create it writes what is missing: the store and its memory, .decree with
// its .gitignore, project.json. Without, it writes nothing, and a root that no
// store remembers is an error with ErrNoProject in its chain.
func Open(d disk.Disk, w Where, create bool) (*Project, error) {
	root, _, err := FindRoot(d, w)
	if err != nil {
		return nil, err
	}
	p := &Project{Site: Site{Disk: d, Root: root}}
	err = p.open(w, create)
	if err == nil {
		err = disk.ForItsOwner(p.Store)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Project) open(w Where, create bool) (err error) {
	if p.Dir, err = p.Disk.OpenRoot(p.Root); err != nil {
		return err
	}
	self, err := p.Dir.Self()
	if err != nil {
		return err
	}
	w = w.forOwner(self.UID)
	if create {
		if st, err := p.Dir.Stat(dirName); err == nil {
			_ = p.loosen(st) // what it cannot do is told by the first step that needs it
		}
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	if err := p.refuseLink(); err != nil {
		return err
	}
	if err := p.readConfig(create); err != nil {
		return err
	}
	if create {
		return p.claim(w)
	}
	f, err := p.examine(w)
	if err != nil {
		return err
	}
	switch f.bond {
	case strangers:
		return &Error{Kind: NotFound, Msg: p.Root, Err: ErrNoProject, Advice: f.hint("begin one with 'decree init' or 'decree run'")}
	case copied:
		f.store.Close()
		return &Error{Kind: NotFound, Msg: fmt.Sprintf("%s is a copy of %s", p.Root, f.mem.Root), Err: ErrNoProject,
			Advice: "'decree checkpoint' begins a history of its own here; after that a record of the original can be named by its whole id"}
	}
	p.take(f)
	return nil
}

// Close releases the handles. The lock is not touched.
func (p *Project) Close() {
	for _, d := range []disk.Dir{p.Store, p.Decree, p.Dir} {
		if d != nil {
			d.Close()
		}
	}
	p.Store, p.Decree, p.Dir = nil, nil, nil
}

// openDecree opens .decree if it is there and a directory; a link in its place is
// refused. After an error the handle is the one from before.
func (p *Project) openDecree() error {
	st, err := p.Dir.Stat(dirName)
	if errors.Is(err, fs.ErrNotExist) {
		p.setDecree(nil)
		return nil
	}
	if err != nil {
		return err
	}
	if st.Kind != disk.Directory && st.Kind != disk.Symlink {
		p.setDecree(nil) // EnsureDecree puts it aside
		return nil
	}
	if err := plainDir(st, filepath.Join(p.Root, dirName)); err != nil {
		return err
	}
	decree, err := p.Dir.OpenDir(dirName)
	if err != nil {
		return err
	}
	p.setDecree(decree)
	return nil
}

// refuseLink refuses a link in the place of .decree/runs, which a person may have
// made on purpose. Another thing there is put aside by the next writing command.
func (p *Project) refuseLink() error {
	if p.Decree == nil {
		return nil
	}
	st, err := p.Decree.Stat("runs")
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Kind != disk.Symlink {
		return nil
	}
	if err != nil {
		return err
	}
	return plainDir(st, filepath.Join(p.Root, dirName, "runs"))
}

func (p *Project) setDecree(d disk.Dir) {
	if p.Decree != nil {
		p.Decree.Close()
	}
	p.Decree = d
}

// FollowDecree makes p look for .decree by its name each time something in it is opened,
// so that one who looks for long sees a .decree that was deleted and made anew. Nothing
// that changes .decree works on p then.
func (p *Project) FollowDecree() {
	p.setDecree(nil)
	p.Decree = decreeByName{root: p.Dir}
}

// decreeByName is .decree as it is now: fs.ErrNotExist where there is none.
type decreeByName struct {
	disk.Dir // nil: what is not below is for those who change it
	root     disk.Dir
}

func (d decreeByName) Path() string { return filepath.Join(d.root.Path(), dirName) }

func (d decreeByName) Close() error { return nil }

func (d decreeByName) Self() (disk.Info, error) {
	now, err := d.root.OpenDir(dirName)
	if err != nil {
		return disk.Info{}, err
	}
	defer now.Close()
	return now.Self()
}

func (d decreeByName) OpenDir(name string) (disk.Dir, error) {
	now, err := d.root.OpenDir(dirName)
	if err != nil {
		return nil, err
	}
	defer now.Close()
	return now.OpenDir(name)
}

func plainDir(st disk.Info, path string) error {
	switch st.Kind {
	case disk.Directory:
		return nil
	case disk.Symlink:
		return &Error{Kind: Refused, Msg: path + ": is a symbolic link, which decree does not follow", Advice: "put a directory in its place"}
	}
	return &Error{Kind: Refused, Msg: path + ": is not a directory", Advice: "move it out of the way"}
}

// finding is what examine found out about the tree and its store.
type finding struct {
	bond  bond
	base  string   // as project.json has it
	store disk.Dir // open unless strangers
	mem   *memory
	near  *memory // a store that remembers another directory at this path
	nearB string  // its base
	why   error   // why project.json was of no use; nil: it was, or there was none
}

// hint is advice, with a word on the store of an earlier directory at this path.
func (f *finding) hint(advice string) string {
	if f.near == nil {
		return advice
	}
	b, _ := json.Marshal(identity{Version: formatNow, ID: f.near.ID, Store: f.nearB})
	return fmt.Sprintf("%s; an earlier directory at this path has a history: to continue it, put %s into %s/%s", advice, b, dirName, identityFile)
}

func (p *Project) examine(w Where) (*finding, error) {
	asked, err := w.askedPlace(p.Config)
	if err != nil {
		return nil, err
	}
	self, err := factsOf(p.Dir)
	if err != nil {
		return nil, err
	}
	id, err := readIdentity(p.Decree)
	if useless(err) {
		return p.searchWithout(w, asked, self, err)
	}
	if err != nil {
		return nil, refusedIdentity(p.Decree, err)
	}
	if id == nil {
		return p.search(w, asked, self)
	}
	if err := p.agree(asked, place{base: id.Store}); err != nil {
		return nil, err
	}
	store, m, err := p.openKnown(id)
	if err != nil {
		return nil, err
	}
	return &finding{bond: compare(p.Disk, m, p.Root, self), base: id.Store, store: store, mem: m}, nil
}

// agree refuses a place that is asked for while the project has another.
func (p *Project) agree(asked, has place) error {
	if !asked.asked || sameBase(p.Disk, asked.abs(p.Root), has.abs(p.Root)) {
		return nil
	}
	return &Error{Kind: Refused,
		Msg:    fmt.Sprintf("%s asks for a store in %s, but this project's is in %s", asked.origin, asked.abs(p.Root), has.abs(p.Root)),
		Advice: fmt.Sprintf("unset %s, or move the store's directory there and correct %s/%s", asked.origin, dirName, identityFile)}
}

// openKnown opens the store that project.json names.
func (p *Project) openKnown(id *identity) (disk.Dir, *memory, error) {
	base := place{base: id.Store}.abs(p.Root)
	path := filepath.Join(base, id.ID)
	store, err := p.openStore(base, id.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &Error{Kind: Failed, Msg: path + ": this project's store is missing",
			Advice: fmt.Sprintf("bring it back there; or, to begin a new history without it, remove %s", filepath.Join(p.Root, dirName, identityFile))}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, &Error{Kind: Failed, Msg: fmt.Sprintf("%s: this project's store belongs to %s, and you may not read it", path, ownerOf(p.Disk, path)), Err: reason(err),
			Advice: fmt.Sprintf("work as that user; or, to begin a history of your own, remove %s", filepath.Join(p.Root, dirName, identityFile))}
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := readMemory(store)
	if err == nil && m.ID != id.ID {
		err = errors.New("it is another project's")
	}
	if err != nil {
		store.Close()
		return nil, nil, &Error{Kind: Refused, Msg: path + ": not this project's store", Err: err,
			Advice: fmt.Sprintf("if %s came with somebody else's tree, remove it%s", filepath.Join(p.Root, dirName, identityFile), p.lostMemory(id, err))}
	}
	return store, m, nil
}

// ownerOf names the owner of what is at path; where that cannot be looked at, of the
// nearest directory above it that can, which then is what keeps others out.
func ownerOf(d disk.Disk, path string) string {
	for ; path != filepath.Dir(path); path = filepath.Dir(path) {
		up, err := d.OpenSearch(filepath.Dir(path))
		if err != nil {
			continue
		}
		st, err := up.Stat(filepath.Base(path))
		up.Close()
		if err == nil {
			return userName(st.UID)
		}
	}
	return userName(0)
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}

// lostMemory is advice for a store whose memory of its root is gone. decree does
// not write it again by itself: nothing else tells the tree from a copy of it.
func (p *Project) lostMemory(id *identity, err error) string {
	var newer *Error
	self, serr := factsOf(p.Dir)
	if errors.As(err, &newer) || serr != nil {
		return ""
	}
	b, _ := json.Marshal(newMemory(id.ID, p.Root, self, form{storeNow, true})) // a conversion of what is converted changes nothing
	return fmt.Sprintf("; if the store is this tree's and has only lost its %s, put %s there", memoryFile, b)
}

func (p *Project) openStore(base, id string) (disk.Dir, error) {
	b, err := p.Disk.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return b.OpenDir(id)
}

// search looks through the bases for a store that remembers this root.
func (p *Project) search(w Where, asked place, self rootFacts) (*finding, error) {
	places := w.defaultPlaces()
	if asked.asked {
		places = append([]place{asked}, places...)
	}
	none := &finding{bond: strangers}
	for _, pl := range places {
		f, err := p.searchBase(pl, self, none)
		if err != nil {
			return nil, &Error{Kind: Failed, Msg: "it is not known whether a store remembers this root", Err: err}
		}
		if f == nil {
			continue
		}
		if err := p.agree(asked, pl); err != nil {
			f.store.Close()
			return nil, err
		}
		return f, nil
	}
	return none, nil
}

// searchWithout is search where project.json is of no use. Where no store remembers the
// root, the error stands: the one that it named may still be somewhere.
func (p *Project) searchWithout(w Where, asked place, self rootFacts, why error) (*finding, error) {
	f, err := p.search(w, asked, self)
	if err != nil {
		return nil, err
	}
	if f.bond == strangers {
		return nil, refusedIdentity(p.Decree, why)
	}
	f.why = why
	return f, nil
}

// searchBase returns nil when no store in the base remembers this root.
// A base or store that others own is passed over; an error of the disk is one,
// lest a second history begins beside one that cannot be seen just now.
func (p *Project) searchBase(pl place, self rootFacts, none *finding) (*finding, error) {
	b, err := p.Disk.OpenRoot(pl.abs(p.Root))
	if err != nil {
		return nil, unlessAbsent(err)
	}
	defer b.Close()
	list, err := b.List()
	if err != nil {
		return nil, unlessAbsent(err)
	}
	var begun *finding
	for _, e := range list {
		if !validID(e.Name) {
			continue
		}
		store, err := b.OpenDir(e.Name)
		if err != nil {
			if err := unlessAbsent(err); err != nil {
				begun.close()
				return nil, err
			}
			continue
		}
		m, err := readMemory(store)
		if err != nil || m.ID != e.Name || m.Root != p.Root {
			store.Close()
			continue
		}
		f := &finding{bond: orphaned, base: pl.base, store: store, mem: m}
		switch {
		case m.remembers(p.Root, self):
			begun.close()
			return f, nil
		case begun == nil && !(disk.Origin{FS: m.FS}).Differs(self.Origin) && unfinished(store):
			begun = f
		default:
			none.near, none.nearB = m, pl.base
			store.Close()
		}
	}
	return begun, nil
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// unlessAbsent drops the errors that say that there is nothing of this user's.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return err
}

// unfinished says whether the store has an open record: its run's command may
// have deleted the root and made another directory at its path.
func unfinished(store disk.Dir) bool {
	open, err := store.OpenDir("open")
	if err != nil {
		return false
	}
	defer open.Close()
	list, err := open.List()
	return err == nil && slices.ContainsFunc(list, func(e disk.Entry) bool { return strings.HasSuffix(e.Name, ".json") })
}

// take makes the finding the project's.
func (p *Project) take(f *finding) {
	p.Store, p.ID, p.base, p.form = f.store, f.mem.ID, f.base, f.mem.form
	p.StorePath = filepath.Join(place{base: f.base}.abs(p.Root), f.mem.ID)
	switch {
	case f.why != nil:
		p.note("%s/%s is of no use (%v); the store in %s remembers this root and is used", dirName, identityFile, reason(f.why), p.StorePath)
	case f.bond == moved:
		p.note("the project moved here from %s; its history was kept", f.mem.Root)
	case f.bond == orphaned:
		p.note("%s/%s was gone; the store in %s belongs to this root and is used again", dirName, identityFile, p.StorePath)
	}
}

func (p *Project) note(format string, args ...any) {
	if p.Tell != nil {
		p.Tell(fmt.Sprintf(format, args...))
		return
	}
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

const (
	claimWait  = 10 * time.Second
	claimPause = 5 * time.Millisecond
)

// claim opens the project for writing and makes what is missing of it. What it
// writes, it writes under a lock, so that of many first commands one makes the
// store and the others find it.
func (p *Project) claim(w Where) error {
	for deadline := time.Now().Add(claimWait); ; time.Sleep(claimPause) {
		if err := p.openDecree(); err != nil {
			return err
		}
		f, err := p.examine(w)
		if err != nil {
			return err
		}
		if f.bond == bonded && !p.stale(f) {
			p.take(f)
			return p.tighten()
		}
		unlock, err := p.lockFirst(w, f)
		if err == nil {
			f.close()
			err = p.writeMissing(w)
			return errors.Join(err, unlock())
		}
		if !errors.Is(err, disk.ErrLocked) {
			f.close()
			return err
		}
		if f.bond == bonded || f.bond == moved || f.bond == orphaned {
			// Its holder is at work: known is enough, and writing it down can wait.
			p.take(f)
			return nil
		}
		f.close()
		if time.Now().After(deadline) {
			var base *Error
			if errors.As(err, &base) {
				return base
			}
			return &HeldError{}
		}
	}
}

// lockFirst takes the lock of the store that was found; where there is none yet, that
// of the base in which it will be, and the root's.
func (p *Project) lockFirst(w Where, f *finding) (release func() error, err error) {
	if f.bond != strangers && f.bond != copied {
		own, root, err := lockBoth(f.store, p.Dir, "")
		if err != nil {
			return nil, err
		}
		return func() error { return errors.Join(root(), own()) }, nil
	}
	base, _, err := openBase(p.Disk, w, p.Config, p.Root)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	if sameBase(p.Disk, base.Path(), p.Root) {
		return tryRoot(p.Dir, Holder{}, false, "") // one lock for both
	}
	own, err := base.TryLock()
	if errors.Is(err, disk.ErrLocked) {
		return nil, &Error{Kind: Refused, Msg: base.Path() + ": another process keeps the directory of stores locked", Err: err,
			Advice: "try again, or name another directory with DECREE_STORE"}
	}
	if err != nil {
		return nil, err
	}
	root, err := tryRoot(p.Dir, Holder{}, false, "")
	if err != nil {
		return nil, errors.Join(err, own())
	}
	return func() error { return errors.Join(root(), own()) }, nil
}

func (f *finding) close() {
	if f != nil && f.store != nil {
		f.store.Close()
	}
}

// stale says whether the store's memory is to be written anew for this root.
func (p *Project) stale(f *finding) bool {
	self, err := factsOf(p.Dir)
	return err == nil && f.mem.Root == p.Root && *f.mem != newMemory(f.mem.ID, p.Root, self, f.mem.form)
}

// writeMissing writes what is missing; lockFirst's lock is held.
func (p *Project) writeMissing(w Where) error {
	if err := p.openDecree(); err != nil {
		return err
	}
	f, err := p.examine(w)
	if err != nil {
		return err
	}
	if f.bond == strangers || f.bond == copied {
		if f.bond == copied {
			p.note("%s is a copy of %s; it has its own store and history from now on", p.Root, f.mem.Root)
		} else if f.near != nil {
			p.note("%s", f.hint("a new history begins here"))
		}
		f.close()
		return p.begin(w)
	}
	p.take(f)
	if f.bond == moved || p.stale(f) {
		if err := p.remember(); err != nil {
			return err
		}
	}
	if err := p.EnsureDecree(); err != nil {
		return err
	}
	return p.tighten()
}

// begin makes a new store for this root and then the project.json that names
// it: a death in between leaves a store that remembers the root.
func (p *Project) begin(w Where) error {
	base, pl, err := openBase(p.Disk, w, p.Config, p.Root)
	if err != nil {
		return err
	}
	defer base.Close()
	if filepath.Clean(pl.base) == filepath.Join(p.Root, filepath.FromSlash(inTree)) {
		pl.base = inTree // it moves with the root
	}
	if pl.base == inTree {
		p.note("the store is kept in %s, where a command can delete it: choose a safer place with DECREE_STORE before the first record", pl.abs(p.Root))
	}
	p.ID, p.base, p.form = newID(), pl.base, form{Version: storeNow}
	p.StorePath = filepath.Join(pl.abs(p.Root), p.ID)
	if p.Store, err = MakeDir(base, p.ID, PrivateDir); err != nil {
		return &Error{Kind: Failed, Msg: "store not made", Err: err, Advice: "name a directory that can be written with DECREE_STORE"}
	}
	if err := p.remember(); err != nil {
		_ = base.Rmdir(p.ID)
		return &Error{Kind: Failed, Msg: "store not made", Err: err, Advice: "free some space there, or name another directory with DECREE_STORE"}
	}
	if err := base.Sync(); err != nil {
		return err
	}
	return p.EnsureDecree()
}

// remember writes this root into the store.
func (p *Project) remember() error {
	self, err := factsOf(p.Dir)
	if err != nil {
		return err
	}
	b, err := json.Marshal(newMemory(p.ID, p.Root, self, p.form))
	if err != nil {
		return err
	}
	return ReplaceFile(p.Store, memoryFile, append(b, '\n'), PrivateFile, true)
}

// Outdated says whether the store has what an earlier version wrote and is not converted.
func (p *Project) Outdated() bool { return p.form.Version < storeNow || p.form.Converting }

// Converting makes the store one of this version that is being converted: earlier
// versions refuse it from here on. With done it is converted. The lock is held.
func (p *Project) Converting(done bool) error {
	was := p.form
	p.form = form{storeNow, !done}
	err := p.remember()
	if err != nil {
		p.form = was
	}
	return err
}

// Reread sees whether another process has converted the store meanwhile.
func (p *Project) Reread() error {
	m, err := readMemory(p.Store)
	if err == nil {
		p.form = m.form
	}
	return err
}

// tighten takes the store's directory back to its owner alone.
func (p *Project) tighten() error {
	self, err := p.Store.Self()
	if err != nil || self.Mode&0o777 == PrivateDir {
		return err
	}
	base, err := p.Disk.OpenRoot(filepath.Dir(p.StorePath))
	if err != nil {
		return err
	}
	defer base.Close()
	return base.Chmod(p.ID, PrivateDir)
}

// EnsureDecree makes .decree with its .gitignore, project.json, runs and tmp
// where they are missing, as after a command that deleted them, and opens
// Decree anew. A .gitignore that is there is left as it is; what else stands in
// the place of these is moved to .decree/aside.
func (p *Project) EnsureDecree() error {
	made, err := p.makeDecree()
	if err != nil {
		return err
	}
	if err := p.openDecree(); err != nil {
		return err
	}
	if err := p.fillDecree(); err != nil {
		return err
	}
	if made {
		return p.Dir.Sync()
	}
	return nil
}

func (p *Project) fillDecree() error {
	if _, err := p.Decree.Stat(".gitignore"); errors.Is(err, fs.ErrNotExist) {
		if err := ReplaceFile(p.Decree, ".gitignore", []byte(gitignore), 0o644, false); err != nil {
			return err
		}
	}
	runs, err := p.OwnDir(p.Decree, "runs")
	if err != nil {
		return err
	}
	runs.Close()
	if err := p.ownTmp(); err != nil {
		return err
	}
	if err := p.clearConfig(); err != nil {
		return err
	}
	want := identity{Version: formatNow, ID: p.ID, Store: p.base}
	has, err := readIdentity(p.Decree)
	if err == nil && has != nil && *has == want {
		return nil
	}
	if useless(err) {
		err := p.PutAside(p.Decree, identityFile)
		if errors.Is(err, fs.ErrPermission) {
			return nil // the store that remembers the root is found without it, as take has said
		}
		if unlessMissing(err) != nil {
			return err
		}
	}
	b, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return ReplaceFile(p.Decree, identityFile, append(b, '\n'), 0o644, true)
}
