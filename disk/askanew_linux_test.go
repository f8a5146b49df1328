package disk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// bindMount mounts a directory at another by bindfs, a FUSE.
func bindMount(t *testing.T, options string) (behind, seen string) {
	if _, err := exec.LookPath("bindfs"); err != nil {
		t.Skip("bindfs is not installed")
	}
	base := t.TempDir()
	behind, seen = filepath.Join(base, "behind"), filepath.Join(base, "seen")
	require.NoError(t, os.MkdirAll(filepath.Join(behind, "d"), 0o755))
	require.NoError(t, os.Mkdir(seen, 0o755))
	if out, err := exec.Command("bindfs", "-o", options, behind, seen).CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", "-l", seen).Run()) })
	return behind, seen
}

// TestAsksAnew: where a file system keeps what it knows of files, what was changed behind it is seen at once.
func TestAsksAnew(t *testing.T) {
	behind, seen := bindMount(t, "attr_timeout=600,entry_timeout=600")
	require.NoError(t, os.WriteFile(filepath.Join(behind, "d", "f"), []byte("old"), 0o644))
	root, err := OS.OpenRoot(seen)
	require.NoError(t, err)
	defer root.Close()
	dir, err := root.OpenDir("d")
	require.NoError(t, err)
	defer dir.Close()
	size := func() int64 {
		in, err := dir.Stat("f")
		require.NoError(t, err)
		return in.Size
	}
	require.EqualValues(t, 3, size())
	before, err := dir.Self()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(behind, "d", "f"), []byte("saved elsewhere"), 0o644))
	require.NoError(t, os.Chmod(filepath.Join(behind, "d"), 0o700))
	assert.EqualValues(t, 15, size())
	after, err := dir.Self()
	require.NoError(t, err)
	assert.NotEqual(t, before.Mode, after.Mode)
	assert.True(t, before.SameFile(after))
}

// TestAskedAnewIsTheSame: both ways to look at a file tell the same.
func TestAskedAnewIsTheSame(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(base, "f"), []byte("x"), 0o640))
	require.NoError(t, os.Symlink("f", filepath.Join(base, "l")))
	d, err := OS.OpenRoot(base)
	require.NoError(t, err)
	defer d.Close()
	fd := d.(*osDir).fd()
	for _, name := range []string{"f", "l"} {
		want, err := d.Stat(name)
		require.NoError(t, err)
		in, err := askAnew(fd, name)
		require.NoError(t, err)
		assert.Equal(t, want, in, name)
	}
	want, err := d.Self()
	require.NoError(t, err)
	in, err := askAnew(fd, "")
	require.NoError(t, err)
	assert.Equal(t, want, in)
	_, err = askAnew(fd, "none")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestKindsAskedAnew: local file systems are not asked a second time.
func TestKindsAskedAnew(t *testing.T) {
	for kind, want := range map[int64]bool{
		unix.NFS_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.FUSE_SUPER_MAGIC: true, unix.V9FS_MAGIC: true,
		unix.EXT4_SUPER_MAGIC: false, unix.XFS_SUPER_MAGIC: false, unix.BTRFS_SUPER_MAGIC: false, unix.TMPFS_MAGIC: false, unix.OVERLAYFS_SUPER_MAGIC: false,
	} {
		assert.Equal(t, want, kindRemembersFacts(kind), "%#x", kind)
	}
}
