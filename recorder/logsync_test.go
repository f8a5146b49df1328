package recorder

import (
	"io/fs"
	"path"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestLogNotFlushed: whenever the disk refuses to flush routine.log, the run says so.
// A second flush of the same file may succeed although what the first one was to
// write is lost, so it proves nothing.
func TestLogNotFlushed(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	for n := 0; ; n++ {
		step, fired := 0, ""
		s.said = nil
		err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op != "FileSync" || path.Base(st.Path) != logFile {
				return disktest.Action{}
			}
			if step++; step != n+1 {
				return disktest.Action{}
			}
			fired = st.Path
			return disktest.Action{Err: &fs.PathError{Op: "sync", Path: st.Path, Err: syscall.EACCES}}
		}), func(r *Recorder) error {
			return s.execute(r, 3, func(o *RunOptions) { o.Attempts = 3 })
		})
		if fired == "" {
			require.NoError(t, err)
			require.Greater(t, n, 3, "each attempt's log is flushed")
			return
		}
		require.True(t, s.names(disktest.Step{Path: fired}, syscall.EACCES, err), "flush %d of %s: %v %v", n, fired, err, s.said)
		with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
		s.sound()
	}
}
