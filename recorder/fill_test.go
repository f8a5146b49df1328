package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// newEmptied is a project with records and nothing in its tree, as a restore into a new directory has
// it, and the id of a tree that the store has.
func newEmptied(t *testing.T) (l *lossy, id tree.Hash) {
	l, ids := newLossy(t)
	l.with(func(r *Recorder) error {
		rec, err := r.History().Get(ids[2])
		if err == nil {
			id = rec.After
		}
		return err
	})
	list, err := l.root().List()
	require.NoError(t, err)
	for _, e := range list {
		if e.Name != ".decree" {
			require.NoError(t, disk.RemoveTree(l.root(), e.Name))
		}
	}
	top, err := l.m.OpenRoot("/")
	require.NoError(t, err)
	flushAll(t, top)
	return l, id
}

func fillWith(id tree.Hash) func(*Recorder) error {
	return func(r *Recorder) error { _, err := r.Fill(ctx(), id); return err }
}

// TestFillEnds sees that the list of a tree, which may have a million files, ends with the command, and that nothing is there then.
func TestFillEnds(t *testing.T) {
	l, id := newEmptied(t)
	ended, end := context.WithCancel(ctx())
	end()
	l.with(func(r *Recorder) error {
		changes, err := r.allOf(ended, id, &MoveResult{})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, changes)
		return nil
	})
	require.Empty(t, l.state())
}

// TestFill sees that a tree in an empty directory is all there or not at all, whatever step fails or loses
// the power, that it is durable once that is said, and that it is no record.
func TestFill(t *testing.T) {
	l, id := newEmptied(t)
	whole, known := l.m, len(l.records())
	rng := rand.New(rand.NewPCG(3, 4))
	clone := func() { l.m = whole.Crash(rng) } // all of it is flushed
	clone()
	l.with(fillWith(id))
	after := l.state()
	require.NotEmpty(t, after)
	require.Contains(t, after["edit"], "2\nlines\n")
	require.Len(t, l.records(), known, "what replaces nothing is no record")
	l.with(func(r *Recorder) error {
		err := fillWith(id)(r)
		require.NoError(t, err, "what is there as it should be stays")
		return nil
	})
	settled := func(what string, err error) {
		l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
		l.with(func(r *Recorder) error { requireSound(t, r); return nil })
		got := l.state()
		if err == nil || len(got) > 0 {
			require.Equal(t, after, got, what)
		}
		require.Len(t, l.records(), known, what)
	}
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for n, fired := 0, true; fired; n += stride {
		clone()
		var err error
		fired, err = l.dying(n, rng, fillWith(id))
		settled(fmt.Sprintf("power lost at step %d (%s): %v", n, l.at, err), err)
	}
	for n, fired := 0, true; fired; n += stride {
		clone()
		fired = false
		i := 0
		r, err := l.open(disktest.Inject(l.m, func(st disktest.Step) disktest.Action {
			if i++; i-1 != n {
				return disktest.Action{}
			}
			fired, l.at = true, st.Op+" "+st.Path
			return disktest.Action{Err: errors.New("input/output error, say")}
		}))
		if err == nil {
			err = fillWith(id)(r)
			r.Close()
		}
		settled(fmt.Sprintf("a fault at step %d (%s): %v", n, l.at, err), err)
	}
}

// TestFillBesideOtherFiles leaves alone what somebody has put there meanwhile.
func TestFillBesideOtherFiles(t *testing.T) {
	l, id := newEmptied(t)
	l.write(map[string]string{"edit": "mine\n", "other": "mine too\n"})
	before := l.state()
	l.with(func(r *Recorder) error {
		err := fillWith(id)(r)
		var conflict *ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, tree.Path("edit"), conflict.Items[0].Path)
		return nil
	})
	require.Equal(t, before, l.state())
}
