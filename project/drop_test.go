package project

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/require"
)

// TestDropUnderFaults: at every step that fails, or at which the process dies, the
// message is in the inbox whole or not at all, one that was there is untouched, and an
// error leaves nothing in tmp.
func TestDropUnderFaults(t *testing.T) {
	const whole = "a message of some length\n"
	for _, dies := range []bool{false, true} {
		for n := 0; ; n++ {
			root := t.TempDir()
			p := &Project{Site: Site{Disk: disk.OS, Root: root}}
			for _, dir := range []string{"tmp", "runs", "inbox"} {
				require.NoError(t, os.MkdirAll(filepath.Join(root, dirName, dir), 0o755))
			}
			write(t, filepath.Join(root, dirName, "inbox", "old.md"), "old")
			fired := false
			d := disktest.Inject(disk.OS, func(step disktest.Step) disktest.Action {
				switch {
				case step.N != n:
					return disktest.Action{}
				case dies:
					fired = true
					return disktest.Action{Die: true, Torn: step.Size / 2}
				}
				fired = true
				return disktest.Action{Err: syscall.ENOSPC}
			})
			decree, err := d.OpenRoot(filepath.Join(root, dirName))
			if err == nil {
				p.Decree = decree
				p.Store, err = d.MkdirAll(filepath.Join(root, "store"), PrivateDir)
			}
			if err == nil {
				err = p.Act(func(note func(...Act) error) error { return p.drop(note, "inbox", "new.md", []byte(whole)) })
			}
			got, rerr := os.ReadFile(filepath.Join(root, dirName, "inbox", "new.md"))
			switch {
			case rerr == nil:
				require.Equal(t, whole, string(got), "step %d", n)
			default:
				require.ErrorIs(t, rerr, fs.ErrNotExist)
				require.Error(t, err, "step %d: the message is not there", n)
			}
			if left, _ := os.ReadDir(filepath.Join(root, dirName, "tmp")); !dies {
				require.Empty(t, left, "step %d", n)
			}
			old, oerr := os.ReadFile(filepath.Join(root, dirName, "inbox", "old.md"))
			require.NoError(t, oerr)
			require.Equal(t, "old", string(old))
			if !fired {
				require.NoError(t, err)
				break
			}
		}
	}
}

func TestDropReplacesNothing(t *testing.T) {
	root := t.TempDir()
	where := Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}
	p, err := Open(disk.OS, where, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.EnsureDecree())
	require.NoError(t, p.Drop("a.md", []byte("one")))
	err = p.Drop("a.md", []byte("two"))
	require.True(t, errors.Is(err, fs.ErrExist), "%v", err)
	got, err := os.ReadFile(filepath.Join(root, ".decree/inbox/a.md"))
	require.NoError(t, err)
	require.Equal(t, "one", string(got))
	left, err := os.ReadDir(filepath.Join(root, ".decree/inbox"))
	require.NoError(t, err)
	require.Len(t, left, 1)

	// A command that deletes .decree meanwhile is no obstacle.
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	require.NoError(t, p.Drop("b.md", []byte("three")))
	require.FileExists(t, filepath.Join(root, ".decree/inbox/b.md"))
}
