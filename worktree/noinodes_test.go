package worktree

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFileSystemWithoutInodes: where every file has the inode number 0 a transaction moves, or
// refuses, as it does elsewhere.
func TestFileSystemWithoutInodes(t *testing.T) {
	was := files{"a": file("1"), "d": dir(0o755), "d/e": file("2"), "z": file("3")}
	for name, will := range map[string]files{
		"other content": was.with(files{"a": file("other")}),
		"a mode":        was.with(files{"z": node{"file", 0o600, "3"}}),
		"nothing there": {},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := newMemRig(t, was)
			m.NoInodes = true
			_, err := r.move(steps(was, will))
			require.NoError(t, err)
			require.Equal(t, will, r.state())
		})
	}
}
