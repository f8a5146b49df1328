package recorder

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
)

// TestUnfinishedSaysHowToGoOn: what may not be written in .decree, such as an immutable
// record, is not "the cause": it is said how it can be written again.
func TestUnfinishedSaysHowToGoOn(t *testing.T) {
	u := &run{rec: &history.Record{ID: "2026112107015900-0"}, begun: true}
	err := u.unfinished("what it changed is not recorded", &fs.PathError{Op: "rename", Path: "/r/.decree/runs/x", Err: syscall.EPERM})
	require.ErrorContains(t, err, "what it changed is not recorded")
	require.Equal(t, "make /r/.decree your own again ('chmod -R u+rwX', 'sudo chown -R', 'sudo chattr -R -i'); then 'decree recover' records run 2026112107015900-0, and 'decree revert 2026112107015900-0' takes it back", project.HintOf(err))
	for _, other := range []error{syscall.EIO, &fs.PathError{Path: "/r/a", Err: syscall.EPERM}, &fs.PathError{Path: "/r/.decree/a", Err: syscall.EIO}} {
		require.Contains(t, project.HintOf(u.unfinished("x", other)), "once the cause is gone")
	}
}
