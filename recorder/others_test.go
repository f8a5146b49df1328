package recorder

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// othersWork is what somebody else writes meanwhile.
const othersWork = "another's work, written meanwhile\n"

// otherWriters write at a path as people and their tools do; they say whether they did.
var otherWriters = []func(path string) bool{
	func(path string) bool { // in place
		st, err := os.Lstat(path)
		if err != nil || !st.Mode().IsRegular() {
			return false
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		_, err = f.WriteString(othersWork)
		return err == nil
	},
	func(path string) bool { // as editors do
		tmp := filepath.Join(filepath.Dir(path), ".editor~")
		if os.WriteFile(tmp, []byte(othersWork), 0o644) != nil {
			return false
		}
		if os.Rename(tmp, path) != nil {
			_ = os.Remove(tmp)
			return false
		}
		return true
	},
}

// seedOf is the test's seed, or the one that DECREE_SEED asks for.
func seedOf(t *testing.T, usual uint64) uint64 {
	text := os.Getenv("DECREE_SEED")
	if text == "" {
		return usual
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return seed
}

// TestAnotherWritesDuringAnOperation lets somebody write a file at any step of
// a run that fails, a revert, an apply and a restore: before the command, between
// its end and the walk, during the walk, between a check and its move, after it.
// Their bytes are at the path, beside it under a name that the error tells, or
// stored, and what the operation could not make of it is an error.
func TestAnotherWritesDuringAnOperation(t *testing.T) {
	tries := 60
	if testing.Short() {
		tries = 20
	}
	if os.Getenv("DECREE_LONG") != "" {
		tries = 1500
	}
	seed := seedOf(t, 5)
	rng := rand.New(rand.NewPCG(seed, 1))
	ctx := context.Background()
	script := shell(`echo two >a; echo more >>b; echo made >n; rm gone; mv d/f d/g; echo >>"${DECREE_TEST_MARK:-/dev/null}"; exit 3`)
	operations := map[string]func(s *sweep, r *Recorder) error{
		"run": func(s *sweep, r *Recorder) error { return s.execute(r, 3, script) },
		"revert": func(s *sweep, r *Recorder) error {
			_, err := r.Revert(ctx, MoveOptions{Refs: s.ids})
			return err
		},
		"apply": func(s *sweep, r *Recorder) error {
			_, err := r.Apply(ctx, MoveOptions{Refs: s.ids})
			return err
		},
		"restore": func(s *sweep, r *Recorder) error {
			_, err := r.Restore(ctx, RestoreOptions{Ref: s.ids[0], After: rng.IntN(2) == 0, Yes: true})
			return err
		},
	}
	names := []string{"apply", "restore", "revert", "run"}
	paths := []string{"a", "b", "n", "gone", "d/f", "d/g", "beside"}
	steps := map[string]int{} // of each operation, from its last whole one
	count := map[string]int{}
	for try := range tries {
		name, path := names[rng.IntN(len(names))], paths[rng.IntN(len(paths))]
		s := &sweep{bench: newBench(t), t: t}
		for _, p := range []string{"a", "b", "gone", "d/f", "beside"} {
			file := filepath.Join(s.root, p)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte("one "+p+"\n"), 0o644))
		}
		s.ids = []string{s.run(0, 3, func(o *RunOptions) { script(o); o.Keep = name != "apply" }).Record.ID}
		at, i, did, overwritten := 1+rng.IntN(max(steps[name], 80)), 0, false, false
		err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
			if i++; i == at {
				_, err := os.Stat(s.mark())
				overwritten = name == "run" && err != nil // by the command itself
				did = otherWriters[rng.IntN(len(otherWriters))](filepath.Join(s.root, path))
			}
			return disktest.Action{}
		}), func(r *Recorder) error { return operations[name](s, r) })
		steps[name] = i
		where := s.whereIsOthersWork(path)
		if did && !overwritten {
			require.NotEmpty(t, where, "try %d: %s, %s before step %d of %d: their bytes are lost; %v", try, name, path, at, i, err)
		}
		count[fmt.Sprintf("%s: %v, error %v", name, where, err != nil)]++
		with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
		s.sound()
	}
	t.Logf("seed %d: %d writes of another's", seed, tries)
	for _, k := range slices.Sorted(maps.Keys(count)) {
		t.Log(count[k], k)
	}
}

// TestWhatIsWrittenAfterTheCommandIsNamed: between its end and the walk another's
// write cannot be told from the command's but by its time.
func TestWhatIsWrittenAfterTheCommandIsNamed(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "a"), []byte("one\n"), 0o644))
	written := false
	err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		if _, err := os.Stat(s.mark()); err == nil && !written {
			written = true
			file := filepath.Join(s.root, "theirs")
			require.NoError(t, os.WriteFile(file, []byte(othersWork), 0o644))
			later := time.Now().Add(time.Minute) // a file system's clock may tick slowly
			require.NoError(t, os.Chtimes(file, later, later))
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		return s.execute(r, 3, shell(`echo two >a; echo >>"$DECREE_TEST_MARK"; exit 3`))
	})
	require.NoError(t, err)
	require.True(t, written)
	require.Contains(t, s.said, "written after the command had ended, perhaps by another process: theirs; it counts as changed by the run")
	require.Equal(t, "stored", s.whereIsOthersWork("theirs"))
	s.apply("last")
	require.Equal(t, "at its path", s.whereIsOthersWork("theirs"))
}

// whereIsOthersWork looks for the other's bytes: at the path, beside it, in the store.
func (s *sweep) whereIsOthersWork(path string) string {
	if data, err := os.ReadFile(filepath.Join(s.root, path)); err == nil && string(data) == othersWork {
		return "at its path"
	}
	for p := range s.tree() {
		data, err := os.ReadFile(filepath.Join(s.root, p))
		if err == nil && string(data) == othersWork && strings.Contains(p, "decree-kept-") {
			return "beside it"
		}
	}
	r := s.open()
	defer r.Close()
	if r.store.Has(tree.Sum([]byte(othersWork))) {
		return "stored"
	}
	return ""
}
