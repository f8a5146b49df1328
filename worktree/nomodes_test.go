package worktree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
)

// TestFileSystemWithoutModes moves on a file system that gives every file and directory its own
// mode, as exFAT does: what cannot come there as it was leaves all as it is, at a death too.
func TestFileSystemWithoutModes(t *testing.T) {
	was := files{"a": node{"file", 0o777, "1"}, "d": dir(0o777), "d/e": node{"file", 0o777, "2"}, "z": node{"file", 0o777, "3"}}
	for name, will := range map[string]files{
		"a new file":      was.with(files{"n": file("n"), "a": node{"file", 0o777, "other"}}),
		"another content": was.with(files{"a": file("other"), "z": node{"file", 0o777, "other"}}),
		"a directory":     was.with(files{"m": dir(0o755), "a": node{"file", 0o777, "other"}}),
		"what is in it":   was.with(files{"m": dir(0o755), "m/n": node{"file", 0o777, "other"}}),
		"a mode":          was.with(files{"z": node{"file", 0o644, "3"}, "a": node{"file", 0o777, "other"}}),
		"a directory's":   was.with(files{"d": dir(0o700), "a": node{"file", 0o777, "other"}}),
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				fired := false
				r, m := newMemRig(t, was)
				m.NoModes = true
				r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
				_, err := r.move(steps(was, will))
				r.wrap = nil
				if !fired {
					var e *Error
					require.ErrorAs(t, err, &e)
					require.True(t, e.RolledBack, "%v", err)
					require.Empty(t, e.Left)
					require.Equal(t, was, r.state())
					r.clean()
					return
				}
				_, _, err = r.recover()
				require.NoError(t, err, "step %d", n)
				require.Equal(t, was, r.state(), "step %d", n)
			}
		})
	}
}
