package project

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"decree/disk"
)

// dirName is the directory that decree keeps in a root.
const dirName = ".decree"

// Where is what the command line and the environment say about places; cmd fills it.
type Where struct {
	RootFlag string // --root, relative to Cwd or absolute; "" when not given
	Cwd      string // the working directory, absolute
	Home     string // the user's home, "" when unknown
	StoreEnv string // $DECREE_STORE
	DataHome string // $XDG_DATA_HOME
	// ConfigStore lets the config place a new project's store where it likes: the user
	// has agreed. The config may have come with a tree that others made.
	ConfigStore bool
	// RealPath resolves links in a path; nil means filepath.EvalSymlinks. A disk
	// that is not the system's needs its own.
	RealPath func(string) (string, error)
}

func (w Where) real(path string) (string, error) {
	if w.RealPath != nil {
		return w.RealPath(path)
	}
	return filepath.EvalSymlinks(path)
}

// FindRoot returns the root's real path and whether --root named it.
//
// A directory whose names cannot be looked up is passed over in the search. The home
// directory and / are never found: as a root they need --root, else the error
// is of kind Usage and says so.
func FindRoot(d disk.Disk, w Where) (root string, explicit bool, err error) {
	if w.RootFlag != "" {
		root, err = namedRoot(d, w)
		return root, true, err
	}
	cwd, err := w.real(w.Cwd)
	if err != nil {
		return "", false, err
	}
	s := newSearch(d, w)
	if dir := s.upwards(cwd, func(d disk.Dir) bool { return holdsDecree(d) || holdsGit(d) }); dir != "" {
		return dir, false, nil
	}
	if s.barred(cwd) {
		return "", false, &Error{Kind: Usage, Msg: fmt.Sprintf("%s is not taken as a root by itself", cwd),
			Advice: fmt.Sprintf("go to the project's directory, or say '--root %s' if you mean all of it", cwd)}
	}
	return cwd, false, nil
}

func namedRoot(d disk.Disk, w Where) (string, error) {
	path := w.RootFlag
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Cwd, path)
	}
	root, err := w.real(path)
	if err == nil {
		var dir disk.Dir
		if dir, err = d.OpenRoot(root); err == nil {
			return root, dir.Close()
		}
	}
	return "", &Error{Kind: Usage, Msg: "--root " + w.RootFlag, Err: reason(err), Advice: "give an existing directory"}
}

// reason is the innermost cause, for a message that has named the path already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// search is one look for the root: the home directory's identity is taken once.
type search struct {
	disk disk.Disk
	home string
	info disk.Info // of home; Ino 0 when there is none
}

func newSearch(d disk.Disk, w Where) *search {
	s := &search{disk: d}
	if w.Home == "" {
		return s
	}
	if h, err := w.real(w.Home); err == nil {
		s.home = h
	}
	if h, err := d.OpenSearch(w.Home); err == nil {
		s.info, _ = h.Self()
		h.Close()
	}
	return s
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
	return newSearch(p.Disk, w).upwards(filepath.Dir(p.Root), holdsDecree)
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

// barred says whether path is / or the home directory, by inode where there are any.
func (s *search) barred(path string) bool {
	if path == filepath.Dir(path) || path == s.home {
		return true
	}
	if s.info.Ino == 0 {
		return false
	}
	dir, err := s.disk.OpenSearch(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	self, err := dir.Self()
	return err == nil && self.SameFile(s.info)
}

// holdsDecree counts a link too: Open refuses it by name, which is better than
// recording into another project further up.
func holdsDecree(d disk.Dir) bool {
	st, err := d.Stat(dirName)
	return err == nil && (st.Kind == disk.Directory || st.Kind == disk.Symlink)
}

func holdsGit(d disk.Dir) bool {
	_, err := d.Stat(".git")
	return err == nil
}
