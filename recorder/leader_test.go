//go:build linux || darwin

package recorder

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestNoCommandWithoutItsLeader: a command whose process group could not be noted, or
// at whose note decree died, was never executed. So a recovery that finds none need
// not ask whether it still runs.
func TestNoCommandWithoutItsLeader(t *testing.T) {
	fault := map[string]disktest.Action{"error": {Err: syscall.ENOSPC}, "death": {Die: true}}
	for name, action := range fault {
		t.Run(name, func(t *testing.T) {
			s := &sweep{bench: newBench(t), t: t}
			s.run(500, 0, nil)
			before := s.tree()
			for n := 0; ; n++ {
				step, fired := 0, false
				err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
					if !strings.Contains(st.Path, ".leader") || exists(s.mark()) {
						return disktest.Action{}
					}
					step++
					if step != n+1 {
						return disktest.Action{}
					}
					fired = true
					return action
				}), func(r *Recorder) error { return s.execute(r, 0, nil) })
				if !fired {
					require.NoError(t, err)
					require.FileExists(t, s.mark())
					require.Greater(t, n, 1, "it is made, filled and put in its place")
					return
				}
				require.ErrorContains(t, err, "the command was not started")
				require.NoFileExists(t, s.mark())
				with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
				require.Equal(t, before, s.tree())
				s.sound()
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
