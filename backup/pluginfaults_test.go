package backup

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
)

// TestAPluginsFileThatCannotBeReadTakesNothingElse has one name of a plugin's files not be read, or vanish just when it is to be. The generation
// is made with all others, that plugin's too; what vanished is no failure.
func TestAPluginsFileThatCannotBeReadTakesNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		op, at string
		err    error
		failed string
		lacks  []string
	}{
		"a file that may not be read":      {"Open", "/w/tree/p/db", fs.ErrPermission, "plugin p: p/db cannot be read: permission denied", []string{"p/db"}},
		"a file on a disk that fails":      {"Read", "/w/tree/p/db", syscall.EIO, "plugin p: p/db cannot be read: input/output error", []string{"p/db"}},
		"a file that vanishes":             {"Open", "/w/tree/p/db", fs.ErrNotExist, "", []string{"p/db"}},
		"a directory that may not be read": {"OpenDir", "/w/tree/p/sub", fs.ErrPermission, "plugin p: p/sub cannot be read: permission denied", []string{"p/sub/x"}},
		"a directory that vanishes":        {"List", "/w/tree/p/sub", fs.ErrNotExist, "", []string{"p/sub/x"}},
		"a name that no target takes":      {"", "", nil, `plugin p: "plugins/p/p/.decree-upload-x"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("tree/.decree/config.yml", "backup:\n  plugins:\n    - {name: p, include: [p, p/db]}\n    - {name: q, include: [q]}\n")
			w.write("tree/.decreeignore", "/p\n/q\n") // the tree's own capture reads none of it
			for _, name := range []string{"p/a", "p/db", "p/sub/x", "p/z", "q"} {
				w.write("tree/"+name, name)
			}
			if c.op == "" {
				w.write("tree/p/.decree-upload-x", "x")
			}
			hits := 0
			o, done, err := w.options(disktest.Inject(w.m, func(s disktest.Step) disktest.Action {
				if s.Op != c.op || s.Path != c.at {
					return disktest.Action{}
				}
				hits++
				return disktest.Action{Err: &fs.PathError{Op: s.Op, Path: s.Path, Err: c.err}}
			}))
			require.NoError(t, err)
			defer done()
			out, err := Run(t.Context(), o, RunOptions{})
			require.NoError(t, err)
			require.Equal(t, c.op != "", hits > 0)

			var want []string
			for _, name := range []string{"p/p/a", "p/p/db", "p/p/sub/x", "p/p/z", "q/q"} {
				if !slices.Contains(c.lacks, strings.TrimPrefix(name, "p/")) {
					want = append(want, pluginsPart+name)
				}
			}
			var got []string
			for name := range maps.Keys(out.Manifest.Files) {
				if strings.HasPrefix(string(name), pluginsPart) {
					got = append(got, string(name))
				}
			}
			slices.Sort(got)
			require.Equal(t, want, got)
			if c.failed == "" {
				require.Empty(t, out.Failed)
				require.Equal(t, []string{"p", "q"}, out.Manifest.Counts.Plugins)
				return
			}
			require.Len(t, out.Failed, 1, fmt.Sprint(out.Failed))
			require.Contains(t, out.Failed[0], c.failed)
			require.Equal(t, []string{"q"}, out.Manifest.Counts.Plugins)
		})
	}
}
