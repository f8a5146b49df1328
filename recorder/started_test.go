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

// TestIgnoredFileOverTheLogOfAKilledRun: what the command moved over its own routine.log is
// in .decree/aside after the recovery, and named. A log that decree has written is not.
func TestIgnoredFileOverTheLogOfAKilledRun(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   string
	}{
		"moved over":      {`mv secret "$DECREE_RUN_DIR/routine.log"`, "mine\n"},
		"deleted":         {`rm "$DECREE_RUN_DIR/routine.log"`, ""},
		"its own":         {`echo said`, ""},
		"the second time": {`test $DECREE_ATTEMPT = 2 || rm "$DECREE_RUN_DIR/routine.log"; exit 1`, ""},
	} {
		for _, after := range []int{1, 40, 160} {
			s := &sweep{bench: newBench(t), t: t}
			s.write(".gitignore", "secret\n")
			s.write("secret", "mine\n")
			s.checkpoint(CheckpointOptions{})
			n := 0
			err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
				if _, err := os.Stat(s.mark()); err == nil {
					n++
				}
				return disktest.Action{Die: n == after}
			}), func(r *Recorder) error {
				return s.execute(r, 3, func(o *RunOptions) {
					o.Args, o.Attempts = []string{"/bin/sh", "-c", "echo >>" + s.mark() + "; " + c.script}, 3
				})
			})
			require.ErrorIs(t, err, disktest.ErrDead, "%s, %d", name, after)
			s.said = nil
			with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
			aside, err := filepath.Glob(filepath.Join(s.root, ".decree/aside/*"))
			require.NoError(t, err)
			found := ""
			for _, at := range aside {
				data, err := os.ReadFile(at)
				require.NoError(t, err)
				found += string(data)
			}
			if _, err := os.Stat(filepath.Join(s.root, "secret")); err != nil || c.want == "" {
				require.Equal(t, c.want, found, "%s, %d: %v", name, after, aside)
			}
			s.sound()
		}
	}
}

// TestKilledRunWithAFileForItsDirectory: what stands in the place of the run's directory when
// decree dies stops neither gc nor the recovery, and is put aside.
func TestKilledRunWithAFileForItsDirectory(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("f", "first\n")
	s.checkpoint(CheckpointOptions{})
	first := s.tree()
	err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		_, err := os.Stat(s.mark())
		return disktest.Action{Die: err == nil}
	}), func(r *Recorder) error {
		return s.execute(r, 3, shell(`echo second >f; rm -r "$DECREE_RUN_DIR"; echo mine >"$DECREE_RUN_DIR"; echo >>"$DECREE_TEST_MARK"; exit 3`))
	})
	require.ErrorIs(t, err, disktest.ErrDead)
	with(s.bench, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
	with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
	s.sound()
	list, err := os.ReadDir(filepath.Join(s.root, ".decree/aside"))
	require.NoError(t, err)
	require.Len(t, list, 1)
	s.revert("last")
	require.Equal(t, first, s.tree())
}
