package history

import (
	"bytes"
	"context"
	"errors"
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
	files, err := w.StoreFiles(t.Context(), w.shelf, id, 0)
	require.NoError(t, err)
	assert.Contains(t, files, "attempts/1/changes.diff")
	assert.NotContains(t, files, "attempts/2/changes.diff")
	assert.Equal(t, []string{".decree/runs/" + id + "/attempts/2/changes.diff is nearly all a hole: it was left there, and the store does not have it"}, notes)
	assert.FileExists(t, w.path("runs", id, "attempts/2/changes.diff"))
}

// TestLargeFilesOfARun: what a command leaves in its run's directory is not read to its end
// where it is above the limit, or a signal comes; decree's own diff is stored all the same.
func TestLargeFilesOfARun(t *testing.T) {
	w := newWorld(t)
	id := w.begin().Record.ID
	large := bytes.Repeat([]byte("large\n"), hollowFrom/6+1)
	for _, name := range []string{"changes.diff", "mine"} {
		require.NoError(t, w.ReplaceFile(id, name, Bytes(large)))
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("stopped by SIGINT"))
	for why, at := range map[string]struct {
		ctx  context.Context
		most int64
	}{"was being stored when a signal stopped that": {stopped, 0}, "is larger than capture.max_file": {t.Context(), hollowFrom}} {
		var notes []string
		w.left, w.note = nil, func(n string) { notes = append(notes, n) }
		files, err := w.StoreFiles(at.ctx, w.shelf, id, at.most)
		require.NoError(t, err)
		assert.Contains(t, files, "changes.diff")
		assert.NotContains(t, files, "mine")
		assert.Equal(t, []string{".decree/runs/" + id + "/mine " + why + ": it was left there, and the store does not have it"}, notes)
	}
	files, err := w.StoreFiles(t.Context(), w.shelf, id, 0)
	require.NoError(t, err)
	assert.Contains(t, files, "mine")
}
