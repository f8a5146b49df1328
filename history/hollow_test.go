package history

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestHollowFilesOfARun: what a command made a hole of in its run's directory is neither
// stored nor read for the contents that it names.
func TestHollowFilesOfARun(t *testing.T) {
	w := newWorld(t)
	o := w.begin()
	id := o.Record.ID
	whole, hollow := tree.Sum([]byte("whole")), tree.Sum([]byte("hollow"))
	diff := func(sum tree.Hash) string {
		return fmt.Sprintf("# decree changes 1\n# decree: {\"path\":\"a\",\"op\":\"create\",\"new\":{\"mode\":\"644\",\"size\":5,\"sha256\":\"%s\"}}\n", sum)
	}
	require.NoError(t, w.ReplaceFile(id, "attempts/1/changes.diff", Bytes([]byte(diff(whole)))))
	require.NoError(t, w.ReplaceFile(id, "attempts/2/changes.diff", Bytes([]byte(diff(hollow)))))
	if err := os.Truncate(w.path("runs", id, "attempts/2/changes.diff"), 1<<30); err != nil {
		t.Skip(err)
	}
	named := map[tree.Hash]bool{}
	require.NoError(t, w.Closure(id, Once(), func(p *Part) error { named[p.Object] = true; return nil }))
	assert.True(t, named[whole])
	assert.False(t, named[hollow])

	var notes []string
	w.note = func(n string) { notes = append(notes, n) }
	files, err := w.StoreFiles(w.shelf, id)
	require.NoError(t, err)
	assert.Contains(t, files, "attempts/1/changes.diff")
	assert.NotContains(t, files, "attempts/2/changes.diff")
	assert.Equal(t, []string{".decree/runs/" + id + "/attempts/2/changes.diff is nearly all a hole: it was left there, and the store does not have it"}, notes)
	assert.FileExists(t, w.path("runs", id, "attempts/2/changes.diff"))
}
