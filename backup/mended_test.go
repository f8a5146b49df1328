package backup

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk/disktest"
	"decree/project"
	"decree/tree"
)

// told makes a backup or a drill and returns what it told.
func (w *world) told(do func(o Options) error) (out string) {
	require.NoError(w.t, w.with(func(o Options) error {
		o.Tell = func(text string) { out += text + "\n" }
		return do(o)
	}))
	return out
}

// TestCurrentIsNamedAndMadeAnew: what somebody has changed in current/, or an older one that was put there, is named by a drill and not
// taken over by the next backup.
func TestCurrentIsNamedAndMadeAnew(t *testing.T) {
	const at = "target/tree/current/"
	drill := func(o Options) error {
		proof, err := Drill(t.Context(), o, false)
		if err == nil {
			require.True(t, proof.OK, "no restore depends on it")
		}
		return err
	}
	for name, c := range map[string]struct {
		file   string
		change func(string) string
		said   string
	}{
		"changed": {"config.yml", func(s string) string { return s + "# by hand\n" }, "config.yml was changed, or is missing"},
		"older":   {manifestFile, func(s string) string { return strings.Replace(s, "T0", "T1", 1) }, "it is that of 2026"},
		"cut":     {manifestFile, func(s string) string { return s[:40] }, "manifest.json: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.Empty(t, w.told(drill))
			sound := w.read(at + "config.yml")
			w.rewrite(at+c.file, c.change)
			if name == "older" {
				w.rewrite(at+"config.yml", func(string) string { return "max_depth: 1\n" })
			}
			if name == "changed" {
				text := w.told(drill)
				require.Contains(t, text, "tree/current is not what generation ")
				require.Contains(t, text, c.said+"; no restore depends on it, and the next backup makes it anew")
				require.NoError(t, w.with(func(o Options) error {
					place, err := findOf(t.Context(), o.Target, "tree", o.Recorder.Project().ID)
					require.NoError(t, err)
					st, err := place.Status(t.Context(), &o.Recorder.Project().Site, o.Now())
					require.NoError(t, err)
					require.Contains(t, strings.Join(st.Problems, "\n"), "tree/current was changed by somebody")
					return nil
				}))
			} else {
				require.Contains(t, w.copy().told(drill), c.said)
			}
			require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
			require.Equal(t, sound, w.read(at+"config.yml"))
			require.Empty(t, w.told(drill))
		})
	}
}

// TestDrillsHaveScratchOfTheirOwn: two at once do not take each other's, and what one that died has left is removed.
func TestDrillsHaveScratchOfTheirOwn(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	first, removeFirst, err := newScratch(store)
	require.NoError(t, err)
	require.NoError(t, project.ReplaceFile(first, "file", []byte("first"), 0o600, false))
	second, removeSecond, err := newScratch(store)
	require.NoError(t, err)
	require.NoError(t, project.ReplaceFile(second, "file", []byte("second"), 0o600, false))
	data, err := project.ReadFile(first, "file", 10)
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
	require.NoError(t, removeSecond())

	all, err := store.OpenDir(scratchDir)
	require.NoError(t, err)
	dead, err := project.MakeDir(all, "dead", 0o700) // nobody has locked it
	require.NoError(t, err)
	require.NoError(t, project.ReplaceFile(dead, "file", []byte("large"), 0o600, false))
	require.NoError(t, project.ReplaceFile(all, "file", []byte("of an earlier decree"), 0o600, false))
	_, removeThird, err := newScratch(store)
	require.NoError(t, err)
	require.NoError(t, removeThird())
	_, err = first.Stat("file")
	require.NoError(t, err, "it is under way")
	require.NoError(t, removeFirst())
	list, err := all.List()
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestABadSectorOfTheStoreIsNamed: where the disk cannot read a part of a live pack the backup goes on without it, as without what is damaged.
func TestABadSectorOfTheStoreIsNamed(t *testing.T) {
	base := newWorld(t)
	lost := 0
	for n := 0; ; n++ {
		w, at, fired := base.copy(), 0, false
		o, done, err := w.options(disktest.Inject(w.m, func(s disktest.Step) disktest.Action {
			if s.Op != "ReadAt" || !strings.HasPrefix(s.Path, "/w/store/") || !strings.HasSuffix(s.Path, ".pack") {
				return disktest.Action{}
			}
			if at++; at-1 != n {
				return disktest.Action{}
			}
			fired = true
			return disktest.Action{Err: syscall.EIO}
		}))
		if err == nil {
			var made *Made
			made, err = generate(t.Context(), o)
			if err == nil && len(made.Lost) > 0 {
				lost++
			}
			done()
		}
		if !fired {
			require.NoError(t, err)
			break
		}
		if err != nil { // what a backup cannot do without: the names of what it has, and the tree as it is
			require.ErrorIs(t, err, syscall.EIO)
		}
		w.generations("")
	}
	require.Positive(t, lost)

	// What the target's disk cannot take is no damage of the store's.
	w := base.copy()
	o, done, err := w.options(disktest.Inject(w.m, func(s disktest.Step) disktest.Action {
		if s.Op == "Write" && strings.HasPrefix(s.Path, "/w/target/tree/packs") {
			return disktest.Action{Err: syscall.EIO}
		}
		return disktest.Action{}
	}))
	require.NoError(t, err)
	defer done()
	_, err = generate(t.Context(), o)
	require.ErrorIs(t, err, syscall.EIO)
}

// unreadablePacks is a target whose packs cannot be read, for a reason that is no damage.
type unreadablePacks struct{ target.Target }

func (u unreadablePacks) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	if strings.HasSuffix(name, ".pack") {
		return nil, 0, syscall.EIO
	}
	return u.Target.Open(ctx, name, offset, length)
}

// TestAPackThatCannotBeReadNowStays: another generation may need it.
func TestAPackThatCannotBeReadNowStays(t *testing.T) {
	dir, err := target.OpenDirectory(disktest.NewMem(), "/t", true)
	require.NoError(t, err)
	data := []byte("the bytes of a pack")
	name := (&Place{Name: "p"}).packName(tree.Sum(data))
	require.NoError(t, put(t.Context(), dir, name, strings.NewReader(string(data))))
	err = sendPack(t, unreadablePacks{dir}, data)
	require.True(t, errors.Is(err, syscall.EIO))
	require.NoError(t, verify(t.Context(), dir, name, tree.Sum(data), int64(len(data))))
}

// TestALogThatEndsEarlierIsSaid: a log that was cut between two lines is like one of before, and is named by the generation that has more.
func TestALogThatEndsEarlierIsSaid(t *testing.T) {
	w := newWorld(t)
	backup := func(o Options) error { _, err := generate(t.Context(), o); return err }
	require.NotContains(t, w.told(backup), "newer than the newest one here")
	var log, newest string
	require.NoError(t, w.with(func(o Options) error {
		log = strings.TrimPrefix(o.Recorder.Project().StorePath, "/w/") + "/records.jsonl"
		list, err := o.Recorder.History().Logged()
		require.Len(t, list, 3)
		newest = list[1].ID
		return err
	}))
	w.rewrite(log, func(s string) string { return s[:strings.LastIndexByte(strings.TrimSuffix(s, "\n"), '\n')+1] })
	require.Contains(t, w.told(backup), "has records that are newer than the newest one here, "+newest)
}
