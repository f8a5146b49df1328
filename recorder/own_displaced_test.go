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

// TestDisplacedOwnFiles: a directory or a pipe that a command made in the place of a
// routine, a message or config.yml is put aside, and the file is written again. What a
// person may have meant stays: a link, and a directory into which the file was moved.
func TestDisplacedOwnFiles(t *testing.T) {
	const (
		back  = "the file is back"
		stays = "the new one stays"
	)
	for name, c := range map[string]struct{ script, want string }{
		"directory": {"rm $f; mkdir $f; echo mine >$f/d", back},
		"pipe":      {"rm $f; mkfifo $f", back},
		"link":      {"rm $f; ln -s elsewhere $f", stays},
		"moved":     {"mv $f .decree/tmp/x; mkdir $f; mv .decree/tmp/x $f/script", stays},
		"the task":  {"rm $f; mkdir $f; echo mine >$f/d", stays},
	} {
		for _, exit := range []string{"3", "0"} {
			for _, at := range []string{"routines/r.sh", "inbox/a.md", "inbox/dead/a.md", "config.yml"} {
				if at == configFile && c.want == stays {
					continue // it has to be a file
				}
				t.Run(name+" "+at+" "+exit, func(t *testing.T) {
					s := &sweep{bench: newBench(t), t: t}
					s.write("a", "a\n")
					s.checkpoint(CheckpointOptions{})
					file := filepath.Join(s.root, ".decree", at)
					require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
					require.NoError(t, os.WriteFile(file, []byte("# own\n"), 0o640))
					null, err := os.Open(os.DevNull)
					require.NoError(t, err)
					defer null.Close()
					o := RunOptions{Args: []string{"/bin/sh", "-c", "f=.decree/" + at + "; " + c.script + "; exit " + exit}, Dir: s.root, Env: os.Environ(), Stdin: null}
					if name == "the task" {
						o.Task = at
					}
					res := with(s.bench, func(r *Recorder) (*RunResult, error) { return r.Run(context.Background(), o) })
					notes := strings.Join(res.Notes, "\n")
					st, err := os.Lstat(file)
					require.NoError(t, err)
					if c.want == stays {
						require.False(t, st.Mode().IsRegular())
						require.NotContains(t, notes, "written again")
						return
					}
					require.True(t, st.Mode().IsRegular(), notes)
					require.EqualValues(t, 0o640, st.Mode().Perm())
					data, err := os.ReadFile(file)
					require.NoError(t, err)
					require.Equal(t, "# own\n", string(data))
					require.Contains(t, notes, "written again: .decree/"+at)
					if name == "directory" {
						require.Equal(t, 1, s.mine(), "what was in the way is gone")
					}
					list, err := os.ReadDir(filepath.Join(s.root, ".decree", "aside"))
					require.NoError(t, err)
					require.NotEmpty(t, list)
				})
			}
		}
	}
}

// TestNothingIsDone: something else in the place of the directory of messages that are done keeps no run
// from writing again what its command has deleted.
func TestNothingIsDone(t *testing.T) {
	for name, script := range map[string]string{"link": "ln -s /", "file": "touch", "pipe": "mkfifo", "sealed": "mkdir -m 0"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.disk = disktest.Inject(disk.OS, disktest.Rights)
			b.write("a", "a\n")
			b.checkpoint(CheckpointOptions{})
			note := filepath.Join(b.root, ".decree/note.txt")
			require.NoError(t, os.WriteFile(note, []byte("mine\n"), 0o644))
			null, err := os.Open(os.DevNull)
			require.NoError(t, err)
			defer null.Close()
			with(b, func(r *Recorder) (*RunResult, error) {
				return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", "mkdir -p .decree/inbox; rm .decree/note.txt; " + script + " .decree/inbox/done; exit 1"}, Dir: b.root, Env: os.Environ(), Stdin: null})
			})
			require.FileExists(t, note)
		})
	}
}

// TestDisplacedByAMount: what cannot be moved out of the place of a routine is named,
// and keeps no record open.
func TestDisplacedByAMount(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write("a", "a\n")
	s.checkpoint(CheckpointOptions{})
	file := filepath.Join(s.root, ".decree", "routines", "r.sh")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte("# own\n"), 0o640))
	s.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "RenameNew" && st.Path == file {
			return disktest.Action{Err: &fs.PathError{Op: "rename", Path: st.Path, Err: syscall.EBUSY}}
		}
		return disktest.Action{}
	})
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	var notes []string
	res := with(s.bench, func(r *Recorder) (*RunResult, error) {
		r.Reader.opt.Note = func(note string) { notes = append(notes, note) }
		return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", "rm .decree/routines/r.sh; mkdir .decree/routines/r.sh; exit 3"}, Dir: s.root, Env: os.Environ(), Stdin: null})
	})
	require.Equal(t, history.StatusFailed, res.Record.Status)
	require.Empty(t, res.Notes)
	require.Contains(t, strings.Join(notes, "\n"), "cannot be written again: .decree/routines/r.sh (rename ")
	require.DirExists(t, file)
}
