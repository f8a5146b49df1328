package disk

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestWithoutProc changes modes and attributes where /proc is not mounted: what
// cannot be done says so, and never that the user's file is missing.
func TestWithoutProc(t *testing.T) {
	const inside = "DECREE_TEST_WITHOUT_PROC"
	if dir := os.Getenv(inside); dir != "" {
		withoutProc(t, dir)
		return
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	cmd := exec.Command(os.Args[0], "-test.run=^TestWithoutProc$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip("only root may unmount /proc for itself")
	}
	require.NoError(t, err, string(out))
	st, err := os.Stat(filepath.Join(dir, "f"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode(), string(out))
}

func withoutProc(t *testing.T, dir string) {
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	require.NoError(t, unix.Unmount("/proc", unix.MNT_DETACH))
	d, err := OS.OpenRoot(dir)
	require.NoError(t, err)
	is, err := d.Stat("f")
	require.NoError(t, err)
	err = d.Chmod("f", is, 0o600)
	if errors.Is(err, errNoProc) { // a system without fchmodat2
		require.NoError(t, os.Chmod(filepath.Join(dir, "f"), 0o600))
	} else {
		require.NoError(t, err)
	}
	_, err = d.Xattrs("f")
	require.ErrorIs(t, err, errNoProc)
	require.NotErrorIs(t, err, os.ErrNotExist)
	require.ErrorIs(t, d.SetXattr("f", is, Xattr{Name: "user.x", Value: []byte("1")}), errNoProc)
	_, err = d.Xattrs("missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}
