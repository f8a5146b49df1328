package recorder

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestLogIsFlushedBeforeItsHashIsRecorded, of an isolated run and of one whose decree died:
// after a power loss it would be empty, and no longer what the record says of it.
func TestLogIsFlushedBeforeItsHashIsRecorded(t *testing.T) {
	for name, do := range map[string]func(*sweep, *Recorder) error{
		"isolated":           func(s *sweep, r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Copy: true}) },
		"recovered":          func(_ *sweep, r *Recorder) error { _, err := r.Recover(t.Context(), true); return err },
		"recovered isolated": func(_ *sweep, r *Recorder) error { _, err := r.Recover(t.Context(), true); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweep{bench: newBench(t), t: t}
			switch name {
			case "recovered":
				s.dying("FileStat "+logFile, func(r *Recorder) error { return s.execute(r, 0, nil) })
			case "recovered isolated":
				s.dying("WriteAt records.jsonl", func(r *Recorder) error { return s.executeIsolated(r, 0, IsolatedOptions{Copy: true}) })
			}
			flushed, recorded := false, false
			require.NoError(t, s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				switch base := path.Base(st.Path); {
				case st.Op == "FileSync" && base == logFile:
					flushed = true
				case st.Op == "WriteAt" && base == "records.jsonl":
					recorded = true
					require.True(t, flushed)
				}
				return disktest.Action{}
			}), func(r *Recorder) error { return do(s, r) }))
			require.True(t, recorded)
		})
	}
}
