package recorder

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/runner"
)

// TestRewrittenFilesAreFlushed where they have the bytes that they had: no put-back writes them, and nobody else would
// know that a power loss has emptied them.
func TestRewrittenFilesAreFlushed(t *testing.T) {
	inPlace := func(t *testing.T, d disk.Dir, name, data string) {
		f, err := d.OpenWrite(name, 0o644)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(0))
		_, err = io.WriteString(f, data)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	replaced := func(t *testing.T, d disk.Dir, name, data string) {
		require.NoError(t, d.Remove(name))
		f, err := d.Create(name, 0o644)
		require.NoError(t, err)
		_, err = io.WriteString(f, data)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	for _, c := range []struct {
		name   string
		write  func(t *testing.T, d disk.Dir, name, data string)
		writes []string // what becomes of the file, by attempt; "" is not touched
		exit   int
	}{
		{"in place, put back", inPlace, []string{"same\n"}, 1},
		{"replaced, put back", replaced, []string{"same\n"}, 1},
		{"replaced, succeeded", replaced, []string{"same\n"}, 0},
		{"changed, and changed back by the next attempt", replaced, []string{"other\n", "same\n", ""}, 1},
		{"in the first of several attempts", replaced, []string{"same\n", "", ""}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := newLossy(t)
			l.write(map[string]string{"sub/f": "same\n", "g": "g\n"})
			l.with(func(r *Recorder) error { _, err := r.Checkpoint(ctx(), CheckpointOptions{}); return err })
			l.with(func(r *Recorder) error {
				attempt := 0
				r.execute = func(_ context.Context, cmd runner.Command) (res runner.Result, err error) {
					err = cmd.Starting(runner.Leader{PID: 4711, PGID: 4711, BootID: "another boot"})
					sub, serr := l.root().OpenDir("sub")
					require.NoError(t, serr)
					l.write(map[string]string{"h": "made\n"}) // which flushes all
					if data := c.writes[attempt]; data != "" {
						c.write(t, sub, "f", data)
					}
					attempt++
					return runner.Result{ExitCode: c.exit}, err
				}
				res, err := r.Run(ctx(), RunOptions{Args: []string{"x"}, Dir: "/w/tree", Attempts: len(c.writes)})
				require.Equal(t, c.exit, res.ExitCode, res.Notes)
				require.Equal(t, c.exit != 0, res.PutBack)
				return err
			})
			rng := rand.New(rand.NewPCG(3, 4))
			for range 50 {
				after := &lossy{t: t, m: l.m.Crash(rng)}
				require.Equal(t, "644 same\n", after.state()["sub/f"])
			}
		})
	}
}
