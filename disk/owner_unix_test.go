//go:build unix

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const somebody = 60001

// usersDir is a directory of another user's, opened by root as the store is, and a file of
// root's own that this user can give other names in it.
func usersDir(t *testing.T) (d Dir, secret string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	base := t.TempDir()
	require.NoError(t, os.Chown(base, somebody, somebody))
	d, err := OS.OpenRoot(base)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	require.NoError(t, ForItsOwner(d))
	secret = filepath.Join(base, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("of root\n"), 0o600))
	return d, secret
}

func ownerAt(t *testing.T, path string) int {
	t.Helper()
	st, err := os.Lstat(path)
	require.NoError(t, err)
	return int(st.Sys().(*syscall.Stat_t).Uid)
}

func TestOpenWriteOnlyOwn(t *testing.T) {
	base := t.TempDir()
	d, err := OS.OpenRoot(base)
	require.NoError(t, err)
	defer d.Close()
	at := func(name string) string { return filepath.Join(base, name) }
	require.NoError(t, os.WriteFile(at("own"), []byte("text"), 0o600))
	require.NoError(t, os.Link(at("own"), at("linked")))
	require.NoError(t, os.Symlink("own", at("link")))
	require.NoError(t, syscall.Mkfifo(at("pipe"), 0o600))
	for name, want := range map[string]error{"link": syscall.ELOOP, "pipe": ErrNotRegular} {
		_, err := d.OpenWrite(name, 0o600)
		assert.ErrorIs(t, err, want, name)
	}
	f, err := d.OpenWrite("linked", 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("more"), 4)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for name, want := range map[string]string{"own": "text", "linked": "textmore"} {
		data, err := os.ReadFile(at(name))
		require.NoError(t, err)
		assert.Equal(t, want, string(data), name)
	}
}

// TestOpenWriteAsRoot: what the owner of a store has put there of root's is not written, and
// stays root's. What root itself left unfinished is made anew.
func TestOpenWriteAsRoot(t *testing.T) {
	d, secret := usersDir(t)
	_, err := d.OpenWrite("secret", 0o600)
	require.ErrorIs(t, err, ErrOwner)
	assert.Zero(t, ownerAt(t, secret))
	require.NoError(t, os.Truncate(secret, 0))
	require.NoError(t, os.Link(secret, secret+"2"))
	_, err = d.OpenWrite("secret", 0o600)
	require.ErrorIs(t, err, ErrOwner)
	require.NoError(t, os.Remove(secret+"2"))
	f, err := d.OpenWrite("secret", 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.Equal(t, somebody, ownerAt(t, secret))
	f, err = d.OpenWrite("secret", 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// swapping has secret take the place of what was just made, as its directory's owner can
// at any moment.
type swapping struct {
	Dir
	secret string
}

func (d swapping) swap(name string) {
	_ = d.Remove(name)
	_ = d.Rmdir(name)
	_ = os.Rename(d.secret, filepath.Join(d.Path(), name))
}

func (d swapping) Create(name string, perm uint32) (File, error) {
	f, err := d.Dir.Create(name, perm)
	d.swap(name)
	return f, err
}

func TestSwappedBeforeItIsGivenAway(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		d, secret := usersDir(t)
		f, err := CreateFile(swapping{d, secret}, "made", 0o644)
		require.NoError(t, err)
		defer f.Close()
		st, err := os.Lstat(filepath.Join(d.Path(), "made"))
		require.NoError(t, err)
		assert.Zero(t, ownerAt(t, filepath.Join(d.Path(), "made")))
		assert.Equal(t, fs.FileMode(0o600), st.Mode())
	})
	t.Run("link", func(t *testing.T) {
		d, secret := usersDir(t)
		require.NoError(t, d.Symlink("x", "made"))
		st, err := d.Stat("made")
		require.NoError(t, err)
		require.NoError(t, d.Chown("made", st, somebody, somebody))
		assert.Equal(t, somebody, ownerAt(t, filepath.Join(d.Path(), "made")))
		swapping{d, secret}.swap("made")
		require.ErrorIs(t, d.Chown("made", st, somebody, somebody), ErrReplaced)
		now, err := d.Stat("made")
		require.NoError(t, err)
		require.ErrorIs(t, d.Chown("made", now, somebody, somebody), ErrReplaced)
		assert.Zero(t, ownerAt(t, filepath.Join(d.Path(), "made")))
	})
	t.Run("directory", func(t *testing.T) {
		d, _ := usersDir(t)
		require.NoError(t, d.Mkdir("made", 0o700))
		made := filepath.Join(d.Path(), "made")
		assert.Equal(t, somebody, ownerAt(t, made))
		require.NoError(t, os.Chown(made, 0, 0))
		st, err := d.Stat("made")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(made+"/of-root", nil, 0o600))
		require.ErrorIs(t, d.Chown("made", st, somebody, somebody), syscall.ENOTEMPTY)
		require.NoError(t, os.Rename(made, made+"2"))
		require.NoError(t, os.Mkdir(made, 0o700))
		require.ErrorIs(t, d.Chown("made", st, somebody, somebody), ErrReplaced)
		assert.Zero(t, ownerAt(t, made))
	})
}

// TestSwappedBeforeItsTime: what takes the place of what was just made keeps its own time, also by another name.
func TestSwappedBeforeItsTime(t *testing.T) {
	top := t.TempDir()
	d, err := OS.OpenRoot(top)
	require.NoError(t, err)
	defer d.Close()
	for kind, make := range map[string]func(string) error{
		"file":      func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"link":      func(at string) error { return os.Symlink("elsewhere", at) },
		"directory": func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		at := filepath.Join(top, kind)
		require.NoError(t, make(at))
		was, err := d.Stat(kind)
		require.NoError(t, err)
		require.NoError(t, d.SetMtime(kind, was, 5e9+7))
		now, err := d.Stat(kind)
		require.NoError(t, err)
		require.EqualValues(t, 5e9+7, now.Mtime, kind)
		require.NoError(t, os.Rename(at, at+" before"))
		require.NoError(t, os.WriteFile(at+" foreign", nil, 0o600))
		require.NoError(t, os.Link(at+" foreign", at))
		was, err = d.Stat(kind)
		require.NoError(t, err)
		require.ErrorIs(t, d.SetMtime(kind, now, 5e9+7), ErrReplaced)
		now, err = d.Stat(kind)
		require.NoError(t, err)
		require.Equal(t, was.Mtime, now.Mtime, kind)
	}
	_, err = os.Lstat(filepath.Join(top, "elsewhere"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestMkdirAllForItsOwner: what root makes below a user's directory is that user's, at every level.
func TestMkdirAllForItsOwner(t *testing.T) {
	d, _ := usersDir(t)
	path := filepath.Join(d.Path(), "one", "two", "three")
	for range 2 {
		made, err := OS.MkdirAll(path, 0o755)
		require.NoError(t, err)
		require.NoError(t, made.Close())
	}
	for dir := path; dir != d.Path(); dir = filepath.Dir(dir) {
		assert.Equal(t, somebody, ownerAt(t, dir), dir)
	}
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "file"), nil, 0o600))
	_, err := OS.MkdirAll(filepath.Join(d.Path(), "file", "below"), 0o755)
	assert.ErrorIs(t, err, syscall.ENOTDIR)
}
