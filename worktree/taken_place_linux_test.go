package worktree

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// TestPrivateDirectoryInThePlaceOfANewOne: where others may rename, somebody puts a private directory in the place of one that was just made. It
// stays private, also where decree dies then.
func TestPrivateDirectoryInThePlaceOfANewOne(t *testing.T) {
	was := files{"p": dir(0o777), "p/priv": dir(0o700), "p/priv/secret": file("s")}
	will := was.with(files{"p/new": dir(0o755), "p/new/f": file("f"), "p/z": file("z")})
	for name, after := range map[string]disktest.Action{"lives": {}, "dies": {Die: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, was)
			require.NoError(t, os.Chmod(r.path("p"), 0o777))
			swapped := false
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if swapped || s.Op != "RenameNew" || !strings.HasSuffix(s.To, "p/z") {
						return disktest.Action{}
					}
					swapped = true
					require.NoError(t, unix.Renameat2(unix.AT_FDCWD, r.path("p/priv"), unix.AT_FDCWD, r.path("p/new"), unix.RENAME_EXCHANGE))
					return after
				}, dirs...)
			}
			_, err := r.move(steps(was, will))
			require.Error(t, err)
			require.True(t, swapped)
			r.wrap = nil
			if after.Die {
				_, _, _ = r.recover()
			}
			info, err := os.Stat(r.path("p/new"))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
			require.FileExists(t, r.path("p/new/secret"))
		})
	}
}

// TestGroupOfWhatStoodThere: what had rights for the usual group alone does not go to the group of what a command has put in its place.
func TestGroupOfWhatStoodThere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files to groups")
	}
	const others = 2000
	was := files{"a": file("public"), "b": file("same"), "d": file("public")}
	secret := func(text string) node { return node{"file", 0o640, text} }
	will := files{"a": secret("secret"), "b": secret("same"), "d": dir(0o750), "d/e": secret("e")}
	r := newRig(t, was)
	for _, path := range []tree.Path{"a", "b", "d"} {
		require.NoError(t, os.Chown(r.path(path), 0, others))
	}
	list := steps(was, will)
	at, _, done := r.tree()
	taken, err := at.Rights(list)
	done()
	require.NoError(t, err)
	require.Contains(t, taken["b"], "its group is 2000 now, and was 0")
	_, err = r.move(list)
	require.NoError(t, err)
	for path, mode := range map[tree.Path]os.FileMode{"a": 0o640, "d": 0o750, "d/e": 0o640} {
		info, err := os.Stat(r.path(path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
		require.Equal(t, uint32(0), info.Sys().(*syscall.Stat_t).Gid, path)
	}
	info, err := os.Stat(r.path("b"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
