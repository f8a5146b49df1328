package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
)

// inTree is the base of a project whose user has no writable home, below the root.
const inTree = ".decree/store"

// storeBase is a directory of stores, and where it comes from.
type storeBase struct {
	base   string // absolute, or inTree
	origin string // for messages
	config bool   // it is the config that asks for it
	asked  bool   // by the environment or the config, not by default
	home   string // the home directory that it is below, where inTree may stand in for it
}

// askedBase is the base that DECREE_STORE or the config asks for; asked is
// false when neither does.
func (w Where) askedBase(c Config) (storeBase, error) {
	p := storeBase{asked: true}
	switch {
	case w.StoreEnv != "":
		p.base, p.origin = w.StoreEnv, "DECREE_STORE"
	case c.Store != "":
		p.base, p.origin, p.config = c.Store, "store in "+dirName+"/"+configFile, true
	default:
		return storeBase{}, nil
	}
	home := w.Home
	if w.Behind != nil {
		home = w.Behind.Home
	}
	if rest, ok := strings.CutPrefix(p.base, "~/"); ok && home != "" {
		p.base = filepath.Join(home, rest)
	}
	if p.base == inTree {
		return p, nil
	}
	if !filepath.IsAbs(p.base) {
		return storeBase{}, &Error{Kind: Usage, Msg: fmt.Sprintf("%s: %q is not an absolute path", p.origin, p.base), Advice: "for example /var/lib/decree"}
	}
	p.base = filepath.Clean(p.base)
	return p, nil
}

// defaultBases are the bases that count when nothing is asked for, best first.
func (w Where) defaultBases() []storeBase {
	var out []storeBase
	if w.Behind != nil && filepath.IsAbs(w.Behind.Home) {
		out = append(out, inHome(w.Behind.Home))
	}
	if filepath.IsAbs(w.DataHome) {
		out = append(out, storeBase{base: filepath.Join(w.DataHome, "decree"), origin: "XDG_DATA_HOME"})
	}
	if filepath.IsAbs(w.Home) {
		out = append(out, inHome(w.Home))
	}
	return append(out, storeBase{base: inTree, origin: "the root"})
}

func inHome(home string) storeBase {
	return storeBase{base: filepath.Join(home, ".local", "share", "decree"), origin: "the home directory", home: home}
}

// Base is where stores are made unless a tree's config says otherwise; "" where that is in the
// tree itself, or not known.
func (w Where) Base() string {
	p, err := w.askedBase(Config{})
	if err == nil && !p.asked {
		p = w.defaultBases()[0]
	}
	if err != nil || p.base == inTree {
		return ""
	}
	return p.base
}

// forOwner is w for a tree of owner's: of the user for whom root acts nothing counts in
// the tree of another.
func (w Where) forOwner(owner uint32) Where {
	if w.Behind != nil && w.Behind.UID != owner {
		w.Behind = nil
	}
	return w
}

// forStore is forOwner for the place of the store. What root makes in a directory of another user's is given to that user, who
// would read, and could change, what is recorded: so neither a HOME nor an XDG_DATA_HOME counts for root (sudo -E, su -m, macOS's sudo)
// which belongs to somebody to whom the tree does not. Root's own home is in its place.
func (w Where) forStore(d disk.Disk, owner uint32) Where {
	w = w.forOwner(owner)
	if filepath.IsAbs(w.DataHome) && givesAway(d, owner, w.DataHome, filepath.Join(w.DataHome, "decree")) {
		w.DataHome = ""
	}
	if filepath.IsAbs(w.Home) && givesAway(d, owner, w.Home, inHome(w.Home).base) {
		if w.Home = homeOfRoot(); w.Home != "" && givesAway(d, owner, w.Home, inHome(w.Home).base) {
			w.Home = ""
		}
	}
	return w
}

// homeOfRoot is what the system's list of users says; "" where it says nothing.
var homeOfRoot = func() string {
	u, err := user.LookupId("0")
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return u.HomeDir
}

// givesAway says whether what root makes at one of the paths would be given to a user to whom the tree, which is owner's, does not belong.
func givesAway(d disk.Disk, owner uint32, paths ...string) bool {
	return os.Geteuid() == 0 && slices.ContainsFunc(paths, func(path string) bool {
		heir := heirAt(d, path)
		return heir != 0 && heir != owner
	})
}

// heirAt is the owner of the nearest directory that is there, from path upwards, to whom belongs what root makes at path.
func heirAt(d disk.Disk, path string) uint32 {
	for ; ; path = filepath.Dir(path) {
		dir, err := d.OpenSearch(path)
		if err == nil {
			self, err := dir.Self()
			dir.Close()
			if err == nil {
				return self.UID
			}
		}
		if path == filepath.Dir(path) {
			return 0
		}
	}
}

// refuseGiving refuses to make a store where it would belong to a user to whom the tree does not.
func (p *Project) refuseGiving(pl storeBase) error {
	self, err := p.Dir.Self()
	if err != nil {
		return err
	}
	path := pl.abs(p.Root)
	if !givesAway(p.Disk, self.UID, path) {
		return nil
	}
	heir := userName(heirAt(p.Disk, path))
	return &Error{Kind: Refused,
		Msg: fmt.Sprintf("%s: a store in %s would belong to %s, and %s belongs to %s: %s could read there, and change, all that is recorded",
			pl.origin, path, heir, p.Root, userName(self.UID), heir),
		Advice: "with DECREE_STORE name a directory that belongs to root, or to the owner of the tree"}
}

// abs is the base's path for a tree at root.
func (p storeBase) abs(root string) string {
	if p.base == inTree {
		return filepath.Join(root, filepath.FromSlash(inTree))
	}
	return p.base
}

// openBase makes the base of a new project and returns it with the place that
// it is at: inTree where the home directory cannot be written.
func (p *Project) openBase(w Where) (disk.Dir, storeBase, error) {
	d, root := p.Disk, p.Root
	if w.inLayer {
		pl := storeBase{base: inTree, origin: "the layer"}
		dir, err := makeBase(d, pl, root)
		return dir, pl, err
	}
	pl, err := w.askedBase(p.Config)
	if err != nil {
		return nil, storeBase{}, err
	}
	if !pl.asked {
		pl = w.defaultBases()[0]
	}
	if err := w.agreed(d, pl, root); err != nil {
		return nil, storeBase{}, err
	}
	if err := p.refuseGiving(pl); err != nil {
		return nil, storeBase{}, err
	}
	dir, err := makeBase(d, pl, root)
	if err != nil && pl.home != "" && noWritableHome(err) {
		pl = storeBase{base: inTree, origin: "the root"}
		dir, err = makeBase(d, pl, root)
	}
	if err != nil {
		return nil, storeBase{}, &Error{Kind: Failed, Msg: "no place for the store", Err: err,
			Advice: "name a directory that can be written with DECREE_STORE"}
	}
	return dir, pl, nil
}

// agreed refuses a place outside of the usual ones that the config asks for, unless
// the user has agreed to it.
func (w Where) agreed(d disk.Disk, pl storeBase, root string) error {
	if !pl.config || w.ConfigStore {
		return nil
	}
	for _, usual := range w.defaultBases() {
		if sameBase(d, pl.abs(root), usual.abs(root)) {
			return nil
		}
	}
	return &Error{Kind: Refused, Asks: true, Msg: fmt.Sprintf("%s/%s places the store, which holds a copy of every file, in %s", dirName, configFile, pl.base),
		Advice: "if that is your own config, say --yes once; or name a directory yourself with DECREE_STORE"}
}

func makeBase(d disk.Disk, pl storeBase, root string) (disk.Dir, error) {
	if pl.home != "" {
		// A home that does not exist is not made: system users have such ones.
		h, err := d.OpenRoot(pl.home)
		if err != nil {
			return nil, err
		}
		h.Close()
	}
	if pl.base == inTree {
		return makeInTree(d, root)
	}
	return makePath(d, pl.abs(root))
}

// makeInTree is makePath of inTree, and follows no link: one may have come with the tree, and would place the store anywhere.
func makeInTree(d disk.Disk, root string) (disk.Dir, error) {
	dir, err := d.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	decree, err := MakeDir(dir, dirName, 0o755)
	if err != nil {
		return nil, err
	}
	defer decree.Close()
	base, err := MakeDir(decree, path.Base(inTree), PrivateDir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(decree.Sync(), dir.Sync()); err != nil {
		base.Close()
		return nil, err
	}
	return base, nil
}

func noWritableHome(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EROFS)
}

// makePath opens path and makes what is missing of it, private and durable.
func makePath(d disk.Disk, path string) (disk.Dir, error) {
	dir, err := d.OpenRoot(path)
	if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return dir, err
	}
	parent, err := makePath(d, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	name := filepath.Base(path)
	perm := PrivateDir
	if name == dirName {
		perm = 0o755
	}
	if dir, err = MakeDir(parent, name, perm); err != nil {
		return nil, err
	}
	if err := parent.Sync(); err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// sameBase compares two bases by directory where both exist, else by name.
func sameBase(d disk.Disk, a, b string) bool {
	if a == b {
		return true
	}
	da, err := d.OpenRoot(a)
	if err != nil {
		return false
	}
	defer da.Close()
	db, err := d.OpenRoot(b)
	if err != nil {
		return false
	}
	defer db.Close()
	ia, erra := da.Self()
	ib, errb := db.Self()
	return erra == nil && errb == nil && ia.Ino != 0 && ia.SameFile(ib)
}

// Stores are the directories that hold stores and must never be part of a tree, by
// device and inode: the project's own, and whole bases, its own and those of other
// projects of this user, and where backups go. One that contains the root is not among them.
func (p *Project) Stores(w Where) ([]disk.Info, error) {
	var out []disk.Info
	root, err := p.Dir.Self()
	if err != nil {
		return nil, err
	}
	bases := w.forOwner(root.UID).defaultBases() // with the stores in a home that does not count for this tree's
	home := w.Home
	w = w.forStore(p.Disk, root.UID)
	if own := w.defaultBases(); !slices.Equal(own, bases) {
		bases = append(bases, own...)
	}
	if asked, err := w.askedBase(p.Config); err == nil && asked.asked {
		bases = append(bases, asked)
	}
	if p.Store != nil {
		self, err := p.Store.Self()
		if err != nil {
			return nil, err
		}
		out = append(out, self)
		bases = append(bases, storeBase{base: p.base})
	}
	if to := p.Config.BackupTo(home); filepath.IsAbs(to) { // copies of the tree, and no part of it
		bases = append(bases, storeBase{base: to})
	}
	inTree, err := p.backupsInTree()
	if err != nil {
		return nil, err
	}
	for _, at := range inTree {
		bases = append(bases, storeBase{base: at})
	}
	for _, pl := range bases {
		self, err := p.baseApart(w, pl)
		if err != nil {
			return nil, err
		}
		if self.Ino != 0 {
			out = append(out, self)
		}
	}
	return out, nil
}

// BackupsFile is what the store remembers of its backups: {"targets":{"<target>":{"name":"<directory in it>",...}}}.
const BackupsFile = "backup.json"

// BackupKeysFile is what the store remembers of the keys of encrypted backups.
const BackupKeysFile = "backup-keys.json"

// backupsInTree are the project's own directories in targets below the root, such as one that --to has
// named once: package backup has marked them, or the marker is lost and the rest is there. What is no such file any more tells of none, as the commands
// of the backup say; one that cannot be read just now is an error, else the targets would be recorded.
func (p *Project) backupsInTree() (out []string, err error) {
	if p.Store == nil {
		return nil, nil
	}
	data, err := ReadFile(p.Store, BackupsFile, 1<<20)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrTooLarge) || errors.Is(err, disk.ErrNotRegular) || disk.OtherKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var m struct {
		Targets map[string]struct {
			Name string `json:"name"`
		} `json:"targets"`
	}
	if json.Unmarshal(data, &m) != nil {
		return nil, nil //nolint:nilerr // damaged, which the commands of the backup say
	}
	for target, r := range m.Targets {
		at := filepath.Join(target, r.Name)
		rel, err := filepath.Rel(p.Root, at)
		if err != nil || !filepath.IsLocal(rel) || !filepath.IsAbs(target) || !IsBackupName(r.Name) {
			continue
		}
		is, err := p.isBackup(at)
		if err != nil {
			return nil, err
		}
		if is {
			out = append(out, at)
		}
	}
	return out, nil
}

// isBackup says whether the directory at has the marker of a backup, or else what is never without one where nobody has removed it.
func (p *Project) isBackup(at string) (bool, error) {
	dir, err := p.Disk.OpenSearch(at)
	if err != nil {
		return false, unlessAbsent(err)
	}
	defer dir.Close()
	_, err = dir.Stat(BackupMarker)
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, unlessAbsent(err)
	}
	for _, name := range []string{BackupManifest, BackupPacks} {
		if _, err := dir.Stat(name); err != nil {
			return false, unlessAbsent(err)
		}
	}
	return true, nil
}

// BackupMarker is in each directory of a target that is a project's.
const BackupMarker = "decree-backup.json"

// What is beside it.
const (
	BackupManifest = "manifest.json"
	BackupPacks    = "packs"
)

// realBase is the base's path, its real one where it is there.
func (p *Project) realBase(w Where, pl storeBase) string {
	path := pl.abs(p.Root)
	if real, err := w.real(path); err == nil {
		return real
	}
	return path
}

// baseApart is the base's directory, if it is there and does not contain the root.
func (p *Project) baseApart(w Where, pl storeBase) (self disk.Info, err error) {
	path := p.realBase(w, pl)
	if rel, err := filepath.Rel(path, p.Root); err == nil && filepath.IsLocal(rel) {
		return self, nil
	}
	dir, err := p.Disk.OpenSearch(path)
	if err != nil {
		return self, unlessAbsent(err)
	}
	defer dir.Close()
	return dir.Self()
}
