package project

import (
	"cmp"
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

	"decree/disk"
	"decree/tree"
)

// finding is what examine found out about the tree and its store.
type finding struct {
	bond         bond
	base         string   // as project.json has it
	store        disk.Dir // open unless strangers
	mem          *memory
	nearMemory   *memory // a store that remembers another directory at this path
	nearBase     string  // its base
	formerBase   string  // the base that project.json has and that the store is not in any more; "": it is
	identityErr  error   // why project.json was of no use; nil: it was, or there was none
	otherHistory string  // how the history that it names is continued here instead; "": it is of no root that is gone
}

// hint is advice, with a word on the store of an earlier directory at this path.
func (f *finding) hint(advice string) string {
	if f.nearMemory == nil {
		return advice
	}
	return fmt.Sprintf("%s; an earlier directory at this path has a history: to continue it, %s", advice,
		continuing(identity{Version: formatNow, ID: f.nearMemory.ID, Store: tree.Text(f.nearBase)}))
}

func (f *finding) close() {
	if f != nil && f.store != nil {
		f.store.Close()
	}
}

func (p *Project) examine(w Where) (*finding, error) {
	asked, err := w.askedBase(p.Config)
	if err != nil {
		return nil, err
	}
	self, err := factsOf(p.Dir)
	if err != nil {
		return nil, err
	}
	id, err := readIdentity(p.Decree)
	switch {
	case unusableIdentity(err):
		// Where no store remembers the root the error stands: the store that project.json
		// named may still be somewhere.
		f, serr := p.search(w, asked, self)
		if serr == nil && f.bond == strangers {
			serr = refusedIdentity(p.Decree, err)
		}
		if serr != nil {
			return nil, serr
		}
		f.identityErr = err
		return f, nil
	case err != nil:
		return nil, refusedIdentity(p.Decree, err)
	case id == nil:
		return p.search(w, asked, self)
	}
	named, err := p.named(w, asked, id, self)
	if err != nil || named.bond == bonded || named.bond == moved && named.mem.remembers(string(named.mem.Root), self) {
		return named, err
	}
	// Another tree copied over this one brings its project.json, and not its history, whether that
	// tree is still there or gone.
	own, err := p.search(w, asked, self)
	if err == nil && (own.bond == strangers || named.bond == moved && !own.mem.remembers(p.Root, self)) {
		own.close()
		return named, nil
	}
	named.close()
	if err != nil {
		return nil, err
	}
	own.identityErr = fmt.Errorf("it is that of %s", named.mem.Root)
	if named.bond == moved {
		own.identityErr = fmt.Errorf("it is that of %s, which is gone", named.mem.Root)
		own.otherHistory = continuing(*id)
	}
	return own, nil
}

// named looks at the store that project.json names, which has to be one that may be used here.
func (p *Project) named(w Where, asked storeBase, id *identity, self rootFacts) (f *finding, err error) {
	from := ""
	store, m, err := p.openNamed(w, asked, id)
	if err != nil {
		now, near := p.baseNow(w, asked, id, self)
		if now == "" {
			return nil, nearby(err, id, near)
		}
		from, id.Store = string(id.Store), tree.Text(now)
		store, m, err = p.openNamed(w, asked, id)
	}
	if err != nil {
		return nil, err
	}
	if err = p.mayFollow(w, asked, string(id.Store), store); err == nil {
		f = &finding{bond: compare(p.Disk, m, p.Root, self), base: string(id.Store), store: store, mem: m, formerBase: from}
		if f.bond == moved && !m.remembers(string(m.Root), self) {
			err = p.mayMove(store, m)
		}
	}
	if err != nil {
		store.Close()
		return nil, err
	}
	return f, nil
}

// continuing is how the tree continues the history of a project: what is to stand in its project.json.
func continuing(id identity) string {
	b, _ := json.Marshal(id)
	return fmt.Sprintf("put %s into %s/%s", b, dirName, identityFile)
}

// mayFollow refuses a store of somebody whom this process has no reason to trust, if
// project.json or the config names it: whoever brought that file into the tree would read in the store what is
// recorded, and his unfinished work there would be finished in the tree. A store that
// project.json names in one of the user's own bases is the user's.
func (p *Project) mayFollow(w Where, asked storeBase, base string, store disk.Dir) error {
	for _, own := range w.defaultBases() {
		if own.base != inTree && sameBase(p.Disk, own.base, base) && !(asked.asked && !asked.config) {
			return nil
		}
	}
	owner, trusted, err := p.trusts(asked, store)
	if err != nil || trusted {
		return err
	}
	file := filepath.Join(p.Root, dirName, identityFile)
	if asked.asked && base == asked.base && asked.config {
		file = filepath.Join(p.Root, dirName, configFile)
	}
	advice := "if you trust its owner, name the directory above it with DECREE_STORE"
	if asked.asked && !asked.config {
		advice = fmt.Sprintf("%s is a directory of another owner than this store, so naming it does not say that you trust that one", asked.base)
	}
	return &Error{Kind: Refused,
		Msg:    fmt.Sprintf("%s: the store that %s names belongs to %s, and neither to you nor to the owner of %s", store.Path(), file, userName(owner), p.Root),
		Advice: fmt.Sprintf("%s; if %s came with somebody else's tree, remove it", advice, file)}
}

// mayMove refuses that a history goes on in a tree of another user than the store's, whose directory is not the one that the store
// remembers: the ids of others are no secret, and with one in his project.json that user would get what the records hold into his .decree/runs.
func (p *Project) mayMove(store disk.Dir, m *memory) error {
	has, err := store.Self()
	if err != nil {
		return err
	}
	root, err := p.Dir.Self()
	if err != nil || root.UID == has.UID || root.UID == 0 {
		return err
	}
	file := filepath.Join(p.Root, dirName, identityFile)
	return &Error{Kind: Refused, State: Unchanged,
		Msg: fmt.Sprintf("%s names the history of %s, which is gone; the store belongs to %s, and %s to %s, who would get to read what was recorded there",
			file, m.Root, userName(has.UID), p.Root, userName(root.UID)),
		Advice: fmt.Sprintf("if %s is that tree, make it %s's own (chown); else remove %s", p.Root, userName(has.UID), file)}
}

// trusts says who owns the store, and whether that is the user of this process, the owner of the
// root, or of the base that the environment asks for. A base may be shared, with a store of anybody in it.
func (p *Project) trusts(asked storeBase, store disk.Dir) (owner uint32, trusted bool, err error) {
	has, err := store.Self()
	if err != nil {
		return 0, false, err
	}
	if Mine(has) {
		return has.UID, true, nil
	}
	root, err := p.Dir.Self()
	if err != nil || has.UID == root.UID {
		return has.UID, err == nil, err
	}
	if !asked.asked || asked.config {
		return has.UID, false, nil
	}
	dir, err := p.Disk.OpenSearch(asked.abs(p.Root))
	if err != nil {
		return has.UID, false, err
	}
	defer dir.Close()
	base, err := dir.Self()
	return has.UID, err == nil && has.UID == base.UID, err
}

// refuseOtherBase refuses a base that is asked for where the project's store is in another one.
func (p *Project) refuseOtherBase(asked, has storeBase) error {
	if !asked.asked || sameBase(p.Disk, asked.abs(p.Root), has.abs(p.Root)) {
		return nil
	}
	return &Error{Kind: Refused,
		Msg:    fmt.Sprintf("%s asks for a store in %s, but this project's is in %s", asked.origin, asked.abs(p.Root), has.abs(p.Root)),
		Advice: fmt.Sprintf("unset %s, or move the store's directory there and correct %s/%s", asked.origin, dirName, identityFile)}
}

// openNamed is openKnown where it is not asked for another place.
func (p *Project) openNamed(w Where, asked storeBase, id *identity) (disk.Dir, *memory, error) {
	if err := p.refuseOtherBase(asked, storeBase{base: string(id.Store)}); err != nil {
		return nil, nil, err
	}
	return p.openKnown(w, asked, id)
}

// baseNow is the base in which the store of id is where it is not any more in that of project.json, as after a home was
// renamed: one that is asked for or the user's own, with a store of that id that remembers this very directory. near has one that
// remembers another directory, as after a copy to another machine.
func (p *Project) baseNow(w Where, asked storeBase, id *identity, self rootFacts) (now, near string) {
	if store, err := p.openStore(storeBase{base: string(id.Store)}.abs(p.Root), id.ID); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			store.Close()
		}
		return "", ""
	}
	bases := w.defaultBases()
	if asked.asked {
		bases = []storeBase{asked}
	}
	for _, b := range bases {
		store, err := p.openStore(b.abs(p.Root), id.ID)
		if err != nil {
			continue
		}
		m, err := readMemory(store)
		if err == nil && m.ID == id.ID && p.mayFollow(w, asked, b.base, store) == nil {
			if m.remembers(string(m.Root), self) && m.Ino != 0 {
				now = cmp.Or(now, b.base)
			} else {
				near = cmp.Or(near, b.base)
			}
		}
		store.Close()
	}
	return now, near
}

// nearby is err, with a word on a base that has a store of the missing one's id.
func nearby(err error, id *identity, base string) error {
	missing := (*StoreMissing)(nil)
	if base != "" && errors.As(err, &missing) {
		missing.why.Advice = fmt.Sprintf("%s has a store of its id, which remembers another directory: if it is this tree's, as after a copy to another machine or disk, %s; else %s",
			base, continuing(identity{Version: formatNow, ID: id.ID, Store: tree.Text(base)}), missing.why.Advice)
	}
	return err
}

// openKnown opens the store that project.json names.
func (p *Project) openKnown(w Where, asked storeBase, id *identity) (disk.Dir, *memory, error) {
	base := storeBase{base: string(id.Store)}.abs(p.Root)
	path := filepath.Join(base, id.ID)
	store, err := p.openStore(base, id.ID)
	if errors.Is(err, fs.ErrNotExist) && w.Anew {
		store, err = p.makeAnew(w, asked, id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, p.storeMissing(id)
	}
	if err != nil {
		return nil, nil, p.storeShut(path, err)
	}
	m, err := readMemory(store)
	if advice := ModeAdvice(err); advice != "" {
		store.Close()
		return nil, nil, &Error{Kind: Failed, Msg: path + ": this project's store cannot be read", Err: err, Advice: advice}
	}
	if err == nil && m.ID != id.ID {
		err = errAnothers
	}
	if err != nil {
		store.Close()
		return nil, nil, &Error{Kind: Refused, Msg: path + ": not this project's store", Err: err,
			Advice: fmt.Sprintf("if %s came with somebody else's tree, remove it%s", filepath.Join(p.Root, dirName, identityFile), p.lostMemory(id, err))}
	}
	p.Made = m.Awaits
	if m.Awaits && !w.Anew {
		store.Close()
		return nil, nil, p.storeMissing(id)
	}
	return store, m, nil
}

// storeShut is the error of a store that is there, at path, and does not open.
func (p *Project) storeShut(path string, err error) error {
	if advice := ModeAdvice(err); advice != "" {
		return &Error{Kind: Failed, Msg: path + ": this project's store cannot be opened", Err: reason(err), Advice: advice}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &Error{Kind: Failed, Msg: fmt.Sprintf("%s: this project's store belongs to %s, and you may not read it", path, ownerOf(p.Disk, path)), Err: reason(err),
			Advice: fmt.Sprintf("work as that user; or, to do without it, remove %s: a store of yours that remembers this root is then used again, else a new history begins; a directory of yours below this root becomes a project of its own with 'decree --root DIR checkpoint'", filepath.Join(p.Root, dirName, identityFile))}
	}
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return &Error{Kind: Failed, Msg: path + ": something else is in the place of this project's store, which is a directory and no link to one", Err: reason(err),
			Advice: "move it away, and put the store back there, if you know where it is; without it the next command says what can be done"}
	}
	return err
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

// errAnothers is about a store that stands at this project's place.
var errAnothers = errors.New("it is another project's")

// lostMemory is advice for a store whose memory of its root is gone. decree does
// not write it again by itself: nothing else tells the tree from a copy of it.
func (p *Project) lostMemory(id *identity, err error) string {
	var newer *Error
	self, serr := factsOf(p.Dir)
	if errors.As(err, &newer) || errors.Is(err, errAnothers) || serr != nil {
		return ""
	}
	b, _ := json.Marshal(newMemory(id.ID, p.Root, self, form{Version: storeNow, Converting: true})) // a conversion of what is converted changes nothing
	return fmt.Sprintf("; if the store is this tree's and only its %s is lost or damaged, make that file %s", memoryFile, b)
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
func (p *Project) search(w Where, asked storeBase, self rootFacts) (*finding, error) {
	bases := w.defaultBases()
	if asked.asked {
		bases = append([]storeBase{asked}, bases...)
	}
	none := &finding{bond: strangers}
	for _, pl := range bases {
		f, err := p.searchBase(pl, self, none)
		if err != nil {
			return nil, &Error{Kind: KindOf(err), Msg: "it is not known whether a store remembers this root", Err: err}
		}
		if f == nil {
			continue
		}
		err = p.refuseOtherBase(asked, pl)
		if err == nil {
			err = p.mayFollow(w, asked, pl.base, f.store)
		}
		if err != nil {
			f.store.Close()
			return nil, err
		}
		return f, nil
	}
	return none, nil
}

// searchBase returns nil when no store in the base remembers this root.
// A store that others own is passed over, whatever it says of the root: anybody can make one
// in a shared base, and would read there what is recorded. One that the config's base holds is left to mayFollow,
// which says so. An error of the disk is one, lest a second history begins beside one that cannot be seen just now.
func (p *Project) searchBase(pl storeBase, self rootFacts, none *finding) (*finding, error) {
	b, err := p.Disk.OpenRoot(pl.abs(p.Root))
	if err != nil {
		return nil, unlessAbsent(err)
	}
	defer b.Close()
	if path, err := b.Readlink(p.linkName()); err == nil && filepath.IsAbs(path) && pl.origin != linked {
		if f, err := p.searchBase(storeBase{base: filepath.Dir(path), origin: linked}, self, none); f != nil || err != nil {
			return f, err
		}
		if err := p.linkedMissing(pl, path); err != nil {
			return nil, err
		}
	}
	list, err := b.List()
	if err != nil {
		return nil, unlessAbsent(err)
	}
	var begun *finding
	for _, e := range list {
		if !validID(e.Name) {
			continue
		}
		store, m, err := p.remembering(pl, b, e.Name)
		if err != nil {
			begun.close()
			return nil, err
		}
		if store == nil {
			continue
		}
		f := &finding{bond: orphaned, base: pl.base, store: store, mem: m}
		switch {
		case m.remembers(p.Root, self):
			begun.close()
			return f, nil
		case begun == nil && !(disk.Origin{FS: m.FS}).Differs(self.Origin) && unfinished(store, runsInPlace):
			begun = f
		default:
			none.nearMemory, none.nearBase = m, pl.base
			store.Close()
		}
	}
	return begun, nil
}

// linkedMissing is the error of a store that is not there, and to which the link in a usual base leads: whoever may write to a base that is
// asked for may have made the link there. One that lay in the tree is not away, but deleted.
func (p *Project) linkedMissing(pl storeBase, path string) error {
	store, err := p.openStore(filepath.Dir(path), filepath.Base(path))
	if err == nil {
		store.Close()
	}
	if rel, rerr := filepath.Rel(p.Root, path); pl.asked || !errors.Is(err, fs.ErrNotExist) || rerr == nil && filepath.IsLocal(rel) {
		return nil
	}
	return &Error{Kind: Failed, Msg: path + ": this project's store is missing",
		Advice: fmt.Sprintf("bring it back there; or, to do without it, remove %s: a new history begins then", filepath.Join(pl.abs(p.Root), p.linkName()))}
}

// remembering opens the store of that name, if it is one that remembers a root at this path; else it returns nil.
func (p *Project) remembering(pl storeBase, base disk.Dir, name string) (disk.Dir, *memory, error) {
	store, err := base.OpenDir(name)
	if err != nil {
		return nil, nil, unlessAbsent(err)
	}
	_, trusted, err := p.trusts(pl, store)
	if err == nil && (trusted || pl.config) {
		var m *memory
		m, err = readMemory(store)
		here := m != nil && string(m.Root) == p.Root
		if err == nil && m.ID == name && here {
			return store, m, nil
		}
		if !here && !diskFails(err) {
			err = nil
		}
	}
	store.Close()
	return nil, nil, err
}

// diskFails says whether an error is the disk's, unlike that of a file which is another user's, or
// no file of ours.
func diskFails(err error) bool {
	return errors.As(err, new(syscall.Errno)) && unlessAbsent(err) != nil && !disk.OtherKind(err)
}

// unfinished says whether the store has an open record of a kind.
func unfinished(store disk.Dir, kind func(open disk.Dir, name string) bool) bool {
	open, err := store.OpenDir("open")
	if err != nil {
		return false
	}
	defer open.Close()
	list, err := open.List()
	return err == nil && slices.ContainsFunc(list, func(e disk.Entry) bool { return strings.HasSuffix(e.Name, ".json") && kind(open, e.Name) })
}

// ofAnyKind is every open record.
func ofAnyKind(disk.Dir, string) bool { return true }

// runsInPlace is an open record of a run whose command may have deleted the root and made another directory at its path: of no turn, which has
// no command, and of no run in a layer. One that cannot be read may be such a run's.
func runsInPlace(open disk.Dir, name string) bool {
	var o struct {
		Record struct{ Reason, Isolated string }
	}
	data, err := ReadFile(open, name, maxOpen)
	return err != nil || json.Unmarshal(data, &o) != nil || o.Record.Reason != "turn" && o.Record.Isolated == ""
}

// useFinding opens the project with the store that was found.
func (p *Project) useFinding(f *finding) {
	p.Store, p.ID, p.base, p.form = f.store, f.mem.ID, f.base, f.mem.form
	p.StorePath = filepath.Join(storeBase{base: f.base}.abs(p.Root), f.mem.ID)
	if f.formerBase != "" {
		p.note("this project's store is in %s now, no more in %s", filepath.Dir(p.StorePath), f.formerBase)
	}
	switch {
	case f.identityErr != nil:
		what := fmt.Sprintf("%s/%s is of no use (%v); the store in %s remembers this root and is used", dirName, identityFile, reason(f.identityErr), p.StorePath)
		if f.otherHistory != "" {
			what += fmt.Sprintf("; to continue the other history here instead, move that store out of %s and %s", filepath.Dir(p.StorePath), f.otherHistory)
		}
		p.note("%s", what)
	case f.bond == moved:
		p.note("the project moved here from %s; its history was kept", f.mem.Root)
	case f.bond == orphaned:
		p.note("%s/%s was gone; the store in %s belongs to this root and is used again", dirName, identityFile, p.StorePath)
	}
}
