// Package targettest says what every target must do: each has a test that runs it.
package targettest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// Run runs the tests of a target, each on a new and empty one that open gives.
func Run(t *testing.T, open func(t *testing.T) target.Target) {
	for _, c := range []struct {
		name string
		test func(*testing.T, target.Target)
	}{
		{"what is committed is read back", committed},
		{"a range is read", ranges},
		{"a name that must be new", news},
		{"what is not committed is not there", aborted},
		{"a listing", lists},
		{"a swap is conditional", swaps},
		{"of many swaps one wins", races},
		{"a deleted name", deletes},
		{"hostile names", names},
		{"a shelf", shelf},
		{"a lock", locks},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg := open(t)
			c.test(t, tg)
			require.NoError(t, tg.Close())
		})
	}
}

func put(t *testing.T, tg target.Target, name string, data []byte) {
	t.Helper()
	u, err := tg.Create(t.Context(), name)
	require.NoError(t, err)
	_, err = u.Write(data)
	require.NoError(t, err)
	require.NoError(t, u.Commit(t.Context(), name))
	require.NoError(t, u.Abort(), "after Commit it does nothing")
}

func get(t *testing.T, tg target.Target, name string, offset, length int64) string {
	t.Helper()
	r, _, err := tg.Open(t.Context(), name, offset, length)
	require.NoError(t, err)
	defer r.Close()
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(data)
}

func listed(t *testing.T, tg target.Target, prefix string) (names []string) {
	t.Helper()
	require.NoError(t, tg.List(t.Context(), prefix, func(o target.Object) error {
		names = append(names, o.Name)
		return nil
	}))
	return names
}

func committed(t *testing.T, tg target.Target) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 700_000) // more than a part of an upload
	put(t, tg, "p/packs/large.pack", large)
	put(t, tg, "p/packs/none.pack", nil)
	require.Equal(t, string(large), get(t, tg, "p/packs/large.pack", 0, -1))
	require.Empty(t, get(t, tg, "p/packs/none.pack", 0, -1))
	_, size, err := tg.Open(t.Context(), "p/packs/large.pack", 0, 1)
	require.NoError(t, err)
	require.EqualValues(t, len(large), size)
	_, _, err = tg.Open(t.Context(), "p/packs/missing.pack", 0, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = tg.Open(t.Context(), "q/missing.pack", 0, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func ranges(t *testing.T, tg target.Target) {
	put(t, tg, "a/b", []byte("0123456789"))
	require.Equal(t, "345", get(t, tg, "a/b", 3, 3))
	require.Equal(t, "789", get(t, tg, "a/b", 7, -1))
	require.Equal(t, "9", get(t, tg, "a/b", 9, 100))
}

func news(t *testing.T, tg target.Target) {
	put(t, tg, "a/b", []byte("first"))
	u, err := tg.Create(t.Context(), "a/b")
	require.NoError(t, err)
	_, err = u.Write([]byte("second"))
	require.NoError(t, err)
	require.ErrorIs(t, u.Commit(t.Context(), "a/b"), fs.ErrExist)
	require.Equal(t, "first", get(t, tg, "a/b", 0, -1))
}

func aborted(t *testing.T, tg target.Target) {
	u, err := tg.Create(t.Context(), "a/b")
	require.NoError(t, err)
	_, err = u.Write([]byte("half"))
	require.NoError(t, err)
	require.Empty(t, listed(t, tg, ""))
	require.NoError(t, u.Abort())
	require.NoError(t, tg.Tidy(t.Context(), "a"))
	require.Empty(t, listed(t, tg, ""))
	_, _, err = tg.Open(t.Context(), "a/b", 0, -1)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func lists(t *testing.T, tg target.Target) {
	require.Empty(t, listed(t, tg, "nothing/"))
	top, err := tg.Top(t.Context())
	require.NoError(t, err)
	require.Empty(t, top)
	for _, name := range []string{"p/packs/b", "p/packs/a", "p/packs-2/c", "p/m.json", "p2/m.json", "x"} {
		put(t, tg, name, []byte("12345"))
	}
	require.Equal(t, []string{"p/m.json", "p/packs-2/c", "p/packs/a", "p/packs/b", "p2/m.json", "x"}, listed(t, tg, ""))
	require.Equal(t, []string{"p/packs/a", "p/packs/b"}, listed(t, tg, "p/packs/"))
	require.Equal(t, []string{"p/packs-2/c", "p/packs/a", "p/packs/b"}, listed(t, tg, "p/packs"))
	require.NoError(t, tg.List(t.Context(), "x", func(o target.Object) error {
		require.EqualValues(t, 5, o.Size)
		return nil
	}))
	top, err = tg.Top(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"p", "p2"}, top)
	stop := errors.New("enough")
	require.ErrorIs(t, tg.List(t.Context(), "", func(target.Object) error { return stop }), stop)
}

func swaps(t *testing.T, tg target.Target) {
	data, none, err := tg.Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	require.Empty(t, data)
	require.Empty(t, none)
	first, err := tg.Swap(t.Context(), "p/manifest.json", []byte("one"), "")
	require.NoError(t, err)
	again, err := tg.Swap(t.Context(), "p/manifest.json", []byte("one"), "")
	require.NoError(t, err, "the same again is what a lost answer leads to")
	require.Equal(t, first, again)
	_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("two"), "")
	require.ErrorIs(t, err, target.ErrConflict)
	second, err := tg.Swap(t.Context(), "p/manifest.json", []byte("two"), first)
	require.NoError(t, err)
	_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("three"), first)
	require.ErrorIs(t, err, target.ErrConflict)
	data, now, err := tg.Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	require.Equal(t, "two", string(data))
	require.Equal(t, second, now)
	_, _, err = tg.Read(t.Context(), "p/manifest.json", 2)
	require.Error(t, err, "it is above the limit")
}

func races(t *testing.T, tg target.Target) {
	const writers = 8
	won := make(chan string, writers)
	for i := range writers {
		go func() {
			data := string(rune('a' + i))
			if _, err := tg.Swap(context.WithoutCancel(t.Context()), "p/m", []byte(data), ""); err != nil {
				data = ""
			}
			won <- data
		}()
	}
	winner := ""
	for range writers {
		if data := <-won; data != "" {
			require.Empty(t, winner, "two have won")
			winner = data
		}
	}
	require.Equal(t, winner, get(t, tg, "p/m", 0, -1))
}

func deletes(t *testing.T, tg target.Target) {
	put(t, tg, "a/b", []byte("x"))
	require.NoError(t, tg.Delete(t.Context(), "a/b"))
	require.NoError(t, tg.Delete(t.Context(), "a/b"))
	require.NoError(t, tg.Delete(t.Context(), "never/was"))
	require.Empty(t, listed(t, tg, ""))
	put(t, tg, "a/b", []byte("y"))
}

func names(t *testing.T, tg target.Target) {
	for _, name := range []string{"", ".", "..", "../x", "a/../b", "/etc/passwd", "a//b", "a/", "a\x00b", "a/" + target.Unfinished + "1"} {
		_, err := tg.Create(t.Context(), name)
		require.Error(t, err, name)
		_, _, err = tg.Open(t.Context(), name, 0, -1)
		require.Error(t, err, name)
		_, err = tg.Swap(t.Context(), name, []byte("x"), "")
		require.Error(t, err, name)
		require.Error(t, tg.Delete(t.Context(), name), name)
	}
}

func shelf(t *testing.T, tg target.Target) {
	s, ok := tg.(target.Shelf)
	if !ok {
		t.Skip("this target keeps no plain files")
	}
	for round := range 2 {
		require.NoError(t, s.Clear(t.Context(), "p/current.new"))
		require.NoError(t, s.Write(t.Context(), "p/current.new/records/one/run.json", bytes.NewReader([]byte{'0' + byte(round)})))
		if round > 0 {
			err := s.Link(t.Context(), "p/current/same", "p/current.new/same")
			if errors.Is(err, errors.ErrUnsupported) {
				err = s.Write(t.Context(), "p/current.new/same", bytes.NewReader([]byte("same")))
			}
			require.NoError(t, err)
		} else {
			require.NoError(t, s.Write(t.Context(), "p/current.new/same", bytes.NewReader([]byte("same"))))
		}
		require.NoError(t, s.Exchange(t.Context(), "p/current.new", "p/current"))
	}
	require.NoError(t, s.Clear(t.Context(), "p/current.new"))
	require.Equal(t, []string{"p/current/records/one/run.json", "p/current/same"}, listed(t, tg, ""))
	require.Equal(t, "1", get(t, tg, "p/current/records/one/run.json", 0, -1))
	require.Equal(t, "same", get(t, tg, "p/current/same", 0, -1))
}

func locks(t *testing.T, tg target.Target) {
	l, ok := tg.(target.Locker)
	if !ok {
		t.Skip("this target has no lock")
	}
	unlock, err := l.Lock(t.Context(), "p")
	require.NoError(t, err)
	_, err = l.Lock(t.Context(), "p")
	require.ErrorIs(t, err, target.ErrLocked)
	put(t, tg, "p/x", []byte("x"))
	_, err = tg.Swap(t.Context(), "p/m", []byte("x"), "")
	require.NoError(t, err, "who has the lock may swap")
	require.Equal(t, []string{"p/m", "p/x"}, listed(t, tg, ""))
	require.NoError(t, unlock())
	unlock, err = l.Lock(t.Context(), "p")
	require.NoError(t, err)
	require.NoError(t, unlock())
}
