//go:build linux

package recorder

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/layer"
	"decree/layer/overlay"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// racing is a recorder with the system's clock, which candidates ask at once.
func (b *bench) racing() *Recorder {
	r := b.open()
	r.opt.Clock, r.Reader.opt.Clock = time.Now, time.Now
	b.t.Cleanup(func() { _ = r.Close() })
	return r
}

// raced is a race of sh's script; the test is skipped where nothing can be isolated.
func (b *bench) raced(r *Recorder, o RaceOptions, script string) *RaceResult {
	b.t.Helper()
	o.Run.Args, o.Run.Dir, o.Run.Env = []string{"sh", "-c", script}, b.root, append(o.Run.Env, "PATH="+os.Getenv("PATH"))
	res, err := r.Race(b.t.Context(), o)
	if errors.As(err, new(*layer.Refusal)) {
		b.t.Skip(err)
	}
	require.NoError(b.t, err)
	return res
}

func nameOf(rec *history.Record) string {
	if rec.Draft == nil {
		return ""
	}
	return rec.Draft.Name
}

func (b *bench) fileOf(r *Recorder, id, name string) string {
	b.t.Helper()
	f, err := r.history.OpenFile(id, name)
	require.NoError(b.t, err)
	defer f.Close()
	data, err := io.ReadAll(f)
	require.NoError(b.t, err)
	return string(data)
}

// nothingGoesOn checks that no lease, no open record and, beside drafts that wait, no layer is left.
func (b *bench) nothingGoesOn(r *Recorder) {
	b.t.Helper()
	leases, err := r.project.Leases()
	require.NoError(b.t, err)
	assert.Empty(b.t, leases)
	open, _, err := r.history.ListOpen()
	require.NoError(b.t, err)
	assert.Empty(b.t, open)
	place, err := r.layers()
	require.NoError(b.t, err)
	defer closePlace(place)
	names, err := place.Names()
	require.NoError(b.t, err)
	drafts, err := r.WaitingDrafts()
	require.NoError(b.t, err)
	assert.Len(b.t, names, len(drafts))
}

// TestRace: each candidate has its own layer, log, number and judgement.
func TestRace(t *testing.T) {
	b := newBench(t)
	b.write("all", "one\n")
	b.write("gone", "two\n")
	r := b.racing()
	var mu sync.Mutex
	states, working, most := map[int][]CandidateState{}, 0, 0
	const n, jobs = 8, 3
	res := b.raced(r, RaceOptions{
		Candidates: n, Jobs: jobs, Judge: `echo judges $DECREE_CANDIDATE; echo j >judged; test ! -e gone && exit $((DECREE_CANDIDATE % 2))`,
		Moved: func(c Candidate) {
			mu.Lock()
			defer mu.Unlock()
			if c.State == Works {
				working++
			}
			if c.State == Ended {
				working--
			}
			most = max(most, working)
			states[c.Number] = append(states[c.Number], c.State)
		},
	}, `echo works $DECREE_CANDIDATE; k=$DECREE_CANDIDATE; echo $k >own$k; rm gone; while [ $((k -= 1)) -ge 0 ]; do echo $k; done >all; exit $(($DECREE_CANDIDATE == 5))`)
	require.Len(t, res.Candidates, n)
	for i, c := range res.Candidates {
		k := strconv.Itoa(i + 1)
		require.NoError(t, c.Err)
		rec := c.Result.Record
		assert.Equal(t, "race."+k, c.Name)
		assert.Equal(t, c.Name, nameOf(rec))
		assert.Equal(t, c.ID, rec.ID)
		assert.Equal(t, &history.Judgement{Command: rec.Judge.Command, ExitCode: (i + 1) % 2}, rec.Judge)
		assert.Equal(t, rec.Judge, get(t, r, rec.ID).Judge)
		assert.Equal(t, i+1 == 5, rec.Status == history.StatusFailed)
		assert.Equal(t, "works "+k+"\n", b.fileOf(r, rec.ID, "routine.log"))
		assert.Equal(t, "judges "+k+"\n", b.fileOf(r, rec.ID, history.JudgeLog))
		assert.Equal(t, history.Changes{Created: 1, Modified: 1, Deleted: 1, AddedLines: i + 2, RemovedLines: 2}, rec.Changes, "what the judge wrote is not in it")
		assert.Equal(t, []tree.Path{"all", "gone"}, c.Shared)
		assert.Equal(t, []CandidateState{Waits, Works, Judged, Ended}, states[i+1])
	}
	assert.Equal(t, 2, res.Best.Number)
	assert.Zero(t, res.ExitCode)
	assert.Equal(t, jobs, most)
	assert.Equal(t, []string{"all", "gone"}, pathsOf(b.root))
	b.nothingGoesOn(r)

	// What is stored is all that its records need.
	with(b, func(r *Recorder) (any, error) {
		_, err := r.Gc(t.Context())
		return nil, err
	})
	for _, c := range res.Candidates {
		assert.Contains(t, b.fileOf(r, c.ID, diffFile), "own"+strconv.Itoa(c.Number))
	}
}

// TestRaceNoneGood: a candidate that changed nothing is good, but no draft to publish.
func TestRaceNoneGood(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	r := b.racing()
	res := b.raced(r, RaceOptions{Candidates: 2, Isolated: IsolatedOptions{Name: "bad", Auto: true}}, "echo >>f; exit 3")
	assert.Equal(t, 1, res.ExitCode)
	assert.Nil(t, res.Best)
	assert.Nil(t, res.Published)
	res = b.raced(r, RaceOptions{Candidates: 2, Isolated: IsolatedOptions{Name: "idle", Auto: true}}, "true")
	assert.Zero(t, res.ExitCode)
	assert.Nil(t, res.Best)
	assert.Empty(t, res.Notes)
	b.nothingGoesOn(r)
}

// TestRaceStopped: a signal goes to all commands; who does not heed it is killed when the grace
// is over, who has not begun does not begin, and what was done is a draft.
func TestRaceStopped(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	r := b.racing()
	up := filepath.Join(b.base, "up")
	require.NoError(t, syscall.Mkfifo(up, 0o600))
	signals := make(chan os.Signal, 1)
	told, err := os.OpenFile(up, os.O_RDWR, 0)
	require.NoError(t, err)
	defer told.Close()
	go func() {
		_, _ = io.ReadFull(told, make([]byte, 2)) // one of each candidate that works
		signals <- os.Interrupt
	}()
	res := b.raced(r, RaceOptions{
		Candidates: 3, Jobs: 2, Judge: "true", Isolated: IsolatedOptions{Auto: true},
		Run: RunOptions{Signals: signals, Grace: 50 * time.Millisecond, Env: []string{"UP=" + up}},
	}, `[ $DECREE_CANDIDATE = 1 ] || trap "" INT; echo w >w; printf u >"$UP"; while :; do sleep 1000; done`)
	assert.Equal(t, 130, res.ExitCode)
	assert.Nil(t, res.Published)
	for _, c := range res.Candidates[:2] {
		require.NoError(t, c.Err)
		assert.Equal(t, history.StatusFailed, c.Result.Record.Status)
		assert.Equal(t, 130, c.Result.ExitCode)
		assert.Nil(t, c.Result.Record.Judge)
		assert.Equal(t, 1, c.Result.Record.Changes.Created)
		assert.True(t, c.Draft())
	}
	assert.Nil(t, res.Candidates[2].Result)
	require.NoError(t, res.Candidates[2].Err)
	b.nothingGoesOn(r)
}

// TestRaceNames: names in use are refused before anything begins; without one a free one is found.
func TestRaceNames(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	r := b.racing()
	write := "echo x >x"
	assert.Equal(t, "race", b.raced(r, RaceOptions{Candidates: 2}, write).Name)
	_, err := r.Race(t.Context(), RaceOptions{Run: RunOptions{Args: []string{"true"}, Dir: b.root}, Candidates: 3, Isolated: IsolatedOptions{Name: "race"}})
	require.EqualError(t, err, "race.1 is the name of record "+b.waiting(r, "race.1")+"; the command was not started")
	b.nothingGoesOn(r)

	// One that is taken only in the middle, by a run that has not ended.
	_, err = r.Discard(t.Context(), DiscardOptions{Refs: []string{"race.1"}, Yes: true})
	require.NoError(t, err)
	_, err = r.RunIsolated(t.Context(), RunOptions{Args: []string{"sh", "-c", write}, Dir: b.root}, IsolatedOptions{Name: "race2.2"})
	require.NoError(t, err)
	inner := b.racing()
	r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
		started := c.Starting
		c.Starting = func(l runner.Leader) error {
			err := started(l)
			_, ierr := inner.Race(ctx, RaceOptions{Run: RunOptions{Args: []string{"true"}, Dir: b.root}, Candidates: 2, Isolated: IsolatedOptions{Name: "race3"}})
			assert.ErrorContains(t, ierr, "race3.1 is the name of record")
			return err
		}
		return runner.Run(ctx, c)
	}
	assert.Equal(t, "race3", b.raced(r, RaceOptions{Candidates: 2, Jobs: 1}, write).Name)
	b.nothingGoesOn(r)
}

func (b *bench) waiting(r *Recorder, name string) string {
	b.t.Helper()
	drafts, err := r.WaitingDrafts()
	require.NoError(b.t, err)
	for _, rec := range drafts {
		if nameOf(rec) == name {
			return rec.ID
		}
	}
	return ""
}

// TestRaceCannotBegin: nothing is left of a race whose commands cannot be started.
func TestRaceCannotBegin(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	r := b.racing()
	refused := &overlay.Error{Step: "mount the overlay", Err: syscall.EPERM}
	r.execute = func(context.Context, runner.Command) (runner.Result, error) { return runner.Result{}, refused }
	_, err := r.Race(t.Context(), RaceOptions{Run: RunOptions{Args: []string{"true"}, Dir: b.root}, Candidates: 3, Jobs: 2})
	require.ErrorAs(t, err, new(*layer.Refusal))
	assert.Equal(t, project.NotStarted, project.StateOf(err))
	assert.Equal(t, project.Refused, project.KindOf(err))
	b.nothingGoesOn(r)
}

// TestRaceOneFails: a candidate whose work cannot be recorded is named; the others go on.
func TestRaceOneFails(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	r := b.racing()
	r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
		res, err := runner.Run(ctx, c)
		for _, e := range c.Env {
			if e == "DECREE_CANDIDATE=2" {
				assert.NoError(t, os.Rename(c.Overlay.Layer+"/layer.json", c.Overlay.Layer+"/put aside"))
				assert.NoError(t, os.Rename(c.Overlay.Layer+"/upper", c.Overlay.Layer+"/put aside too"))
			}
		}
		return res, err
	}
	res := b.raced(r, RaceOptions{Candidates: 3, Jobs: 1}, "echo x >x")
	assert.NoError(t, res.Candidates[0].Err)
	assert.ErrorContains(t, res.Candidates[1].Err, "what it changed is not recorded")
	assert.NoError(t, res.Candidates[2].Err)
	assert.Nil(t, res.Candidates[1].Result)
	assert.Zero(t, res.ExitCode)
	drafts, err := r.WaitingDrafts()
	require.NoError(t, err)
	assert.Len(t, drafts, 2)
}

// TestRaceBesideARun: a race goes on beside a run that changes the tree itself, which --auto
// does not wait for.
func TestRaceBesideARun(t *testing.T) {
	b := newBench(t)
	b.write("f", "one\n")
	other := b.outsider()
	other.opt.Clock, other.Reader.opt.Clock = time.Now, time.Now
	var res *RaceResult
	run := b.commanded(func() int {
		b.write("g", "by the run\n")
		res = b.raced(other, RaceOptions{Candidates: 2, Isolated: IsolatedOptions{Auto: true}}, "echo more >>f")
		return 0
	})
	_, err := run.Run(t.Context(), command(b))
	require.NoError(t, err)
	assert.Equal(t, 125, res.ExitCode)
	assert.Nil(t, res.Published)
	assert.Equal(t, []string{
		"race.1 is not published: a run that changes the tree itself is under way",
		"its draft waits: 'decree publish race.1' tries again",
	}, res.Notes)
	text, err := os.ReadFile(filepath.Join(b.root, "f"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(text))
	b.nothingGoesOn(other)
}
