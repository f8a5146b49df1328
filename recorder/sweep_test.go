package recorder

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/retention"
	"decree/store"
	"decree/tree"
)

// The sweep makes one step after the other of a whole operation go wrong, on
// the real file system: as an error, and as the death of the process. After each
// the project is opened again with a disk that works, and everything must hold
// that decree promises. By default each kind of step is tried once, in one of the
// operations that have it, in another one with another DECREE_SEED; DECREE_LONG=1 tries every
// step of all of them.

// operation is what is swept.
type operation struct {
	name string
	// prepare brings the project to where the operation begins.
	prepare func(s *sweep)
	do      func(s *sweep, r *Recorder) error
	judge   func(s *sweep, v verdict)
}

// verdict is what is known after a fault and the recovery.
type verdict struct {
	err    error // the operation's own
	said   bool  // it told of a fault: by its error, or in a note
	ran    int   // how often the command was executed
	state  map[string]string
	newest []*history.Record // the records that are new since, newest first
}

// sweep is one operation on its way through all its steps.
type sweep struct {
	*bench
	t      *testing.T
	op     operation
	rng    *rand.Rand
	saved  string
	before map[string]string
	after  map[string]string
	work   []map[string]string // of the attempts of a run
	start  map[string]string   // the tree as the operation finds it
	known  map[string]bool     // the records before
	ids    []string            // what prepare made
	opened bool                // the operation began
	said   []string            // by the operation
	gone   int                 // what it named as gone
	stay   []string            // the records after it
}

func (s *sweep) mark() string { return filepath.Join(s.base, "ran") }

// reset brings back the files as prepare left them. The root itself stays.
func (s *sweep) reset() {
	s.t.Helper()
	unlockTree(s.root)
	unlockTree(filepath.Join(s.base, "store")) // what an overlay's kernel leaves in its work directory
	for _, part := range []string{"tree", "store"} {
		to := filepath.Join(s.base, part)
		list, err := os.ReadDir(to)
		require.NoError(s.t, err)
		for _, e := range list {
			require.NoError(s.t, os.RemoveAll(filepath.Join(to, e.Name())))
		}
		copyTree(s.t, filepath.Join(s.saved, part), to)
	}
	require.NoError(s.t, os.RemoveAll(s.mark()))
	s.said = nil
}

// save keeps the files for reset.
func (s *sweep) save() {
	require.NoError(s.t, os.RemoveAll(s.saved))
	for _, part := range []string{"tree", "store"} {
		require.NoError(s.t, os.MkdirAll(filepath.Join(s.saved, part), 0o755))
		copyTree(s.t, filepath.Join(s.base, part), filepath.Join(s.saved, part))
	}
}

// copyTree copies what is in from into to: contents, modes and links.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	list, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, e := range list {
		a, b := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		info, err := os.Lstat(a)
		require.NoError(t, err)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(a)
			require.NoError(t, err)
			require.NoError(t, os.Symlink(target, b))
			continue
		case info.IsDir():
			require.NoError(t, os.Mkdir(b, 0o700))
			copyTree(t, a, b)
		default:
			data, err := os.ReadFile(a)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(b, data, 0o600))
		}
		require.NoError(t, os.Chmod(b, info.Mode()))
	}
}

// openOn opens a recorder on a disk that may fail.
func (s *sweep) openOn(d disk.Disk) (*Recorder, error) {
	return Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk:     d,
			Where:    project.Where{RootFlag: s.root, Cwd: s.root, Home: filepath.Join(s.base, "home"), StoreEnv: filepath.Join(s.base, "store")},
			Location: time.UTC,
			Clock:    func() time.Time { s.clk = s.clk.Add(time.Second); return s.clk },
			Note:     func(n string) { s.said = append(s.said, n) },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
}

// try does the operation on d.
func (s *sweep) try(d disk.Disk, do func(r *Recorder) error) error {
	r, err := s.openOn(d)
	s.opened = err == nil
	if err != nil {
		return err
	}
	err = do(r)
	return errors.Join(err, r.Close())
}

// runSeed is the command's change of the tree in all swept runs.
const runSeed = 77

// execute runs the command under the recorder. What a run says in its notes
// counts as told.
func (s *sweep) execute(r *Recorder, exit int, more func(*RunOptions)) error {
	null, err := os.Open(os.DevNull)
	require.NoError(s.t, err)
	defer null.Close()
	o := RunOptions{
		Args: []string{os.Args[0]}, Dir: s.root, Stdin: null, Grace: time.Second,
		Env: append(os.Environ(), fmt.Sprintf("%s=%d", mutateEnv, runSeed), fmt.Sprintf("DECREE_TEST_EXIT=%d", exit), markEnv+"="+s.mark()),
	}
	if more != nil {
		more(&o)
	}
	res, err := r.Run(context.Background(), o)
	if err != nil {
		return err
	}
	s.said = append(s.said, res.Notes...)
	s.gone = len(res.Gone)
	if res.ExitCode == 125 {
		return errors.New(strings.Join(res.Notes, "; "))
	}
	return nil
}

// edit changes the tree by hand.
func (s *sweep) edit(seed int64) { mutate(s.root, rand.New(rand.NewSource(seed))) }

func (s *sweep) tree() map[string]string { return snapshot(s.t, s.root) }

// operations are the swept ones. A new operation of the recorder is a line here:
// what goes before it, itself, and what must hold after each of its faults beyond
// what sound asks of all; judgeUntouched serves where the tree is not its business.
func operations() []operation {
	ctx := context.Background()
	three := func(s *sweep) {
		for i := range int64(3) {
			s.ids = append(s.ids, s.run(500+i, 0, nil).Record.ID)
		}
	}
	one := func(s *sweep) { s.ids = append(s.ids, s.run(500, 0, nil).Record.ID) }
	move := func(f func(s *sweep, r *Recorder) (*MoveResult, error)) func(*sweep, *Recorder) error {
		return func(s *sweep, r *Recorder) error {
			res, err := f(s, r)
			if err == nil && res.Outcome != nil {
				s.said = append(s.said, res.Outcome.Notes...)
			}
			return err
		}
	}
	dead := func(exit int, at string) func(*sweep) {
		return func(s *sweep) {
			one(s)
			s.before = s.tree()
			s.save()
			s.edit(runSeed)
			s.work = append(s.work, s.tree())
			s.reset()
			fired := false
			_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if !fired && strings.HasPrefix(st.Op+" "+filepath.Base(st.Path), at) {
					fired = true
					return disktest.Action{Die: true}
				}
				return disktest.Action{}
			}), func(r *Recorder) error {
				if exit > 0 {
					return s.execute(r, exit, nil)
				}
				_, err := r.Revert(ctx, MoveOptions{Refs: []string{s.ids[0]}})
				return err
			})
			require.True(s.t, fired)
		}
	}
	recoverIt := func(s *sweep, r *Recorder) error {
		done, err := r.Recover(ctx, false)
		for _, d := range done {
			s.said = append(s.said, d.What)
		}
		return err
	}
	return append(slices.Concat(isolatedOperations(), turnOperations()), []operation{
		{"checkpoint", one, func(_ *sweep, r *Recorder) error {
			_, err := r.Checkpoint(ctx, CheckpointOptions{Label: "here"})
			return err
		}, judgeCheckpoint},
		{"first checkpoint", func(*sweep) {}, func(_ *sweep, r *Recorder) error {
			_, err := r.Checkpoint(ctx, CheckpointOptions{})
			return err
		}, judgeCheckpoint},
		{"run", one, func(s *sweep, r *Recorder) error { return s.execute(r, 0, func(o *RunOptions) { o.Label = "done" }) }, judgeRun},
		{"run with others inside", one, nested, judgeNested},
		{"run, kept", one, func(s *sweep, r *Recorder) error { return s.execute(r, 3, func(o *RunOptions) { o.Keep = true }) }, judgeRun},
		{"run, put back", one, func(s *sweep, r *Recorder) error { return s.execute(r, 3, nil) }, judgePutBack},
		{"run, three attempts", one, func(s *sweep, r *Recorder) error {
			return s.execute(r, 3, func(o *RunOptions) { o.Attempts = 3 })
		}, judgePutBack},
		{"run deletes .decree", three, func(s *sweep, r *Recorder) error {
			return s.execute(r, 0, func(o *RunOptions) { o.Env = append(o.Env, deleteEnv+"=.decree") })
		}, judgeRun},
		{"run deletes .decree, put back", three, func(s *sweep, r *Recorder) error {
			return s.execute(r, 3, func(o *RunOptions) { o.Env = append(o.Env, deleteEnv+"=.decree") })
		}, judgePutBack},
		{"run tampers with .decree, put back", three, func(s *sweep, r *Recorder) error {
			return s.execute(r, 3, func(o *RunOptions) {
				o.Env = append(o.Env, tamperEnv+"=rm -rf .decree/tmp $DECREE_RUN_DIR; echo mine >.decree/tmp; echo mine >$DECREE_RUN_DIR")
			})
		}, judgePutBack},
		{"run replaces .decree, put back", three, func(s *sweep, r *Recorder) error {
			return s.execute(r, 3, func(o *RunOptions) { o.Env = append(o.Env, tamperEnv+"=rm -rf .decree; echo mine >.decree") })
		}, judgePutBack},
		{"revert", one, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Revert(ctx, MoveOptions{Refs: s.ids})
		}), judgeMove},
		{"revert of three", three, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Revert(ctx, MoveOptions{Refs: []string{s.ids[0] + ".." + s.ids[2]}})
		}), judgeMove},
		{"revert with merge", prepareMerge, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Revert(ctx, MoveOptions{Refs: s.ids, Merge: plan.Refuse})
		}), judgeMove},
		{"apply", func(s *sweep) { one(s); s.revert(s.ids[0]) }, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Apply(ctx, MoveOptions{Refs: s.ids})
		}), judgeMove},
		{"apply of three", func(s *sweep) { three(s); s.revert(s.ids...) }, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Apply(ctx, MoveOptions{Refs: []string{s.ids[0], s.ids[1], s.ids[2]}})
		}), judgeMove},
		{"undo of three", three, move(func(_ *sweep, r *Recorder) (*MoveResult, error) {
			return r.Undo(ctx, UndoOptions{N: 3})
		}), judgeUndo},
		{"redo", func(s *sweep) { three(s); s.undo(UndoOptions{N: 3}) }, move(func(_ *sweep, r *Recorder) (*MoveResult, error) {
			return r.Redo(ctx, UndoOptions{N: 3})
		}), judgeUndo},
		{"redo of one of three", func(s *sweep) { three(s); s.undo(UndoOptions{N: 3}) }, move(func(_ *sweep, r *Recorder) (*MoveResult, error) {
			return r.Redo(ctx, UndoOptions{})
		}), judgeUndo},
		{"restore", func(s *sweep) { three(s); s.edit(9) }, move(func(s *sweep, r *Recorder) (*MoveResult, error) {
			return r.Restore(ctx, RestoreOptions{Ref: s.ids[1], Yes: true})
		}), judgeMove},
		{"label", one, func(s *sweep, r *Recorder) error {
			_, err := r.SetLabel(ctx, "here", s.ids[0])
			return err
		}, judgeUntouched},
		{"prune", prepareOld, pruneOld, judgePrune},
		{"gc", func(s *sweep) {
			prepareOld(s)
			with(s.bench, func(r *Recorder) (any, error) {
				x, err := r.enter(ctx, movesFiles)
				if err != nil {
					return nil, err
				}
				defer x.close()
				list, err := r.verdicts(map[string]retention.Policy{"run": {Last: 1}, "auto": {}})
				if err != nil {
					return nil, err
				}
				return nil, r.remove(&Pruned{Verdicts: list})
			})
		}, func(_ *sweep, r *Recorder) error { _, err := r.Gc(ctx); return err }, judgePrune},
		{"forget", func(s *sweep) { s.ids = secretBench(s.bench) }, func(_ *sweep, r *Recorder) error {
			_, err := r.Forget(ctx, ForgetOptions{Paths: []tree.Path{"conf"}, Yes: true})
			return err
		}, judgeForget},
		{"recover a revert", dead(0, "Exchange"), recoverIt, judgeMoveRecovered},
		{"recover a revert before its record", dead(0, "WriteAt records.jsonl"), recoverIt, judgeMoveRecovered},
		{"recover a put-back", dead(3, "Exchange"), recoverIt, judgeRunRecovered},
		{"recover a run", dead(3, "Mkdir txn-"), recoverIt, judgeRunRecovered},
	}...)
}

// prepareOld makes records that go and records that stay, whose trees rest on
// each other.
func prepareOld(s *sweep) {
	for i := range int64(6) {
		s.ids = append(s.ids, s.run(500+i, 0, nil).Record.ID)
		s.write("a large one", noise(int(i), 60_000))
		s.ids = append(s.ids, s.checkpoint(CheckpointOptions{Reason: "auto"}).ID)
	}
}

func pruneOld(_ *sweep, r *Recorder) error {
	_, err := r.Prune(ctx(), PruneOptions{Last: map[string]int{"run": 2, "auto": 1}})
	return err
}

// judgePrune: the tree is untouched, those records are there that stay, and what stays can be restored. Each
// removal is a line of its own: of an append that a death has torn some may count, and the next prune removes the others.
func judgePrune(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	require.Empty(s.t, v.newest)
	left := s.recordIDs()
	require.Subset(s.t, left, s.stay)
	if v.err == nil {
		require.Equal(s.t, s.stay, left)
	} else if len(left) < len(s.known) {
		require.NoError(s.t, s.try(disk.OS, func(r *Recorder) error { return pruneOld(s, r) }))
		left = s.recordIDs()
		require.Equal(s.t, s.stay, left)
	}
	first := left[0]
	s.write("a large one", "now")
	with(s.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Restore(context.Background(), RestoreOptions{Ref: first, Yes: true})
	})
	s.revert("last")
}

// judgeForget: the tree is untouched, and the secret is gone from everything, or,
// where the forget had not begun, it is all there.
func judgeForget(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	require.Empty(s.t, v.newest)
	left := s.holds("hunter2")
	if v.err == nil {
		require.Empty(s.t, left)
	}
	list := with(s.bench, func(r *Recorder) (*store.Forgotten, error) { return store.ReadForgotten(r.project.Store) })
	require.Empty(s.t, list.Pending, "begun and not finished")
	if len(list.Contents) > 0 {
		require.Empty(s.t, left, "it says that it is forgotten")
	}
}

func prepareMerge(s *sweep) {
	text := func(first, last string) []byte {
		lines := []string{first}
		for i := range 30 {
			lines = append(lines, fmt.Sprintf("line %d", i))
		}
		return []byte(strings.Join(append(lines, last, ""), "\n"))
	}
	path := filepath.Join(s.root, "merged.txt")
	require.NoError(s.t, os.WriteFile(path, text("first", "last"), 0o644))
	res := s.run(0, 0, func(o *RunOptions) {
		o.Args = []string{"/bin/sh", "-c", "sed 's/^first$/FIRST/' merged.txt >x && mv x merged.txt && echo new >made"}
	})
	s.ids = append(s.ids, res.Record.ID)
	require.NoError(s.t, os.WriteFile(path, text("FIRST", "LAST"), 0o644))
}

// judgeCheckpoint: the tree is untouched, what was acknowledged is there.
func judgeCheckpoint(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	if v.err == nil {
		require.Len(s.t, v.newest, 1, "acknowledged and lost")
	}
}

// judgeUntouched: neither the tree changed nor is there a record of it.
func judgeUntouched(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	require.Empty(s.t, v.newest)
}

// judgeRun: what the command did stays, and its record takes it back.
func judgeRun(s *sweep, v verdict) {
	if v.ran == 0 {
		require.Equal(s.t, s.before, v.state)
		require.Error(s.t, v.err)
		return
	}
	require.Equal(s.t, s.after, v.state)
	require.Len(s.t, v.newest, 1, "the command ran and there is no record of it")
	if v.err == nil {
		require.Contains(s.t, []history.Status{history.StatusSucceeded, history.StatusFailed}, v.newest[0].Status)
	}
	if s.incomplete(v) {
		return
	}
	s.revert(v.newest[0].ID)
	require.Equal(s.t, s.before, s.tree(), "its revert")
	s.apply(v.newest[0].ID)
	require.Equal(s.t, s.after, s.tree(), "its apply")
}

// incomplete says whether the record names paths that could not be read after
// the command: it was told, and what they became is not in the record.
func (s *sweep) incomplete(v verdict) bool {
	if len(v.newest[0].Unrecorded) == 0 {
		return false
	}
	require.True(s.t, v.said)
	return true
}

// judgePutBack: the tree is the first one, or as an attempt left it; in both
// cases the record has the work.
func judgePutBack(s *sweep, v verdict) {
	if v.ran == 0 {
		require.Equal(s.t, s.before, v.state)
		require.Error(s.t, v.err)
		return
	}
	require.Len(s.t, v.newest, 1, "the command ran and there is no record of it")
	rec := v.newest[0]
	if v.err == nil {
		require.Equal(s.t, s.before, v.state)
		require.Equal(s.t, history.StatusReverted, rec.Status)
	}
	if !maps.Equal(s.before, v.state) {
		require.Contains(s.t, s.work, v.state)
		if s.incomplete(v) {
			return
		}
		s.revert(rec.ID)
		require.Equal(s.t, s.before, s.tree(), "its revert")
		s.apply(rec.ID)
		require.Equal(s.t, v.state, s.tree(), "its apply")
		return
	}
	if rec.DiffSHA256.IsZero() || rec.Changes == (history.Changes{}) {
		// Between the clean slate and the last attempt: the work is in attempts/.
		name := fmt.Sprintf("attempts/%d/changes.diff", v.ran)
		with(s.bench, func(r *Recorder) (int64, error) {
			rc, err := r.History().OpenStored(rec.ID, name)
			require.NoError(s.t, err, "the work of attempt %d is lost", v.ran)
			defer rc.Close()
			return io.Copy(io.Discard, rc)
		})
		return
	}
	s.apply(rec.ID)
	require.Contains(s.t, s.work, s.tree(), "its apply")
	s.revert("last")
	require.Equal(s.t, s.before, s.tree())
}

// judgeMove: all old without a record, or all new with one that takes it back.
func judgeMove(s *sweep, v verdict) {
	if v.err == nil {
		require.Equal(s.t, s.after, v.state)
	}
	if maps.Equal(s.before, v.state) {
		require.Empty(s.t, v.newest, "a record of what was not done")
		return
	}
	require.Equal(s.t, s.after, v.state, "neither old nor new")
	require.Len(s.t, v.newest, 1, "moved and not recorded")
	s.revert(v.newest[0].ID)
	require.Equal(s.t, s.before, s.tree(), "its revert")
	s.apply("last~1")
	require.Equal(s.t, s.after, s.tree())
}

// judgeUndo is judgeMove, and the chain is where the tree is: undo and redo lead from
// there to both ends.
func judgeUndo(s *sweep, v verdict) {
	moved := !maps.Equal(s.before, v.state)
	require.Equal(s.t, moved, len(v.newest) == 1, "moved and not recorded, or the other way round")
	if v.err == nil {
		require.True(s.t, moved)
	}
	if moved {
		require.Equal(s.t, s.after, v.state, "neither old nor new")
	}
	undo, redo := s.chain()
	require.Len(s.t, append(undo, redo...), 3)
	there := func(n int, walk func(UndoOptions) *MoveResult) {
		if n > 0 {
			walk(UndoOptions{N: n})
		}
	}
	there(len(undo), s.undo)
	first := s.tree()
	there(3, s.redo)
	last := s.tree()
	for _, state := range []map[string]string{s.before, s.after} {
		require.Condition(s.t, func() bool {
			return s.op.name == "redo of one of three" || maps.Equal(state, first) || maps.Equal(state, last)
		}, "the ends of the chain")
	}
	there(len(redo), s.undo)
	require.Equal(s.t, v.state, s.tree(), "there and back")
}

// judgeMoveRecovered: what cannot be finished is taken back.
func judgeMoveRecovered(s *sweep, v verdict) {
	v.err = errors.Join(v.err, errors.New("either is right"))
	judgeMove(s, v)
}

// judgeRunRecovered: the command ran before the death.
func judgeRunRecovered(s *sweep, v verdict) {
	v.ran, v.err = 1, errors.Join(v.err, errors.New("either is right"))
	judgePutBack(s, v)
}

// inStore is what a store may hold when nothing is going on.
var inStore = []string{"audit.jsonl", "cache", "forgotten.json", "index", "index.log", "labels.json", "layers", "leases", "lock", "open", "own", "packs", "records.jsonl", "reserve", "store.json", "txn"}

// sound looks at everything that must hold whatever happened.
func (s *sweep) sound() {
	s.t.Helper()
	r := s.open()
	defer func() { require.NoError(s.t, r.Close()) }()
	requireSound(s.t, r)
}

func requireSound(t *testing.T, r *Recorder) {
	t.Helper()
	ctx := context.Background()
	waiting, err := r.Waiting()
	require.NoError(t, err)
	require.Empty(t, waiting)
	r.machine = fakeMachine{landlock: 7} // what the machine can do is no matter of the project
	checks, err := r.Doctor(ctx)
	require.NoError(t, err)
	for _, c := range checks {
		require.NotContains(t, []Level{Warning, Error}, c.Level, "doctor: %v", c)
	}
	problems, err := r.Verify(ctx, VerifyOptions{All: true})
	require.NoError(t, err)
	require.Empty(t, problems)
	for _, name := range listed(t, r.project.Store) {
		require.Contains(t, inStore, name, "left in the store")
	}
	requireOwnLayers(t, r)
	for _, in := range []struct {
		dir  disk.Dir
		name string
	}{{r.project.Decree, "tmp"}, {r.project.Store, "txn"}, {r.project.Store, "open"}, {r.project.Store, "leases"}} {
		d, err := in.dir.OpenDir(in.name)
		if isMissing(err) {
			continue
		}
		require.NoError(t, err)
		var turns []string // which are open as long as their agent works
		if in.name == "open" {
			open, err := r.openTurns()
			require.NoError(t, err)
			for _, o := range open {
				turns = append(turns, o.Record.ID+".json")
			}
		}
		require.ElementsMatch(t, turns, listed(t, d), in.name)
		d.Close()
	}
}

// requireOwnLayers holds that each layer is that of a draft that waits.
func requireOwnLayers(t *testing.T, r *Recorder) {
	t.Helper()
	dir, err := r.project.Store.OpenDir(layersDir)
	if isMissing(err) {
		return
	}
	require.NoError(t, err)
	defer dir.Close()
	mine := []string{"works", "works.new"} // the latter is taken up when something is tried again
	waiting, err := r.WaitingDrafts()
	require.NoError(t, err)
	for _, rec := range waiting {
		mine = append(mine, rec.ID)
	}
	require.Subset(t, mine, listed(t, dir), "a layer is left")
}

func listed(t *testing.T, d disk.Dir) (names []string) {
	list, err := d.List()
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name)
	}
	return names
}

// fresh are the records that are new since prepare, newest first.
func (s *sweep) fresh() []*history.Record {
	all := with(s.bench, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
	return slices.DeleteFunc(all.Records, func(rec *history.Record) bool { return s.known[rec.ID] })
}

// doAsTold repairs where the operation has named that as the next step.
func (s *sweep) doAsTold() {
	if strings.Contains(strings.Join(s.said, "\n"), "'decree doctor --repair' writes them") {
		with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
	}
}

// settle recovers on a disk that works, before that perhaps on some that die.
func (s *sweep) settle(deaths int) {
	s.t.Helper()
	for range deaths {
		at, i := s.rng.Intn(150), 0
		_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if !st.Write {
				return disktest.Action{}
			}
			i++
			return disktest.Action{Die: i > at, Torn: s.rng.Intn(200)}
		}), func(r *Recorder) error { _, err := r.Recover(context.Background(), false); return err })
	}
	with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
}

// quietUnreadable are the steps whose error need not be told where it is that something may not be read.
var quietUnreadable = []quietSteps{
	{`^Open /tree/(.*/\.decree-|\.decree/tmp/)txn-[0-9-]+(-clean|-end)?[-/][ds][0-9]+$`, "whether another program has opened for writing what is moved away: that is asked through a handle for reading"},
}

// quietSteps are steps of an operation, as a pattern, of which an error may stay unsaid.
type quietSteps struct{ steps, reason string }

// quiet are the steps whose error need not be told, since nothing depends on them.
var quiet = []quietSteps{
	{`^(Open|OpenDir|Read|FileStat|Stat|Readlink|Self|List) /tree(/[^.]|$)`, "looked at ahead of its use; what failed is looked at again when it is needed"},
	{`^Stat /tree/(.*/)?\.(git|decree)$`, "the same, of a root's marks and of directories that are left out"},
	{`^(OpenSearch|Open|Stat|FileStat|Read) /?(layer\.json)?$`, "whether the root is the tree of a clone; only a whole layer.json says so"},
	{`^(OpenDir|Open|FileStat|Stat|Readlink|List|Read|ReadAttributes|Attributes) STORE/layers/[^/]+/(clone/tree|upper)/`, "the path alone is told: what cannot be read is not recorded"},
	{`^(Remove|Rmdir) STORE/layers/`, "a directory is tried as a file and as an empty one first, which fails anyway; then it is emptied"},
	{`^Locked STORE/layers/[^/]+/(upper|clone|tree)$`, "whether a run still looks at the tree: where that cannot be asked nobody waits for it"},
	{`^\w+ STORE/layers/[^/]+/work(/|$)`, "what the kernel has left of a mount, in which nobody looks again: it goes with the layer"},
	{`^\w+ STORE/layers/(clock|probe)-`, "a probe of the clock there, or of what the machine lets an isolated run do: where it cannot be made something else serves"},
	{`^Stat STORE/layers/[^/]+/entered$`, "whether a command worked in a layer: if in doubt one did, which is told, and the layer stays"},
	{`^Self STORE/layers$`, "whether the clock can be read there; there are other places"},
	{` STORE/layers/works(\.new)?$`, "what worked before; without it, it is tried again"},
	{`^(Mkdir|OpenDir|TryLock|Stat) STORE/own$`, "the log of acts: where the disk is full nobody can write there"},
	{` STORE/clock-`, "a probe of the file system's clock; where none can be made the system's clock serves"},
	{`^(Open|Read|FileStat|Stat) /tree/\.decree/project\.json$`, "written again"},
	{`^Stat /tree/\.decree/\.gitignore$`, "written again when it is missing, else left"},
	{`^Stat /tree/\.decree/(aside|backup|restored)$`, "whether a directory is there of which decree has no copy: it is only named when it is known to be gone"},
	{`^(Open|OpenDir|Read|FileStat|Stat|List|Self) /tree/\.decree/runs`, "the log's copy counts; what is damaged is written again"},
	{`^(OpenDir|Stat) /tree/\.decree(/tmp)?$`, "another place for the clock; the draft of a manifest, which is written without one; or what is taken away there when all is done"},
	{`^(Open|OpenDir|Read|FileStat|List) STORE/open`, "who looks for trees does without those of open records; a recovery does not"},
	{`^(Open|FileStat|Read|Remove|Create|Write|Rename) STORE/lock\.json(\.new)?$`, "it names the holder for a message; the lock is the system's"},
	{`^Stat STORE/(index|index\.log|records\.jsonl)$|^Self STORE(/packs)?$`, "whether a reading is still the newest: if in doubt it is read again"},
	{`^(Open(Root|Search)?|List) /(store|home|tree/\.(git|decree/store))`, "a place of stores or of git's excludes: one that may not be entered is another's, any other error is told"},
	{`^(Open|Map|ReadAt) STORE/index(\.log)?$`, "an index that cannot be read is passed over: the packs are asked"},
	{`^Origin /tree$`, "whether the store's memory of the root is still right: if in doubt it stays"},
	{`^(OpenRoot /tree|Self /store)$`, "whether the base of the stores is the root itself: if in doubt both are locked"},
	{` STORE/reserve$`, "space for prune and gc; without it they may find none"},
	{`^(Open|ReadAt) STORE/packs/`, "an object that cannot be compared is stored again"},
	{`^(Link|Stat) /tree/\.decree/runs/.*routine\.log$`, "another name for the log, or a copy in its place"},
	{`^(Link|FileSync|Rename) /tree/\.decree/(runs|tmp)/.*manifest\.json`, "a hard link that saves space, or the copy in its place"},
	{`^(Create|Open|OpenWrite|Write|FileSync|FileStat|Stat|Remove) /tree/\.decree/tmp/[0-9a-f]{16}-manifest\.json$`, "a draft of the manifest; without it the file is written from the store; what stays of it is noted, and the next command removes it"},
	{`^(Open|OpenWrite|Stat|FileStat|Read|Map) STORE/cache$`, "the stat cache: without it every file is hashed"},
	{`^(Open|FileStat|Read) STORE/held\.json$`, "whether the records came from elsewhere: in doubt they did, and no set-user-ID is given"},
	{`^Rmdir /tree/\.decree$`, "a question whether the root lets anything go at all; only a plain no counts"},
	{`^Mkdir /tree/\.decree/tmp/txn-[0-9-]+(-clean|-end)?-owner$`, "whose new files are there: on a full disk they are taken for root's, or for the staging directory's owner's"},
	{`^List /tree/\.decree/tmp$`, "what a dead process has left there: in doubt all of it stays noted"},
	{`^Stat STORE/txn/[0-9-]+(-clean|-end)?\.(journal|done)$`, "when it was written: where that is not known, no file passes for one that a power loss has torn"},
	{`^OpenDir STORE/packs$`, "made if it is not there, then opened again"},
	{`^TryLock STORE$`, "the audit's own lock, beside that of the project, which is held: the line is written all the same"},
	{`^OpenDir STORE/own$`, "on a full disk acts cannot be noted either, so nothing has to wait for them; other errors are told"},
	{`^(OpenDir|List|Locked|Stat|Open|FileStat|Read|Remove|Rmdir) STORE/leases`, "who the lock is for once it is given back, and what is left of a lease: the next command removes it"},
	{`^(Remove|Rmdir) /tree/\.decree/tmp/[0-9a-f]{16}-gone-[0-9-]+$`, "a directory is tried as a file and as an empty one first, which fails anyway; then it is emptied"},
	{`^(Remove|Rmdir) /tree/\.decree/tmp/[0-9a-f]{16}-run-[0-9-]+$`, "the place is cleared before a directory is made there, which fails if it was not"},
	{`^(List /tree/\.decree/tmp/txn-[0-9-]+(-clean|-end)?|Remove /tree/(.*/\.decree-|\.decree/tmp/)txn-[0-9-]+(-clean|-end)?[-/][sdr][0-9]+)$`, "emptied early for the room of the record; what stays is removed, or named, after it"},
}

func isQuiet(step string, cause error) bool {
	list := quiet
	if errors.Is(cause, fs.ErrPermission) {
		list = slices.Concat(quiet, quietUnreadable)
	}
	for _, q := range list {
		if regexp.MustCompile(q.steps).MatchString(step) {
			return true
		}
	}
	return false
}

// once does the operation with one fault, at step n, and judges; fired says whether the
// operation came to that step.
func (s *sweep) once(n int, cause error) (fired bool) {
	s.t.Helper()
	i := 0
	return s.at(func(disktest.Step) bool { i++; return i-1 == n }, cause)
}

// at does the same at the first step that is; of deaths it asks writing steps alone.
func (s *sweep) at(is func(disktest.Step) bool, cause error) (fired bool) {
	s.t.Helper()
	s.reset()
	var hit disktest.Step
	err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if fired || cause == nil && !st.Write || !is(st) {
			return disktest.Action{}
		}
		fired, hit = true, st
		if cause == nil {
			return disktest.Action{Die: true, Torn: s.rng.Intn(st.Size + 1)}
		}
		return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: cause}}
	}), func(r *Recorder) error { return s.op.do(s, r) })
	if !fired {
		require.NoError(s.t, err)
		require.Equal(s.t, s.after, s.tree())
		return false
	}
	told := err != nil || len(s.said) > 0
	name := s.short(hit.Path)
	what := fmt.Sprintf("%s: %s %s: %v: err %v", s.op.name, hit.Op, name, cause, err)
	defer func() {
		if s.t.Failed() {
			s.t.Log(what, s.said)
		}
	}()
	if cause != nil && !isQuiet(hit.Op+" "+name, cause) && !s.above(hit.Path) && !s.again(name, cause, err) && (hit.Write || !errors.Is(cause, syscall.ENOSPC)) { // nothing is too full to be read
		require.True(s.t, told, "nobody was told: %s", what)
		require.True(s.t, s.names(hit, cause, err), "the cause or its path was not told: %s", what)
	}
	if cause != nil {
		s.words(err, what)
	}
	deaths := 0
	if cause == nil {
		deaths = s.rng.Intn(3)
	}
	s.settle(deaths)
	s.doAsTold()
	v := verdict{err: err, said: told, state: s.tree(), newest: s.fresh()}
	if data, err := os.ReadFile(s.mark()); err == nil {
		v.ran = strings.Count(string(data), "\n")
	}
	s.sound()
	s.op.judge(s, v)
	s.goOn()
	return true
}

// again says whether the operation has gone on from a full store by itself: the recovery of an
// isolated run records once more with less in it, and tells what it left out, here nothing.
func (s *sweep) again(name string, cause, err error) bool {
	return err == nil && errors.Is(cause, syscall.ENOSPC) && (strings.HasPrefix(name, "STORE/") || strings.HasPrefix(name, "/tree/.decree/runs/")) && s.op.name == "recover an isolated run"
}

// above says whether a path is one at which a project around this one is looked for, to be
// named: where nothing can be seen, nothing is named.
func (s *sweep) above(path string) bool {
	dir := strings.TrimSuffix(strings.TrimSuffix(path, "/.decree"), "/")
	return strings.HasPrefix(s.base+"/", dir+"/")
}

// words holds the operation's error against what happened: in which state it says
// that things are left.
func (s *sweep) words(err error, what string) {
	if err == nil {
		return
	}
	text, now := err.Error(), s.tree()
	_, missing := os.Stat(s.mark())
	ran := missing == nil
	is := func(states ...map[string]string) bool {
		return slices.ContainsFunc(states, func(m map[string]string) bool { return maps.Equal(m, now) })
	}
	for _, c := range []struct {
		words string
		true  bool
	}{
		{"the command was not started", !ran && is(s.start)},
		{"nothing was changed", is(append(s.work, s.start)...)},
		{"the command has run and its changes are in the tree as it left them", ran && is(append(s.work, s.after)...)},
		{"the command has failed and its changes are put back", ran && is(s.start)},
		{"the tree is back at its state before the first attempt", ran && is(s.start)},
		{"everything was taken back", is(append(s.work, s.start)...)},
	} {
		if strings.Contains(text, c.words) {
			require.True(s.t, c.true, "it says %q: %s", c.words, what)
		}
	}
	said := !s.opened || errors.As(err, new(*BeginError)) // cmd says it
	if strings.HasPrefix(s.op.name, "run") && !ran && !said {
		require.Contains(s.t, text, "not started", what)
	}
}

// names says whether one text of the operation, its error or a note, has both the
// cause of the fault and the path of the step that had it: as it is, or as a path
// of the tree.
func (s *sweep) names(hit disktest.Step, cause, err error) bool {
	texts := s.said
	if err != nil {
		texts = append(slices.Clone(texts), err.Error())
	}
	inTree := hit.Path
	if rel, err := filepath.Rel(s.root, hit.Path); err == nil && filepath.IsLocal(rel) {
		// Without the closing quotation mark: what lies below a directory tells its path too.
		inTree = strings.TrimSuffix(tree.Quote(filepath.ToSlash(rel)), `"`)
	}
	tells := func(text string) bool {
		return strings.Contains(text, cause.Error()) || cause == syscall.EACCES && strings.Contains(text, "you may not read it")
	}
	return slices.ContainsFunc(texts, func(text string) bool {
		return tells(text) && (strings.Contains(text, hit.Path) || strings.Contains(text, inTree))
	})
}

// short is a path without what differs from one sweep to the next.
func (s *sweep) short(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(path, s.base, ""), "/store/"+s.storeID(), "STORE")
}

var (
	madeNames = regexp.MustCompile(`(clock|probe)-[a-z0-9]+|[0-9a-f]{16,}|[0-9]+`)
	treePaths = regexp.MustCompile(`^(/tree|STORE/layers/[^/]+/(?:clone/tree|upper))/(.+)$`)
)

// kind is a step without its place in the operation and the names that are made up: steps of one
// kind do the same to the same file, or to some path of the tree.
func (s *sweep) kind(st disktest.Step) string {
	name := madeNames.ReplaceAllString(s.short(st.Path), "N")
	if m := treePaths.FindStringSubmatch(name); m != nil && !strings.HasPrefix(m[2], ".decree") {
		name = m[1] + "/PATH"
	}
	return st.Op + " " + name
}

// steps is how many steps of each kind the operation has; those that write, or the others too.
func (s *sweep) steps(writing bool) map[string]int {
	s.reset()
	count := map[string]int{}
	require.NoError(s.t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write || !writing {
			count[s.kind(st)]++
		}
		return disktest.Action{}
	}), func(r *Recorder) error { return s.op.do(s, r) }))
	return count
}

func (s *sweep) storeID() string {
	list, err := os.ReadDir(filepath.Join(s.base, "store"))
	if err != nil || len(list) == 0 {
		return "?"
	}
	return list[0].Name()
}

// goOn does what a user does next.
func (s *sweep) goOn() {
	s.t.Helper()
	state := s.tree()
	res := s.run(4711, 0, nil)
	s.revert(res.Record.ID)
	require.Equal(s.t, state, s.tree(), "the next run's revert")
	s.sound()
}

// begin prepares the operation and does it once without a fault.
func begin(t *testing.T, op operation, seed int64) *sweep {
	s := &sweep{bench: newBench(t), t: t, op: op, rng: rand.New(rand.NewSource(seed)), known: map[string]bool{}}
	s.saved = filepath.Join(s.base, "saved")
	rnd := rand.New(rand.NewSource(seed))
	for range 12 {
		place(s.root, rnd)
	}
	require.NoError(t, os.Mkdir(filepath.Join(s.base, "store"), 0o700))
	op.prepare(s)
	if s.before == nil {
		s.before = s.tree()
	}
	s.save()
	s.start = s.tree()
	if s.work == nil { // the attempts' work, by hand
		for range 2 {
			s.edit(runSeed)
			s.work = append(s.work, s.tree())
		}
	}
	s.reset()
	if r, err := Open(context.Background(), Options{ReaderOptions: ReaderOptions{Disk: disk.OS, Clock: time.Now, Where: project.Where{RootFlag: s.root, Cwd: s.root, StoreEnv: filepath.Join(s.base, "store")}}}); err == nil {
		list, err := r.History().List(history.ListOptions{})
		require.NoError(t, err)
		for _, rec := range list.Records {
			s.known[rec.ID] = rec.Status != history.StatusOpen
		}
		require.NoError(t, r.Close())
	}
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return op.do(s, r) }))
	s.after = s.tree()
	s.stay = s.recordIDs()
	return s
}

var faults = map[string][]error{
	"error": {syscall.EIO, syscall.ENOSPC, syscall.EACCES},
	"death": {nil},
}

func TestSweep(t *testing.T) {
	had, ops := map[string]bool{}, operations()
	first := int(seedOf(t, 1)-1) % len(ops)
	for _, op := range slices.Concat(ops[first:], ops[:first]) {
		for _, fault := range []string{"error", "death"} {
			t.Run(op.name+"/"+fault, func(t *testing.T) {
				s := begin(t, op, int64(seedOf(t, 1)))
				if os.Getenv("DECREE_LONG") != "" {
					s.eachStep(faults[fault])
				} else {
					s.eachKind(fault, had)
				}
			})
		}
	}
}

// eachStep has one step after the other fail.
func (s *sweep) eachStep(causes []error) {
	n, failed := 0, 0
	for fired := true; fired && failed < 5; n++ {
		if !s.sub(strconv.Itoa(n), func() { fired = s.once(n, causes[n%len(causes)]) }) {
			failed++
			fired = true
		}
	}
	s.t.Logf("%d faults", n-1)
}

// eachKind has one step fail of each kind that no operation before had, and remembers these. Which of
// them that is, and how it fails, is the same in each execution of the tests, whatever the machine's speed.
func (s *sweep) eachKind(fault string, had map[string]bool) {
	count := s.steps(fault == "death")
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		hash := fnv.New64a()
		fmt.Fprint(hash, seedOf(s.t, 1), kind)
		sum := hash.Sum64()
		if had[fault+kind] || testing.Short() && sum%5 != 0 {
			continue
		}
		had[fault+kind] = true
		at, causes := int(sum>>8%uint64(count[kind])), faults[fault]
		s.rng = rand.New(rand.NewSource(int64(sum >> 1)))
		s.sub(kind, func() {
			i := 0
			s.at(func(st disktest.Step) bool {
				if s.kind(st) != kind {
					return false
				}
				i++
				return i-1 == at
			}, causes[sum>>32%uint64(len(causes))])
		})
	}
}

// sub judges as a test of its own.
func (s *sweep) sub(name string, do func()) bool {
	t := s.t
	defer func() { s.t, s.bench.t = t, t }()
	return t.Run(name, func(t *testing.T) {
		s.t, s.bench.t = t, t
		do()
	})
}

// TestRecoveryWithoutOpenRecords: a recovery that cannot read the open records just now
// says so, and does not take what they hold for lost.
func TestRecoveryWithoutOpenRecords(t *testing.T) {
	eachReadFails(t, "recover a revert", func(path string) bool { return strings.Contains(path, "/open") })
}

// TestApplyWithoutTheLog: an apply whose record cannot be looked up just now says so.
func TestApplyWithoutTheLog(t *testing.T) {
	eachReadFails(t, "apply", func(path string) bool { return filepath.Base(path) == "records.jsonl" })
}

// eachReadFails does an operation with one fault at each step that reads from the paths of which.
func eachReadFails(t *testing.T, name string, which func(path string) bool) {
	list := operations()
	op := list[slices.IndexFunc(list, func(op operation) bool { return op.name == name })]
	s := begin(t, op, 1)
	s.reset()
	i, steps := 0, []int(nil)
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !st.Write && which(st.Path) {
			steps = append(steps, i)
		}
		i++
		return disktest.Action{}
	}), func(r *Recorder) error { return op.do(s, r) }))
	require.NotEmpty(t, steps)
	for _, n := range steps {
		require.True(t, s.once(n, syscall.EIO))
	}
}

// TestMergeWithoutItsDiff: a diff that cannot be read in the midst of a merge is no edit.
func TestMergeWithoutItsDiff(t *testing.T) {
	list := operations()
	op := list[slices.IndexFunc(list, func(op operation) bool { return op.name == "revert with merge" })]
	s := begin(t, op, 1)
	for n := 0; ; n++ {
		s.reset()
		read := 0
		err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op == "ReadAt" && filepath.Base(st.Path) == diffFile {
				if read++; read == n+1 {
					return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.EIO}}
				}
			}
			return disktest.Action{}
		}), func(r *Recorder) error { return op.do(s, r) })
		if read <= n {
			require.Greater(t, n, 1)
			return
		}
		require.ErrorIs(t, err, syscall.EIO, "reading %d", n)
		require.Equal(t, s.start, s.tree())
	}
}
