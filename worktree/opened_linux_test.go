package worktree

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// TestOpenedWhileItIsMoved: a file that somebody opens for writing at any moment of a move, and writes to after it, has those bytes at its
// path, as all goes back where they would go to what was moved away; unless whoever asked for the move knows that it is open.
func TestOpenedWhileItIsMoved(t *testing.T) {
	for _, known := range []bool{false, true} {
		back, went := 0, 0
		for n, fired := 0, true; fired; n++ {
			fired = false
			r := newRig(t, files{"f": file("old")})
			var held *os.File
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				i := 0
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if i++; i-1 == n {
						fired = true
						held, _ = os.OpenFile(r.path("f"), os.O_RDWR, 0)
					}
					return disktest.Action{}
				}, dirs...)
			}
			journaled, journals, done := r.tree()
			_, err := journaled.Move(context.Background(), Plan{ID: "t1", Steps: steps(files{"f": file("old")}, files{"f": file("new")}), Open: map[tree.Path]bool{"f": known}}, r.vault, journals)
			done()
			r.wrap = nil
			if !fired {
				require.NoError(t, err)
				break
			}
			if err != nil {
				require.ErrorIs(t, err, ErrStranger)
				require.False(t, known)
				back++
			} else {
				went++
			}
			if held == nil {
				continue // nothing was there in that moment
			}
			_, err = held.WriteAt([]byte(theirs), 0)
			require.NoError(t, err)
			require.NoError(t, held.Close())
			if !known {
				data, err := os.ReadFile(r.path("f"))
				require.NoError(t, err)
				require.Equal(t, theirs, string(data), "step %d", n)
			}
		}
		require.Equal(t, !known, back > 0)
		require.Positive(t, went)
	}
}
