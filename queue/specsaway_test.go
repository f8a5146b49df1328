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

// TestAnotherSpecOfItsName: a spec that comes under the name of one that was done, and whose routine has put the directory away, is done where its
// text is another one.
func TestAnotherSpecOfItsName(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `cat "$spec_file" >>"$RAN"; mkdir -p archive; mv "$DECREE_ROOT/specs" "archive/$DECREE_RUN_ID"` + "\n",
		"specs/a.spec.md":             "one\n",
	})
	require.Len(t, b.process(), 1)
	require.NoError(t, os.Mkdir(filepath.Join(b.root, "specs"), 0o755))
	require.Empty(t, b.process())
	require.NoFileExists(t, filepath.Join(b.root, "specs/processed-spec.md"))
	b.put(map[string]string{"specs/a.spec.md": "two\n"})
	require.Len(t, b.process(), 1)
	b.put(map[string]string{"specs/a.spec.md": "two\n"})
	require.Empty(t, b.process())
	require.Equal(t, []string{"one", "two"}, b.ran())
	require.Equal(t, "a.spec.md\n", b.read("specs/processed-spec.md"))
}

// TestOlderListComesBack: specs whose directory a message's routine has put away, and of which an older list comes back, as with another branch, are
// not done once more.
func TestOlderListComesBack(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n 1 "${spec_file:-$message_file}" >>"$RAN"; tail -n 1 "$RAN" | grep -q three || exit 0; mv specs "$RAN.away"` + "\n",
		"specs/a.spec.md":             "one\n",
		"specs/b.spec.md":             "two\n",
	})
	require.Len(t, b.process(), 2)
	b.message("away.md", "three\n")
	require.Len(t, b.process(), 1)
	require.Contains(t, strings.Join(b.said, "\n"), "decree remembers that these are processed: a.spec.md, b.spec.md")
	require.NoError(t, os.Rename(filepath.Join(b.base, "ran.away"), filepath.Join(b.root, "specs")))
	b.put(map[string]string{"specs/processed-spec.md": "a.spec.md\n"})
	require.Empty(t, b.process())
	require.Equal(t, "a.spec.md\nb.spec.md\n", b.read("specs/processed-spec.md"))
	require.Len(t, b.ran(), 3)
}

// TestSpecsOfTwoPlans: specs of one name, of plans that are put away in turn, are done once each, in whatever order the plans come back.
func TestSpecsOfTwoPlans(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `plan=$(cat "$spec_file"); echo "$plan" >>"$RAN"; [ "$plan" = stays ] || mv "$DECREE_ROOT/specs" "$RAN.$plan"` + "\n",
	})
	for _, plan := range []string{"one", "two", "stays"} {
		b.put(map[string]string{"specs/a.spec.md": plan + "\n"})
		require.Len(t, b.process(), 1)
	}
	for _, plan := range []string{"one", "two"} {
		require.NoError(t, os.RemoveAll(filepath.Join(b.root, "specs")))
		require.NoError(t, os.Rename(filepath.Join(b.base, "ran."+plan), filepath.Join(b.root, "specs")))
		require.Empty(t, b.process(), plan)
		require.Equal(t, "a.spec.md\n", b.read("specs/processed-spec.md"), plan)
	}
	require.Equal(t, []string{"one", "two", "stays"}, b.ran())
}

// TestLinkInThePlaceOfSpecs: where a routine leaves a link or a file in the place of the directory of specs, the queue goes on, what is done stays done,
// and what a person then puts there is done.
func TestLinkInThePlaceOfSpecs(t *testing.T) {
	for _, leaves := range []string{"ln -s archive specs", ": >specs"} {
		b := newBench(t, map[string]string{
			".decree/routines/develop.sh": `tail -n 1 "${spec_file:-$message_file}" >>"$RAN"; tail -n 1 "$RAN" | grep -q three || exit 0; mv specs archive; ` + leaves + "\n",
			"specs/a.spec.md":             "one\n",
		})
		require.Len(t, b.process(), 1)
		b.put(map[string]string{"specs/b.spec.md": "three\n"})
		require.Len(t, b.process(), 1, leaves)
		b.message("next.md", "four\n")
		require.Len(t, b.process(), 1, leaves)
		require.NoError(t, os.Remove(filepath.Join(b.root, "specs")))
		require.NoError(t, os.Rename(filepath.Join(b.root, "archive"), filepath.Join(b.root, "specs")))
		require.NoError(t, os.Remove(filepath.Join(b.root, "specs/processed-spec.md")))
		b.put(map[string]string{"specs/b.spec.md": "another\n"})
		require.Len(t, b.process(), 1, leaves)
		require.Equal(t, []string{"one", "three", "four", "another"}, b.ran(), leaves)
		require.Equal(t, "a.spec.md\nb.spec.md\n", b.read("specs/processed-spec.md"), leaves)
	}
}
