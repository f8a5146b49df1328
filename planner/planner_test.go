//go:build unix

package planner

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/disk"
	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// bench is a tree with a planner of it.
type bench struct {
	*testing.T
	*Planner
	root  string
	clock time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, root: filepath.Join(t.TempDir(), "tree"), clock: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	b.Planner = New(Options{Change: b.open})
	return b
}

func (b *bench) open(ctx context.Context, create bool) (*recorder.Recorder, error) {
	return recorder.Open(ctx, recorder.Options{ReaderOptions: recorder.ReaderOptions{
		Disk:  disk.OS,
		Where: project.Where{RootFlag: b.root, Cwd: b.root, Home: b.root + "-home", StoreEnv: b.root + "-store"},
		Clock: func() time.Time { b.clock = b.clock.Add(time.Second); return b.clock }, Location: time.UTC,
	}, Create: true, Existing: !create, Actor: history.Actor{User: "u", Host: "h"}})
}

func (b *bench) use(do func(*recorder.Recorder) error) {
	b.Helper()
	require.NoError(b, b.Use(b.Context(), true, do))
}

func (b *bench) checkpoint(description string) (id string) {
	b.Helper()
	b.use(func(rec *recorder.Recorder) error {
		made, err := rec.Checkpoint(b.Context(), recorder.CheckpointOptions{Description: description})
		if err == nil {
			id = made.ID
		}
		return err
	})
	return id
}

// run records a script's work, isolated where that is wanted and possible.
func (b *bench) run(script string, isolated bool) (id string) {
	b.Helper()
	b.use(func(rec *recorder.Recorder) error {
		o := recorder.RunOptions{Args: []string{"/bin/sh", "-ec", script}, Dir: b.root}
		res, err := (*recorder.RunResult)(nil), error(nil)
		if isolated {
			res, err = rec.RunIsolated(b.Context(), o, recorder.IsolatedOptions{Name: "try"})
		} else {
			res, err = rec.Run(b.Context(), o)
		}
		if isolated && err != nil {
			b.Skip("nothing can be isolated here: ", err)
		}
		if err == nil {
			id = res.Record.ID
		}
		return err
	})
	return id
}

func (b *bench) put(name, text string) {
	b.Helper()
	require.NoError(b, os.MkdirAll(filepath.Dir(filepath.Join(b.root, name)), 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644))
}

// state is all that is in the tree, with modes.
func (b *bench) state() map[string]string {
	b.Helper()
	out := map[string]string{}
	require.NoError(b, filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(b.root, path)
		if err != nil {
			return err
		}
		if name == ".decree" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		out[name] = text
		return nil
	}))
	return out
}

func (b *bench) plan(q Request) *Planned {
	b.Helper()
	p, err := b.Plan(b.Context(), q)
	require.NoError(b, err)
	return p
}

func (b *bench) perform(id string) *Done {
	b.Helper()
	d, err := b.Perform(b.Context(), id)
	require.NoError(b, err)
	return d
}

func (b *bench) diff(id string) string {
	b.Helper()
	var out bytes.Buffer
	require.NoError(b, b.Diff(b.Context(), &out, id))
	return out.String()
}

// piecesOf calls each with what can be marked in the plan, in order, as -p would ask about it:
// files, modes and hunks. An error of it ends the listing.
func (p *Planner) piecesOf(ctx context.Context, id string, each func(*plan.Piece) error) error {
	of, err := p.recall(id)
	if err != nil {
		return err
	}
	if !of.request.chooses() {
		return usagef("of %s paths can be chosen, but no hunks", article(of.request.Operation))
	}
	return p.open(ctx, false, func(rec *recorder.Recorder) error {
		q := of.request.whole()
		if len(of.request.Marks) == 0 {
			if _, err := p.still(ctx, rec, of, nil); err != nil {
				return err
			}
		}
		_, err := operations[q.Operation](ctx, rec, attempt{Request: q, exclude: q.Exclude, dryRun: true, choose: func(piece *plan.Piece) (plan.Answer, error) {
			return plan.Yes, each(piece)
		}})
		return err
	})
}

// pieces are what can be marked: "a 1/2".
func (b *bench) pieces(id string) (out []string) {
	b.Helper()
	require.NoError(b, b.piecesOf(b.Context(), id, func(p *plan.Piece) error {
		out = append(out, fmt.Sprintf("%s %d/%d", p.Path, p.Hunk, p.Hunks))
		return nil
	}))
	return out
}

// work is a script that changes a file in three places, and its mode, and other things beside it.
const work = `sed -i -e 's/^1$/one/' -e 's/^20$/twenty/' -e 's/^40$/forty/' f; chmod 755 f
mkdir -m 700 made; echo in >made/in; echo also >made/also; rm gone; echo b >>b; rm -r dir; echo file >dir`

func (b *bench) scene() {
	b.Helper()
	var f strings.Builder
	for i := range 40 {
		fmt.Fprintln(&f, i+1)
	}
	b.put("f", f.String())
	b.put("gone", "gone\n")
	b.put("b", "b\n")
	b.put("dir/a", "a\n")
	b.put("dir/b", "b\n")
	b.checkpoint("the first")
}

// typing answers y about the pieces that are wanted, and n about all others.
func typing(wanted ...string) recorder.Chooser {
	return func(p *plan.Piece) (plan.Answer, error) {
		if slices.Contains(wanted, fmt.Sprintf("%s %d", p.Path, p.Hunk)) {
			return plan.Yes, nil
		}
		return plan.No, nil
	}
}

var everyPiece = []string{"b 1/1", "dir 0/0", "f 0/0", "f 1/3", "f 2/3", "f 3/3", "gone 0/0", "made/also 0/0", "made/in 0/0"}

// choices are marks, and the pieces about which one says y to choose the same.
var choices = []struct {
	marks  []Mark
	wanted []string
}{
	{[]Mark{{Path: "f", Hunks: []int{2}}}, []string{"f 2"}},
	{[]Mark{{Path: "f", Hunks: []int{3, 0}}, {Path: "made/in"}}, []string{"f 0", "f 3", "made/in 0"}},
	{[]Mark{{Path: "made"}, {Path: "gone"}}, []string{"gone 0", "made/also 0", "made/in 0"}},
	{[]Mark{{Path: "dir"}, {Path: "b", Hunks: []int{1}}}, []string{"b 1", "dir 0", "dir/a 0", "dir/b 0"}},
	{[]Mark{{Path: "f"}}, []string{"f 0", "f 1", "f 2", "f 3"}},
}

// Marks give byte for byte what -p gives for the same answers.
func TestMarksAreAnswers(t *testing.T) {
	for _, operation := range []string{revert, apply, publish} {
		for i, c := range choices {
			t.Run(fmt.Sprint(operation, i), func(t *testing.T) {
				var states [2]map[string]string
				var diffs [2]string
				for side := range 2 {
					b := newBench(t)
					b.scene()
					id := b.run(work, operation == publish)
					if operation == apply {
						b.perform(b.plan(Request{Operation: revert, Ref: id}).ID)
					}
					if operation != revert { // which asks about "dir" with what it had
						require.Equal(t, everyPiece, b.pieces(b.plan(Request{Operation: operation, Ref: id}).ID))
					}
					if side == 0 {
						p := b.plan(Request{Operation: operation, Ref: id, Marks: c.marks})
						shown := b.diff(p.ID)
						d := b.perform(p.ID)
						require.NotEmpty(t, d.Record)
						diffs[0] = b.lastDiff()
						assert.Equal(t, diffs[0], shown, "what was shown is what was done")
					} else {
						b.use(func(rec *recorder.Recorder) error {
							return move(b, rec, operation, id, typing(c.wanted...))
						})
						diffs[1] = b.lastDiff()
					}
					states[side] = b.state()
				}
				assert.Equal(t, states[1], states[0])
				assert.Equal(t, diffs[1], diffs[0])
			})
		}
	}
}

// move is a move with -p.
func move(b *bench, rec *recorder.Recorder, operation, id string, choose recorder.Chooser) (err error) {
	o := recorder.MoveOptions{Refs: []string{id}, Choose: choose}
	switch operation {
	case publish:
		_, err = rec.Publish(b.Context(), recorder.PublishOptions{Ref: id, Choose: choose})
	case apply:
		_, err = rec.Apply(b.Context(), o)
	default:
		_, err = rec.Revert(b.Context(), o)
	}
	return err
}

func (b *bench) lastDiff() string {
	b.Helper()
	var out bytes.Buffer
	b.use(func(rec *recorder.Recorder) error {
		list, err := rec.History().List(history.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		return copyDiff(rec, &out, list.Records[0].ID)
	})
	return out.String()
}

// A mark that names nothing of the plan is refused: what was marked would not be done, unsaid.
func TestMarksOfNothing(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	before := b.state()
	for _, marks := range [][]Mark{
		{{Path: "nothing"}}, {{Path: "f"}, {Path: "zzz"}}, {{Path: "f", Hunks: []int{4}}}, {{Path: "f", Hunks: []int{1, 9}}}, {{Path: "gone", Hunks: []int{1}}}, {{Path: "made", Hunks: []int{0}}},
	} {
		_, err := b.Plan(t.Context(), Request{Operation: revert, Ref: id, Marks: marks})
		assert.Equal(t, project.NotFound, project.KindOf(err), "%v: %v", marks, err)
	}
	for _, q := range []Request{
		{Operation: revert, Ref: id, Marks: []Mark{{Path: "../f"}}}, {Operation: revert, Ref: id, Marks: []Mark{{Path: "f"}, {Path: "f"}}},
		{Operation: undo, Marks: []Mark{{Path: "f", Hunks: []int{1}}}}, {Operation: restore, Ref: id, Marks: []Mark{{Path: "f", Hunks: []int{1}}}},
		{Operation: revert, Ref: id, Marks: []Mark{{Path: "f", Hunks: []int{-1}}}}, {Operation: revert, Ref: id, Of: "x"},
		{Operation: revert, Ref: id, Merge: true, Force: true}, {Operation: restore, Ref: id, Force: true}, {Operation: revert, Ref: id, After: true},
		{Operation: discard}, {Operation: discard, Ref: id, Paths: []tree.Path{"f"}},
	} {
		_, err := b.Plan(t.Context(), q)
		assert.Equal(t, project.Usage, project.KindOf(err), "%+v: %v", q, err)
	}
	assert.Equal(t, before, b.state())
}

// Marks are of the plan that showed the pieces: once that is stale the new one has to be looked at.
func TestMarksOfAPlan(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	whole := b.plan(Request{Operation: revert, Ref: id})
	marks := []Mark{{Path: "f", Hunks: []int{1}}}
	part := b.plan(Request{Operation: revert, Ref: id, Marks: marks, Of: whole.ID})
	assert.NotEqual(t, whole.ID, part.ID)
	b.checkpoint("newer")
	_, err := b.Plan(t.Context(), Request{Operation: revert, Ref: id, Marks: marks, Of: whole.ID})
	var stale *StaleError
	require.ErrorAs(t, err, &stale)
	assert.NotEqual(t, whole.ID, stale.New.ID)
	assert.Len(t, stale.New.Paths, len(whole.Paths), "the new plan is of all, to be marked anew")
	b.plan(Request{Operation: revert, Ref: id, Marks: marks, Of: stale.New.ID})
}

// A plan that is stale gives the new one, of the same request, and changes nothing.
func TestStale(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	p := b.plan(Request{Operation: restore, Ref: id})
	b.put("b", "mine\n")
	before := b.state()
	var stale *StaleError
	_, err := b.Perform(t.Context(), p.ID)
	require.ErrorAs(t, err, &stale)
	assert.Equal(t, project.Refused, project.KindOf(err))
	assert.ErrorAs(t, b.Diff(t.Context(), &bytes.Buffer{}, p.ID), &stale)
	assert.Equal(t, before, b.state())
	b.perform(stale.New.ID)
	assert.Equal(t, "-rw-r--r-- b\n", b.state()["b"])

	marked := b.plan(Request{Operation: revert, Ref: "last", Marks: []Mark{{Path: "gone"}}})
	b.checkpoint("newer")
	_, err = b.Perform(t.Context(), marked.ID)
	assert.Equal(t, project.NotFound, project.KindOf(err), "the newest is another now, which has no such path: %v", err)
}

// A warning that was not shown makes a plan stale: what a publish gives up with the draft's layer, and what somebody
// writes to meanwhile.
func TestStaleByAWarning(t *testing.T) {
	b := newBench(t)
	b.put(".decree/config.yml", "capture: {max_file: 10000}\n")
	b.scene()
	id := b.run(work, true)
	p := b.plan(Request{Operation: publish, Ref: id})
	b.use(func(rec *recorder.Recorder) error {
		_, err := rec.Enter(t.Context(), recorder.EnterOptions{Ref: id, Dir: b.root, Args: []string{"/bin/sh", "-ec", "head -c 20000 /dev/zero >large"}})
		return err
	})
	start := b.state()
	var stale *StaleError
	_, err := b.Perform(t.Context(), p.ID)
	require.ErrorAs(t, err, &stale)
	assert.Contains(t, strings.Join(stale.New.Notes, "\n"), "the only place that has what could not be recorded (large)")
	assert.Equal(t, start, b.state())
	b.perform(stale.New.ID)
	assert.NotEqual(t, start, b.state())
}

// An agent's turn ends before anything is moved, and its work is the newest change then: what was shown is not
// what would be done.
func TestStaleByAnOpenTurn(t *testing.T) {
	for _, q := range []Request{{Operation: undo}, {Operation: revert, Ref: "last"}} {
		b := newBench(t)
		b.scene()
		b.run("echo of the run > ran", false)
		b.use(func(rec *recorder.Recorder) error {
			_, err := rec.BeginTurn(t.Context(), recorder.TurnEvent{Event: agent.Event{Agent: "codex", Session: "s", Prompt: "go on"}})
			return err
		})
		b.put("turn", "half of it\n")
		before := b.state()
		p := b.plan(q)
		assert.Contains(t, strings.Join(p.Notes, "\n"), "its turn ends first")
		_, err := b.Perform(t.Context(), p.ID)
		var stale *StaleError
		require.ErrorAs(t, err, &stale)
		assert.Equal(t, before, b.state())
		assert.Empty(t, stale.New.Notes)
		b.perform(stale.New.ID)
		delete(before, "turn")
		assert.Equal(t, before, b.state())
	}
}

// A conflict says so, and has the plan that merges, whose hunks can be marked.
func TestConflictOffersMerge(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	text, err := os.ReadFile(filepath.Join(b.root, "f"))
	require.NoError(t, err)
	b.put("f", strings.Replace(string(text), "\n10\n", "\nten, by hand\n", 1))
	_, err = b.Plan(t.Context(), Request{Operation: revert, Ref: id})
	var refusal *recorder.ConflictError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, tree.Path("f"), refusal.Items[0].Path)
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	require.NotNil(t, conflict.Merge)
	assert.Contains(t, conflict.Merge.Command, "--merge")
	assert.Contains(t, b.pieces(conflict.Merge.ID), "f 3/3")

	q := Request{Operation: revert, Ref: id, Merge: true, Marks: []Mark{{Path: "f", Hunks: []int{1, 3}}}, Of: conflict.Merge.ID}
	b.perform(b.plan(q).ID)
	after, err := os.ReadFile(filepath.Join(b.root, "f"))
	require.NoError(t, err)
	assert.Contains(t, string(after), "ten, by hand")
	assert.Contains(t, string(after), "twenty")
	assert.Contains(t, string(after), "\n40\n")
	assert.True(t, strings.HasPrefix(string(after), "1\n"))

	// Where nothing of what is in the way is wanted, it is no conflict.
	b.put("gone", "another\n")
	p := b.plan(Request{Operation: revert, Ref: id, Marks: []Mark{{Path: "made/in"}}})
	assert.Equal(t, "decree revert "+id+" -- made/in", p.Command)
	b.perform(p.ID)
	assert.NotContains(t, b.state(), "made/in")
	assert.Equal(t, "-rw-r--r-- another\n", b.state()["gone"])

	// Where one is made of what is in the way and something else, the offer is about no more than was asked for.
	_, err = b.Plan(t.Context(), Request{Operation: revert, Ref: id, Marks: []Mark{{Path: "gone"}}})
	require.ErrorAs(t, err, &conflict)
	assert.Nil(t, conflict.Merge, "it was made on both sides")
}

// Where both changed the same lines a merge is refused as well, and the offer is to mark them, where that can be done.
func TestConflictOffersMarkers(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	b.put("b", "changed\n")
	var conflict *ConflictError
	for _, q := range []Request{
		{Operation: revert, Ref: id, Paths: []tree.Path{"b"}}, {Operation: revert, Ref: id, Marks: []Mark{{Path: "b", Hunks: []int{1}}}},
		{Operation: revert, Ref: id, Merge: true, Paths: []tree.Path{"b"}},
	} {
		_, err := b.Plan(t.Context(), q)
		require.ErrorAs(t, err, &conflict)
		require.NotNil(t, conflict.Merge)
		require.Len(t, conflict.Merge.Paths, 1, "no more than was asked for")
		assert.Equal(t, "decree revert --markers "+id+" -- b", conflict.Merge.Command)
		assert.Contains(t, conflict.Merge.Question, "between <<<<<<< and >>>>>>>, for you to choose from: in b.")
	}
	part := b.plan(Request{Operation: revert, Ref: id, Marks: []Mark{{Path: "b", Hunks: []int{1}}}, Of: conflict.Merge.ID})
	b.perform(part.ID)
	assert.Regexp(t, `(?s)<<<<<<< now\nchanged\n.*=======\n.*>>>>>>> `, b.state()["b"])

	b.put("b", "changed again\n")
	_, err := b.Plan(t.Context(), Request{Operation: undo})
	require.ErrorAs(t, err, &conflict)
	assert.Nil(t, conflict.Merge, "an undo has no markers")
	_, err = b.Plan(t.Context(), Request{Operation: undo, Merge: true, Markers: true})
	assert.Equal(t, project.Usage, project.KindOf(err))
}

// Who clicked twice is told what was done, as long as that stands; any other second performing is refused.
func TestPerformedTwice(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	p := b.plan(Request{Operation: revert, Ref: id})
	first := b.perform(p.ID)
	after := b.state()
	b.put("b", "edited meanwhile\n")
	again, err := b.PerformOnce(t.Context(), p.ID)
	require.NoError(t, err)
	assert.Equal(t, first.withoutPaths(), again)
	assert.Equal(t, "-rw-r--r-- edited meanwhile\n", b.state()["b"], "nothing is done again")
	_, err = b.Perform(t.Context(), p.ID)
	require.Error(t, err)
	b.put("b", "b\n")
	require.Equal(t, after, b.state())
	b.perform(b.plan(Request{Operation: undo}).ID)
	_, err = b.PerformOnce(t.Context(), p.ID)
	var stale *StaleError
	require.ErrorAs(t, err, &stale, "what was undone is not said to be done")
}

// An undo walks back and a redo forth, and a restore of marks is one of paths.
func TestWalkAndRestore(t *testing.T) {
	b := newBench(t)
	b.scene()
	start := b.state()
	id := b.run(work, false)
	worked := b.state()
	p := b.plan(Request{Operation: undo})
	assert.Equal(t, []string{id}, p.Records)
	assert.Equal(t, "decree undo", p.Command)
	assert.Contains(t, p.Question, "Undoing takes back the newest change, '/bin/sh -ec")
	d := b.perform(p.ID)
	assert.Equal(t, start, b.state())
	assert.Contains(t, d.Proof, " files, verified by hash 07:0")
	b.perform(b.plan(Request{Operation: redo}).ID)
	assert.Equal(t, worked, b.state())

	q := b.plan(Request{Operation: restore, Ref: id, Marks: []Mark{{Path: "gone"}}})
	assert.Equal(t, "decree restore "+id+" gone", q.Command)
	assert.Contains(t, q.Question, "Restoring makes the files what they were at 21 Nov 07:0")
	assert.Contains(t, q.Question, ", before '/bin/sh -ec")
	assert.Contains(t, q.Question, ", only gone. 1 file is created. What is here now is kept and can be brought back.")
	b.perform(q.ID)
	assert.Equal(t, start["gone"], b.state()["gone"])
	assert.Equal(t, worked["f"], b.state()["f"])
	b.perform(b.plan(Request{Operation: restore, Ref: id, After: true}).ID)
	assert.Equal(t, worked, b.state())
	assert.Contains(t, b.plan(Request{Operation: restore, Ref: id, After: true}).Question, "nothing has to be changed")
}

// What is planned is named as people see it: several records by what they were about, and of a candidate whether
// its judge found it bad.
func TestQuestionsNameWhatPeopleSee(t *testing.T) {
	b := newBench(t)
	b.scene()
	one, two := b.run("echo 1 > one", false), b.run("echo 2 > two", false)
	asked := b.plan(Request{Operation: revert, Refs: []string{two, one}}).Question
	assert.Contains(t, asked, "Reverting takes back what 2 records ('/bin/sh -ec 'echo 2 > two'', '/bin/sh -ec 'echo 1 > one'') changed. 2 files are deleted.")
	assert.NotContains(t, asked, one)
	b.use(func(rec *recorder.Recorder) error {
		_, err := rec.Race(b.Context(), recorder.RaceOptions{
			Run:      recorder.RunOptions{Args: []string{"/bin/sh", "-c", "echo $DECREE_CANDIDATE > who"}, Dir: b.root, Env: os.Environ()},
			Isolated: recorder.IsolatedOptions{Clone: true, Copy: true}, Candidates: 2, Judge: "exit $(($(cat who) * 3 - 3))",
		})
		return err
	})
	assert.NotContains(t, b.plan(Request{Operation: publish, Ref: "race.1"}).Question, "judge")
	assert.Contains(t, b.plan(Request{Operation: publish, Ref: "race.2"}).Question,
		"Publishing brings what draft 'race.2' did into your files. The judge of the race found it bad, with exit status 3. 1 file is created.")
}

// A discard is planned, too: it names what goes, and is done once.
func TestDiscard(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, true)
	start := b.state()
	p := b.plan(Request{Operation: discard, Ref: "try"})
	assert.Contains(t, p.Question, "Discarding gives up draft 'try'")
	assert.Equal(t, "decree discard try", p.Command)
	assert.Len(t, p.Drafts, 1)
	assert.Contains(t, b.diff(p.ID), "+forty")
	b.plan(Request{Operation: publish, Ref: id}) // it waits still
	assert.Len(t, b.perform(p.ID).Drafts, 1)
	assert.Equal(t, start, b.state())
	again, err := b.PerformOnce(t.Context(), p.ID)
	require.NoError(t, err)
	assert.Len(t, again.Drafts, 1, "the second click has the answer of the first")
	_, err = b.Plan(t.Context(), Request{Operation: publish, Ref: id})
	assert.ErrorContains(t, err, "was discarded")
}

// What is remembered is bounded: plans by number and by what they were asked with.
func TestForgetsOldPlans(t *testing.T) {
	p := New(Options{})
	var first string
	for i := range maxPlans + 1 {
		id := p.remember(Request{Operation: undo, Limit: i}, "")
		if i == 0 {
			first = id
		}
	}
	_, err := p.recall(first)
	assert.Equal(t, project.NotFound, project.KindOf(err))
	assert.Len(t, p.plans, maxPlans)
	marks := make([]Mark, 50000)
	for i := range marks {
		marks[i].Path = tree.Path(fmt.Sprintf("a/path/of/some/length/%d", i))
	}
	for i := range 10 {
		p.remember(Request{Operation: revert, Limit: i, Marks: marks}, "")
	}
	assert.LessOrEqual(t, p.size, maxRemember)
	assert.Less(t, p.order.Len(), 10)
	assert.Equal(t, p.order.Len(), len(p.plans))
}

// What faces do not let be done now is planned, with the reason, and not performed.
func TestBarred(t *testing.T) {
	b := newBench(t)
	b.scene()
	id := b.run(work, false)
	b.opt.Barred = func(*recorder.Reader) (map[string]string, error) {
		return map[string]string{restore: "Discard or publish your draft to restore"}, nil
	}
	before := b.state()
	p := b.plan(Request{Operation: restore, Ref: id})
	assert.Equal(t, "Discard or publish your draft to restore", p.Barred)
	_, err := b.Perform(t.Context(), p.ID)
	assert.Equal(t, project.Refused, project.KindOf(err))
	assert.EqualError(t, err, "Discard or publish your draft to restore; nothing was changed")
	assert.Equal(t, before, b.state())
	p = b.plan(Request{Operation: revert, Ref: id})
	assert.Empty(t, p.Barred)
	b.perform(p.ID)
}

// What is marked in a record's own diff stays what is merged, overwritten or gone on with where the file was edited since.
func TestMarksOfARecordInAConflict(t *testing.T) {
	b := newBench(t)
	b.put("f", lines(1, 40))
	b.put("g", "g\n")
	b.checkpoint("first")
	id := b.run("sed -e s/^3$/three/ -e s/^20$/twenty/ -e s/^37$/last/ f > t; mv t f; echo changed > g", false)
	left := b.state()["f"]
	edited := "edit\nedit\n" + strings.Replace(strings.TrimPrefix(left, "-rw-r--r-- "), "last", "mine", 1)
	b.put("f", edited)
	q := Request{Operation: revert, Refs: []string{id}, Marks: []Mark{{Path: "f", Hunks: []int{2}}}, OfRecord: true}
	_, err := b.Plan(t.Context(), q)
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	require.NotNil(t, conflict.Merge, "the third hunk is in the way of the merge, and is not marked")
	assert.Contains(t, conflict.Merge.Question, "only what is marked: f (hunk 2)")
	assert.NotContains(t, conflict.Merge.Question, "<<<<<<<")
	b.perform(conflict.Merge.ID)
	assert.Equal(t, "-rw-r--r-- "+strings.Replace(edited, "twenty", "20", 1), b.state()["f"])
	b.perform(b.plan(Request{Operation: undo}).ID)

	forced, ok := conflict.Request.forced()
	require.True(t, ok)
	b.perform(b.plan(forced).ID)
	assert.Equal(t, "-rw-r--r-- "+strings.Replace(edited, "twenty", "20", 1), b.state()["f"], "what was edited elsewhere is not marked")
	b.perform(b.plan(Request{Operation: undo}).ID)

	_, ok = conflict.Request.others(conflict.Items)
	assert.False(t, ok, "nothing else is marked")
	_, err = b.Plan(t.Context(), Request{Operation: revert, Ref: id})
	require.ErrorAs(t, err, &conflict)
	others, ok := conflict.Request.others(conflict.Items)
	require.True(t, ok)
	p := b.plan(others)
	assert.Equal(t, "decree revert --exclude f "+id, p.Command)
	assert.Contains(t, p.Question, " changed, without f. 1 file changes.")
	b.perform(p.ID)
	assert.Equal(t, "-rw-r--r-- g\n", b.state()["g"])
	assert.Equal(t, "-rw-r--r-- "+edited, b.state()["f"])
}

// What is marked and what is not cannot be told apart where the lines between them are gone.
func TestMarksThatBecameOne(t *testing.T) {
	b := newBench(t)
	b.put("f", lines(1, 30))
	b.checkpoint("first")
	id := b.run("sed -e s/^3$/three/ -e s/^20$/twenty/ f > t; mv t f", false)
	b.put("f", "1\n2\nthree\ntwenty\n"+lines(21, 30))
	q := Request{Operation: revert, Ref: id, Marks: []Mark{{Path: "f", Hunks: []int{2}}}, OfRecord: true, Merge: true, Markers: true}
	_, err := b.Plan(t.Context(), q)
	assert.ErrorContains(t, err, "what is marked of f and what is not are one hunk in the files as they are")
}

// A draft's hunks are found in the tree by what its run began with.
func TestMarksOfADraft(t *testing.T) {
	b := newBench(t)
	b.put("f", lines(1, 40))
	b.checkpoint("first")
	id := b.run("sed -e s/^3$/three/ -e s/^20$/twenty/ -e s/^37$/last/ f > t; mv t f", true)
	edited := "edit\n" + lines(1, 40)
	b.put("f", edited)
	_, err := b.Plan(t.Context(), Request{Operation: publish, Ref: id, Marks: []Mark{{Path: "f", Hunks: []int{2}}}, OfRecord: true})
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	require.NotNil(t, conflict.Merge)
	b.perform(conflict.Merge.ID)
	assert.Equal(t, "-rw-r--r-- "+strings.Replace(edited, "\n20\n", "\ntwenty\n", 1), b.state()["f"])
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}
