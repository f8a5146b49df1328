package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// swapState is what a test looks at: the files of store and .decree that a swap is about.
func swapState(t *testing.T, p *Project, root string) map[string]string {
	out := map[string]string{}
	for _, f := range []string{filepath.Join(p.StorePath, "records.jsonl"), filepath.Join(p.StorePath, "packs", "1"), filepath.Join(p.StorePath, "labels.json"),
		filepath.Join(root, ".decree", "config.yml"), filepath.Join(root, ".decree", "inbox", "a.md"), filepath.Join(root, ".decree", "inbox", "b.md"), filepath.Join(root, ".decree", "cron", "c.md"),
		filepath.Join(root, ".decree", IntoFile)} {
		if data, err := os.ReadFile(f); err == nil {
			out[filepath.Base(f)] = string(data)
		}
	}
	return out
}

var (
	before = map[string]string{"records.jsonl": "old", "1": "old", "config.yml": "# old", "a.md": "old", "labels.json": "old"}
	after  = map[string]string{"records.jsonl": "new", "1": "new", "b.md": "new", "c.md": "new",
		IntoFile: `{"version":1,"project":"","generation":"g","from":"","name":"","over":true}` + "\n"}
)

// swapping makes a project with the old state and swaps, with hook before each step of the disk.
func swapping(t *testing.T, root, base string, hook func(disktest.Step) disktest.Action) error {
	where := Where{RootFlag: root, Cwd: root, StoreEnv: base, RealPath: func(s string) (string, error) { return s, nil }}
	p, err := Open(disktest.Inject(disk.OS, hook), where, true)
	if err != nil {
		return err
	}
	defer p.Close()
	unlock, err := p.Lock(context.Background(), Holder{PID: os.Getpid(), Start: time.Now()}, 0)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := p.BeginSwap()
	if err != nil {
		return err
	}
	defer s.Close()
	s.Then = &Into{Generation: "g", Over: true}
	for _, f := range []struct {
		in        disk.Dir
		dir, name string
	}{{s.Store, "", "records.jsonl"}, {s.Store, "packs", "1"}, {s.Decree, "inbox", "b.md"}, {s.Decree, "cron", "c.md"}} {
		in := f.in
		if f.dir != "" {
			if in, err = MakeDir(f.in, f.dir, PrivateDir); err != nil {
				return err
			}
		}
		err = ReplaceFile(in, f.name, []byte("new"), PrivateFile, true)
		if in != f.in {
			in.Close()
		}
		if err != nil {
			return err
		}
	}
	if err := s.Decide([]string{"records.jsonl", "packs", "labels.json"}, []string{"config.yml", "inbox", "cron", "note.txt", "note.1.txt"}, ""); err != nil {
		return err
	}
	_, err = p.FinishSwap(nil)
	return err
}

func TestASwapIsAllOrNothing(t *testing.T) {
	step := disktest.Stride(3)
	for _, die := range []bool{true, false} {
		for n := 0; ; n += step {
			root, base := t.TempDir(), t.TempDir()
			where := Where{RootFlag: root, Cwd: root, StoreEnv: base, RealPath: func(s string) (string, error) { return s, nil }}
			p, err := Open(disk.OS, where, true)
			require.NoError(t, err)
			for name, text := range map[string]string{"records.jsonl": "old", "packs/1": "old", "labels.json": "old"} {
				write(t, filepath.Join(p.StorePath, name), text)
			}
			write(t, filepath.Join(root, ".decree", "config.yml"), "# old")
			write(t, filepath.Join(root, ".decree", "inbox", "a.md"), "old")
			require.Equal(t, before, swapState(t, p, root))

			fired := false
			err = swapping(t, root, base, func(s disktest.Step) disktest.Action {
				if s.N != n {
					return disktest.Action{}
				}
				fired = true
				if die {
					return disktest.Action{Die: true, Torn: s.Size / 2}
				}
				return disktest.Action{Err: os.ErrPermission}
			})
			unlock, lerr := p.Lock(t.Context(), Holder{PID: os.Getpid()}, 0)
			require.NoError(t, lerr)
			decided := p.Swapping()
			finished, ferr := p.FinishSwap(nil)
			require.NoError(t, ferr, "step %d", n)
			require.Equal(t, decided, finished)
			unlock()
			now := swapState(t, p, root)
			if now["records.jsonl"] == "old" {
				require.Equal(t, before, now, "step %d", n)
				require.Error(t, err, "step %d", n)
			} else {
				require.Equal(t, after, now, "step %d", n)
			}
			require.NoDirExists(t, filepath.Join(p.StorePath, "swap"))
			p.Close()
			if !fired {
				require.NoError(t, err)
				require.Equal(t, after, now)
				break
			}
		}
	}
}

// TestASwapOfManyNames: what was decided is finished, and what is too much for that is refused before anything is decided.
func TestASwapOfManyNames(t *testing.T) {
	for n, decides := range map[int]bool{3000: true, 20_000: false} {
		root, base := t.TempDir(), t.TempDir()
		where := Where{RootFlag: root, Cwd: root, StoreEnv: base, RealPath: func(s string) (string, error) { return s, nil }}
		p, err := Open(disk.OS, where, true)
		require.NoError(t, err)
		defer p.Close()
		unlock, err := p.Lock(t.Context(), Holder{PID: os.Getpid()}, 0)
		require.NoError(t, err)
		defer unlock()
		s, err := p.BeginSwap()
		require.NoError(t, err)
		defer s.Close()
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%0240d", i)
		}
		err = s.Decide(nil, names, "")
		require.Equal(t, decides, err == nil)
		require.Equal(t, decides, p.Swapping())
		if err != nil {
			require.Equal(t, Refused, KindOf(err))
		}
		finished, err := p.FinishSwap(nil)
		require.NoError(t, err)
		require.Equal(t, decides, finished)
	}
}

// TestAnEditBesideAnUnfinishedSwap: what a person writes into config.yml after the death of a swap that was decided
// is kept beside the one that the swap brings, whatever the times of the files say, as where the clock was set back.
func TestAnEditBesideAnUnfinishedSwap(t *testing.T) {
	for _, edited := range []bool{false, true} {
		root, base := t.TempDir(), t.TempDir()
		where := Where{RootFlag: root, Cwd: root, StoreEnv: base, RealPath: func(s string) (string, error) { return s, nil }}
		p, err := Open(disk.OS, where, true)
		require.NoError(t, err)
		config := filepath.Join(root, ".decree", "config.yml")
		write(t, config, "# old")
		write(t, filepath.Join(root, ".decree/inbox/a.md"), "old")
		if edited {
			write(t, filepath.Join(root, ".decree/inbox/.queue-taken/out.md"), "in the hands of a process that died")
			write(t, filepath.Join(root, ".decree/inbox/.queue-message-1"), "not whole")
		}
		write(t, filepath.Join(root, ".decree/note.txt"), "old")
		write(t, filepath.Join(root, ".decree/note.1.txt"), "old")
		require.Error(t, swapping(t, root, base, func(s disktest.Step) disktest.Action {
			return disktest.Action{Die: p.Swapping()}
		}))
		if edited {
			write(t, config, "# mine")
			write(t, filepath.Join(root, ".decree/inbox/mine.md"), "mine")
			write(t, filepath.Join(root, ".decree/cron/job.md"), "mine")
			write(t, filepath.Join(root, ".decree/note.txt"), "mine")
			began, err := filepath.Glob(filepath.Join(root, ".decree/tmp/*/began"))
			require.NoError(t, err)
			require.Len(t, began, 1)
			require.NoError(t, os.Chmod(began[0], 0o644)) // its change time is later than what was written after it
		} else {
			for _, old := range []string{".decree/inbox/a.md", ".decree/tmp/*/old/inbox/a.md"} {
				found, err := filepath.Glob(filepath.Join(root, old))
				require.NoError(t, err)
				for _, at := range found {
					require.NoError(t, os.Chmod(at, 0o644)) // nothing was written there
				}
			}
		}
		unlock, err := p.Lock(t.Context(), Holder{PID: os.Getpid()}, 0)
		require.NoError(t, err)
		finished, err := p.FinishSwap(nil)
		require.NoError(t, err)
		require.True(t, finished)
		unlock()
		require.NoFileExists(t, config)
		require.NoFileExists(t, filepath.Join(root, ".decree/note.txt"))
		require.NoFileExists(t, filepath.Join(root, ".decree/aside/note.1.txt"))
		kept, err := os.ReadFile(filepath.Join(root, ".decree/aside/config.yml"))
		if edited {
			require.NoError(t, err)
			require.Equal(t, "# mine", string(kept))
			note, err := os.ReadFile(filepath.Join(root, ".decree/aside/note.txt"))
			require.NoError(t, err)
			require.Equal(t, "mine", string(note))
			require.FileExists(t, filepath.Join(root, ".decree/inbox/mine.md"))
			require.FileExists(t, filepath.Join(root, ".decree/aside/cron-job.md"))
			require.Len(t, globbed(t, filepath.Join(root, ".decree/aside/*out.md")), 1)
			require.Empty(t, globbed(t, filepath.Join(root, ".decree/aside/*queue-message*")))
		} else {
			require.ErrorIs(t, err, os.ErrNotExist)
			require.NoDirExists(t, filepath.Join(root, ".decree/aside"))
		}
		require.FileExists(t, filepath.Join(root, ".decree/inbox/b.md"))
		require.NoFileExists(t, filepath.Join(root, ".decree/inbox/a.md"))
		p.Close()
	}
}

func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

func TestBackupName(t *testing.T) {
	for _, c := range []struct{ config, git, want string }{
		{"", "", "my-tree"},
		{"", "[remote \"origin\"]\n\turl = git@github.com:ann/tool.git\n", "tool"},
		{"", "[remote \"origin\"]\n\turl = https://example.org/ann/other/\n", "other"},
		{"", "[remote \"other\"]\n\turl = https://example.org/x\n", "my-tree"},
		{"", "[remote \"origin\"]\n\turl = /srv/git/..\n", "my-tree"},
		{"backup: {name: mine}", "[remote \"origin\"]\n\turl = x/y.git\n", "mine"},
	} {
		root := filepath.Join(t.TempDir(), "my tree")
		write(t, filepath.Join(root, ".git", "config"), c.git)
		write(t, filepath.Join(root, ".decree", "config.yml"), c.config)
		w := Where{RootFlag: root, Cwd: root, StoreEnv: t.TempDir()}
		p, err := Open(disk.OS, w, true)
		require.NoError(t, err)
		require.Equal(t, c.want, p.BackupName(w), c.git)
		p.Close()
	}
}
