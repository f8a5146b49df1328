package disk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWatch: each way to change an entry is told at once, and that not all is known is
// told where the kernel's queue was too short.
func TestWatch(t *testing.T) {
	base := filepath.Join(t.TempDir(), "d")
	require.NoError(t, os.Mkdir(base, 0o755))
	path := func(name string) string { return filepath.Join(base, name) }
	for _, name := range []string{"written", "moved", "gone", "mode", "one", "other", "quiet"} {
		require.NoError(t, os.WriteFile(path(name), []byte(name), 0o644))
	}
	dir, err := OS.OpenRoot(base)
	require.NoError(t, err)
	defer dir.Close()
	w, err := NewWatch(dir, Entries)
	if err != nil {
		t.Skip(err)
	}
	defer func() { w.Close() }()
	changed := func() ([]string, bool) {
		names := map[string]bool{}
		all := w.Changed(func(name string) { names[name] = true })
		return slices.Sorted(maps.Keys(names)), all
	}
	for _, c := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return nil }, nil},
		{func() error { return os.WriteFile(path("written"), []byte("anew"), 0o644) }, []string{"written"}},
		{func() error { return os.Truncate(path("written"), 2) }, []string{"written"}},
		{func() error { return os.Rename(path("moved"), path("..")+"/out") }, []string{"moved"}},
		{func() error { return os.Rename(path("..")+"/out", path("moved")) }, []string{"moved"}},
		{func() error { return os.Remove(path("gone")) }, []string{"gone"}},
		{func() error { return os.Chmod(path("mode"), 0o600) }, []string{"mode"}},
		{func() error { return dir.Exchange("one", dir, "other") }, []string{"one", "other"}},
		{func() error { return os.Link(path("one"), path("link")) }, []string{"link"}},
		{func() error { return os.Symlink("one", path("sym")) }, []string{"sym"}},
		{func() error { return os.Mkdir(path("dir"), 0o755) }, []string{"dir"}},
		{func() error { return os.WriteFile(path("dir/below"), nil, 0o644) }, nil},
		{func() error { _, err := os.ReadFile(path("quiet")); return err }, nil},
	} {
		require.NoError(t, c.do())
		names, all := changed()
		require.True(t, all)
		require.Equal(t, c.want, names)
	}

	limit, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	require.NoError(t, err)
	var most int
	_, err = fmt.Sscan(string(limit), &most)
	require.NoError(t, err)
	if most > 1<<20 {
		t.Skip("the queue is too long to be filled here")
	}
	for i := range most + 2 { // the same event twice in a row would count once
		require.NoError(t, os.Chmod(path([]string{"one", "other"}[i%2]), 0o600))
	}
	_, all := changed()
	require.False(t, all, "more than %d events", most)

	require.False(t, (*Watch)(nil).Changed(nil), "no watch")
}
