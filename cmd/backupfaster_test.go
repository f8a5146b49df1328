//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestSomebodyIsFaster: while a restore into an empty directory begins, somebody else makes a project of it, or begins a restore. It is refused, and leaves
// nothing that would keep that one from going on.
func TestSomebodyIsFaster(t *testing.T) {
	bench := func(t *testing.T) (env Env, target string) {
		env = hookBench(t)
		target = filepath.Join(t.TempDir(), "target")
		code, _, said := mainOnce(t, env, nil, "backup", "--to", target)
		require.Zero(t, code, said)
		env.Cwd = filepath.Join(t.TempDir(), "new")
		require.NoError(t, os.Mkdir(env.Cwd, 0o755))
		return env, target
	}
	t.Run("a project", func(t *testing.T) {
		env, target := bench(t)
		into := filepath.Join(env.Cwd, ".decree/into.json")
		require.True(t, onceThere(t, into, func() { // it had looked for one before
			require.NoError(t, os.Rename(into, into+".not-yet"))
			code, _, said := mainOnce(t, env, nil, "checkpoint", "-m", "theirs")
			require.Zero(t, code, said)
			require.NoError(t, os.Rename(into+".not-yet", into))
		}, func() {
			code, _, said := mainOnce(t, env, nil, "backup", "restore", "--from", target)
			require.Equal(t, 4, code, said)
			require.Contains(t, said, "somebody else has begun to use decree in "+env.Cwd+" while the backup was looked at; nothing was changed")
		}))
		require.NoFileExists(t, into)
		code, _, said := mainOnce(t, env, nil, "checkpoint", "-m", "more")
		require.Zero(t, code, said)
		code, log, said := mainOnce(t, env, nil, "log")
		require.Zero(t, code, said)
		require.Contains(t, log, "theirs")
	})
	t.Run("a restore", func(t *testing.T) {
		env, target := bench(t)
		into := filepath.Join(env.Cwd, ".decree/into.json")
		const theirs = `{"version":1,"project":"","generation":"theirs","from":"","name":""}`
		require.True(t, onceThere(t, filepath.Join(env.Cwd, ".decree"), func() {
			require.NoError(t, os.WriteFile(into, []byte(theirs), 0o600))
		}, func() {
			code, _, said := mainOnce(t, env, nil, "backup", "restore", "--from", target)
			require.Equal(t, 4, code, said)
			require.Contains(t, said, "another restore into "+env.Cwd+" has just begun; nothing was changed")
		}))
		data, err := os.ReadFile(into)
		require.NoError(t, err)
		require.Equal(t, theirs, string(data))
	})
}

// onceThere does something before the first step of the disk that finds a path there, while a command works, and says whether there was one.
func onceThere(t *testing.T, path string, do, command func()) (done bool) {
	was := disk.OS
	t.Cleanup(func() { disk.OS = was })
	disk.OS = disktest.Inject(was, func(disktest.Step) disktest.Action {
		if _, err := os.Lstat(path); err == nil && !done {
			done = true
			watching := disk.OS
			disk.OS = was
			do()
			disk.OS = watching
		}
		return disktest.Action{}
	})
	command()
	disk.OS = was
	return done
}
