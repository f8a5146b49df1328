package cmd

import (
	"cmp"
	"crypto/rand"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"decree/disk"
	"decree/project"
)

// scratchPrefix begins the names of the directories into which a generation is read to be looked at or exported. What
// follows is rand.Text, so that no directory of a person's is taken for one.
const scratchPrefix = "decree-scratch-"

var scratchName = regexp.MustCompile("^" + scratchPrefix + "[A-Z2-7]{26}$")

// scratchAge is how old one must be before that nobody has locked it says that its process is dead: a new one is locked in a moment.
const scratchAge = time.Minute

// backupScratch makes such a directory, locked as long as it is used, and removes it.
func (s *session) backupScratch() (path string, dir disk.Dir, remove func(), err error) {
	s.clearScratch()
	path = filepath.Join(s.temporary(), scratchPrefix+rand.Text())
	if err = os.Mkdir(path, 0o700); err != nil {
		return "", nil, nil, err
	}
	if dir, err = disk.OS.OpenRoot(path); err != nil {
		return "", nil, nil, err
	}
	unlock, err := dir.TryLock()
	if err != nil {
		_ = os.Remove(path)
		dir.Close()
		return "", nil, nil, err
	}
	return path, dir, func() {
		_ = os.RemoveAll(path)
		_ = unlock()
		dir.Close()
	}, nil
}

// clearScratch removes those of this user that processes which died have left.
func (s *session) clearScratch() {
	parent := s.temporary()
	list, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range list {
		st, err := e.Info()
		if err == nil && e.IsDir() && scratchName.MatchString(e.Name()) && time.Since(st.ModTime()) > scratchAge {
			removeUnlocked(filepath.Join(parent, e.Name()))
		}
	}
}

// temporary is the directory of temporary files.
func (s *session) temporary() string { return cmp.Or(s.env.get("TMPDIR"), os.TempDir()) }

// removeUnlocked removes a directory of this user that nobody has locked.
func removeUnlocked(path string) {
	dir, err := disk.OS.OpenRoot(path)
	if err != nil {
		return
	}
	defer dir.Close()
	self, err := dir.Self()
	if err != nil || !project.Mine(self) {
		return
	}
	unlock, err := dir.TryLock()
	if err != nil { // its process works, or nobody can tell
		return
	}
	defer func() { _ = unlock() }()
	_ = os.RemoveAll(path)
}
