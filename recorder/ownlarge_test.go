package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnFilesAboveMaxFile: a message of terabytes, as 'truncate -s 8T' makes it, is not read
// before a run; it is named, and stays.
func TestOwnFilesAboveMaxFile(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	b.write(".decree/inbox/large.md", "mine")
	if err := os.Truncate(filepath.Join(b.root, ".decree/inbox/large.md"), 8<<40); err != nil {
		t.Skip(err)
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	var notes []string
	res := with(b, func(r *Recorder) (*RunResult, error) {
		r.Reader.opt.Note = func(note string) { notes = append(notes, note) }
		return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", "echo b >>a; exit 3"}, Dir: b.root, Env: os.Environ(), Stdin: null})
	})
	require.Equal(t, 3, res.ExitCode)
	require.Equal(t, "a\n", b.read("a"))
	require.Contains(t, strings.Join(notes, "\n"), "larger than capture.max_file: .decree/inbox/large.md;")
	info, err := os.Stat(filepath.Join(b.root, ".decree/inbox/large.md"))
	require.NoError(t, err)
	require.EqualValues(t, 8<<40, info.Size())
}
