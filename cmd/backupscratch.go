package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"decree/disk"
)

// scratchPrefix begins the names of the directories into which a generation is read to be looked at or exported.
const scratchPrefix = "decree-backup-"

// scratchAge is how old one must be before that nobody has locked it says that its process is dead: a new one is locked in a moment.
const scratchAge = time.Minute

// backupScratch makes such a directory, locked as long as it is used, and removes it.
func (s *session) backupScratch() (path string, dir disk.Dir, remove func(), err error) {
	s.clearScratch()
	if path, err = os.MkdirTemp(s.env.get("TMPDIR"), scratchPrefix); err != nil {
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
	parent := s.env.get("TMPDIR")
	if parent == "" {
		parent = os.TempDir()
	}
	list, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range list {
		st, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), scratchPrefix) && time.Since(st.ModTime()) > scratchAge {
			removeUnlocked(filepath.Join(parent, e.Name()))
		}
	}
}

// removeUnlocked removes a directory of this user that nobody has locked.
func removeUnlocked(path string) {
	dir, err := disk.OS.OpenRoot(path)
	if err != nil {
		return
	}
	defer dir.Close()
	self, err := dir.Self()
	if uid := os.Geteuid(); err != nil || uid >= 0 && int64(self.UID) != int64(uid) {
		return
	}
	unlock, err := dir.TryLock()
	if err != nil { // its process works, or nobody can tell
		return
	}
	defer func() { _ = unlock() }()
	_ = os.RemoveAll(path)
}
