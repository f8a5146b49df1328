package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// shell runs a script as the command.
func shell(script string) func(*RunOptions) {
	return func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", script} }
}

// rootBench is a small tree with a record and a config of its own.
func rootBench(t *testing.T) (*sweep, map[string]string) {
	s := &sweep{bench: newBench(t), t: t}
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "d", "f"), []byte("first\n"), 0o600))
	require.NoError(t, os.Chmod(s.root, 0o750))
	s.run(0, 0, shell("echo second >g"))
	require.NoError(t, os.WriteFile(filepath.Join(s.root, ".decree", "config.yml"), []byte("inline_text: 1000\n"), 0o644))
	return s, s.tree()
}

// again says that the project is whole after the root was another directory.
func again(t *testing.T, s *sweep, records int) {
	t.Helper()
	state := s.tree()
	s.sound()
	all := with(s.bench, func(r *Recorder) (*history.Listing, error) { return r.History().List(history.ListOptions{}) })
	require.Len(t, all.Records, records)
	data, err := os.ReadFile(filepath.Join(s.root, ".decree", "config.yml"))
	require.NoError(t, err)
	require.Equal(t, "inline_text: 1000\n", string(data))
	res := s.run(0, 0, shell("echo third >h"))
	s.revert(res.Record.ID)
	require.Equal(t, state, s.tree())
}

// runTelling is run where notes are expected.
func runTelling(s *sweep, script string) *RunResult {
	s.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(s.t, err)
	defer null.Close()
	return with(s.bench, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", script}, Dir: s.root, Stdin: null, Env: os.Environ()})
	})
}

func TestCommandDeletesItsRoot(t *testing.T) {
	const anew = `rm -rf "$DECREE_ROOT"; mkdir "$DECREE_ROOT"; echo new >"$DECREE_ROOT/x"`
	t.Run("and makes it anew, then fails", func(t *testing.T) {
		s, before := rootBench(t)
		res := runTelling(s, anew+"; exit 1")
		require.Equal(t, 1, res.ExitCode, res.Notes)
		require.Contains(t, strings.Join(res.Notes, "\n"), "made it again")
		require.Equal(t, history.StatusReverted, res.Record.Status)
		require.Equal(t, before, s.tree())
		again(t, s, 2)
		s.apply(res.Record.ID)
		require.Len(t, s.tree(), 1, "x alone")
	})
	t.Run("and makes it anew", func(t *testing.T) {
		s, before := rootBench(t)
		res := runTelling(s, anew)
		require.Equal(t, 0, res.ExitCode, res.Notes)
		require.Len(t, s.tree(), 1, "x alone")
		s.revert(res.Record.ID)
		require.Equal(t, before, s.tree())
		again(t, s, 3)
	})
	for _, exit := range []string{"0", "1"} {
		t.Run("for good, exit "+exit, func(t *testing.T) {
			s, before := rootBench(t)
			res := runTelling(s, `rm -rf "$DECREE_ROOT"; exit `+exit)
			require.Contains(t, strings.Join(res.Notes, "\n"), "made again")
			info, err := os.Stat(s.root)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o750), info.Mode().Perm())
			records := 2
			if exit == "0" {
				require.Empty(t, s.tree())
				s.revert(res.Record.ID)
				records++
			}
			require.Equal(t, before, s.tree())
			again(t, s, records)
		})
	}
	t.Run("and decree dies", func(t *testing.T) {
		s, before := rootBench(t)
		for _, kind := range []string{"OpenRoot", "TryLock", "Write store.json", "Mkdir .decree", "WriteAt records.jsonl", "RenameNew"} {
			fired := false
			_ = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if _, err := os.Stat(s.mark()); err == nil && !fired && strings.HasPrefix(st.Op+" "+filepath.Base(st.Path), kind) {
					fired = true
					return disktest.Action{Die: true}
				}
				return disktest.Action{}
			}), func(r *Recorder) error { return s.execute(r, 1, shell("echo >"+s.mark()+";"+anew+"; exit 1")) })
			require.True(t, fired, kind)
			require.NoError(t, os.Remove(s.mark()))
			with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
			s.sound()
			if len(s.tree()) == 1 {
				s.revert("last")
			}
			require.Equal(t, before, s.tree(), kind)
		}
	})
}

func TestCommandMovesItsRootAway(t *testing.T) {
	s, before := rootBench(t)
	res := runTelling(s, `mv "$DECREE_ROOT" "$DECREE_ROOT.away"; mkdir "$DECREE_ROOT"; echo other >"$DECREE_ROOT/x"; cd "$DECREE_ROOT.away"; echo more >>g; exit 1`)
	require.Equal(t, 1, res.ExitCode)
	require.Contains(t, strings.Join(res.Notes, "\n"), "moved the root away from "+s.root)
	require.Len(t, s.tree(), 1, "what another has put there is not touched")
	s.root += ".away"
	require.Equal(t, before, s.tree())
	again(t, s, 2)
}
