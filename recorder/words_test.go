package recorder

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
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
