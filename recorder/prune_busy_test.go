package recorder

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestPruneOfADirectoryThatStays: a run directory that cannot be removed, as something is mounted in it, is told; the
// record is gone, and neither prune nor what comes later ends with it.
func TestPruneOfADirectoryThatStays(t *testing.T) {
	for _, cause := range []error{syscall.EBUSY, syscall.EXDEV, syscall.EROFS, syscall.ENOSPC} {
		b := newBench(t)
		for i := range 3 {
			b.write("a", noise(i, 100))
			b.checkpoint(CheckpointOptions{})
		}
		ids := b.recordIDs()
		b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op == "Rename" && strings.HasSuffix(filepath.Dir(st.Path), "/.decree/runs") {
				return disktest.Action{Err: &fs.PathError{Op: "rename", Path: st.Path, Err: cause}}
			}
			return disktest.Action{}
		})
		r := b.open()
		var notes []string
		r.Reader.opt.Note = func(note string) { notes = append(notes, note) }
		_, err := r.Prune(context.Background(), PruneOptions{Last: map[string]int{"manual": 1}})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Len(t, b.recordIDs(), 1)
		require.Contains(t, strings.Join(notes, "\n"), "record "+ids[0]+" is removed, but its directory stays")
		b.write("a", "more")
		b.checkpoint(CheckpointOptions{})
	}
}
