package recorder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/patch"
	"decree/project"
	"decree/tree"
)

func (b *bench) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.root, name)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(b.t, os.WriteFile(path, []byte(text), 0o644))
}

func (b *bench) checkpoint(o CheckpointOptions) *history.Record {
	b.t.Helper()
	return with(b, func(r *Recorder) (*history.Record, error) { return r.Checkpoint(context.Background(), o) })
}

// recordIDs are the records, oldest first.
func (b *bench) recordIDs() (ids []string) {
	b.t.Helper()
	all := with(b, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
	require.Empty(b.t, all.Warnings())
	for _, rec := range slices.Backward(all.Records) {
		ids = append(ids, rec.ID)
	}
	return ids
}

func (b *bench) requireSound() {
	b.t.Helper()
	r := b.open()
	requireSound(b.t, r)
	require.NoError(b.t, r.Close())
}

func (b *bench) storeSize() int64 {
	b.t.Helper()
	return with(b, func(r *Recorder) (int64, error) { return r.storeSize() })
}

func (b *bench) prune(o PruneOptions) *Pruned {
	b.t.Helper()
	return with(b, func(r *Recorder) (*Pruned, error) { return r.Prune(context.Background(), o) })
}

// noise is text that does not compress well.
func noise(seed, n int) string {
	out := make([]byte, 0, n+65)
	for sum := (tree.Hash{byte(seed), byte(seed >> 8)}); len(out) < n; {
		sum = tree.Sum(sum[:])
		out = fmt.Appendf(out, "%x\n", sum[:])
	}
	return string(out)
}

func TestRetentionRunsByItself(t *testing.T) {
	b := newBench(t)
	b.write("steady", noise(1, 4000))
	var ids []string
	for i := range 56 {
		b.write("changing", noise(100+i, 30_000))
		ids = append(ids, b.checkpoint(CheckpointOptions{}).ID)
	}
	require.Equal(t, ids[6:], b.recordIDs())
	b.requireSound()

	r := b.open()
	ops := 0
	report, err := r.History().ReadAudit(func(o *history.Operation) error {
		if o.Op == opPrune {
			require.Equal(t, ids[ops], o.Detail)
			ops++
		}
		return nil
	})
	require.NoError(t, err)
	require.Zero(t, report.Broken)
	require.Equal(t, 6, ops)
	require.NoError(t, r.Close())

	before := b.storeSize()
	b.prune(PruneOptions{Last: map[string]int{"manual": 5}})
	require.Equal(t, ids[51:], b.recordIDs())
	b.requireSound()
	require.Less(t, b.storeSize(), before/2)
	for i := 51; i < 56; i++ {
		with(b, func(r *Recorder) (*MoveResult, error) {
			return r.Restore(context.Background(), RestoreOptions{Ref: ids[i], Yes: true})
		})
		got, err := os.ReadFile(filepath.Join(b.root, "changing"))
		require.NoError(t, err)
		require.Equal(t, noise(100+i, 30_000), string(got))
	}
}

// TestUndoOutlivesPruning: what a kept revert displaced, and the status of what
// it took back, are there as long as it is.
func TestUndoOutlivesPruning(t *testing.T) {
	b := newBench(t)
	b.write("f", "first\n")
	run := b.run(5, 0, nil).Record
	state := snapshot(t, b.root)
	rev := b.revert(run.ID).Record
	for i := range 5 {
		b.write("other", fmt.Sprint(i))
		b.run(0, 0, func(o *RunOptions) { o.Args = []string{"true"} })
	}
	b.prune(PruneOptions{Last: map[string]int{"run": 1}})
	require.Contains(t, b.recordIDs(), run.ID, "its undoing gives it back its status")
	require.Len(t, b.recordIDs(), 3)
	b.revert(rev.ID)
	require.NoError(t, os.Remove(filepath.Join(b.root, "other")))
	require.Equal(t, state, snapshot(t, b.root))
	rec := with(b, func(r *Recorder) (*history.Record, error) { return r.History().Get(run.ID) })
	require.Equal(t, history.StatusSucceeded, rec.Status)
	b.requireSound()
}

// TestRedoOutlivesPruning: undos stay, however many, until a new change ends what can be redone.
func TestRedoOutlivesPruning(t *testing.T) {
	b := newBench(t)
	makes := func(name string) {
		b.run(0, 0, func(o *RunOptions) { o.Args = []string{"sh", "-c", "echo a >" + name} })
	}
	states := []map[string]string{snapshot(t, b.root)}
	for i := range 4 {
		makes(fmt.Sprint(i))
		states = append(states, snapshot(t, b.root))
	}
	few := PruneOptions{Last: map[string]int{"revert": 1}}
	for range 4 {
		b.undo(UndoOptions{})
		b.prune(few)
	}
	for i := range 4 {
		require.Equal(t, states[i], snapshot(t, b.root))
		b.redo(UndoOptions{})
		b.prune(few)
	}
	require.Equal(t, states[4], snapshot(t, b.root))
	b.undo(UndoOptions{})
	b.undo(UndoOptions{})
	makes("new")
	b.prune(few)
	kept := 0
	for _, rec := range with(b, func(r *Recorder) ([]*history.Record, error) { return r.History().Logged() }) {
		if rec.Reason == history.Revert {
			kept++
		}
	}
	require.Equal(t, 1, kept)
	b.requireSound()
}

// TestAttemptsOutliveCollecting: what an attempt made that was put back is in no tree.
func TestAttemptsOutliveCollecting(t *testing.T) {
	b := newBench(t)
	b.write("f", "x")
	large := "head -c 3000000 /dev/zero | tr '\\0' '\\1' > made; printf '\\0%s' $DECREE_ATTEMPT >> made; false"
	res := b.run(0, 0, func(o *RunOptions) { o.Args, o.Attempts = []string{"/bin/sh", "-c", large}, 2 })
	for i := range 30 {
		b.write("g", noise(i, 200_000))
		b.checkpoint(CheckpointOptions{})
	}
	b.prune(PruneOptions{Last: map[string]int{"manual": 1}})
	r := b.open()
	defer r.Close()
	rc, err := r.History().OpenStored(res.Record.ID, "attempts/1/changes.diff")
	require.NoError(t, err)
	defer rc.Close()
	n := 0
	require.NoError(t, history.Facts(rc, func(f *patch.Section) bool {
		if f.Stored {
			n++
			require.NoError(t, r.store.Verify(f.New.SHA256), f.Path)
		}
		return true
	}))
	require.Equal(t, 1, n)
}

// TestCollectBesideReaders: who reads while others are removed and the space is
// freed reads what is kept to its end.
func TestCollectBesideReaders(t *testing.T) {
	b := newBench(t)
	b.write("steady", noise(1, 100_000))
	var ids []string
	for i := range 40 {
		b.write("changing", noise(100+i, 20_000))
		ids = append(ids, b.checkpoint(CheckpointOptions{Reason: "auto"}).ID)
	}
	kept := ids[30:]
	read := func(r *Recorder) error {
		for i, id := range kept {
			rec, err := r.History().Get(id)
			if err != nil {
				return fmt.Errorf("record %d: %w", i, err)
			}
			if err := r.History().VerifyTree(rec.Before); err != nil {
				return fmt.Errorf("record %d: %w", i, err)
			}
			rc, _, err := r.Content(context.Background(), Point{Record: rec}, "changing")
			if err != nil {
				return fmt.Errorf("record %d: %w", i, err)
			}
			if err := rc.Close(); err != nil {
				return err
			}
		}
		return nil
	}
	// Each is opened, and looks at the log, before anything goes; the last one
	// reads on only when all is gone.
	var readers []*Recorder
	for range 4 {
		r := b.open()
		_, err := r.History().Get(kept[0])
		require.NoError(t, err)
		readers = append(readers, r)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(readers))
	for i, r := range readers[:3] {
		wg.Go(func() {
			for n := 0; n < 5 && errs[i] == nil; n++ {
				errs[i] = read(r)
			}
		})
	}
	b.prune(PruneOptions{Last: map[string]int{"auto": 10}})
	wg.Wait()
	errs[3] = read(readers[3])
	for i, r := range readers {
		require.NoError(t, errs[i])
		require.NoError(t, r.Close())
	}
	require.Equal(t, kept, b.recordIDs())
	b.requireSound()
}

// TestVerifyBesidePrune: a record that goes while all are verified, before its turn or
// in it, is no damage.
func TestVerifyBesidePrune(t *testing.T) {
	b := newBench(t)
	var ids []string
	for i := range 6 {
		b.write("changing", noise(100+i, 20_000))
		ids = append(ids, b.checkpoint(CheckpointOptions{Reason: "auto"}).ID)
	}
	r := b.open()
	pruned := false
	r.Reader.opt.Events = func(e Event) {
		if e.Progress.Phase == "checking" && e.Progress.Done == 2 && !pruned {
			pruned = true
			b.prune(PruneOptions{Last: map[string]int{"auto": 2}})
		}
	}
	problems, err := r.Verify(context.Background(), VerifyOptions{All: true})
	require.NoError(t, err)
	require.Empty(t, problems)
	require.True(t, pruned)
	require.NoError(t, r.Close())

	r = b.open()
	rec, err := r.History().Get(ids[4])
	require.NoError(t, err)
	b.prune(PruneOptions{Last: map[string]int{"auto": 1}})
	problems, err = r.Verify(context.Background(), VerifyOptions{Record: rec})
	require.ErrorContains(t, err, "no record "+rec.ID)
	require.Empty(t, problems)
	require.NoError(t, r.Close())
}

// TestVerifyBesideACheckpoint: while all are verified, another process makes one of the newest records an older one, whose
// manifest.json goes. A record whose line is in the log, and whose files are not in place yet, lacks nothing either.
func TestVerifyBesideACheckpoint(t *testing.T) {
	b := newBench(t)
	runs := filepath.Join(b.root, ".decree", "runs")
	var oldest *history.Record
	for i := range history.PlainManifests {
		b.write("changing", noise(100+i, 2_000))
		if rec := b.checkpoint(CheckpointOptions{}); oldest == nil {
			oldest = rec
		}
	}
	r := b.open()
	made := false
	r.Reader.opt.Events = func(e Event) {
		if e.Progress.Phase == "checking" && !made {
			made = true
			b.write("changing", noise(200, 2_000))
			b.checkpoint(CheckpointOptions{})
		}
	}
	problems, err := r.Verify(t.Context(), VerifyOptions{All: true})
	require.NoError(t, err)
	require.True(t, made)
	require.NoFileExists(t, filepath.Join(runs, oldest.ID, "manifest.json"))
	require.Empty(t, problems)

	list, err := r.History().List(history.ListOptions{Limit: 1})
	require.NoError(t, err)
	newest, run := list.Records[0], filepath.Join(runs, list.Records[0].ID)
	built := filepath.Join(b.root, ".decree", "tmp", "0123456789abcdef-run-"+newest.ID)
	require.NoError(t, os.Rename(run, built))
	problems, err = r.Verify(t.Context(), VerifyOptions{All: true})
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, os.RemoveAll(built))
	problems, err = r.Verify(t.Context(), VerifyOptions{All: true})
	require.NoError(t, err)
	require.NotEmpty(t, problems, "a person has deleted it")
	require.NoError(t, r.Close())
}

// TestNewestBesideOthers: a record that is in .decree/runs alone goes while the
// newest are looked at; it is passed over.
func TestNewestBesideOthers(t *testing.T) {
	a, b := newBench(t), newBench(t)
	a.checkpoint(CheckpointOptions{})
	a.clk = a.clk.Add(time.Minute)
	stray := a.checkpoint(CheckpointOptions{}).ID
	b.checkpoint(CheckpointOptions{})
	b.clk = b.clk.Add(time.Hour)
	b.checkpoint(CheckpointOptions{})
	runs := filepath.Join(b.root, ".decree", "runs", stray)
	require.NoError(t, os.CopyFS(runs, os.DirFS(filepath.Join(a.root, ".decree", "runs", stray))))

	r := b.open()
	var seen []string
	require.NoError(t, r.History().Newest(func(rec *history.Record) bool {
		seen = append(seen, rec.ID)
		require.NoError(t, os.RemoveAll(runs))
		return true
	}))
	require.Len(t, seen, 2)
	require.NotContains(t, seen, stray)
	require.NoError(t, r.Close())
}

// TestListBesidePrune: who lists while records go is not told that they are missing.
func TestListBesidePrune(t *testing.T) {
	b := newBench(t)
	for i := range 4 {
		b.write("f", noise(i, 100))
		b.checkpoint(CheckpointOptions{Reason: "auto"})
	}
	r := b.open()
	_, _, err := r.History().Removed() // the log is read
	require.NoError(t, err)
	b.prune(PruneOptions{Last: map[string]int{"auto": 1}})
	list, err := r.History().List(history.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Warnings())
	require.Len(t, list.Records, 1)
	require.NoError(t, r.Close())
}

func TestCapOnTheStore(t *testing.T) {
	b := newBench(t)
	b.write("steady", noise(1, 100_000))
	var ids []string
	for i := range 20 {
		b.write("changing", noise(100+i, 100_000))
		reason := "manual"
		if i%4 == 3 {
			reason = "auto"
		}
		ids = append(ids, b.checkpoint(CheckpointOptions{Reason: reason}).ID)
	}
	used := with(b, func(r *Recorder) (Used, error) { return r.used() })
	require.Greater(t, used.Runs, used.Store/2, "each change is in an outside.diff, too")
	size := used.Total()
	most := size * 6 / 10
	would := with(b, func(r *Recorder) (*Pruned, error) { return r.WouldPrune(PruneOptions{MaxStore: &most}) })
	require.Len(t, b.recordIDs(), 20, "a dry run changes nothing")
	did := b.prune(PruneOptions{MaxStore: &most})
	require.Equal(t, would.Gone(), did.Gone())
	require.True(t, did.Fits)
	require.LessOrEqual(t, did.Total(), most)
	require.InDelta(t, size-did.Total(), did.Freed, 1000)
	left := b.recordIDs()
	for i, id := range ids {
		if i%4 == 3 && i < 19 {
			require.NotContains(t, left, id, "automatic ones go first")
		}
	}
	require.Greater(t, len(left), 8, "and no more than has to")
	b.requireSound()

	nothing := int64(1)
	did = b.prune(PruneOptions{MaxStore: &nothing})
	require.False(t, did.Fits)
	require.Equal(t, ids[19:], b.recordIDs())
	b.requireSound()
}

func TestCollectRefusesWhereSomethingWaits(t *testing.T) {
	b := newBench(t)
	b.write("f", "x")
	b.checkpoint(CheckpointOptions{})
	r := b.open()
	defer r.Close()
	open := filepath.Join(r.project.StorePath, "open")
	require.NoError(t, os.MkdirAll(open, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(open, "2026112107015900-0.damaged"), []byte("{"), 0o600))
	_, err := r.Gc(context.Background())
	require.Equal(t, project.Refused, project.KindOf(err))
	require.ErrorContains(t, err, ".damaged is unfinished work")
}

// TestMessagesInAnOutboxKeepTheirRecord: what lies in the outbox of a run that failed is
// in no other place. Without it the record goes as any other.
func TestMessagesInAnOutboxKeepTheirRecord(t *testing.T) {
	b := newBench(t)
	failed := b.run(500, 3, nil).Record.ID
	good := b.run(501, 0, nil).Record.ID
	newest := b.checkpoint(CheckpointOptions{}).ID
	for _, id := range []string{failed, good} {
		b.write(".decree/runs/"+id+"/outbox/next.md", "more\n")
		b.write(".decree/runs/"+id+"/outbox/.hidden", "")
	}
	none := PruneOptions{Last: map[string]int{"run": 0}}
	b.prune(none)
	require.Equal(t, []string{failed, newest}, b.recordIDs())
	require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/runs", failed, "outbox/next.md")))
	b.prune(none)
	require.Equal(t, []string{newest}, b.recordIDs())
}
