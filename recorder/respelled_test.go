package recorder

import (
	"context"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
	"decree/runner"
)

// respell gives entries of the root other spellings, as 'mv .git x; mv x .GIT' does.
func (l *lossy) respell(names map[string]string) {
	root := l.root()
	for from, to := range names {
		require.NoError(l.t, root.Rename(from, root, "between"))
		require.NoError(l.t, root.Rename("between", root, to))
	}
	require.NoError(l.t, root.Sync())
}

func (l *lossy) names() (names []string) {
	list, err := l.root().List()
	require.NoError(l.t, err)
	for _, e := range list {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// newFolding is a tree with a repository and an ignored file on a disk that folds case,
// whose commands respell names, change a file and fail.
func newFolding(t *testing.T, names map[string]string) (*lossy, func(disk.Disk) (*RunResult, error)) {
	l, _ := newLossy(t)
	l.m.FoldCase = true
	l.write(map[string]string{".git/HEAD": "ref\n", ".gitignore": "/.env\n", ".env": "secret\n"})
	return l, func(d disk.Disk) (*RunResult, error) {
		r, err := l.open(d)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			l.respell(names)
			return l.execute(ctx, c)
		}
		return r.Run(ctx(), RunOptions{Args: []string{"edit", "changed\n", "3"}, Dir: "/w/tree"})
	}
}

// TestRespelled: where case is folded, a failed run that gives .git, .decree or an ignored
// file another spelling is put back, these with it.
func TestRespelled(t *testing.T) {
	for from, to := range map[string]string{".git": ".GIT", ".decree": ".Decree", ".env": ".ENV"} {
		t.Run(from, func(t *testing.T) {
			l, run := newFolding(t, map[string]string{from: to})
			before, names := l.state(), l.names()
			res, err := run(l.m)
			require.NoError(t, err)
			require.True(t, res.PutBack, res.Notes)
			require.Empty(t, res.Gone)
			require.Equal(t, 3, res.ExitCode)
			require.Equal(t, before, l.state())
			require.Equal(t, names, l.names())
		})
	}
}

// TestRespelledDeath lets each step after the command fail, or be decree's last: what was
// left out keeps its content, in its place or in one that is named.
func TestRespelledDeath(t *testing.T) {
	step := disktest.Stride(7)
	for name, action := range map[string]disktest.Action{"error": {Err: syscall.EIO}, "death": {Die: true}} {
		t.Run(name, func(t *testing.T) {
			moved := 0
			for n := 0; ; n += step {
				l, run := newFolding(t, map[string]string{".git": ".GIT", ".env": ".Env", ".decree": ".DECREE"})
				i, fired := 0, false
				res, err := run(disktest.Inject(l.m, func(disktest.Step) disktest.Action {
					if l.ran > 0 {
						if i++; i == n+1 {
							fired = true
							return action
						}
					}
					return disktest.Action{}
				}))
				if err == nil && res.PutBack && len(res.Gone) == 0 {
					require.Equal(t, "1\nlines\n", l.state()["edit"][4:])
					require.Subset(t, l.names(), []string{".git", ".env"}, "step %d", n)
					moved++
				}
				l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
				all := map[string]string{}
				l.collectAll(l.root(), all)
				for _, content := range []string{"ref\n", "secret\n"} {
					require.Contains(t, slices.Collect(maps.Values(all)), content, "step %d: lost; %v", n, err)
				}
				if !fired {
					require.NoError(t, err)
					require.Greater(t, moved, 1)
					return
				}
			}
		})
	}
}

// collectAll maps each file in the root, .decree's too, to its content.
func (l *lossy) collectAll(d disk.Dir, out map[string]string) {
	list, err := d.List()
	require.NoError(l.t, err)
	for _, e := range list {
		if e.Kind == disk.Directory {
			sub, err := d.OpenDir(e.Name)
			require.NoError(l.t, err)
			l.collectAll(sub, out)
			continue
		}
		data, err := project.ReadFile(d, e.Name, 1<<20)
		require.NoError(l.t, err)
		out[d.Path()+"/"+e.Name] = string(data)
	}
}
