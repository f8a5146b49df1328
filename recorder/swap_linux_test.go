package recorder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
)

// attacked is a tree whose directories somebody exchanges with links all the
// time: to a directory outside, to .git/hooks, to the user's own files in .decree.
type attacked struct {
	t         *testing.T
	top, root string
	targets   []string // what the links lead to, absolute
	clk       time.Time
	mu        sync.Mutex // held by the attacker for a swap and its undoing
	swaps     int
	stop      atomic.Bool
	under     atomic.Bool  // the attack is on
	writes    atomic.Int64 // writing steps meanwhile, in the user's directories
}

const attackedDirs = 6

func newAttacked(t *testing.T) *attacked {
	a := &attacked{t: t, top: t.TempDir(), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	a.root = filepath.Join(a.top, "tree")
	a.targets = []string{filepath.Join(a.top, "outside"), filepath.Join(a.root, ".git", "hooks"), filepath.Join(a.root, ".decree", "routines")}
	for _, dir := range a.targets {
		a.fill(dir, "out of reach")
	}
	a.put(filepath.Join(a.root, ".decreeignore"), "/evil*\n")
	for i := range attackedDirs {
		a.fill(a.dir(i), "one")
		a.link(i)
	}
	return a
}

func (a *attacked) dir(i int) string  { return filepath.Join(a.root, fmt.Sprintf("d%d", i)) }
func (a *attacked) evil(i int) string { return filepath.Join(a.root, fmt.Sprintf("evil%d", i)) }

func (a *attacked) put(path, data string) {
	require.NoError(a.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(a.t, os.WriteFile(path, []byte(data), 0o644))
}

// fill makes the files that the two states of each directory have.
func (a *attacked) fill(dir, data string) {
	for _, name := range []string{"a", "b", "c", "gone", "mode", "kind", "s/x", "s/y", "old/z"} {
		a.put(filepath.Join(dir, name), data)
	}
}

func (a *attacked) link(i int) {
	target := a.targets[i%len(a.targets)]
	if i%2 == 0 {
		rel, err := filepath.Rel(a.root, target)
		require.NoError(a.t, err)
		target = rel
	}
	require.NoError(a.t, os.Symlink(target, a.evil(i)))
}

// mend gives each link its name again; what has come to it is the attacker's own.
func (a *attacked) mend() {
	for i := range attackedDirs {
		d, err := os.Lstat(a.dir(i))
		e, eerr := os.Lstat(a.evil(i))
		if err == nil && eerr == nil && d.Mode()&os.ModeSymlink != 0 && e.IsDir() {
			require.NoError(a.t, unix.Renameat2(unix.AT_FDCWD, a.dir(i), unix.AT_FDCWD, a.evil(i), unix.RENAME_EXCHANGE))
			continue
		}
		if eerr == nil && e.Mode()&os.ModeSymlink != 0 {
			continue
		}
		require.NoError(a.t, os.RemoveAll(a.evil(i)))
		a.link(i)
	}
}

// attack exchanges a directory with its link and back until stop.
func (a *attacked) attack(seed uint64) (wait func()) {
	done := make(chan struct{})
	rng := rand.New(rand.NewPCG(seed, 1))
	go func() {
		defer close(done)
		for !a.stop.Load() {
			a.mu.Lock()
			i := rng.IntN(attackedDirs)
			swap := func() error {
				return unix.Renameat2(unix.AT_FDCWD, a.dir(i), unix.AT_FDCWD, a.evil(i), unix.RENAME_EXCHANGE)
			}
			if a.under.Load() && swap() == nil {
				for range rng.IntN(4000) {
					a.stop.Load() // for a moment
				}
				_ = swap()
				a.swaps++
			}
			a.mu.Unlock()
			for range rng.IntN(200_000) {
				a.stop.Load()
			}
		}
	}()
	return func() { a.stop.Store(true); <-done }
}

func (a *attacked) open() *Recorder {
	counted := disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		switch s.Op {
		case "Exchange", "Rename", "RenameNew", "Mkdir", "Rmdir", "Remove", "Symlink", "Chmod", "Chown", "Create", "Link":
			rel, ok := strings.CutPrefix(s.Path, a.root+"/")
			if ok && !strings.HasPrefix(rel, ".decree") && a.under.Load() {
				a.writes.Add(1)
			}
		}
		return disktest.Action{}
	})
	r, err := Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk:     counted,
			Where:    project.Where{RootFlag: a.root, Cwd: a.root, Home: filepath.Join(a.top, "home"), StoreEnv: filepath.Join(a.top, "store")},
			Location: time.UTC,
			Clock:    func() time.Time { a.clk = a.clk.Add(time.Second); return a.clk },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
	require.NoError(a.t, err)
	return r
}

// quietly does what must not be disturbed.
func (a *attacked) quietly(do func()) {
	a.under.Store(false)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mend()
	do()
	a.under.Store(true)
}

func (a *attacked) restore(ref string, after bool) (*MoveResult, error) {
	r := a.open()
	defer r.Close()
	return r.Restore(context.Background(), RestoreOptions{Ref: ref, After: after, Yes: true})
}

// TestSwappedDirectories reverts, applies and restores while directories are
// exchanged with links. Not one write goes through a link, wherever it leads.
func TestSwappedDirectories(t *testing.T) {
	want := int64(1500)
	if testing.Short() {
		want = 300
	}
	if os.Getenv("DECREE_LONG") != "" {
		want = 30_000
	}
	a := newAttacked(t)
	script := `for d in d?; do echo two >$d/a; echo two >>$d/b; ln -sf a $d/c; rm $d/gone; chmod 600 $d/mode; rm $d/kind; mkdir $d/kind; echo n >$d/kind/n; echo two >$d/s/x; rm -r $d/old; mkdir -p $d/new/deep; echo n >$d/new/deep/f; done`
	r := a.open()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	res, err := r.Run(context.Background(), RunOptions{Args: []string{"sh", "-c", script}, Dir: a.root, Stdin: null, Env: os.Environ()})
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Equal(t, 0, res.ExitCode)
	id := res.Record.ID
	second := snapshot(t, a.root)
	_, err = a.restore(id, false)
	require.NoError(t, err)
	first := snapshot(t, a.root)

	kept := map[string]map[string]string{}
	for _, dir := range a.targets {
		kept[dir] = snapshot(t, dir)
	}
	seed := seedOf(t, 4)
	rng := rand.New(rand.NewPCG(seed, 2))
	count := map[string]int{}
	stop := a.attack(seed)
	defer stop()
	a.quietly(func() {})
	for op := 0; a.writes.Load() < want; op++ {
		r := a.open()
		var err error
		kind := []string{"revert", "apply", "restore"}[op%3]
		switch kind {
		case "revert":
			_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{id}, Force: rng.IntN(2) == 0, Yes: true})
		case "apply":
			_, err = r.Apply(context.Background(), MoveOptions{Refs: []string{id}, Force: rng.IntN(2) == 0, Yes: true})
		case "restore":
			_, err = r.Restore(context.Background(), RestoreOptions{Ref: id, After: rng.IntN(2) == 0, Yes: true})
		}
		r.Close()
		for _, dir := range a.targets {
			require.Equal(t, kept[dir], snapshot(t, dir), "%s, operation %d: %v", kind, op, err)
		}
		switch {
		case err == nil:
			count[kind+" done"]++
		case strings.Contains(err.Error(), "taken back"):
			count[kind+" rolled back"]++
		default:
			count[kind+" refused"]++
		}
		if err == nil && op%7 != 0 {
			continue
		}
		a.quietly(func() {
			after := rng.IntN(2) == 0
			r := a.open()
			_, err := r.Recover(context.Background(), false)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			_, err = a.restore(id, after)
			require.NoError(t, err)
			want := first
			if after {
				want = second
			}
			have := snapshot(t, a.root)
			for i := range attackedDirs { // links by turns relative and absolute
				delete(have, filepath.Base(a.evil(i)))
			}
			for p, s := range want {
				if !strings.HasPrefix(p, "evil") {
					require.Equal(t, s, have[p], p)
				}
			}
			for p := range have {
				require.True(t, want[p] != "" || strings.Contains(p, "decree-kept-"), p)
			}
		})
	}
	stop()
	t.Logf("seed %d: %d writes in the tree under attack, %d swaps; %v", seed, a.writes.Load(), a.swaps, count)
	require.Greater(t, a.swaps, 10)
}
