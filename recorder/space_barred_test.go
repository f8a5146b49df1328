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

// TestSizesWithoutWhatIsBarred: a record's directory that another user owns costs its
// own size, and neither status nor du nor prune; it is named once.
func TestSizesWithoutWhatIsBarred(t *testing.T) {
	for _, op := range []string{"OpenDir", "List", "Stat"} {
		t.Run(op, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "a")
			one := b.checkpoint(CheckpointOptions{}).ID
			b.write("a", "other")
			two := b.checkpoint(CheckpointOptions{}).ID
			r := b.open()
			defer func() { require.NoError(t, r.Close()) }()
			var notes []string
			r.Reader.opt.Note = func(text string) { notes = append(notes, text) }
			whole := r.project.Decree
			r.project.Decree = disktest.InjectDir(whole, func(st disktest.Step) disktest.Action {
				if at := st.Path; st.Op == op && strings.Contains(at, one) {
					return disktest.Action{Err: &fs.PathError{Op: "open", Path: at, Err: syscall.EACCES}}
				}
				return disktest.Action{}
			})
			sizes, err := r.runSizes()
			require.NoError(t, err)
			require.Zero(t, sizes[one])
			require.NotZero(t, sizes[two])
			_, err = r.Status(context.Background())
			require.NoError(t, err)
			_, err = r.Usage()
			require.NoError(t, err)
			named := 0
			for _, n := range notes {
				if strings.Contains(n, filepath.Join(b.root, ".decree/runs", one)) && strings.Contains(n, "not counted") {
					named++
				}
			}
			require.Equal(t, 1, named, notes)
		})
	}
}

// TestPruneBesideWhatIsBarred: a directory that may not be moved away stops neither
// prune nor the writing commands after it.
func TestPruneBesideWhatIsBarred(t *testing.T) {
	b := newBench(t)
	var ids []string
	for _, text := range []string{"1", "2", "3"} {
		b.write("a", text)
		ids = append(ids, b.checkpoint(CheckpointOptions{}).ID)
	}
	b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write && strings.HasSuffix(st.Path, ids[0]) {
			return disktest.Action{Err: &fs.PathError{Op: "rename", Path: st.Path, Err: syscall.EACCES}}
		}
		return disktest.Action{}
	})
	b.prune(PruneOptions{Last: map[string]int{"manual": 1}})
	require.Equal(t, ids[2:], b.recordIDs())
	require.DirExists(t, filepath.Join(b.root, ".decree/runs", ids[0]))
	require.NoDirExists(t, filepath.Join(b.root, ".decree/runs", ids[1]))
	b.write("a", "4")
	b.checkpoint(CheckpointOptions{})
	b.prune(PruneOptions{Last: map[string]int{"manual": 1}})
	require.Len(t, b.recordIDs(), 1)
}
