package recorder

import (
	"context"
	"os"
	"path/filepath"
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

// TestAnErrorBeforeTheCommandSaysSo: between the open record and the command there
// is its log, and the story of earlier attempts. Without them nothing is executed,
// and nothing is recorded.
func TestAnErrorBeforeTheCommandSaysSo(t *testing.T) {
	for _, file := range []string{logFile, failureFile} {
		s := &sweep{bench: newBench(t), t: t, known: map[string]bool{}}
		s.known[s.run(500, 0, nil).Record.ID] = true
		before, fired := s.tree(), 0
		err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op != "Create" || !strings.HasSuffix(st.Path, file) {
				return disktest.Action{}
			}
			fired++
			return disktest.Action{Err: syscall.ENOSPC}
		}), func(r *Recorder) error {
			return s.execute(r, 0, func(o *RunOptions) { o.Attempts, o.Spent, o.Earlier = 3, 2, "Twice interrupted." })
		})
		require.Equal(t, 1, fired, file)
		require.ErrorContains(t, err, "the command was not started")
		require.NotContains(t, err.Error(), "has run")
		require.NoFileExists(t, s.mark())
		require.Equal(t, before, s.tree())
		require.Empty(t, s.fresh())
		s.sound()
	}
}

// TestAnswersTakeNoTime: what people take to answer is not how long the run took.
func TestAnswersTakeNoTime(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("a", "a\n")
	var res *RunResult
	err := s.try(disk.OS, func(r *Recorder) (err error) {
		real := r.execute
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			res, err := real(ctx, c)
			res.PTY = true
			return res, err
		}
		null, err := os.Open(os.DevNull)
		require.NoError(t, err)
		defer null.Close()
		res, err = r.Run(ctx(), RunOptions{
			Args: []string{"/bin/sh", "-c", "echo b >a; exit 7"}, Dir: s.root, Stdin: null, Env: os.Environ(),
			Confirm: func(p PutBack) Answer {
				require.Equal(t, 7, p.Last.ExitCode)
				require.Less(t, p.Took, time.Minute)
				s.clk = s.clk.Add(time.Hour)
				return Yes
			},
		})
		return err
	})
	require.NoError(t, err)
	require.True(t, res.PutBack)
	require.Less(t, res.Record.Duration, time.Minute)
	require.Greater(t, res.Record.Ended.Sub(res.Record.Started), time.Hour)
}

// TestSignalsWhileItIsPutBack: it comes to its end, and says so; no further attempt
// begins.
func TestSignalsWhileItIsPutBack(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		s := &sweep{bench: newBench(t), t: t}
		s.write("a", "a\n")
		signals := make(chan os.Signal)
		var res *RunResult
		sent := false
		err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op == "Exchange" && !sent {
				sent = true
				signals <- syscall.SIGINT
			}
			return disktest.Action{}
		}), func(r *Recorder) (err error) {
			null, err := os.Open(os.DevNull)
			require.NoError(t, err)
			defer null.Close()
			res, err = r.Run(ctx(), RunOptions{
				Args: []string{"/bin/sh", "-c", `echo >>"$DECREE_TEST_MARK"; echo b >a; exit 7`}, Dir: s.root, Stdin: null,
				Env: append(os.Environ(), markEnv+"="+s.mark()), Attempts: attempts, Signals: signals,
			})
			return err
		})
		require.NoError(t, err)
		require.True(t, sent)
		require.Contains(t, s.said, "finishing, 0 s: what the command changed is being put back")
		require.Equal(t, history.StatusReverted, res.Record.Status)
		require.Equal(t, "a\n", text(t, filepath.Join(s.root, "a")))
		require.Equal(t, "\n", text(t, s.mark()), "no second attempt")
		require.Equal(t, map[int]int{1: 7, 2: 130}[attempts], res.ExitCode)
		s.sound()
	}
}
