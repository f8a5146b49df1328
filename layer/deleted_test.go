//go:build linux || darwin

package layer_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer"
)

// TestDeleted: the names that a run deleted in a directory, renamed away, or left out of one that it made anew; what came meanwhile is
// none in a clone.
func TestDeleted(t *testing.T) {
	for _, how := range mechanisms {
		for does, want := range map[string][]string{
			"rm d/a; mv d/b d/n; rm e/a": {"a", "b"},
			"rm -rf d; mkdir d; >d/a":    {"b", "c"},
			"rm -rf d":                   nil,
			">d/n":                       nil,
		} {
			s := newSite(t)
			sh(t, s.root, "mkdir d e; echo a >d/a; echo b >d/b; echo c >d/c; echo a >e/a")
			l := s.make("one", how)
			s.run(l, does)
			live, err := disk.OS.OpenRoot(filepath.Join(s.root, "d"))
			require.NoError(t, err)
			defer live.Close()
			if how == layer.Clone {
				sh(t, s.root, "echo came >d/z")
			}
			got, err := l.Deleted("d", live)
			require.NoError(t, err)
			slices.Sort(got)
			require.Equal(t, want, got, "%s: %s", how, does)
		}
	}
}
