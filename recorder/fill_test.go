package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
	"decree/tree"
)

// newEmptied is a project with records and nothing in its tree, as a restore into a new directory has
// it, and the id of a tree that the store has.
func newEmptied(t *testing.T) (*lossy, tree.Hash) {
	l, ids := newLossy(t)
	return emptied(t, l, ids[2])
}

// emptied removes all of a project's tree, and says which one a record has.
func emptied(t *testing.T, l *lossy, record string) (_ *lossy, id tree.Hash) {
	l.with(func(r *Recorder) error {
		rec, err := r.History().Get(record)
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

// fillInParts fills by transactions of so many paths.
func fillInParts(id tree.Hash, part int) func(*Recorder) error {
	return func(r *Recorder) error { r.fillPart = part; return fillWith(id)(r) }
}

// TestFillEnds sees that the list of a tree, which may have a million files, ends with the command, and that nothing is there then.
func TestFillEnds(t *testing.T) {
	l, id := newEmptied(t)
	ended, end := context.WithCancel(ctx())
	end()
	l.with(func(r *Recorder) error {
		f := &filling{Recorder: r, out: &MoveResult{}}
		require.ErrorIs(t, f.all(ended, id), context.Canceled)
		require.Empty(t, f.part)
		return nil
	})
	require.Empty(t, l.state())
}

// TestFill sees that a tree in an empty directory is all there or not at all, whatever step fails or loses
// the power, that it is durable once that is said, and that it is no record.
func TestFill(t *testing.T) { testFill(t, fillWith) }

// TestFillInParts is TestFill of more paths than one transaction brings: parts of the tree may be there then, which the same call
// makes the whole.
func TestFillInParts(t *testing.T) {
	testFill(t, func(id tree.Hash) func(*Recorder) error { return fillInParts(id, 3) })
}

func testFill(t *testing.T, fillWith func(tree.Hash) func(*Recorder) error) {
	l, id := newEmptied(t)
	whole, known := l.m, len(l.records())
	inParts := journals(l, fillWith(id)) > 1
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
		if inParts && err != nil {
			require.Subset(t, after, got, what)
			l.with(fillWith(id))
			got = l.state()
		}
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

// journals is how many journals an operation writes, which it then has not done.
func journals(l *lossy, do func(*Recorder) error) (n int) {
	before := l.m
	defer func() { l.m = before }()
	l.m = before.Crash(rand.New(rand.NewPCG(1, 2))) // all of it is flushed
	r, err := l.open(disktest.Inject(l.m, func(st disktest.Step) disktest.Action {
		if strings.HasSuffix(st.To, ".journal") {
			n++
		}
		return disktest.Action{}
	}))
	require.NoError(l.t, err)
	require.NoError(l.t, do(r))
	require.NoError(l.t, r.Close())
	return n
}

// TestFillPartsOfADirectory does not end a part in a directory that may not be looked into once it is made.
func TestFillPartsOfADirectory(t *testing.T) {
	for mode, fewer := range map[uint32]int{0o755: 0, 0o500: 0, 0o300: 2, 0o600: 2, 0: 2} { // d/x and d/y come with d
		l, _ := newLossy(t)
		paths := len(l.state())
		d, err := l.root().Stat("d")
		require.NoError(t, err)
		require.NoError(t, l.root().Chmod("d", d, mode))
		var record string
		l.with(func(r *Recorder) error {
			rec, err := r.Checkpoint(ctx(), CheckpointOptions{})
			record = rec.ID
			return err
		})
		l, id := emptied(t, l, record)
		require.Equal(t, paths-fewer, journals(l, fillInParts(id, 1)), "%o", mode)
	}
}

// TestFillNamesAllThatIsInTheWay names what is in the way of any part, and then moves none that comes behind it.
func TestFillNamesAllThatIsInTheWay(t *testing.T) {
	l, id := newEmptied(t)
	l.write(map[string]string{"d/x": "mine\n", "z": "mine too\n"})
	l.with(func(r *Recorder) error {
		var conflict *ConflictError
		require.ErrorAs(t, fillInParts(id, 1)(r), &conflict)
		require.Len(t, conflict.Items, 2)
		require.Equal(t, []tree.Path{"d/x", "z"}, []tree.Path{conflict.Items[0].Path, conflict.Items[1].Path})
		return nil
	})
	require.Contains(t, l.state()["d/x"], "mine\n")
	require.Contains(t, l.state()["z"], "mine too\n")
	require.NotContains(t, l.state(), "swap", "nothing is moved when it is known that something is in the way")
}

// TestFillSaysWhatIsThere: the parts that are there when a later one fails are counted.
func TestFillSaysWhatIsThere(t *testing.T) {
	l, id := newEmptied(t)
	l.write(map[string]string{"z": "mine\n"})
	l.with(func(r *Recorder) error {
		short := &FillError{}
		require.ErrorAs(t, fillInParts(id, 1)(r), &short)
		require.Positive(t, short.There)
		require.EqualValues(t, len(l.state())-1, short.There, "z is not the tree's")
		return nil
	})
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

// TestFillOfElsewhere sees that nothing gets set-user-ID of a tree that came with a backup of elsewhere, and that what came so before a death is
// not in the way of the same restore.
func TestFillOfElsewhere(t *testing.T) {
	l, _ := newLossy(t)
	edit, err := l.root().Stat("edit")
	require.NoError(t, err)
	require.NoError(t, l.root().Chmod("edit", edit, 0o4755))
	var record string
	l.with(func(r *Recorder) error {
		rec, err := r.Checkpoint(ctx(), CheckpointOptions{})
		record = rec.ID
		return err
	})
	l, id := emptied(t, l, record)
	for range 2 {
		l.with(func(r *Recorder) error {
			require.NoError(t, project.Hold(r.Project().Store, project.Held{Host: "elsewhere"}))
			out, err := r.Fill(ctx(), id)
			require.NoError(t, err)
			require.Len(t, out.Notes, 1)
			require.Contains(t, out.Notes[0], "edit: mode is 755 instead of 4755: ")
			return nil
		})
		st, err := l.root().Stat("edit")
		require.NoError(t, err)
		require.EqualValues(t, 0o755, st.Mode)
	}
}
