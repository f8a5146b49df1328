package recorder

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
)

// bench is a tree with a recorder.
type bench struct {
	t    *testing.T
	root string
	base string
	clk  time.Time
	disk disk.Disk // nil: the system's
}

func newBench(t *testing.T) *bench {
	t.Helper()
	base := t.TempDir()
	b := &bench{t: t, base: base, root: filepath.Join(base, "tree"), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	t.Cleanup(func() { unlockTree(b.root) })
	return b
}

// read is what is in a file of the tree.
func (b *bench) read(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.root, name))
	require.NoError(b.t, err)
	return string(data)
}

// unlockTree lets the test's own cleanup delete read-only directories.
func unlockTree(root string) {
	for _, p := range pathsOf(root) {
		path := filepath.Join(root, p)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
	}
}

func (b *bench) open() *Recorder {
	b.t.Helper()
	d := b.disk
	if d == nil {
		d = disk.OS
	}
	r, err := Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk:     d,
			Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
			Location: time.UTC,
			Clock:    func() time.Time { b.clk = b.clk.Add(time.Second); return b.clk },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
	require.NoError(b.t, err)
	return r
}

// with opens a recorder for one operation, as each command does.
func with[T any](b *bench, op func(*Recorder) (T, error)) T {
	b.t.Helper()
	r := b.open()
	defer func() { require.NoError(b.t, r.Close()) }()
	out, err := op(r)
	require.NoError(b.t, err)
	return out
}

// run records a mutation of the tree.
func (b *bench) run(seed int64, exit int, more func(*RunOptions)) *RunResult {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(b.t, err)
	defer null.Close()
	o := RunOptions{
		Args: []string{os.Args[0]}, Dir: b.root, Stdin: null, Grace: time.Second,
		Env: append(os.Environ(), mutateEnv+"="+strconv.FormatInt(seed, 10), fmt.Sprintf("DECREE_TEST_EXIT=%d", exit)),
	}
	if more != nil {
		more(&o)
	}
	res := with(b, func(r *Recorder) (*RunResult, error) { return r.Run(context.Background(), o) })
	require.Empty(b.t, res.Notes)
	return res
}

func (b *bench) revert(refs ...string) *MoveResult {
	b.t.Helper()
	return with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Revert(context.Background(), MoveOptions{Refs: refs})
	})
}

func (b *bench) apply(refs ...string) *MoveResult {
	b.t.Helper()
	return with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Apply(context.Background(), MoveOptions{Refs: refs})
	})
}

func seeds(t *testing.T) int {
	if os.Getenv("DECREE_LONG") != "" {
		return 200
	}
	if testing.Short() {
		return 3
	}
	return 12
}

// TestRevertGivesTheFirstTreeBackAndApplyTheSecond is the main promise, over
// random trees and mutations.
func TestRevertGivesTheFirstTreeBackAndApplyTheSecond(t *testing.T) {
	for seed := range int64(seeds(t)) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			populate(b.root, rand.New(rand.NewSource(seed)))
			first := snapshot(t, b.root)
			res := b.run(seed+1000, 0, nil)
			second := snapshot(t, b.root)
			require.NotEqual(t, first, second, "the mutation changed nothing")

			b.revert(res.Record.ID)
			require.Equal(t, first, snapshot(t, b.root), "revert")
			b.apply(res.Record.ID)
			require.Equal(t, second, snapshot(t, b.root), "apply")
			b.revert("last") // the apply
			require.Equal(t, first, snapshot(t, b.root), "revert of the apply")
			b.revert("last") // the revert of the apply
			require.Equal(t, second, snapshot(t, b.root), "revert of the revert")
		})
	}
}

// TestFailedRunPutsItselfBack and can be brought again.
func TestFailedRunPutsItselfBack(t *testing.T) {
	for seed := range int64(seeds(t)) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			populate(b.root, rand.New(rand.NewSource(seed)))
			first := snapshot(t, b.root)
			res := b.run(seed+2000, 3, nil)
			require.Equal(t, 3, res.ExitCode)
			require.Equal(t, history.StatusReverted, res.Record.Status)
			require.Equal(t, first, snapshot(t, b.root))

			kept := b.run(seed+2000, 3, func(o *RunOptions) { o.Keep = true })
			require.Equal(t, history.StatusFailed, kept.Record.Status)
			second := snapshot(t, b.root)
			require.Equal(t, res.Record.DiffSHA256, kept.Record.DiffSHA256, "the same work is the same diff")
			b.revert("last")
			b.apply(res.Record.ID)
			require.Equal(t, second, snapshot(t, b.root), "apply brings back what was put back")
		})
	}
}

// TestAChainOfRunsGoesBackAndForth over eight runs: one by one, and as one
// transaction.
func TestAChainOfRunsGoesBackAndForth(t *testing.T) {
	for seed := range int64(seeds(t)/3 + 1) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			populate(b.root, rand.New(rand.NewSource(seed)))
			states := []map[string]string{snapshot(t, b.root)}
			var ids []string
			for i := range int64(8) {
				ids = append(ids, b.run(seed*100+i+3000, 0, nil).Record.ID)
				states = append(states, snapshot(t, b.root))
			}
			for i := len(ids) - 1; i >= 0; i-- {
				b.revert(ids[i])
				require.Equal(t, states[i], snapshot(t, b.root), "back over run %d", i)
			}
			for i, id := range ids {
				b.apply(id)
				require.Equal(t, states[i+1], snapshot(t, b.root), "forth over run %d", i)
			}
			b.revert(ids...)
			require.Equal(t, states[0], snapshot(t, b.root), "all back in one")
			b.apply(ids[0] + ".." + ids[7])
			require.Equal(t, states[8], snapshot(t, b.root), "all forth in one")
		})
	}
}

// TestRestoreReachesEveryState that was recorded, from any other.
func TestRestoreReachesEveryState(t *testing.T) {
	for seed := range int64(seeds(t)/3 + 1) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			rnd := rand.New(rand.NewSource(seed))
			populate(b.root, rnd)
			type point struct {
				id    string
				state map[string]string
			}
			var points []point
			for range 5 {
				rec := with(b, func(r *Recorder) (*history.Record, error) {
					return r.Checkpoint(context.Background(), CheckpointOptions{})
				})
				points = append(points, point{rec.ID, snapshot(t, b.root)})
				mutate(b.root, rnd)
			}
			last := snapshot(t, b.root)
			for _, i := range rnd.Perm(len(points)) {
				with(b, func(r *Recorder) (*MoveResult, error) {
					return r.Restore(context.Background(), RestoreOptions{Ref: points[i].id, Yes: true})
				})
				require.Equal(t, points[i].state, snapshot(t, b.root), "restore of %d", i)
			}
			all := with(b, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
			var restores []string
			for _, rec := range all.Records {
				if rec.Reason == history.Restore {
					restores = append(restores, rec.ID)
				}
			}
			b.revert(restores...)
			require.Equal(t, last, snapshot(t, b.root), "all restores taken back in one")
		})
	}
}
