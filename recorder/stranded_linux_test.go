package recorder

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/layer"
	"decree/layer/overlay"
	"decree/project"
	"decree/tree"
)

// TestStranded: what a failed run's command mounted on a directory of its own is not taken for the tree's. The run and its
// revert say what has to be done first, and that is true.
func TestStranded(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	sub := filepath.Join(b.root, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	if err := unix.Mount("tmpfs", sub, "tmpfs", 0, "size=1m,mode=755"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	require.NoError(t, unix.Unmount(sub, 0))
	require.NoError(t, os.Remove(sub))
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, os.Mkdir(sub, 0o755))
		require.NoError(t, unix.Mount("tmpfs", sub, "tmpfs", 0, "size=1m,mode=755"))
		b.write("sub/f", "f\n")
		return 3
	})
	defer r.Close()
	t.Cleanup(func() { _ = unix.Unmount(sub, 0) })
	res, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	require.False(t, res.PutBack)
	require.Contains(t, strings.Join(res.Notes, "\n"), "not put back: something was mounted at sub since run "+res.Record.ID+" began (then: nothing, now: "+kindAt(t, sub)+"), and what lies there is not the tree's; unmount it")
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Yes: true})
	require.ErrorContains(t, err, "something was mounted at sub")
	require.Contains(t, project.HintOf(err), "unmount it")
	require.Equal(t, "b\n", b.read("a"))
	require.NoError(t, unix.Unmount(sub, 0))
	b.revert(res.Record.ID)
	require.Equal(t, "a\n", b.read("a"))
}

// TestMountedOver: what a failed run's command mounts over a directory of the tree with files in it is not the tree's. Neither
// the put-back nor a revert nor an undo touches it, and once it is unmounted all is put back.
func TestMountedOver(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	b.write("sub/k", "k\n")
	b.checkpoint(CheckpointOptions{})
	other, sub := t.TempDir(), filepath.Join(b.root, "sub")
	precious := map[string]string{"k": "another\n", "p": "precious\n"}
	for name, data := range precious {
		require.NoError(t, os.WriteFile(filepath.Join(other, name), []byte(data), 0o644))
	}
	untouched := func() {
		t.Helper()
		for name, data := range precious {
			got, err := os.ReadFile(filepath.Join(other, name))
			require.NoError(t, err)
			require.Equal(t, data, string(got))
		}
	}
	if err := unix.Mount(other, sub, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	require.NoError(t, unix.Unmount(sub, 0))
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, unix.Mount(other, sub, "", unix.MS_BIND, ""))
		return 3
	})
	defer r.Close()
	t.Cleanup(func() { _ = unix.Unmount(sub, 0) })
	res, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	untouched()
	require.False(t, res.PutBack)
	require.Equal(t, "b\n", b.read("a"))
	require.Contains(t, strings.Join(res.Notes, "\n"), "something was mounted at sub")
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Force: true, Yes: true})
	require.ErrorContains(t, err, "something was mounted at sub")
	_, err = r.Undo(context.Background(), UndoOptions{Yes: true})
	require.ErrorContains(t, err, "something was mounted at sub")
	untouched()
	require.NoError(t, unix.Unmount(sub, 0))
	b.revert(res.Record.ID)
	require.Equal(t, "a\n", b.read("a"))
	require.Equal(t, "k\n", b.read("sub/k"))
	require.NoFileExists(t, filepath.Join(sub, "p"))
	untouched()
}

// TestUnmounted: what a failed run's command unmounts is not deleted, and nothing of it is put into the directory below before it is
// mounted again.
func TestUnmounted(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	sub := filepath.Join(b.root, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "k"), []byte("k\n"), 0o644))
	if err := unix.Mount(other, sub, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(sub, 0) })
	b.checkpoint(CheckpointOptions{})
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, unix.Unmount(sub, 0))
		return 3
	})
	defer r.Close()
	res, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	require.False(t, res.PutBack)
	require.Contains(t, strings.Join(res.Notes, "\n"), "what was mounted at sub when run "+res.Record.ID+" began is not mounted any more")
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Yes: true})
	require.ErrorContains(t, err, "what was mounted at sub when run "+res.Record.ID+" began is not mounted any more")
	require.NoFileExists(t, filepath.Join(sub, "k"))
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Exclude: []tree.Path{"sub"}, Yes: true})
	require.NoError(t, err)
	require.Equal(t, "a\n", b.read("a"))
	require.NoFileExists(t, filepath.Join(sub, "k"))
	require.NoError(t, unix.Mount(other, sub, "", unix.MS_BIND, ""))
	b.revert(res.Record.ID)
	require.Equal(t, "k\n", b.read("sub/k"))
}

// TestMountedFile: a file that is a mount point, as a container has single ones, is neither replaced nor is that tried: it is named.
func TestMountedFile(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	b.write("c.yml", "below\n")
	other, at := filepath.Join(t.TempDir(), "c.yml"), filepath.Join(b.root, "c.yml")
	require.NoError(t, os.WriteFile(other, []byte("one\n"), 0o644))
	if err := unix.Mount(other, at, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	b.checkpoint(CheckpointOptions{})
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, os.WriteFile(at, []byte("two\n"), 0o644))
		return 3
	})
	defer r.Close()
	res, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	require.False(t, res.PutBack)
	require.Contains(t, strings.Join(res.Notes, "\n"), "something is mounted at c.yml")
	_, err = r.Undo(context.Background(), UndoOptions{Yes: true})
	require.ErrorContains(t, err, "something is mounted at c.yml")
	require.Equal(t, project.Refused, project.KindOf(err))
	_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Exclude: []tree.Path{"c.yml"}, Yes: true})
	require.NoError(t, err)
	require.Equal(t, "a\n", b.read("a"))
	require.Equal(t, "two\n", b.read("c.yml"))
}

// kindAt is what mountinfo calls the file system that is mounted at a place.
func kindAt(t *testing.T, at string) string {
	mounts := layer.MountsBelow(filepath.Dir(at))
	i := slices.IndexFunc(mounts, func(m overlay.Mounted) bool { return m.At == at })
	require.GreaterOrEqual(t, i, 0)
	kind, _, _ := strings.Cut(mounts[i].What, " ")
	return kind
}

// exchanged is a tree with a directory that another one is mounted at, or none, and a third one.
type exchanged struct {
	*agents
	sub, one, two string
}

func newExchanged(t *testing.T, mounted bool) *exchanged {
	x := &exchanged{agents: newAgents(t), one: t.TempDir(), two: t.TempDir()}
	x.sub = filepath.Join(x.root, "sub")
	x.write("a", "a\n")
	require.NoError(t, os.Mkdir(x.sub, 0o755))
	for _, dir := range []string{x.one, x.two} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(dir)), []byte(dir), 0o644))
	}
	if err := unix.Mount(x.one, x.sub, "", unix.MS_BIND, ""); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(x.sub, 0) })
	if !mounted {
		x.unmount()
	}
	x.checkpoint()
	return x
}

func (x *exchanged) mount(dir string) {
	require.NoError(x.t, unix.Mount(dir, x.sub, "", unix.MS_BIND, ""))
}

func (x *exchanged) unmount() { require.NoError(x.t, unix.Unmount(x.sub, 0)) }

// whole says that each of the two directories has its own file alone.
func (x *exchanged) whole() {
	x.t.Helper()
	for _, dir := range []string{x.one, x.two} {
		list, err := os.ReadDir(dir)
		require.NoError(x.t, err)
		require.Len(x.t, list, 1, dir)
		require.Equal(x.t, filepath.Base(dir), list[0].Name())
	}
}

// TestExchangedMounts: what is mounted at a place is told from another thing that is mounted there later, whoever exchanges them: a failing run, one
// that succeeds, one whose decree dies, an agent's turn. Nothing is written onto either before the first is there again.
func TestExchangedMounts(t *testing.T) {
	ctx := context.Background()
	refused := func(x *exchanged, id string) {
		t.Helper()
		r := x.open()
		defer r.Close()
		_, err := r.Revert(ctx, MoveOptions{Refs: []string{id}, Force: true, Yes: true})
		require.ErrorContains(t, err, "what was mounted at sub when")
		_, err = r.Undo(ctx, UndoOptions{Yes: true})
		require.ErrorContains(t, err, "what was mounted at sub when")
		x.whole()
	}
	back := func(x *exchanged, id string) {
		t.Helper()
		x.unmount()
		x.mount(x.one)
		x.revert(id)
		x.whole()
		require.Equal(t, "a\n", x.read("a"))
	}
	for _, exit := range []int{0, 3} {
		x := newExchanged(t, true)
		r := x.commanded(func() int {
			x.write("a", "b\n")
			x.unmount()
			x.mount(x.two)
			return exit
		})
		res, err := r.Run(ctx, command(x.bench))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.False(t, res.PutBack)
		x.whole()
		refused(x, res.Record.ID)
		back(x, res.Record.ID)
	}
	x := newExchanged(t, true)
	e := event("s", 100)
	x.prompt(e, "exchange")
	x.write("a", "b\n")
	x.unmount()
	x.mount(x.two)
	turn := x.end(e)
	refused(x, turn.ID)
	back(x, turn.ID)
}

// TestMountedSince: neither the undo of the turn in which something was mounted nor a restore of what was before it deletes what lies there; what
// is seen there as it was then is restored.
func TestMountedSince(t *testing.T) {
	ctx := context.Background()
	x := newExchanged(t, false)
	first := x.checkpoint()
	e := event("s", 100)
	x.prompt(e, "mount")
	x.write("a", "b\n")
	x.mount(x.two)
	turn := x.end(e)
	r := x.open()
	defer r.Close()
	for name, move := range map[string]func() error{
		"undo":    func() error { _, err := r.Undo(ctx, UndoOptions{Yes: true}); return err },
		"revert":  func() error { _, err := r.Revert(ctx, MoveOptions{Refs: []string{turn.ID}, Yes: true}); return err },
		"restore": func() error { _, err := r.Restore(ctx, RestoreOptions{Ref: first.ID, Yes: true}); return err },
	} {
		err := move()
		require.ErrorContains(t, err, "something was mounted at sub since", name)
		require.Equal(t, project.Refused, project.KindOf(err), name)
		x.whole()
	}
	second := x.checkpoint()
	require.NoError(t, os.WriteFile(filepath.Join(x.two, "more"), nil, 0o644))
	_, err := r.Restore(ctx, RestoreOptions{Ref: second.ID, Yes: true})
	require.NoError(t, err)
	x.whole()
	x.unmount()
	x.mount(x.one)
	_, err = r.Restore(ctx, RestoreOptions{Ref: second.ID, Yes: true})
	require.ErrorContains(t, err, "what was mounted at sub when")
	_, err = r.Restore(ctx, RestoreOptions{Ref: first.ID, Paths: []tree.Path{"a"}, Yes: true})
	require.NoError(t, err)
	require.Equal(t, "a\n", x.read("a"))
	x.whole()
}

// TestMountedOnWhatARunMade: a directory that a run made and that something empty is mounted at stays, named; all else is taken back.
func TestMountedOnWhatARunMade(t *testing.T) {
	ctx := context.Background()
	b := newBench(t)
	b.write("a", "a\n")
	r := b.commanded(func() int {
		b.write("a", "b\n")
		require.NoError(t, os.Mkdir(filepath.Join(b.root, "m"), 0o755))
		return 0
	})
	defer r.Close()
	res, err := r.Run(ctx, command(b))
	require.NoError(t, err)
	at := filepath.Join(b.root, "m")
	if err := unix.Mount("m", at, "tmpfs", 0, "mode=755"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, 0) })
	moved, err := r.Revert(ctx, MoveOptions{Refs: []string{res.Record.ID}, Yes: true})
	require.NoError(t, err)
	require.Equal(t, []tree.Path{"m"}, moved.Outcome.Stayed)
	require.Equal(t, "a\n", b.read("a"))
}

// TestMountedTwice: a directory of the tree that is mounted at a second place in it shows each file under two paths, of which the move of one
// looks like another program's writing to the other. It is said, with what takes the run back.
func TestMountedTwice(t *testing.T) {
	for _, places := range [][2]string{{"a", "b"}, {"b", "a"}} {
		b := newBench(t)
		b.write("a/x", "1\n")
		b.write("b/x", "1\n")
		if err := unix.Mount(filepath.Join(b.root, places[0]), filepath.Join(b.root, places[1]), "", unix.MS_BIND, ""); err != nil {
			t.Skip("cannot mount: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(filepath.Join(b.root, places[1]), 0) })
		b.checkpoint(CheckpointOptions{})
		r := b.commanded(func() int { b.write("a/x", "2\n"); return 3 })
		defer r.Close()
		res, err := r.Run(context.Background(), command(b))
		require.NoError(t, err)
		require.False(t, res.PutBack)
		require.Contains(t, strings.Join(res.Notes, "\n"), "what is mounted at "+places[1]+" may be a directory of the tree")
		_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Yes: true})
		require.ErrorContains(t, err, "with one of the two places takes them back")
		_, err = r.Revert(context.Background(), MoveOptions{Refs: []string{res.Record.ID}, Paths: []tree.Path{"a"}, Yes: true})
		require.NoError(t, err)
		require.Equal(t, "1\n", b.read("b/x"))
	}
}
