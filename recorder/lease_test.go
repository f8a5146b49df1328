package recorder

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// commanded is a recorder whose runs execute do, in this process, with the lock free as
// for any command; do's result is the exit status.
func (b *bench) commanded(do func() int) *Recorder {
	r := b.open()
	r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
		// A group that has ended: no process has so high a number.
		if err := c.Starting(runner.Leader{PID: 1 << 30, PGID: 1 << 30}); err != nil {
			return runner.Result{}, err
		}
		return runner.Result{ExitCode: do(), Duration: time.Second}, nil
	}
	return r
}

// outsider is a recorder of a process that no run's descends from.
func (b *bench) outsider() *Recorder {
	r := b.open()
	r.descent = func(project.Holder) int { return -1 }
	return r
}

func command(b *bench) RunOptions { return RunOptions{Args: []string{"command"}, Dir: b.root} }

func get(t *testing.T, r *Recorder, id string) *history.Record {
	t.Helper()
	r.history.Refresh()
	rec, err := r.history.Get(id)
	require.NoError(t, err)
	return rec
}

// What a run did is its own, whoever looks at it meanwhile, and what changes after it is
// by no record.
func TestBesideARun(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", "one\n")
	b.checkpoint(CheckpointOptions{})
	b.write("outside", "before the run\n")
	var middle *history.Record
	r := b.commanded(func() int {
		b.write("f", "two\n")
		o := b.outsider()
		defer o.Close()
		var err error
		middle, err = o.Checkpoint(ctx, CheckpointOptions{Label: "here"})
		require.NoError(t, err)
		require.Empty(t, middle.Inside)
		_, err = o.Gc(ctx)
		require.NoError(t, err)
		done, err := o.Recover(ctx, true)
		require.NoError(t, err)
		require.Empty(t, done, "a live lease is never recovered")
		waiting, err := o.Waiting()
		require.NoError(t, err)
		require.Empty(t, waiting)
		var held *project.HeldError
		_, err = o.Run(ctx, command(b))
		require.ErrorAs(t, err, &held)
		require.NotEmpty(t, held.Holder.Run)
		_, err = o.Revert(ctx, MoveOptions{Refs: []string{"last"}})
		require.ErrorAs(t, err, &held)
		_, err = o.Undo(ctx, UndoOptions{})
		require.ErrorAs(t, err, &held)
		_, err = o.Restore(ctx, RestoreOptions{Ref: middle.ID, Yes: true})
		require.ErrorAs(t, err, &held)
		err = o.Hold(ctx, 0, true, func() error { return nil })
		require.ErrorAs(t, err, &held)
		require.NoError(t, o.Hold(ctx, 0, false, func() error { return nil }))
		b.write("g", "three\n")
		return 0
	})
	defer r.Close()
	res, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	require.Len(t, res.Changes, 2)
	b.write("outside", "after the run\n")
	last := b.checkpoint(CheckpointOptions{})
	for id, want := range map[string][]tree.Path{res.Record.ID: {"outside"}, middle.ID: nil, last.ID: {"outside"}} {
		require.Equal(t, want, b.outsidePaths(r, id), id)
	}
	ref, err := r.history.Resolve("here", time.UTC)
	require.NoError(t, err)
	require.Equal(t, middle.ID, ref.ID)
	b.revert(res.Record.ID)
	require.Equal(t, "one\n", text(t, filepath.Join(b.root, "f")))
	b.requireSound()
}

// An open record that a live run's command has damaged is the run's own: nobody sets it
// aside while the lease lives, and the run ends as ever.
func TestDamagedOpenRecordBesideItsLease(t *testing.T) {
	for exit, status := range []history.Status{history.StatusSucceeded, history.StatusReverted} {
		ctx := context.Background()
		b := newBench(t)
		b.write("f", "one\n")
		b.checkpoint(CheckpointOptions{})
		r := b.commanded(func() int {
			b.write("f", "two\n")
			list, err := filepath.Glob(filepath.Join(b.base, "store/*/open/*.json"))
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.NoError(t, os.WriteFile(list[0], []byte("{"), 0o600))
			o := b.outsider()
			defer o.Close()
			_, err = o.Checkpoint(ctx, CheckpointOptions{})
			require.NoError(t, err)
			done, err := o.Recover(ctx, true)
			require.NoError(t, err)
			require.Empty(t, done)
			waiting, err := o.Waiting()
			require.NoError(t, err)
			require.Empty(t, waiting)
			require.FileExists(t, list[0])
			return exit
		})
		res, err := r.Run(ctx, command(b))
		require.NoError(t, err)
		require.Equal(t, status, res.Record.Status, res.Notes)
		require.NoError(t, r.Close())
		b.requireSound()
	}
}

// What is done inside a run that is put back is put back with it, and undone by it; a run
// inside that fails goes back to its own start.
func TestInsideARun(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", "one\n")
	before := b.checkpoint(CheckpointOptions{})
	var point, done, failed, back *history.Record
	r := b.commanded(func() int {
		b.write("f", "two\n")
		inner := b.commanded(func() int { b.write("f", "three\n"); b.write("g", "three\n"); return 7 })
		defer inner.Close()
		res, err := inner.Run(ctx, command(b))
		require.NoError(t, err)
		require.True(t, res.PutBack)
		failed = res.Record
		require.Equal(t, "two\n", text(t, filepath.Join(b.root, "f")))
		require.NoFileExists(t, filepath.Join(b.root, "g"))

		inner = b.commanded(func() int { b.write("g", "four\n"); return 0 })
		defer inner.Close()
		res, err = inner.Run(ctx, command(b))
		require.NoError(t, err)
		done = res.Record
		point, err = inner.Checkpoint(ctx, CheckpointOptions{})
		require.NoError(t, err)
		moved, err := inner.Restore(ctx, RestoreOptions{Ref: before.ID, Yes: true})
		require.NoError(t, err)
		back = moved.Record
		b.write("h", "five\n")
		return 1
	})
	defer r.Close()
	res, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	require.Equal(t, history.StatusReverted, res.Record.Status)
	require.Equal(t, "one\n", text(t, filepath.Join(b.root, "f")))
	require.NoFileExists(t, filepath.Join(b.root, "h"))
	for _, c := range []struct {
		rec    *history.Record
		status history.Status
	}{
		{point, history.StatusSucceeded}, {failed, history.StatusReverted}, {done, history.StatusUndone}, {back, history.StatusUndone},
	} {
		now := get(t, r, c.rec.ID)
		require.Equal(t, res.Record.ID, now.Inside)
		require.Equal(t, c.status, now.Status)
	}
	require.Equal(t, res.Record.ID, get(t, r, done.ID).UndoneBy)
	last := b.checkpoint(CheckpointOptions{})
	require.Empty(t, b.outsidePaths(r, last.ID), "the end of the run is the last state that is known")
	b.requireSound()
}

// A run that began inside a failing one and outlives its command keeps its work: nothing
// is put back under it, before a last attempt neither, and it is named.
func TestPartOutlivesItsRun(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		ctx := context.Background()
		b := newBench(t)
		b.write("f", "one\n")
		b.checkpoint(CheckpointOptions{})
		works, end, ended := make(chan bool), make(chan bool), make(chan *RunResult)
		r := b.commanded(func() int {
			b.write("f", "two\n")
			go func() {
				inner := b.commanded(func() int {
					b.write("g", "three\n")
					works <- true
					<-end
					return 7
				})
				defer inner.Close()
				res, err := inner.Run(ctx, command(b))
				assert.NoError(t, err)
				ended <- res
			}()
			<-works
			return 1
		})
		o := command(b)
		o.Attempts = attempts
		res, err := r.Run(ctx, o)
		said := ""
		if attempts == 1 {
			require.NoError(t, err)
			require.Equal(t, 125, res.ExitCode)
			require.Equal(t, history.StatusFailed, res.Record.Status)
			said = strings.Join(res.Notes, "\n")
		} else {
			require.Error(t, err)
			said = err.Error()
		}
		require.NoError(t, r.Close())
		require.Equal(t, "two\n", text(t, filepath.Join(b.root, "f")))
		require.Equal(t, "three\n", text(t, filepath.Join(b.root, "g")))
		close(end)
		inner := <-ended
		require.Contains(t, said, "run "+inner.Record.ID+", which began inside this one, still works in the tree")
		require.True(t, inner.PutBack)
		require.Equal(t, "two\n", text(t, filepath.Join(b.root, "f")))
		require.NoFileExists(t, filepath.Join(b.root, "g"))
		with(b, func(r *Recorder) ([]Recovered, error) { return r.Recover(ctx, false) })
		require.Equal(t, "two\n", text(t, filepath.Join(b.root, "f")))
		b.requireSound()
	}
}

// The run waits for the lock as long as somebody has it, and says so.
func TestARunWaitsForTheLock(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", "one\n")
	var release func()
	r := b.commanded(func() int {
		b.write("f", "two\n")
		o := b.outsider()
		unlock, err := o.project.Lock(ctx, project.Holder{PID: os.Getpid(), Command: []string{"long", "work"}}, 0)
		require.NoError(t, err)
		release = func() { unlock(); o.Close() }
		return 0
	})
	defer r.Close()
	waited := ""
	r.Reader.opt.Note = func(note string) {
		if strings.Contains(note, "waits for the lock") {
			waited = note
			release()
		}
	}
	res, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	require.Contains(t, waited, "long work")
	require.Len(t, res.Changes, 1)
	b.requireSound()
}

// What others change on its paths while a nested run is put back is stored, named, and
// put back too.
func TestOthersWhileItIsPutBack(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", "one\n")
	var res *RunResult
	r := b.commanded(func() int {
		inner := b.commanded(func() int { b.write("f", "two\n"); return 1 })
		defer inner.Close()
		times := 0
		inner.Reader.opt.Events = func(e Event) {
			if e.Progress.Phase == "moving" && e.Progress.Done == 0 && times < 2 {
				times++
				b.write("f", strings.Repeat("by another\n", times))
			}
		}
		var err error
		res, err = inner.Run(ctx, command(b))
		require.NoError(t, err)
		require.Equal(t, 2, times)
		return 0
	})
	defer r.Close()
	_, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	require.True(t, res.PutBack, res.Notes)
	require.Contains(t, strings.Join(res.Notes, "\n"), "changed by others after the command had ended; stored, and put back too: f")
	require.Equal(t, "one\n", text(t, filepath.Join(b.root, "f")))
	b.apply(res.Record.ID)
	require.Equal(t, "by another\nby another\n", text(t, filepath.Join(b.root, "f")))
	b.requireSound()
}

// Records that go while a run works may be those that its tree rests on: it is stored
// anew, and the run ends with the new one.
func TestPrunedBesideARun(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	for i := range 6 {
		b.write("f", noise(i, 50_000))
		w := b.commanded(func() int { b.write("g", noise(i, 100)); return 0 })
		_, err := w.Run(ctx, command(b))
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	before := snapshot(t, b.root)
	r := b.commanded(func() int {
		require.NoError(t, os.Remove(filepath.Join(b.root, "f")))
		o := b.outsider()
		defer o.Close()
		p, err := o.Prune(ctx, PruneOptions{Last: map[string]int{"run": 1}})
		require.NoError(t, err)
		require.NotEmpty(t, p.Gone())
		x, err := o.enter(ctx, besideRuns)
		require.NoError(t, err)
		_, err = o.collect(ctx, x, collectOptions{force: true})
		require.NoError(t, err)
		x.close()
		return 1
	})
	defer r.Close()
	res, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	require.True(t, res.PutBack, res.Notes)
	require.Equal(t, before, snapshot(t, b.root))
	b.apply(res.Record.ID)
	require.NoFileExists(t, filepath.Join(b.root, "f"))
	b.requireSound()
}

// A lease that a dead process leaves is nobody's, and goes.
func TestDeadLease(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("f", "one\n")
	first := b.checkpoint(CheckpointOptions{})
	r := b.open()
	defer r.Close()
	require.NoError(t, os.MkdirAll(filepath.Join(r.project.StorePath, "leases", first.ID), 0o700))
	_, err := r.Run(ctx, RunOptions{Args: []string{"/bin/sh", "-c", "echo two >f"}, Dir: b.root})
	require.NoError(t, err)
	b.requireSound()
}

// nested is a run whose command changes the tree, has a failing run inside it, and makes
// a checkpoint, all on the disk that may fail.
func nested(s *sweep, r *Recorder) error {
	ctx := context.Background()
	inside := func(do func(*Recorder) error) {
		inner, err := Open(ctx, r.opt)
		if err == nil {
			err = errors.Join(do(inner), inner.Close())
		}
		if err != nil {
			s.said = append(s.said, err.Error())
		}
	}
	start := func(c runner.Command) error { return c.Starting(runner.Leader{PID: 1 << 30, PGID: 1 << 30}) }
	r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
		if err := start(c); err != nil {
			return runner.Result{}, err
		}
		require.NoError(s.t, os.WriteFile(s.mark(), []byte("\n"), 0o600))
		s.edit(runSeed)
		inside(func(inner *Recorder) error {
			inner.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
				if err := start(c); err != nil {
					return runner.Result{}, err
				}
				s.write("inside", "of a run\n")
				return runner.Result{ExitCode: 1, Duration: time.Second}, nil
			}
			res, err := inner.Run(ctx, command(s.bench))
			if err == nil {
				s.said = append(s.said, res.Notes...)
			}
			return err
		})
		inside(func(inner *Recorder) error {
			_, err := inner.Checkpoint(ctx, CheckpointOptions{})
			return err
		})
		return runner.Result{Duration: time.Second}, nil
	}
	return s.execute(r, 0, nil)
}

// judgeNested: all that the command did is there, and goes with its run; the run inside
// may have been stopped before it was put back.
func judgeNested(s *sweep, v verdict) {
	if v.ran == 0 {
		require.Equal(s.t, s.before, v.state)
		require.Error(s.t, v.err)
		return
	}
	state := maps.Clone(v.state)
	delete(state, "inside")
	require.Equal(s.t, s.after, state)
	var outer []*history.Record
	for _, rec := range v.newest {
		if rec.Inside == "" {
			outer = append(outer, rec)
		}
	}
	require.Len(s.t, outer, 1, "the command ran and there is no record of it")
	for _, rec := range v.newest {
		require.Contains(s.t, []string{"", outer[0].ID}, rec.Inside)
	}
	s.revert(outer[0].ID)
	require.Equal(s.t, s.before, s.tree(), "its revert")
}
