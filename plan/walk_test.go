package plan

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestWalkTakesEachSourceOnTopOfTheOthers and leaves out, whole, what edited paths bar, and
// what is there already.
func TestWalkTakesEachSourceOnTopOfTheOthers(t *testing.T) {
	ctx := context.Background()
	first := source(t, "first", texts{"a": "1\n", "x": "1\n"}, texts{"a": "2\n", "x": "2\n"})
	second := source(t, "second", texts{"a": "2\n", "b": "1\n"}, texts{"a": "3\n", "b": "2\n"})
	edited := source(t, "edited", texts{"a": "3\n", "e": "1\n", "z": "1\n"}, texts{"a": "4\n", "e": "2\n", "z": "2\n"})
	there := source(t, "there", texts{"d": "1\n"}, texts{"d": "2\n"})
	now := texts{"a": "3\n", "b": "2\n", "d": "1\n", "e": "2\n", "x": "2\n", "z": "mine\n"}

	w := NewWalk(now, Options{})
	for _, step := range []struct {
		src  *Source
		skip bool
		want Outcome
	}{{edited, true, Barred}, {there, false, Needless}, {second, true, Taken}, {first, false, Taken}} {
		got, err := w.Take(ctx, step.src, Back, step.skip)
		require.NoError(t, err)
		require.Equal(t, step.want, got, step.src.ID)
	}
	p, err := w.Plan(ctx)
	require.NoError(t, err)
	require.Equal(t, map[tree.Path]Verdict{"a": Move, "b": Move, "d": Done, "x": Move}, verdicts(p), "of what is barred nothing is left")
	require.Equal(t, "1\n", content(t, p, "a"))
	require.Equal(t, []string{"second", "first"}, p.Touched)

	w = NewWalk(now, Options{})
	got, err := w.Take(ctx, edited, Back, false)
	require.NoError(t, err)
	require.Equal(t, Taken, got)
	p, err = w.Plan(ctx)
	require.NoError(t, err)
	require.Len(t, p.Conflicts(), 1, "z")

	// Each source has a direction of its own.
	w = NewWalk(now, Options{})
	for src, d := range map[*Source]Direction{second: Back, there: Forth} {
		got, err := w.Take(ctx, src, d, false)
		require.NoError(t, err)
		require.Equal(t, Taken, got)
	}
	p, err = w.Plan(ctx)
	require.NoError(t, err)
	require.Equal(t, "2\n", content(t, p, "a"))
	require.Equal(t, "2\n", content(t, p, "d"))
}

// TestWalkPassesOverWhatHasNoPlace: a file is where a directory of the source has to be.
func TestWalkPassesOverWhatHasNoPlace(t *testing.T) {
	ctx := context.Background()
	src := source(t, "src", texts{"d/x": "1\n"}, texts{})
	for _, skip := range []bool{true, false} {
		w := NewWalk(texts{"d": "mine\n"}, Options{})
		got, err := w.Take(ctx, src, Back, skip)
		require.NoError(t, err)
		require.Equal(t, skip, got == Barred)
		p, err := w.Plan(ctx)
		require.NoError(t, err)
		require.Equal(t, skip, len(p.Conflicts()) == 0)
		require.Equal(t, skip, p.Empty())
	}
}
