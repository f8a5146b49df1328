//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestNamesLikeDrafts has files and directories whose names begin as those of the queue's drafts
// do: what is the user's stays, and nothing stops the queue.
func TestNamesLikeDrafts(t *testing.T) {
	user := []string{"specs/.queue-notes.md", "specs/.queue-draft", "specs/.queue-swap-mine", "specs/.queue-d/x", ".queue-rc"}
	for _, specs := range []string{"specs", "."} {
		files := map[string]string{
			".decree/config.yml":          "spec_dir: " + specs + "\n",
			".decree/routines/develop.sh": ":\n", specs + "/one.spec.md": "one\n", ".decree/inbox/a.md": "a\n",
			".decree/inbox/.queue-d/x": "", ".decree/inbox/.queue-draft/x": "", ".decree/inbox/dead/.queue-draft/x": "", ".decree/inbox/.queue-swap-y/x": "",
		}
		for _, name := range user {
			files[name] = "mine\n"
		}
		b := newBench(t, files)
		require.Len(t, b.process(), 2)
		for _, name := range user {
			require.Equal(t, "mine\n", b.read(name), name)
		}
		require.Equal(t, "one.spec.md\n", b.read(specs+"/processed-spec.md"))
		put, err := os.ReadDir(filepath.Join(b.root, ".decree/aside"))
		require.NoError(t, err)
		require.Len(t, put, 4)
	}
}

// TestStaysTaken has a death leave a message on its way that nobody may move, such as an
// immutable one: the others are done.
func TestStaysTaken(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": ":\n", ".decree/inbox/.queue-taken/x.md": "x\n", ".decree/inbox/a.md": "a\n", ".decree/inbox/b.md": "b\n"})
	tried, done := 0, 0
	err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if strings.HasSuffix(st.Path, ".queue-taken/x.md") && strings.HasPrefix(st.Op, "Rename") {
			tried++
			return disktest.Action{Err: syscall.EPERM}
		}
		return disktest.Action{}
	}), func(q *Queue) error {
		list, err := b.all(q)
		done = len(list)
		require.Equal(t, 1, q.Passed())
		return err
	})
	require.NoError(t, err)
	require.Positive(t, tried)
	require.Equal(t, 2, done)
	_, err = os.Stat(filepath.Join(b.root, ".decree/inbox/.queue-taken/x.md"))
	require.NoError(t, err)
}
