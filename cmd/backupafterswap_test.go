//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestWhatWasRestoredStays: an error behind the swap, as the disk is full when the restore is to be noted, takes nothing of it back, and the
// same command goes on with the tree.
func TestWhatWasRestoredStays(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, env Env) Env // makes what the restore is to find
		args   []string
		left   string // what the error says
		again  []string
	}{
		{"into a new directory", func(t *testing.T, env Env) Env {
			env.Cwd = filepath.Join(t.TempDir(), "new")
			require.NoError(t, os.Mkdir(env.Cwd, 0o755))
			return env
		}, nil, "the records are restored, and the tree is not whole yet", []string{"backup", "restore"}},
		{"into a directory that has files", func(t *testing.T, env Env) Env {
			env.Cwd = t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(env.Cwd, "f"), []byte("two\n"), 0o644))
			return env
		}, []string{"--tree", "--yes"}, "the records are restored, and the tree is as it was", []string{"backup", "restore", "--tree", "--yes"}},
		{"a store that was lost", func(t *testing.T, env Env) Env {
			require.NoError(t, os.RemoveAll(filepath.Join(env.get("HOME"), "data")))
			return env
		}, []string{"--yes"}, "the records are restored", nil},
	} {
		faults := []string{"OpenWrite audit.jsonl", "Rmdir swap"}
		if c.again == nil { // a new project remembers no other's backups
			faults = append(faults, "Create backup.json.new")
		}
		for _, fault := range faults {
			t.Run(c.name+", "+fault, func(t *testing.T) {
				env := hookBench(t)
				target := filepath.Join(t.TempDir(), "target")
				code, _, said := mainOnce(t, env, nil, "backup", "--to", target)
				require.Zero(t, code, said)
				env = c.before(t, env)

				fired := failBehindSwap(t, fault)
				code, _, said = mainOnce(t, env, nil, append([]string{"backup", "restore", "--from", target}, c.args...)...)
				require.True(t, fired())
				require.Equal(t, 1, code, said)
				require.Contains(t, said, "decree: restored ")
				require.Contains(t, said, "no space left on device; "+c.left)
				code, log, said := mainOnce(t, env, nil, "log")
				require.Zero(t, code, said)
				require.Contains(t, log, "manual", "what was restored stays")
				if c.again == nil {
					return
				}
				code, _, said = mainOnce(t, env, nil, c.again...)
				require.Zero(t, code, said)
				require.Contains(t, said, "the restore that was begun goes on with the tree")
				data, err := os.ReadFile(filepath.Join(env.Cwd, "f"))
				require.NoError(t, err)
				require.Equal(t, "one\n", string(data))
			})
		}
	}
}

// failBehindSwap has the disk fail a step, "OP NAME", once the journal of a swap is gone. fired ends that, and says whether it came to it.
func failBehindSwap(t *testing.T, fault string) (fired func() bool) {
	op, name, _ := strings.Cut(fault, " ")
	was, ended, failed := disk.OS, false, false
	disk.OS = disktest.Inject(was, func(s disktest.Step) disktest.Action {
		if ended && s.Op == op && filepath.Base(s.Path) == name {
			failed = true
			return disktest.Action{Err: &os.PathError{Op: s.Op, Path: s.Path, Err: syscall.ENOSPC}}
		}
		ended = ended || s.Op == "Remove" && strings.HasSuffix(s.Path, "/swap/journal")
		return disktest.Action{}
	})
	t.Cleanup(func() { disk.OS = was })
	return func() bool {
		disk.OS = was
		return failed
	}
}
