package recorder

import (
	"bytes"
	"context"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/patch"
	"decree/plan"
	"decree/tree"
)

// outsidePaths are the paths of a record's outside.diff, whose hash must be the
// one in run.json.
func (b *bench) outsidePaths(r *Recorder, id string) []tree.Path {
	b.t.Helper()
	rec, err := r.History().Get(id)
	require.NoError(b.t, err)
	o, ok := rec.Outside()
	f, err := r.History().OpenPlain(id, history.OutsideFile)
	if !ok {
		require.Error(b.t, err, "run.json does not tell of it")
		return nil
	}
	require.NoError(b.t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	require.NoError(b.t, err)
	require.Equal(b.t, o.SHA256, tree.Sum(data))
	var paths []tree.Path
	require.NoError(b.t, history.Facts(bytes.NewReader(data), func(f *patch.Section) bool {
		if len(paths) == 0 || paths[len(paths)-1] != f.Path {
			paths = append(paths, f.Path)
		}
		return true
	}))
	return paths
}

// differing are the paths at which two snapshots differ.
func differing(a, b map[string]string) []tree.Path {
	var out []tree.Path
	for p, v := range a {
		if b[p] != v {
			out = append(out, tree.Path(p))
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, tree.Path(p))
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatChangesBetweenRecordsIsKept makes records of every kind with edits by
// hand between them: outside.diff has these and nothing of decree's own moves.
func TestWhatChangesBetweenRecordsIsKept(t *testing.T) {
	for seed := range int64(seeds(t)) {
		t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
			b := newBench(t)
			rng := rand.New(rand.NewSource(seed))
			populate(b.root, rng)
			with(b, func(r *Recorder) (*history.Record, error) {
				return r.Checkpoint(context.Background(), CheckpointOptions{Label: "start"})
			})
			known := snapshot(t, b.root)
			for range 8 {
				if rng.Intn(3) > 0 {
					mutate(b.root, rng)
				}
				now := snapshot(t, b.root)
				id := b.someRecord(rng)
				if id == "" {
					// A revert looks at its own paths alone, so the edits wait for the
					// next capture; here there was nothing between.
					known = snapshot(t, b.root)
					continue
				}
				r := b.open()
				require.Equal(t, differing(known, now), b.outsidePaths(r, id))
				require.NoError(t, r.Close())
				known = snapshot(t, b.root)
			}
		})
	}
}

// someRecord makes a record of a random kind, and returns the id of one that
// captured the tree; a capture is always made first, so that "" leaves nothing out.
func (b *bench) someRecord(rng *rand.Rand) string {
	switch rng.Intn(4) {
	case 0:
		return b.run(rng.Int63(), 0, nil).Record.ID
	case 1:
		return b.run(rng.Int63(), 1, nil).Record.ID
	case 2:
		res := with(b, func(r *Recorder) (*MoveResult, error) {
			return r.Restore(context.Background(), RestoreOptions{Ref: "start", Yes: true})
		})
		if res.Record != nil {
			return res.Record.ID
		}
		return with(b, func(r *Recorder) (*history.Record, error) {
			return r.Checkpoint(context.Background(), CheckpointOptions{})
		}).ID
	}
	id := with(b, func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	}).ID
	b.run(rng.Int63(), 0, nil)
	b.revert("last")
	return id
}

// TestLostOutsideComesBack deletes outside.diff of a closed record, and of a run
// on its way.
func TestLostOutsideComesBack(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.root, "f")
	require.NoError(t, os.WriteFile(file, []byte("one\n"), 0o644))
	check := func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	}
	with(b, check)
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo\n"), 0o644))
	id := with(b, check).ID
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, ".decree", "runs", id)))
	with(b, func(r *Recorder) (any, error) { return r.Repair(context.Background()) })
	r := b.open()
	require.Equal(t, []tree.Path{"f"}, b.outsidePaths(r, id))
	require.NoError(t, r.Close())

	require.NoError(t, os.WriteFile(file, []byte("three\n"), 0o644))
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	res := with(b, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{
			Args: []string{"sh", "-c", `echo "# not this" > "$DECREE_RUN_DIR/outside.diff"`}, Dir: b.root, Stdin: null, Env: os.Environ(),
		})
	})
	require.Equal(t, 0, res.ExitCode)
	r = b.open()
	require.Equal(t, []tree.Path{"f"}, b.outsidePaths(r, res.Record.ID))
	require.NoError(t, r.Close())
}

// TestRulesAreNoChange has paths join and leave by ignore rules, also where no
// cache tells of it: a restore that was not confirmed has captured meanwhile.
func TestRulesAreNoChange(t *testing.T) {
	for _, looked := range []bool{false, true} {
		b := newBench(t)
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644))
		}
		check := func() string {
			return with(b, func(r *Recorder) (*history.Record, error) {
				return r.Checkpoint(context.Background(), CheckpointOptions{})
			}).ID
		}
		between := func() {
			if !looked {
				return
			}
			r := b.open()
			_, err := r.Restore(context.Background(), RestoreOptions{Ref: "last", Confirm: func(Point, *plan.Plan) (bool, error) { return false, nil }})
			require.Error(t, err)
			require.NoError(t, r.Close())
		}
		write("a.o", "a")
		write("b.txt", "b")
		check()
		write(".gitignore", "*.o\n")
		between()
		left := check()
		write(".gitignore", "*.txt\n")
		between()
		joined := check()
		require.NoError(t, os.Remove(filepath.Join(b.root, "a.o")))
		between()
		gone := check()
		r := b.open()
		require.Equal(t, []tree.Path{".gitignore"}, b.outsidePaths(r, left))
		require.Equal(t, []tree.Path{".gitignore"}, b.outsidePaths(r, joined))
		require.Equal(t, []tree.Path{"a.o"}, b.outsidePaths(r, gone))
		require.NoError(t, r.Close())
	}
}

// TestAMoveKeepsTheEditsAtItsPaths: what was edited where a revert merges stands in its own record, as no later one finds it;
// an edit elsewhere is the next one's.
func TestAMoveKeepsTheEditsAtItsPaths(t *testing.T) {
	b := newBench(t)
	b.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	b.write("g", "g\n")
	checkpoint := func() string {
		return with(b, func(r *Recorder) (*history.Record, error) {
			return r.Checkpoint(context.Background(), CheckpointOptions{})
		}).ID
	}
	checkpoint()
	with(b, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{Args: []string{"sh", "-c", "sed -e s/2/two/ f >t; mv t f"}, Dir: b.root, Env: os.Environ()})
	})
	b.write("f", "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n")
	b.write("g", "edited\n")
	id := with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}, Merge: plan.Refuse, Yes: true})
	}).Record.ID
	next := checkpoint()
	r := b.open()
	defer r.Close()
	require.Equal(t, []tree.Path{"f"}, b.outsidePaths(r, id))
	require.Equal(t, []tree.Path{"g"}, b.outsidePaths(r, next))
}
