package recorder

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// TestRunBesideUnreadableOwnFiles: a message, a routine or a directory in .decree that
// may not be read stops no run; it is named, and stays.
func TestRunBesideUnreadableOwnFiles(t *testing.T) {
	for barred, op := range map[string]string{".decree/inbox/a.md": "Open", ".decree/routines": "OpenDir", ".decree/routines/": "Stat"} {
		t.Run(barred, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "a")
			b.checkpoint(CheckpointOptions{})
			for _, name := range []string{".decree/inbox/a.md", ".decree/inbox/b.md", ".decree/routines/r.sh"} {
				path := filepath.Join(b.root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte("mine\n"), 0o644))
			}
			b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				at := st.Path
				if op == "Stat" { // of what is in it
					at = filepath.Dir(at)
				}
				if st.Op == op && at == filepath.Join(b.root, barred) {
					return disktest.Action{Err: &fs.PathError{Op: "open", Path: st.Path, Err: syscall.EACCES}}
				}
				return disktest.Action{}
			})
			null, err := os.Open(os.DevNull)
			require.NoError(t, err)
			defer null.Close()
			for exit, script := range []string{"rm .decree/inbox/b.md", "rm .decree/inbox/b.md; exit 1"} {
				var notes []string
				res := with(b, func(r *Recorder) (*RunResult, error) {
					r.Reader.opt.Note = func(note string) { notes = append(notes, note) }
					return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", script}, Dir: b.root, Env: os.Environ(), Stdin: null})
				})
				require.Contains(t, strings.Join(notes, "\n"), "not stored, as you may not read it: "+strings.TrimSuffix(barred, "/")+";")
				require.Equal(t, exit, res.ExitCode, res.Notes)
				require.Equal(t, []history.Status{history.StatusSucceeded, history.StatusFailed}[exit], res.Record.Status)
				require.FileExists(t, filepath.Join(b.root, ".decree/inbox/b.md"))
				require.FileExists(t, filepath.Join(b.root, ".decree/inbox/a.md"))
				require.FileExists(t, filepath.Join(b.root, ".decree/routines/r.sh"))
			}
		})
	}
}
