//go:build unix

package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestWrittenBesideAFullInbox: where so many messages wait that their names are not noted, what an isolated routine writes under the
// name of another one that came meanwhile is done too; what waited before stays as it was, whatever the routine made of it.
func TestWrittenBesideAFullInbox(t *testing.T) {
	needsLayers(t)
	defer func(most int) { maxBefore = most }(maxBefore)
	maxBefore = 2
	b := newBench(t, isolatedFiles(told+"[ \"$text\" = go ] || exit 0\ntell send\ncd .decree/inbox\n"+
		"echo more >>b.md; rm c.md; echo other >c.md; touch d.md; echo mine >came.md; echo again >gone.md; echo same >sent.md\n",
		map[string]string{".decree/inbox/b.md": "b\n", ".decree/inbox/c.md": "c\n", ".decree/inbox/d.md": "d\n"}))
	b.settle()
	person, err := b.open(disk.OS)
	require.NoError(t, err)
	defer person.Close()
	b.told(map[string]func(){"send": func() {
		for name, text := range map[string]string{"came.md": "theirs\n", "gone.md": "not wanted\n", "sent.md": "same\n"} {
			require.NoError(t, person.Project().Drop(name, []byte(text)))
		}
		_, err := Cancel(person, "h", "gone.md", "not wanted")
		require.NoError(t, err)
	}})
	b.process()
	require.ElementsMatch(t, []string{"go", "b", "c", "d", "theirs", "mine", "again", "same"}, b.ran(), strings.Join(b.said, "\n"))
	require.Equal(t, []string{"gone.error.txt", "gone.md"}, b.dead())
}
