package recorder

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
)

// TestUnreadableOfAnEarlierAttempt: what the first of several attempts has left so that it cannot be read was readable before the run:
// nothing is said to be put back, nothing is moved, and once it can be read again the run is taken back.
func TestUnreadableOfAnEarlierAttempt(t *testing.T) {
	for name, leave := range map[string]func(b *bench) string{
		"a file": func(b *bench) string { b.write("a", "its own\n"); return "a" },
		"a directory": func(b *bench) string {
			require.NoError(b.t, os.MkdirAll(filepath.Join(b.root, "pg"), 0o755))
			b.write("pg/x", "x")
			return "pg"
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.disk = disktest.Inject(disk.OS, disktest.Rights)
			b.write("a", "a")
			b.write("b", "b")
			shut := ""
			open := func() { require.NoError(t, os.Chmod(shut, 0o755)) }
			r := b.commanded(func() int {
				if shut != "" {
					open()
				}
				b.write("b", b.read("b")+"b")
				shut = filepath.Join(b.root, leave(b))
				require.NoError(t, os.Chmod(shut, 0))
				return 1
			})
			o := command(b)
			o.Attempts = 3
			res, err := r.Run(context.Background(), o)
			require.ErrorContains(t, err, filepath.Base(shut)+" cannot be read", "%+v", res)
			require.ErrorContains(t, err, "its changes are in the tree as it left them")
			require.NotEqual(t, project.NotStarted, project.StateOf(err))
			require.NoError(t, r.Close())
			require.Equal(t, "bbb", b.read("b"))
			open()
			with(b, func(r *Recorder) (*MoveResult, error) { return r.Undo(context.Background(), UndoOptions{}) })
			require.Equal(t, "a", b.read("a"))
			require.Equal(t, "b", b.read("b"))
			require.NoDirExists(t, filepath.Join(b.root, "pg"))
			b.requireSound()
		})
	}
}

// TestUnreadableBeforeTheRun: a file that could not be read before a run, and that its command has made readable, is no file that the
// run has made: neither a put-back, whatever the attempts, nor an undo deletes it.
func TestUnreadableBeforeTheRun(t *testing.T) {
	for _, end := range []struct{ exit, attempts int }{{1, 1}, {1, 3}, {0, 1}} {
		for _, at := range []string{"secret", "d"} {
			b := newBench(t)
			b.disk = disktest.Inject(disk.OS, disktest.Rights)
			require.NoError(t, os.MkdirAll(filepath.Join(b.root, "d"), 0o755))
			for _, name := range []string{"a", "secret", "d/c"} {
				b.write(name, name)
			}
			shut := filepath.Join(b.root, at)
			require.NoError(t, os.Chmod(shut, 0))
			r := b.commanded(func() int {
				b.write("a", "changed")
				require.NoError(t, os.Chmod(shut, 0o755))
				return end.exit
			})
			o := command(b)
			o.Attempts, o.SkipUnreadable = end.attempts, true
			_, err := r.Run(context.Background(), o)
			require.NoError(t, err)
			require.NoError(t, r.Close())
			if end.exit == 0 {
				with(b, func(r *Recorder) (*MoveResult, error) { return r.Undo(context.Background(), UndoOptions{}) })
			}
			require.NoError(t, os.Chmod(shut, 0o755))
			for _, name := range []string{"a", "secret", "d/c"} {
				require.Equal(t, name, b.read(name), "%+v", end)
			}
			b.requireSound()
		}
	}
}
