package project

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"decree/disk"
)

// dirName is the directory that decree keeps in a root.
const dirName = ".decree"

// What it has there: a directory of each record, and what is on its way to its place.
const (
	RunsDir = "runs"
	TmpDir  = "tmp"
)

// Where is what the command line and the environment say about places; cmd fills it.
type Where struct {
	RootFlag   string // --root, relative to Cwd or absolute; "" when not given
	RootName   string // the flag that RootFlag comes from, "" is --root
	Cwd        string // the working directory, absolute; "" if it was deleted
	Home       string // the user's home, "" when unknown
	StoreEnv   string // $DECREE_STORE
	DataHome   string // $XDG_DATA_HOME
	ConfigHome string // $XDG_CONFIG_HOME
	// ConfigStore lets the config place a new project's store where it likes: the user
	// has agreed. The config may have come with a tree that others made.
	ConfigStore bool
	// NoConfig leaves config.yml unread: the defaults hold.
	NoConfig bool
	// Arriving is of what goes on with a restore into the root that is not finished, or recovers: all else that
	// changes the project is refused until then.
	Arriving bool
	// Anew is of a restore that makes the store anew which project.json names and which is missing.
	Anew bool
	// Behind is the user for whom root acts (sudo), nil if there is none. The store of a
	// new project in that user's tree goes into that user's home, lest it is root's.
	Behind *User
	// Layered is the name of the layer in which a root lies, as a command of an isolated run sees it, "" for none.
	// What is recorded there goes with the layer, and no store outside of it is changed. Nil:
	// none does.
	Layered func(root string) (layer string)
	inLayer bool // what it said
	// Died says whether a run in place died in a project whose store is open, and is not recorded: its command may have put links
	// in the place of decree's own directories. Nil: none did.
	Died func(p *Project) (bool, error)
	// RealPath resolves links in a path; nil means filepath.EvalSymlinks. A disk
	// that is not the system's needs its own.
	RealPath func(string) (string, error)
}

// User is a user of the system, with the home directory.
type User struct {
	UID  uint32
	Home string
}

func (w Where) real(path string) (string, error) {
	if w.RealPath != nil {
		return w.RealPath(path)
	}
	return filepath.EvalSymlinks(path)
}

// FindRoot returns the root's real path.
//
// A directory whose names cannot be looked up is passed over in the search. The home
// directory and / are never found: as a root they need --root, else the error
// is of kind Usage and says so.
func FindRoot(d disk.Disk, w Where) (root string, err error) {
	if w.RootFlag != "" {
		return namedRoot(d, w)
	}
	if w.Cwd == "" {
		return "", errDeleted()
	}
	cwd, err := w.real(w.Cwd)
	if err != nil {
		return "", err
	}
	if err := searchable(d, cwd); err != nil {
		return "", err
	}
	s := newSearch(d, w)
	if dir := s.upwards(cwd, func(d disk.Dir) bool { return s.holdsDecree(d) || s.holdsGit(d) }); dir != "" {
		return dir, nil
	}
	if s.barred(cwd) {
		return "", &Error{Kind: Usage, Msg: fmt.Sprintf("%s is not used as a root unless you ask for it", cwd),
			Advice: fmt.Sprintf("go to the project's directory, or say '--root %s' if you mean all of it", cwd)}
	}
	return cwd, nil
}

// errDeleted is of a working directory that no path leads to any more.
func errDeleted() error {
	return &Error{Kind: Usage, Msg: "the directory you are in was deleted, also where another one has come back in its place",
		Advice: `go to the one that is there now: cd "$PWD"; where there is none, 'decree --root DIR COMMAND' names the project's`}
}

// searchable refuses a directory that a command, or its user, has taken the right to
// search from: a project further up must not be taken for the one that is meant.
func searchable(d disk.Disk, cwd string) error {
	dir, err := d.OpenSearch(cwd)
	if err == nil {
		defer dir.Close()
		_, err = dir.Stat(dirName)
	}
	if !errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return &Error{Kind: Failed, State: Unchanged, Msg: fmt.Sprintf("you may not search %s, the directory you are in: nothing in it can be looked up", cwd),
		Advice: fmt.Sprintf("give yourself that right: chmod u+x %s", cwd)}
}

func namedRoot(d disk.Disk, w Where) (string, error) {
	path := w.RootFlag
	if !filepath.IsAbs(path) {
		if w.Cwd == "" {
			return "", errDeleted()
		}
		path = filepath.Join(w.Cwd, path)
	}
	root, err := w.real(path)
	if err == nil {
		var dir disk.Dir
		if dir, err = d.OpenRoot(root); err == nil {
			return root, dir.Close()
		}
	}
	return "", &Error{Kind: Usage, Msg: cmp.Or(w.RootName, "--root") + " " + w.RootFlag, Err: reason(err), Advice: "give an existing directory"}
}

// reason is the innermost cause, for a message that has named the path already.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// search is one look for the root: the identities of the home directories are taken once.
type search struct {
	disk  disk.Disk
	where Where
	homes []home
}

// home is a home directory: the user's own, and that of the user for whom root acts.
type home struct {
	path string    // "" when it cannot be told
	info disk.Info // Ino 0 when there is none
}

func newSearch(d disk.Disk, w Where) *search {
	s := &search{disk: d, where: w}
	s.bar(w, w.Home)
	if w.Behind != nil {
		s.bar(w, w.Behind.Home)
	}
	return s
}

func (s *search) bar(w Where, path string) {
	if path == "" {
		return
	}
	var h home
	if real, err := w.real(path); err == nil {
		h.path = real
	}
	if dir, err := s.disk.OpenSearch(path); err == nil {
		h.info, _ = dir.Self()
		dir.Close()
	}
	s.homes = append(s.homes, h)
}

// upwards is the nearest directory from dir on that can be a root and holds the marker,
// "" if there is none.
func (s *search) upwards(dir string, marker func(disk.Dir) bool) string {
	for ; ; dir = filepath.Dir(dir) {
		if s.found(dir, marker) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// Around is the root of the nearest project that contains this one, "" if there is none.
func (p *Project) Around(w Where) string {
	if p.Root == filepath.Dir(p.Root) {
		return ""
	}
	s := newSearch(p.Disk, w)
	return s.upwards(filepath.Dir(p.Root), s.holdsDecree)
}

// found says whether dir can be a root and holds the marker.
func (s *search) found(path string, marker func(disk.Dir) bool) bool {
	dir, err := s.disk.OpenSearch(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return marker(dir) && !s.barred(path)
}

// barred says whether path is / or a home directory, by inode where there are any.
func (s *search) barred(path string) bool {
	if path == filepath.Dir(path) || slices.ContainsFunc(s.homes, func(h home) bool { return h.path == path }) {
		return true
	}
	dir, err := s.disk.OpenSearch(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	self, err := dir.Self()
	return err == nil && slices.ContainsFunc(s.homes, func(h home) bool { return h.info.Ino != 0 && h.info.SameFile(self) })
}

// holdsDecree and holdsGit count no stranger's .decree and no stranger's .git: in a directory that all can write, as /tmp is, he
// could make all work below his project, or have its exclude files leave all of that out.
func (s *search) holdsDecree(d disk.Dir) bool { return holdsDecree(d) && s.trusts(d, dirName) }
func (s *search) holdsGit(d disk.Dir) bool    { return s.trusts(d, ".git") }

// trusts says whether d has an entry of that name which is no stranger's.
func (s *search) trusts(d disk.Dir, name string) bool {
	marker, err := d.Stat(name)
	if err != nil {
		return false
	}
	dir, err := d.Self()
	return err == nil && !s.where.stranger(marker, dir)
}

// holdsDecree counts a link too: Open refuses it by name, which is better than
// recording into another project further up.
func holdsDecree(d disk.Dir) bool {
	st, err := d.Stat(dirName)
	return err == nil && (st.Kind == disk.Directory || st.Kind == disk.Symlink)
}

// stranger says whether a .decree or .git is of a user who is neither that of this process, nor root, nor the owner of the directory dir in which
// it lies. What such a user has put there would be believed: routines, messages and plugins, which are executed.
func (w Where) stranger(marker, dir disk.Info) bool {
	return !Mine(marker) && marker.UID != 0 && marker.UID != dir.UID &&
		(w.Behind == nil || w.Behind.UID != marker.UID)
}

// refuseStranger refuses a stranger's .decree, unless the user has named the root. Root, who looks after the trees of others, is
// asked where something would be executed (ConfigOfAnother).
func (p *Project) refuseStranger(w Where) error {
	if p.Decree == nil || w.RootFlag != "" || os.Geteuid() == 0 {
		return nil
	}
	decree, err := p.Decree.Self()
	if err != nil {
		return err
	}
	dir, err := p.Dir.Self()
	if err != nil || !w.stranger(decree, dir) {
		return err
	}
	return &Error{Kind: Refused, State: Unchanged,
		Msg: fmt.Sprintf("%s belongs to %s, and neither to you nor to the owner of %s: what is in it could have decree execute that user's commands as you",
			filepath.Join(p.Root, dirName), userName(decree.UID), p.Root),
		Advice: fmt.Sprintf("if you trust that user, say '--root %s'", p.Root)}
}

func holdsGit(d disk.Dir) bool {
	_, err := d.Stat(".git")
	return err == nil
}

// Marked says whether a directory is a project's root: it holds .decree or .git.
func Marked(d disk.Disk, root string) bool {
	dir, err := d.OpenRoot(root)
	if err != nil {
		return false
	}
	defer dir.Close()
	return holdsDecree(dir) || holdsGit(dir)
}
