package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/layer"
)

// isolatedOperations are the swept ones of isolated runs, in an overlay where this machine
// makes any, else in a copy.
func isolatedOperations() []operation {
	ctx := context.Background()
	published := func(s *sweep, res *MoveResult, err error) error {
		if err == nil {
			s.said = append(s.said, res.Notes...)
		}
		if err == nil && res.Outcome != nil {
			s.said = append(s.said, res.Outcome.Notes...)
		}
		return err
	}
	discarded := func(s *sweep, r *Recorder) error {
		_, err := r.Discard(ctx, DiscardOptions{Refs: []string{s.ids[0]}, Yes: true})
		return err
	}
	recoverIt := func(s *sweep, r *Recorder) error {
		done, err := r.Recover(ctx, false)
		for _, d := range done {
			s.said = append(s.said, d.What)
		}
		return err
	}
	return []operation{
		{"run --isolated", expectWork, func(s *sweep, r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{}) }, judgeIsolated},
		{"run --isolated --copy", expectWork, func(s *sweep, r *Recorder) error { return s.executeIsolated(r, 3, IsolatedOptions{Copy: true}) }, judgeIsolated},
		{"run --isolated --auto", expectWork, func(s *sweep, r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Auto: true}) }, judgeAuto},
		{"publish", makeDraft, func(s *sweep, r *Recorder) error {
			res, err := r.Publish(ctx, PublishOptions{Ref: s.ids[0]})
			return published(s, res, err)
		}, judgePublish},
		{"discard", makeDraft, discarded, judgeDiscard},
		{"recover an isolated run", deadIsolated("WriteAt records.jsonl"), recoverIt, judgeIsolatedRecovered},
		{"recover a publish", deadPublish("Exchange"), recoverIt, judgePublishRecovered},
	}
}

// age returns once what changes now is later than the tree by more than any clock's tick: else
// nobody could tell an edit made during a run.
func (s *sweep) age() {
	probe := filepath.Join(s.base, "probe")
	var first time.Time
	for {
		require.NoError(s.t, os.WriteFile(probe, nil, 0o600))
		now, err := os.Stat(probe)
		require.NoError(s.t, err)
		if first.IsZero() {
			first = now.ModTime()
		}
		if now.ModTime().Sub(first) > 20*time.Millisecond {
			return
		}
	}
}

// overlays says whether this machine makes any.
var overlays = sync.OnceValue(func() bool {
	base, err := os.MkdirTemp("", "overlays-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(base)
	var p layer.Place
	for name, dir := range map[string]*disk.Dir{"root": &p.Root, "layers": &p.Dir} {
		if err = errors.Join(err, os.Mkdir(filepath.Join(base, name), 0o700)); err == nil {
			*dir, err = disk.OS.OpenRoot(filepath.Join(base, name))
		}
	}
	return err == nil && p.TryOverlay() == nil
})

// executeIsolated runs the command in a layer.
func (s *sweep) executeIsolated(r *Recorder, exit int, i IsolatedOptions) error {
	null, err := os.Open(os.DevNull)
	require.NoError(s.t, err)
	defer null.Close()
	i.Copy = i.Copy || !overlays()
	s.age()
	res, err := r.RunIsolated(context.Background(), RunOptions{
		Args: []string{os.Args[0]}, Dir: s.root, Stdin: null, Grace: time.Second,
		Env: append(os.Environ(), fmt.Sprintf("%s=%d", mutateEnv, runSeed), fmt.Sprintf("DECREE_TEST_EXIT=%d", exit), markEnv+"="+s.mark()),
	}, i)
	if err != nil {
		return err
	}
	s.said = append(s.said, res.Notes...)
	if p := res.Published; p != nil {
		s.said = append(s.said, p.Notes...)
		if p.Outcome != nil {
			s.said = append(s.said, p.Outcome.Notes...)
		}
	}
	if res.ExitCode == 125 {
		return errors.New(strings.Join(res.Notes, "; "))
	}
	return nil
}

// expectWork makes a record, and finds out what a publish of the isolated run brings.
func expectWork(s *sweep) {
	s.ids = append(s.ids, s.run(500, 0, nil).Record.ID)
	s.before = s.tree()
	s.save()
	s.reset()
	require.NoError(s.t, s.try(disk.OS, func(r *Recorder) error {
		inOverlay := s.op.name == "run --isolated" || s.op.name == "run --isolated --auto"
		return s.executeIsolated(r, 0, IsolatedOptions{Copy: !inOverlay, Auto: true})
	}), s.said)
	s.work = append(s.work, s.tree())
	require.NotEqual(s.t, s.before, s.work[0])
	s.reset()
}

// makeDraft leaves a draft, in a copy: its files can be saved and brought back.
func makeDraft(s *sweep) {
	s.run(500, 0, nil)
	require.NoError(s.t, s.try(disk.OS, func(r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Copy: true}) }))
	waiting := s.waiting()
	require.Len(s.t, waiting, 1)
	require.Empty(s.t, waiting[0].Draft.NoBase)
	s.ids = []string{waiting[0].ID}
	require.NoError(s.t, os.Remove(s.mark()))
}

// waiting are the drafts that wait.
func (s *sweep) waiting() []*history.Record {
	return with(s.bench, func(r *Recorder) ([]*history.Record, error) { return r.WaitingDrafts() })
}

// dying has do end at the first step that begins with at.
func (s *sweep) dying(at string, do func(r *Recorder) error) {
	fired := false
	_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !fired && strings.HasPrefix(st.Op+" "+filepath.Base(st.Path), at) {
			fired = true
			return disktest.Action{Die: true}
		}
		return disktest.Action{}
	}), do)
	require.True(s.t, fired)
}

// deadIsolated leaves an isolated run whose decree died.
func deadIsolated(at string) func(*sweep) {
	return func(s *sweep) {
		expectWork(s)
		s.dying(at, func(r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Copy: true}) })
	}
}

// TestDeadIsolatedBesideALostContent: where the store cannot read what the record of a dead isolated run needs, its layer,
// which alone has what the command did, is kept aside and named.
func TestDeadIsolatedBesideALostContent(t *testing.T) {
	list := operations()
	op := list[slices.IndexFunc(list, func(op operation) bool { return op.name == "recover an isolated run" })]
	s := begin(t, op, 1)
	s.reset()
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "ReadAt" && strings.HasSuffix(st.Path, ".pack") {
			return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.EIO}}
		}
		return disktest.Action{}
	}), func(r *Recorder) error { return op.do(s, r) }))
	newest := s.fresh()
	require.Len(t, newest, 1)
	require.Nil(t, newest[0].Draft)
	s.tryDraft(verdict{newest: newest})
}

// deadPublish leaves a publish whose decree died.
func deadPublish(at string) func(*sweep) {
	return func(s *sweep) {
		makeDraft(s)
		s.before = s.tree()
		s.dying(at, func(r *Recorder) error {
			_, err := r.Publish(context.Background(), PublishOptions{Ref: s.ids[0]})
			return err
		})
	}
}

// judgeIsolated: the tree is as it was; where the command ran there is a record, and what it
// did is a draft that can be published and taken back.
func judgeIsolated(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state, "the tree was changed")
	if v.ran == 0 {
		require.Error(s.t, v.err)
		require.Empty(s.t, s.waiting())
		for _, rec := range v.newest { // of a death between the note of the command's process and its first instruction
			require.ErrorIs(s.t, v.err, disktest.ErrDead)
			require.Equal(s.t, history.StatusInterrupted, rec.Status)
			require.Nil(s.t, rec.Draft)
		}
		return
	}
	require.Len(s.t, v.newest, 1, "the command ran and there is no record of it")
	s.tryDraft(v)
}

// tryDraft publishes the newest record's draft, takes that back and gives it up.
func (s *sweep) tryDraft(v verdict) {
	s.t.Helper()
	rec := v.newest[0]
	if rec.Draft == nil { // the store could not read what it needs: what the run did lies aside, as is said
		aside, err := filepath.Glob(filepath.Join(s.base, "store", "*", "aside", "layers-"+rec.ID))
		require.NoError(s.t, err)
		require.Len(s.t, aside, 1, "what it did is lost")
		require.Contains(s.t, strings.Join(s.said, "\n"), aside[0])
		return
	}
	require.True(s.t, rec.Draft.Waits())
	ctx := context.Background()
	with(s.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Publish(ctx, PublishOptions{Ref: rec.ID, Force: len(rec.Draft.NoBase) > 0, Yes: true})
	})
	if !s.incomplete(v) {
		require.Equal(s.t, s.work[0], s.tree(), "its publish")
	}
	s.revert("last")
	require.Equal(s.t, s.before, s.tree(), "the publish's revert")
	with(s.bench, func(r *Recorder) ([]Discarded, error) {
		return r.Discard(ctx, DiscardOptions{Refs: []string{rec.ID}, Yes: true})
	})
	s.sound()
}

// judgeAuto: the tree is all old, and the work a draft; or all new, by a record.
func judgeAuto(s *sweep, v verdict) {
	if maps.Equal(s.before, v.state) {
		if v.err == nil && v.ran > 0 {
			require.Fail(s.t, "it was not published, and nobody was told")
		}
		judgeIsolated(s, v)
		return
	}
	require.Equal(s.t, s.work[0], v.state, "neither old nor new")
	require.Len(s.t, v.newest, 2)
	require.Equal(s.t, history.Publish, v.newest[0].Reason)
	if v.newest[1].Draft.State == history.DraftPartly {
		require.True(s.t, v.said, "a part of it is not published, and nobody was told")
	} else {
		require.Equal(s.t, history.DraftPublished, v.newest[1].Draft.State)
	}
	s.revert("last")
	require.Equal(s.t, s.before, s.tree())
	require.Len(s.t, s.waiting(), 1)
}

// judgePublish: all old and the draft waits, or all new and it is published.
func judgePublish(s *sweep, v verdict) {
	if v.err == nil {
		require.Equal(s.t, s.after, v.state)
	}
	waiting := s.waiting()
	if maps.Equal(s.before, v.state) {
		require.Empty(s.t, v.newest, "a record of what was not done")
		require.Len(s.t, waiting, 1, "the draft is lost")
		with(s.bench, func(r *Recorder) (*MoveResult, error) {
			return r.Publish(context.Background(), PublishOptions{Ref: s.ids[0]})
		})
		require.Equal(s.t, s.after, s.tree(), "its publish")
		return
	}
	require.Equal(s.t, s.after, v.state, "neither old nor new")
	require.Len(s.t, v.newest, 1, "moved and not recorded")
	if len(waiting) > 0 { // a part that the layer may have stays, as where it cannot be read
		require.Equal(s.t, history.DraftPartly, waiting[0].Draft.State)
		require.True(s.t, v.said, "nobody was told that a part of it waits")
	}
	s.revert(v.newest[0].ID)
	require.Equal(s.t, s.before, s.tree(), "its revert")
	require.Len(s.t, s.waiting(), 1, "the draft waits again")
}

// judgePublishRecovered: what cannot be finished is taken back.
func judgePublishRecovered(s *sweep, v verdict) {
	v.err = errors.Join(v.err, errors.New("either is right"))
	judgePublish(s, v)
}

// judgeIsolatedRecovered: the command ran before the death.
func judgeIsolatedRecovered(s *sweep, v verdict) {
	v.ran, v.err = 1, errors.Join(v.err, errors.New("either is right"))
	judgeIsolated(s, v)
}

// judgeDiscard: the tree is untouched; the draft waits, or it is given up and its layer gone.
func judgeDiscard(s *sweep, v verdict) {
	require.Equal(s.t, s.before, v.state)
	require.Empty(s.t, v.newest)
	if waiting := s.waiting(); v.err == nil {
		require.Empty(s.t, waiting)
	} else if len(waiting) > 0 {
		with(s.bench, func(r *Recorder) (*MoveResult, error) {
			return r.Publish(context.Background(), PublishOptions{Ref: s.ids[0]})
		})
		s.revert("last")
		require.Equal(s.t, s.before, s.tree())
	}
}
