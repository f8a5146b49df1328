package recorder

import (
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestMessagesOfARoutineAreFlushed, with the work in the tree, before the record counts: the message is done for
// good then, and after a power loss what it had put into the inbox would be empty.
func TestMessagesOfARoutineAreFlushed(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	inbox := filepath.Join(s.root, ".decree", "inbox")
	require.NoError(t, os.MkdirAll(inbox, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(inbox, "one.md"), []byte("a task\n"), 0o644))
	flushed, recorded := map[string]bool{}, false
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		switch {
		case (st.Op == "FileSync" || st.Op == "Sync") && !recorded:
			flushed[st.Path] = true
		case st.Op == "WriteAt" && path.Base(st.Path) == "records.jsonl":
			recorded = true
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		return s.execute(r, 0, func(o *RunOptions) {
			o.Task, o.Args = "inbox/one.md", []string{"/bin/sh", "-c", "echo next >.decree/inbox/next.md; echo work >work"}
		})
	}))
	require.True(t, recorded)
	for _, at := range []string{filepath.Join(s.root, "work"), filepath.Join(inbox, "next.md"), inbox} {
		require.Contains(t, flushed, at)
	}
}
