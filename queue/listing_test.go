//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// inboxOf is a directory of messages whose listings are counted.
func inboxOf(t *testing.T, names ...string) (dir disk.Dir, put func(string), lists *int) {
	base := t.TempDir()
	put = func(name string) { require.NoError(t, os.WriteFile(filepath.Join(base, name), nil, 0o644)) }
	for i, name := range names {
		put(name)
		at := time.Date(2026, 11, 20, 0, 0, i, 0, time.UTC)
		require.NoError(t, os.Chtimes(filepath.Join(base, name), at, at))
	}
	lists = new(int)
	dir, err := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "List" {
			*lists++
		}
		return disktest.Action{}
	}).OpenRoot(base)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	require.NoError(t, os.Chtimes(base, time.Now(), time.Date(2026, 11, 20, 0, 0, 0, 123456789, time.UTC)))
	return dir, put, lists
}

func anyone(Pending) bool { return true }

// TestListingIsReadOnce: what this process itself takes away costs no other look.
func TestListingIsReadOnce(t *testing.T) {
	dir, put, lists := inboxOf(t, "a.md", "b.md", "c.md", "x.txt")
	var l listing
	for _, want := range []string{"a.md", "b.md", "c.md", ""} {
		require.NoError(t, l.look(dir))
		got, err := l.next(dir, anyone)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if want != "" {
			require.NoError(t, dir.Remove(want))
			l.noteOwnChange(dir, want)
			l.stale = false // a coarse clock may have made it so
		}
	}
	require.Equal(t, 1, *lists)
	put("d.md")
	l.stale = true
	require.NoError(t, l.look(dir))
	got, err := l.next(dir, anyone)
	require.NoError(t, err)
	require.Equal(t, "d.md", got)
}

// TestListingKeepsTheOrder of what comes later, also if it is older.
func TestListingKeepsTheOrder(t *testing.T) {
	dir, put, _ := inboxOf(t, "b.md", "c.md")
	var l listing
	require.NoError(t, l.look(dir))
	put("a.md")
	require.NoError(t, os.Chtimes(filepath.Join(dir.Path(), "a.md"), time.Unix(0, 0), time.Unix(0, 0)))
	put("2026112107015900-1.md")
	require.NoError(t, l.look(dir))
	got, err := l.next(dir, anyone)
	require.NoError(t, err)
	require.Equal(t, "a.md", got)
	require.Equal(t, map[string][]string{"2026112107015900": {"2026112107015900-1.md"}}, l.chains)
	require.NoError(t, dir.Remove("a.md")) // by somebody else
	got, err = l.next(dir, anyone)
	require.NoError(t, err)
	require.Equal(t, "b.md", got)
}

// TestListingKnowsWhatCameDuringARun, and takes nothing for it that was overlooked before.
func TestListingKnowsWhatCameDuringARun(t *testing.T) {
	dir, put, lists := inboxOf(t, "a.md")
	var l listing
	require.NoError(t, l.look(dir))
	put("overlooked.md")
	l.noteOwnChange(dir, "")
	require.NoError(t, l.mark(dir))
	put("came.md")
	*lists = 0
	require.NoError(t, l.look(dir))
	require.Equal(t, 1, *lists)
	var names []string
	for _, p := range l.appeared {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"came.md"}, names)
}

// TestOverlookedIsDone: nothing waits for ever.
func TestOverlookedIsDone(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n"})
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		q.o.Tell = func(e Event) {
			if e.Result != nil && !e.Started && e.Result.Name == "a.md" {
				b.message("b.md", "two\n") // between the move and the next look at the directory
			}
		}
		res, err := b.all(q)
		require.Equal(t, []string{"a.md done", "b.md done"}, names2(res))
		return err
	}))
}

// TestListingOfALargeInbox: of a watched directory what came, went and took another's
// place is known without reading the names again; after too much of it they are read.
func TestListingOfALargeInbox(t *testing.T) {
	few := dear
	dear = 3
	t.Cleanup(func() { dear = few })
	base := t.TempDir()
	put := func(name string, at int64) {
		require.NoError(t, os.WriteFile(filepath.Join(base, name), nil, 0o644))
		require.NoError(t, os.Chtimes(filepath.Join(base, name), time.Unix(at, 0), time.Unix(at, 0)))
	}
	for at, name := range []string{"a.md", "b.md", "c.md", "d.md", "e.md"} {
		put(name, int64(at+10))
	}
	dir, err := disk.OS.OpenRoot(base)
	require.NoError(t, err)
	defer dir.Close()
	var l listing
	require.NoError(t, l.look(dir))
	if l.watch == nil {
		t.Skip("the names are read each time here")
	}
	defer l.unwatch()
	watched := l.watch
	order := func() (names []string) {
		l.stale = true
		require.NoError(t, l.look(dir))
		for _, p := range l.order {
			if l.known[p.Name] == p {
				names = append(names, p.Name)
			}
		}
		return names
	}
	require.Equal(t, []string{"a.md", "b.md", "c.md", "d.md", "e.md"}, order())
	require.NoError(t, dir.Remove("a.md"))
	put("2026112107015900-1.md", 20)
	put("first.md", 1)
	put("no message", 1)
	require.NoError(t, dir.Rename("c.md", dir, "z.md"))
	require.NoError(t, dir.Mkdir("dir.md", 0o755))
	require.Equal(t, []string{"first.md", "b.md", "z.md", "d.md", "e.md", "2026112107015900-1.md"}, order())
	require.Equal(t, []string{"2026112107015900-1.md"}, l.before("2026112107015900"))
	require.NoError(t, dir.Remove("2026112107015900-1.md"))
	require.NoError(t, dir.Remove("first.md"))
	got, err := l.next(dir, anyone)
	require.NoError(t, err)
	require.Equal(t, "b.md", got)
	require.Equal(t, []string{"b.md", "z.md", "d.md", "e.md"}, order())
	require.Empty(t, l.before("2026112107015900"))
	require.Same(t, watched, l.watch)

	watched.Close() // it knows nothing any more
	put("last.md", 30)
	require.Equal(t, []string{"b.md", "z.md", "d.md", "e.md", "last.md"}, order())
	require.NotSame(t, watched, l.watch)
}
