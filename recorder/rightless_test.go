package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestRightsOfARecordsDirectory: a directory of a record whose rights a command has taken away gets them back from the next
// command that writes, and from doctor --repair: no undo is refused for it.
func TestRightsOfARecordsDirectory(t *testing.T) {
	for _, mode := range []os.FileMode{0, 0o100, 0o300, 0o400} {
		for name, do := range map[string]func(*bench){
			"undo": func(*bench) {},
			"doctor --repair": func(b *bench) {
				for _, c := range with(b, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) }) {
					require.True(b.t, c.Level == OK || c.Level == Info || c.Fixed, "%+v", c)
				}
			},
		} {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				b := newBench(t)
				b.disk = disktest.Inject(disk.OS, disktest.Rights)
				b.write("a", "a")
				b.checkpoint(CheckpointOptions{})
				r := b.commanded(func() int {
					b.write("a", "b")
					runs, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*"))
					require.NoError(t, err)
					require.Len(t, runs, 2)
					for _, run := range runs {
						require.NoError(t, os.Chmod(run, mode))
					}
					return 0
				})
				_, err := r.Run(context.Background(), command(b))
				require.NoError(t, err)
				require.NoError(t, r.Close())
				do(b)
				with(b, func(r *Recorder) (*MoveResult, error) { return r.Undo(context.Background(), UndoOptions{}) })
				require.Equal(t, "a", b.read("a"))
				b.requireSound()
			})
		}
	}
}
