//go:build unix

package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func open(t *testing.T) (Dir, string) {
	t.Helper()
	path := t.TempDir()
	d, err := OS.OpenRoot(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d, path
}

func TestNamesOfMoreThanOneComponentAreRefused(t *testing.T) {
	d, _ := open(t)
	for _, name := range []string{"", ".", "..", "a/b", "/etc", "a\x00b", "../x"} {
		_, err := d.Create(name, 0o600)
		assert.ErrorIs(t, err, ErrName, "%q", name)
		_, err = d.OpenDir(name)
		assert.ErrorIs(t, err, ErrName, "%q", name)
		assert.ErrorIs(t, d.Remove(name), ErrName, "%q", name)
		assert.ErrorIs(t, d.Rename("x", d, name), ErrName, "%q", name)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	d, path := open(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(path, "dir")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "f"), filepath.Join(path, "file")))

	_, err := d.Open("file")
	assert.Error(t, err)
	_, err = d.OpenWrite("file", 0o600)
	assert.Error(t, err)
	_, err = d.OpenDir("dir")
	assert.Error(t, err)
	is, err := d.Stat("file")
	require.NoError(t, err)
	assert.Error(t, d.Chmod("file", is, 0o777))
	require.NoError(t, d.SetXattr("file", is, Xattr{"user.x", []byte("y")}), "links carry none")

	info, err := d.Stat("file")
	require.NoError(t, err)
	assert.Equal(t, Symlink, info.Kind)
	st, err := os.Stat(filepath.Join(outside, "f"))
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), st.Mode().Perm())
}

// TestReadXattrs: what macOS gives each file by itself, and what is gone or not to be read, is left out; all else is whole.
func TestReadXattrs(t *testing.T) {
	values := map[string]string{ownXattr: "p", "user.x": "with\x00zero", "user.empty": ""}
	list := func(b []byte) (int, error) {
		const names = "user.empty\x00" + ownXattr + "\x00user.gone\x00user.x\x00"
		copy(b, names)
		return len(names), nil
	}
	get := func(name string, b []byte) (int, error) {
		value, there := values[name]
		if !there {
			return 0, unix.EACCES
		}
		copy(b, value)
		return len(value), nil
	}
	got, err := readXattrs(list, get)
	require.NoError(t, err)
	assert.Equal(t, []Xattr{{"user.empty", []byte{}}, {"user.x", []byte("with\x00zero")}}, got)
	none, err := readXattrs(func([]byte) (int, error) { return 0, unix.EOPNOTSUPP }, get)
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = readXattrs(func([]byte) (int, error) { return 0, unix.EIO }, get)
	require.ErrorIs(t, err, unix.EIO)
}

// TestXattrsStay: those that are set are read again, where the file system keeps them.
func TestXattrsStay(t *testing.T) {
	d, path := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(path, "f"), nil, 0o600))
	is, err := d.Stat("f")
	require.NoError(t, err)
	want := Xattr{"user.decree", []byte("with\x00zero")}
	if err := d.SetXattr("f", is, want); errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip(err)
	} else {
		require.NoError(t, err)
	}
	got, err := d.Xattrs("f")
	require.NoError(t, err)
	assert.Contains(t, got, want)
}

func TestOpenRefusesAPipeWithoutHanging(t *testing.T) {
	d, path := open(t)
	require.NoError(t, unix.Mkfifo(filepath.Join(path, "pipe"), 0o600))
	_, err := d.Open("pipe")
	assert.ErrorContains(t, err, filepath.Join(path, "pipe"))
}

// readOnly is a directory of a file system that is mounted read-only.
type readOnly struct{ Dir }

func (d readOnly) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: unix.EROFS}
}

// TestRemoveTreeReadOnly: what is not there need not be removed, and what is there is told about.
func TestRemoveTreeReadOnly(t *testing.T) {
	d, path := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(path, "there"), nil, 0o600))
	require.NoError(t, RemoveTree(readOnly{d}, "missing"))
	require.ErrorIs(t, RemoveTree(readOnly{d}, "there"), unix.EROFS)
}

// TestUnflushed: a file system that cannot flush directories, as /proc, is no reason to refuse to work.
func TestUnflushed(t *testing.T) {
	d, err := OS.OpenRoot("/proc/self")
	if err != nil {
		t.Skip(err)
	}
	defer d.Close()
	require.NoError(t, d.Sync())
	assert.Equal(t, d.Path(), Unflushed())
}

func TestErrorsNameTheWholePath(t *testing.T) {
	d, path := open(t)
	_, err := d.Open("missing")
	var pe *fs.PathError
	require.ErrorAs(t, err, &pe)
	assert.Equal(t, filepath.Join(path, "missing"), pe.Path)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func write(t *testing.T, d Dir, name, text string) {
	t.Helper()
	f, err := d.Create(name, 0o600)
	require.NoError(t, err)
	_, err = f.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func read(t *testing.T, d Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b)
}

func TestRenameNewNeverReplaces(t *testing.T) {
	d, _ := open(t)
	write(t, d, "a", "A")
	write(t, d, "b", "B")
	assert.ErrorIs(t, d.RenameNew("a", d, "b"), fs.ErrExist)
	assert.Equal(t, "B", read(t, d, "b"))
	require.NoError(t, d.RenameNew("a", d, "c"))
	assert.Equal(t, "A", read(t, d, "c"))

	dir := d.(*osDir)
	assert.ErrorIs(t, renameNewPortable(dir.f, "b", dir.f, "c"), fs.ErrExist)
	require.NoError(t, renameNewPortable(dir.f, "b", dir.f, "e"))
	assert.Equal(t, "B", read(t, d, "e"))
	_, err := d.Stat("b")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

func TestExchangeSwapsBoth(t *testing.T) {
	d, _ := open(t)
	write(t, d, "a", "A")
	write(t, d, "b", "B")
	err := d.Exchange("a", d, "b")
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this file system cannot exchange")
	}
	require.NoError(t, err)
	assert.Equal(t, "B", read(t, d, "a"))
	assert.Equal(t, "A", read(t, d, "b"))
}

func TestModesWithoutReadStillChange(t *testing.T) {
	d, _ := open(t)
	write(t, d, "a", "A")
	info, err := d.Stat("a")
	require.NoError(t, err)
	require.NoError(t, d.Chmod("a", info, 0))
	require.NoError(t, d.Chmod("a", info, 0o4755))
	info, err = d.Stat("a")
	require.NoError(t, err)
	assert.Equal(t, uint32(0o4755), info.Mode)
}

func TestLockExcludesAndEndsWithTheDirectoryDeleted(t *testing.T) {
	d, path := open(t)
	unlock, err := d.TryLock()
	require.NoError(t, err)
	_, err = d.TryLock()
	assert.ErrorIs(t, err, ErrLocked)
	other, err := OS.OpenRoot(path)
	require.NoError(t, err)
	defer other.Close()
	_, err = other.TryLock()
	assert.ErrorIs(t, err, ErrLocked, "another handle of the same directory")
	require.NoError(t, unlock())
	unlock, err = other.TryLock()
	require.NoError(t, err)
	require.NoError(t, unlock())
}

func TestMapGivesTheBytes(t *testing.T) {
	d, _ := open(t)
	write(t, d, "a", "mapped")
	write(t, d, "empty", "")
	for name, want := range map[string]string{"a": "mapped", "empty": ""} {
		f, err := d.Open(name)
		require.NoError(t, err)
		data, release, err := f.Map()
		require.NoError(t, err)
		assert.Equal(t, want, string(data))
		f.Close()
		f.Unload(data)
		assert.Equal(t, want, string(data), "it is read again")
		require.NoError(t, release())
	}
}

func TestReadlinkOfAnyLength(t *testing.T) {
	d, _ := open(t)
	long := ""
	for len(long) < 4000 {
		long += "0123456789abcdef/"
	}
	require.NoError(t, d.Symlink(long, "l"))
	got, err := d.Readlink("l")
	require.NoError(t, err)
	assert.Equal(t, long, got)
}

// TestSearchHandle looks names up, and does not pretend to flush.
func TestSearchHandle(t *testing.T) {
	if searchOnly == 0 {
		t.Skip("this system has none")
	}
	d, path := open(t)
	write(t, d, "a", "A")
	s, err := openRoot(path, searchOnly)
	require.NoError(t, err)
	defer s.Close()
	info, err := s.Stat("a")
	require.NoError(t, err)
	assert.EqualValues(t, 1, info.Size)
	require.NoError(t, s.Chmod("a", info, 0o600))
	assert.ErrorIs(t, s.Sync(), fs.ErrPermission)
}
