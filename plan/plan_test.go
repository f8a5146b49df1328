package plan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/patch"
	"decree/tree"
	"decree/worktree"
)

// texts is a Looker over contents: a name with a slash at its end is a directory.
type texts map[tree.Path]string

func file(text string) *tree.Entry {
	return &tree.Entry{SHA256: tree.Sum([]byte(text)), Size: int64(len(text)), Mode: 0o644}
}

const pipe = "\x00a pipe"

func (t texts) Look(path tree.Path) (*tree.Entry, error) {
	if text, ok := t[path]; ok {
		if text == pipe {
			return nil, &worktree.SpecialError{Path: path}
		}
		return file(text), nil
	}
	if _, ok := t[path+"/"]; ok {
		return &tree.Entry{Type: tree.Dir, Mode: 0o755}, nil
	}
	return nil, nil
}

func (t texts) LookAll(_ context.Context, paths []tree.Path) ([]worktree.Looked, error) {
	out := make([]worktree.Looked, len(paths))
	for i, p := range paths {
		out[i].Entry, out[i].Err = t.Look(p)
	}
	return out, nil
}

func (t texts) Read(path tree.Path) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(t[path])), nil
}

// source makes a diff of what led from one set of files to another.
func source(t *testing.T, id string, old, new texts) *Source {
	t.Helper()
	var b bytes.Buffer
	w := patch.NewWriter(&b, patch.Limits{})
	paths := map[tree.Path]bool{}
	for p := range old {
		paths[tree.Path(strings.TrimSuffix(string(p), "/"))] = true
	}
	for p := range new {
		paths[tree.Path(strings.TrimSuffix(string(p), "/"))] = true
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		c := patch.Change{Path: name}
		c.Old, _ = old.Look(name)
		c.New, _ = new.Look(name)
		if c.Old != nil && c.Old.Type == tree.Regular {
			c.OldContent = patch.Bytes(old[name])
		}
		if c.New != nil && c.New.Type == tree.Regular {
			c.NewContent = patch.Bytes(new[name])
		}
		require.NoError(t, w.Write(context.Background(), c))
	}
	require.NoError(t, w.Close())
	src, err := ReadSource(id, bytes.NewReader(b.Bytes()), int64(b.Len()), stored{old, new})
	require.NoError(t, err)
	return src
}

// stored has the contents of trees.
type stored []texts

func (s stored) Open(h tree.Hash) (io.ReadCloser, int64, error) {
	for _, t := range s {
		for _, text := range t {
			if tree.Sum([]byte(text)) == h {
				return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
			}
		}
	}
	return nil, 0, errors.New("missing")
}

// verdicts maps the plan's paths to what it makes of them.
func verdicts(p *Plan) map[tree.Path]Verdict {
	out := map[tree.Path]Verdict{}
	for _, it := range p.Items {
		out[it.Path] = it.Verdict
	}
	return out
}

func turn(t *testing.T, now texts, o Options, sources ...*Source) *Plan {
	t.Helper()
	p, err := ForDiffs(context.Background(), now, sources, o)
	require.NoError(t, err)
	return p
}

func content(t *testing.T, p *Plan, path tree.Path) string {
	t.Helper()
	for _, s := range p.Steps {
		if s.Path == path {
			rc, err := s.Content()
			require.NoError(t, err)
			data, err := io.ReadAll(rc)
			require.NoError(t, err)
			return string(data)
		}
	}
	t.Fatalf("no step for %s", path)
	return ""
}

func TestTheTreeDecidesWhatIsToBeDone(t *testing.T) {
	before := texts{"same": "1\n", "back": "1\n", "edit": "1\n", "gone": "x\n"}
	after := texts{"same": "2\n", "back": "2\n", "edit": "2\n", "new": "n\n"}
	src := source(t, "r", before, after)
	now := texts{"same": "1\n", "back": "2\n", "edit": "mine\n", "new": "n\n"}

	p := turn(t, now, Options{}, src)
	assert.Equal(t, map[tree.Path]Verdict{"same": Done, "back": Move, "edit": Edited, "new": Move, "gone": Move}, verdicts(p))
	require.Len(t, p.Conflicts(), 1)
	assert.Equal(t, "edited since", p.Conflicts()[0].Reason)
	assert.Equal(t, "1\n", content(t, p, "back"))
	assert.Equal(t, "x\n", content(t, p, "gone"))

	p = turn(t, now, Options{Paths: []tree.Path{"back"}}, src)
	assert.Equal(t, map[tree.Path]Verdict{"back": Move}, verdicts(p))
	assert.Empty(t, p.Touched, "a part of a record is not the record")
	assert.Equal(t, 1, p.Modified)
}

func TestIgnoredEditsAreLeft(t *testing.T) {
	src := source(t, "r", texts{"a": "1\n"}, texts{"a": "2\n"})
	o := Options{Ignored: func(tree.Path, bool) (bool, error) { return true, nil }}
	p := turn(t, texts{"a": "mine\n"}, o, src)
	assert.Equal(t, map[tree.Path]Verdict{"a": Left}, verdicts(p))
	assert.True(t, p.Empty())

	// Of two records the newer one's change goes back to the edit between them, which the older one leaves.
	older := source(t, "o", texts{"a": "0\n"}, texts{"a": "1\n"})
	newer := source(t, "n", texts{"a": "mine\n"}, texts{"a": "2\n"})
	p = turn(t, texts{"a": "2\n"}, o, newer, older)
	assert.Equal(t, map[tree.Path]Verdict{"a": Move}, verdicts(p))
	assert.Equal(t, "mine\n", content(t, p, "a"))
}

func TestMergeTakesHunksAndKeepsTheEdit(t *testing.T) {
	lines := func(first, last string) string {
		return first + "\nb\nc\nd\n" + last + "\n"
	}
	src := source(t, "r", texts{"a": lines("a", "z"), "b": "1\n"}, texts{"a": lines("RUN", "z"), "b": "2\n"})
	now := texts{"a": lines("RUN", "MINE"), "b": "2\n"}
	p := turn(t, now, Options{Merge: Refuse}, src)
	assert.Equal(t, map[tree.Path]Verdict{"a": Merged, "b": Move}, verdicts(p))
	assert.Equal(t, lines("a", "MINE"), content(t, p, "a"))
	p = turn(t, texts{"a": lines("a", "MINE"), "b": "1\n"}, Options{Merge: Refuse, Direction: Forth}, src)
	assert.Equal(t, lines("RUN", "MINE"), content(t, p, "a"))

	src.Objects = stored{texts{"a": lines("a", "z")}}
	p = turn(t, now, Options{Merge: Refuse}, src)
	assert.Equal(t, lines("a", "MINE"), content(t, p, "a"), "one side is enough, the diff gives the other")
	src.Objects = stored{}
	p = turn(t, now, Options{Merge: Refuse}, src)
	assert.Equal(t, Edited, verdicts(p)["a"])
	assert.Contains(t, p.Conflicts()[0].Reason, "no longer stored")
}

// TestWhatIsDoneAboutConflicts: a merge of a file whose lines both have changed.
func TestWhatIsDoneAboutConflicts(t *testing.T) {
	src := source(t, "r", texts{"a": "1\nk\n", "b": "1\n"}, texts{"a": "2\nk\n", "b": "2\n"})
	now := texts{"a": "mine\nk\n", "b": "2\n"}
	p := turn(t, now, Options{Merge: Refuse}, src)
	require.Len(t, p.Conflicts(), 1)
	assert.Equal(t, "edited since in the same place", p.Conflicts()[0].Reason)

	p = turn(t, now, Options{Merge: Skip}, src)
	assert.Equal(t, map[tree.Path]Verdict{"a": Kept, "b": Move}, verdicts(p))
	assert.Equal(t, []Standing{{"r", 1}}, p.Standing)
	assert.Empty(t, p.Touched)

	p = turn(t, now, Options{Merge: Mark}, src)
	assert.Equal(t, map[tree.Path]Verdict{"a": Marked, "b": Move}, verdicts(p))
	assert.Equal(t, "<<<<<<< now\nmine\n=======\n1\n>>>>>>> before r\nk\n", content(t, p, "a"))
	assert.Equal(t, []string{"r"}, p.Touched)

	p = turn(t, now, Options{Exclude: []tree.Path{"a"}}, src)
	assert.Equal(t, map[tree.Path]Verdict{"b": Move}, verdicts(p))
	assert.Equal(t, []Standing{{"r", 1}}, p.Standing)
	p = turn(t, texts{"a": "1\nk\n", "b": "2\n"}, Options{Exclude: []tree.Path{"a"}}, src)
	assert.Equal(t, []string{"r"}, p.Touched, "what was left out is back already")

	// What one record's change is left in is not changed for an older one.
	older := source(t, "o", texts{"a": "0\nk\n"}, texts{"a": "1\nk\n"})
	p = turn(t, now, Options{Merge: Skip}, src, older)
	assert.Equal(t, map[tree.Path]Verdict{"a": Kept, "b": Move}, verdicts(p))
	assert.Equal(t, []Standing{{"r", 1}, {"o", 1}}, p.Standing)
}

func TestForceOverwrites(t *testing.T) {
	src := source(t, "r", texts{"gone": "x\n"}, texts{"new": "n\n"})
	p := turn(t, texts{"gone": "mine\n", "new": "mine too\n"}, Options{Force: true}, src)
	assert.Equal(t, map[tree.Path]Verdict{"gone": Forced, "new": Forced}, verdicts(p))
	assert.Equal(t, "x\n", content(t, p, "gone"))

	// An older record of the path is planned on top of it, and the edit is overwritten as before.
	older := source(t, "o", texts{"gone": "w\n"}, texts{"gone": "x\n"})
	p = turn(t, texts{"gone": "mine\n"}, Options{Force: true}, src, older)
	assert.Equal(t, map[tree.Path]Verdict{"gone": Forced, "new": Done}, verdicts(p))
	assert.Equal(t, "w\n", content(t, p, "gone"))
	p = turn(t, texts{"gone": "w\n"}, Options{Force: true}, src, older)
	assert.Equal(t, map[tree.Path]Verdict{"gone": Done, "new": Done}, verdicts(p), "nothing is overwritten in the end")
}

// TestAMergeStaysOne: an older record, planned on top of it, finds what it left.
func TestAMergeStaysOne(t *testing.T) {
	older := source(t, "o", texts{"a": "0\nb\nc\nd\ne\n"}, texts{"a": "1\nb\nc\nd\ne\n"})
	newer := source(t, "n", texts{"a": "1\nb\nc\nd\ne\n"}, texts{"a": "2\nb\nc\nd\nE\n"})
	p := turn(t, texts{"a": "1\nb\nc\nd\nE\n"}, Options{Merge: Refuse}, newer, older)
	assert.Equal(t, map[tree.Path]Verdict{"a": Merged}, verdicts(p))
	assert.Equal(t, "0\nb\nc\nd\ne\n", content(t, p, "a"))
}

// torn has other bytes by the time they are read.
type torn struct{ texts }

func (torn) Read(tree.Path) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("half\n")), nil
}

func TestWhatIsBeingWrittenIsNotMerged(t *testing.T) {
	src := source(t, "r", texts{"a": "1\nb\nc\nd\ne\n"}, texts{"a": "2\nb\nc\nd\ne\n"})
	now := torn{texts{"a": "2\nb\nc\nd\nE\n"}}
	p, err := ForDiffs(t.Context(), now, []*Source{src}, Options{Merge: Mark})
	require.NoError(t, err)
	require.Len(t, p.Conflicts(), 1)
	assert.Equal(t, "edited since, and is being written now", p.Conflicts()[0].Reason)
}

// TestRethink: what comes to nothing is not counted any more.
func TestRethink(t *testing.T) {
	src := source(t, "r", texts{"a": "1\n", "b": "1\n", "gone": "1\n"}, texts{"a": "2\n", "b": "2\n", "new": "n\n"})
	p := turn(t, texts{"a": "2\n", "b": "2\n", "new": "n\n"}, Options{}, src)
	_, err := p.Rethink(func(steps []worktree.Step) (map[tree.Path]string, error) {
		for i := range steps {
			if steps[i].Path == "a" {
				steps[i].To = steps[i].From
			}
		}
		return map[tree.Path]string{"a": "stays"}, nil
	})
	require.NoError(t, err)
	assert.Len(t, p.Steps, 3)
	assert.Equal(t, []int{1, 1, 1}, []int{p.Created, p.Modified, p.Deleted})
}

// TestSourcesArePlannedOnTopOfEachOther: the second sees the tree as the first
// would leave it, and a path that ends where it began has no step.
func TestSourcesArePlannedOnTopOfEachOther(t *testing.T) {
	one, two, three := texts{"a": "1\n"}, texts{"a": "2\n"}, texts{"a": "3\n"}
	first, second := source(t, "1", one, two), source(t, "2", two, three)

	p := turn(t, three, Options{}, second, first)
	assert.Equal(t, "1\n", content(t, p, "a"))
	assert.Equal(t, []string{"2", "1"}, p.Touched)

	p = turn(t, three, Options{}, first)
	assert.Equal(t, map[tree.Path]Verdict{"a": Edited}, verdicts(p), "under a later run")

	p = turn(t, one, Options{Direction: Forth}, first, second)
	assert.Equal(t, "3\n", content(t, p, "a"))
}

func TestMissingParentsAreMade(t *testing.T) {
	src := source(t, "r", texts{"d/e/f": "x\n", "d/": "", "d/e/": ""}, texts{"d/": "", "d/e/": ""})
	p := turn(t, texts{}, Options{}, src)
	assert.Equal(t, map[tree.Path]Verdict{"d": Move, "d/e": Move, "d/e/f": Move}, verdicts(p))

	p = turn(t, texts{"d": "a file now\n"}, Options{}, src)
	assert.Equal(t, Edited, verdicts(p)["d"])
}

func TestAHunkThatDoesNotFitIsAnError(t *testing.T) {
	src := source(t, "r", texts{"a": "1\nx\n"}, texts{"a": "2\nx\n"})
	p := turn(t, texts{"a": "2\nx\n"}, Options{}, src)
	lie := texts{"a": "2\ny\n"} // read after it was looked at
	first := slices.Collect(src.transitions())[0]
	p.Steps[0].Content = first.content(Back, func() (io.ReadCloser, error) { return lie.Read("a") })
	_, err := p.Steps[0].Content()
	var mismatch *patch.MismatchError
	assert.True(t, errors.As(err, &mismatch), "%v", err)
}

// TestPipesAreNamedWithTheOtherConflicts: also where edits are overwritten, and
// where a directory must come.
func TestPipesAreNamedWithTheOtherConflicts(t *testing.T) {
	old, left := texts{"a": "1\n", "b": "1\n", "d/": "", "d/f": "f\n"}, texts{"a": "2\n", "b": "2\n"}
	src := source(t, "r", old, left)
	now := texts{"a": pipe, "b": "edited\n", "d": pipe}
	var names []string
	p := turn(t, now, Options{}, src)
	for _, it := range p.Conflicts() {
		names = append(names, string(it.Path)+": "+it.Reason)
	}
	assert.Equal(t, []string{"a: now a pipe, socket or device", "b: edited since", "d: now a pipe, socket or device"}, names)
	assert.Len(t, turn(t, now, Options{Force: true}, src).Conflicts(), 2)

	p, err := ForChanges(context.Background(), now, []tree.Change{{Path: "a", Old: file("1\n"), New: file("2\n")}}, true)
	require.NoError(t, err)
	assert.Len(t, p.Conflicts(), 1)
}
