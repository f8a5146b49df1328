//go:build unix

package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
)

// oddities put something in the place of a file.
var oddities = map[string]func(path string) error{
	"pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
	"link":      func(path string) error { return os.Symlink("/dev/zero", path) },
	"directory": func(path string) error { return os.Mkdir(path, 0o700) },
}

// notesOf opens a project and has it do what each command does under the lock.
func notesOf(t *testing.T, d disk.Disk, w Where, create bool) (id, notes string) {
	t.Helper()
	p, err := Open(d, w, create)
	require.NoError(t, err)
	defer p.Close()
	if create {
		require.NoError(t, p.EnsureDecree())
	}
	return p.ID, strings.Join(p.Notes, "\n")
}

// TestOddConfig: what is no regular file is not read, and put aside by what writes.
func TestOddConfig(t *testing.T) {
	for name, make := range oddities {
		t.Run(name, func(t *testing.T) {
			home, root := ground(t)
			w := Where{Cwd: root, Home: home}
			notesOf(t, disk.OS, w, true)
			path := filepath.Join(root, ".decree/config.yml")
			require.NoError(t, make(path))

			_, notes := notesOf(t, disk.OS, w, false)
			require.Contains(t, notes, path+" is no regular file")
			_, err := os.Lstat(path)
			require.NoError(t, err, "reading moves nothing")

			_, notes = notesOf(t, disk.OS, w, true)
			require.Contains(t, notes, ".decree/aside/config.yml")
			require.NoFileExists(t, path)
			_, err = os.Lstat(filepath.Join(root, ".decree/aside/config.yml"))
			require.NoError(t, err)
		})
	}
}

// TestUnreadableConfig: reading goes on without a config that may not be read, writing
// does not, and nothing is moved.
func TestUnreadableConfig(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	path := filepath.Join(root, ".decree/config.yml")
	write(t, path, "max_attempts: 7\n")
	notesOf(t, disk.OS, w, true)
	_, notes := notesOf(t, barring(path, syscall.EACCES), w, false)
	require.Contains(t, notes, path+" is not read (permission denied)")
	_, err := Open(barring(path, syscall.EACCES), w, true)
	require.ErrorContains(t, err, "permission denied")
	require.Contains(t, HintOf(err), "move it away")
	_, err = Open(barring(path, syscall.EIO), w, false)
	require.ErrorContains(t, err, "input/output error")
	require.FileExists(t, path)
}

func barring(path string, why error) disk.Disk {
	return disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Open" && st.Path == path {
			return disktest.Action{Err: &fs.PathError{Op: "open", Path: path, Err: why}}
		}
		return disktest.Action{}
	})
}

// TestUselessIdentity: a project.json that says nothing stops no command where a store
// remembers the root.
func TestUselessIdentity(t *testing.T) {
	useless := map[string]func(path string) error{
		"damaged": func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		"huge":    func(path string) error { return os.WriteFile(path, []byte(strings.Repeat(" ", maxIdentity+1)), 0o600) },
	}
	for name, make := range oddities {
		useless[name] = make
	}
	for name, make := range useless {
		t.Run(name, func(t *testing.T) {
			home, root := ground(t)
			w := Where{Cwd: root, Home: home}
			id, _ := notesOf(t, disk.OS, w, true)
			path := filepath.Join(root, ".decree/project.json")
			right, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			require.NoError(t, make(path))

			now, notes := notesOf(t, disk.OS, w, false)
			require.Equal(t, id, now)
			require.Contains(t, notes, "project.json is of no use")
			now, notes = notesOf(t, disk.OS, w, true)
			require.Equal(t, id, now)
			require.Contains(t, notes, ".decree/aside/project.json")
			has, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, right, has)
		})
	}
}

// TestUselessIdentityOfStrangers: where no store remembers the root, the one that
// project.json named may be somewhere, and no second history begins beside it.
func TestUselessIdentityOfStrangers(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	path := filepath.Join(root, ".decree/project.json")
	require.NoError(t, os.MkdirAll(path, 0o755))
	for _, create := range []bool{false, true} {
		_, err := Open(disk.OS, w, create)
		require.ErrorContains(t, err, "not a regular file")
		require.Contains(t, HintOf(err), "remove")
		require.DirExists(t, path)
	}
}

// TestNewerIdentity: a later decree's project.json is neither passed over nor replaced.
func TestNewerIdentity(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	notesOf(t, disk.OS, w, true)
	path := filepath.Join(root, ".decree/project.json")
	write(t, path, `{"version": 9}`)
	for _, create := range []bool{false, true} {
		_, err := Open(disk.OS, w, create)
		require.ErrorContains(t, err, "format version 9 is newer than the newest that this decree can read (1)")
	}
	require.NoDirExists(t, filepath.Join(root, ".decree/aside"))
}

// TestBarredIdentity: one that may not be read is another user's.
func TestBarredIdentity(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	id, _ := notesOf(t, disk.OS, w, true)
	path := filepath.Join(root, ".decree/project.json")
	for _, create := range []bool{false, true} {
		now, notes := notesOf(t, barring(path, syscall.EACCES), w, create)
		require.Equal(t, id, now)
		require.Contains(t, notes, "permission denied")
	}
	_, err := Open(barring(path, syscall.EIO), w, false)
	require.ErrorContains(t, err, "input/output error")
}

// TestIdentityThatStays: one that may not be moved away either, as another user's
// directory, stops no command.
func TestIdentityThatStays(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	id, _ := notesOf(t, disk.OS, w, true)
	path := filepath.Join(root, ".decree/project.json")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	stays := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write && st.Path == path {
			return disktest.Action{Err: &fs.PathError{Op: "rename", Path: path, Err: syscall.EACCES}}
		}
		return disktest.Action{}
	})
	now, notes := notesOf(t, stays, w, true)
	require.Equal(t, id, now)
	require.Contains(t, notes, "project.json is of no use")
	require.DirExists(t, path)
}
