package recorder

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/runner"
)

// keepsOut has a step fail that would put something into .decree/runs.
func (b *bench) keepsOut(st disktest.Step, cause error) disktest.Action {
	at, _ := strings.CutPrefix(st.Path, filepath.Join(b.root, ".decree")+"/")
	within := strings.HasPrefix(at, "runs/") && !slices.Contains([]string{"Sync", "FileSync", "Write", "WriteAt"}, st.Op) || strings.HasPrefix(at, "tmp/") && strings.Contains(at, "-file-") && st.Op == "Rename"
	if !st.Write || !within {
		return disktest.Action{}
	}
	return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: cause}}
}

// TestPutBackWithoutRunDirectory: a command fails, and after it nothing can be written to
// .decree/runs. The tree is put back, the record is closed, and the store has all its files,
// also while others free space there between the attempts.
func TestPutBackWithoutRunDirectory(t *testing.T) {
	for _, cause := range []error{syscall.EPERM, syscall.ENOSPC, syscall.EROFS, syscall.EXDEV} {
		for _, attempts := range []int{1, 3} {
			t.Run(cause.Error()+strings.Repeat(", again", attempts/2), func(t *testing.T) {
				s := &sweep{bench: newBench(t), t: t}
				s.write("f", "first\n")
				s.checkpoint(CheckpointOptions{})
				first := s.tree()
				shut, number := false, 0
				s.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
					if !shut {
						return disktest.Action{}
					}
					return s.keepsOut(st, cause)
				})
				var said []string
				r := s.commanded(nil)
				r.Reader.opt.Note = func(n string) { said = append(said, n) }
				r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
					if err := c.Starting(runner.Leader{PID: 1 << 30, PGID: 1 << 30}); err != nil {
						return runner.Result{}, err
					}
					number++
					shut = true
					s.write("f", strings.Repeat("x", number)+"\n")
					_, err := c.Log.Write([]byte(strings.Repeat("y", number)))
					o := s.outsider()
					_, gerr := o.Gc(context.Background())
					require.NoError(t, gerr)
					require.NoError(t, o.Close())
					return runner.Result{ExitCode: 3, Duration: time.Second}, err
				}
				o := command(s.bench)
				o.Attempts = attempts
				res, err := r.Run(context.Background(), o)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.Equal(t, 3, res.ExitCode)
				require.Equal(t, history.StatusReverted, res.Record.Status)
				require.Equal(t, first, s.tree())
				require.Equal(t, 1, strings.Count(strings.Join(said, "\n"), "could not be written to .decree/runs"), said)
				require.Contains(t, strings.Join(said, "\n"), cause.Error())

				s.disk = nil
				read := func(name string) string {
					return with(s.bench, func(r *Recorder) (string, error) {
						rc, err := r.History().OpenStored(res.Record.ID, name)
						require.NoError(t, err, name)
						defer rc.Close()
						data, err := io.ReadAll(rc)
						return string(data), err
					})
				}
				require.Equal(t, strings.Repeat("y", attempts), read(logFile))
				for n := range attempts {
					if attempts > 1 {
						at := []string{"attempts/1/", "attempts/2/", "attempts/3/"}[n]
						require.Contains(t, read(at+diffFile), "+"+strings.Repeat("x", n+1)+"\n")
						require.Equal(t, strings.Repeat("y", n+1), read(at+logFile))
					}
				}
				s.checkpoint(CheckpointOptions{}) // as any command that writes: what was kept out comes
				s.sound()
				s.apply(res.Record.ID)
				data, err := os.ReadFile(filepath.Join(s.root, "f"))
				require.NoError(t, err)
				require.Equal(t, strings.Repeat("x", attempts)+"\n", string(data))
			})
		}
	}
}

// TestPutBackTakesTheRoomOfItsDiff: on a disk that is full but for the plain changes.diff
// the tree is put back, and the diff is in the store alone.
func TestPutBackTakesTheRoomOfItsDiff(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("f", "first\n")
	s.checkpoint(CheckpointOptions{})
	first := s.tree()
	there := func() bool {
		list, err := filepath.Glob(filepath.Join(s.root, ".decree/runs/*", diffFile))
		require.NoError(t, err)
		return len(list) > 0
	}
	failed := false
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write && strings.Contains(st.Path, ".decree/tmp/txn-") && st.Op == "Write" && there() {
			failed = true
			return disktest.Action{Err: &fs.PathError{Op: "write", Path: st.Path, Err: syscall.ENOSPC}}
		}
		return disktest.Action{}
	}), func(r *Recorder) error { return s.execute(r, 3, shell("echo second >f; exit 3")) }))
	require.True(t, failed)
	require.Equal(t, first, s.tree())
	require.Contains(t, strings.Join(s.said, "\n"), "could not be written to .decree/runs: write /")
	s.doAsTold()
	require.True(t, there())
	s.sound()
	s.apply("last")
	require.NotEqual(t, first, s.tree())
}
