//go:build unix

package queue

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestWorkIsFlushedBeforeItCounts: what a message's routine has written in the tree and into
// its outbox is durable before the record that has the message done; the names too.
func TestWorkIsFlushedBeforeItCounts(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `mkdir -p dir/sub; echo 1 >dir/sub/new; rm -f gone/file; ln -s x link; case "$message_id" in *-0) echo next >"$DECREE_OUTBOX/next.md";; esac` + "\n",
		".decree/inbox/a.md":          "one\n", "gone/file": "x\n",
	})
	var flushed []string
	recorded := false
	require.NoError(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		at := strings.TrimPrefix(st.Path, b.root)
		switch {
		case recorded:
		case st.Op == "FileSync" || st.Op == "Sync":
			flushed = append(flushed, st.Op+" "+at)
		case st.Op == "WriteAt" && filepath.Base(st.Path) == "records.jsonl":
			recorded = true
		}
		return disktest.Action{}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	require.True(t, recorded)
	require.Len(t, b.done(), 2)
	for _, want := range []string{"FileSync /dir/sub/new", "Sync /dir/sub", "Sync /dir", "Sync /gone"} {
		require.Contains(t, flushed, want)
	}
	outbox := 0
	for _, f := range flushed {
		if strings.HasSuffix(f, "/outbox/next.md") || strings.HasSuffix(f, "/outbox") {
			outbox++
		}
	}
	require.GreaterOrEqual(t, outbox, 2, "%q", flushed)
}
