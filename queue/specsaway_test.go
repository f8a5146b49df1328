//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSpecsAway: a spec whose routine leaves the directory of specs away, as by 'git stash -u', is marked when that is back, and not done once more.
func TestSpecsAway(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `echo "$spec_file" >>"$RAN"; mv "$DECREE_ROOT/specs" "$RAN.away"` + "\n",
		"specs/a.spec.md":             "one\n",
	})
	require.Len(t, b.process(), 1)
	require.Contains(t, strings.Join(b.said, "\n"), "specs/a.spec.md is done, and not yet marked in processed-spec.md")
	require.Empty(t, b.process())
	require.NoError(t, os.Rename(filepath.Join(b.base, "ran.away"), filepath.Join(b.root, "specs")))
	require.Empty(t, b.process())
	require.Len(t, b.ran(), 1)
	require.Equal(t, "a.spec.md\n", b.read("specs/processed-spec.md"))
}

// TestSpecLink: a link that has the name of a spec is not done, and is named once.
func TestSpecLink(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `echo "$spec_file" >>"$RAN"` + "\n",
		"specs/a.spec.md":             "one\n",
		"text.md":                     "two\n",
	})
	require.NoError(t, os.Symlink("../text.md", filepath.Join(b.root, "specs/b.spec.md")))
	require.Len(t, b.process(), 1)
	require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), "specs/b.spec.md is not done: a spec is a regular file"))
}
