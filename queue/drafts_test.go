//go:build unix

package queue

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/recorder"
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

// TestDraftsThatAreTidiedAway has another process take what a person's command is writing for
// what a death has left, before each step with it.
func TestDraftsThatAreTidiedAway(t *testing.T) {
	for what, act := range map[string]func(r *recorder.Recorder) error{
		"send": func(r *recorder.Recorder) error { return r.Project().Drop("s.md", []byte("new\n")) },
		"edit": func(r *recorder.Recorder) error {
			return Edit(r, "h", "", "a.md", []byte("a\n"), []byte("new\n"))
		},
		"edit dead": func(r *recorder.Recorder) error {
			return Edit(r, "h", "dead", "d.md", []byte("d\n"), []byte("new\n"))
		},
		"send after a wipe": func(r *recorder.Recorder) error {
			if err := os.RemoveAll(filepath.Join(r.Project().Root, ".decree")); err != nil {
				return err
			}
			if err := r.Project().EnsureDecree(); err != nil {
				return err
			}
			return r.Project().Drop("s.md", []byte("new\n"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			tidied := 0
			for n, reached := 1, true; reached; n++ {
				b := newBench(t, map[string]string{".decree/inbox/a.md": "a\n", ".decree/inbox/dead/d.md": "d\n", ".decree/inbox/dead/d.error.txt": "d\n"})
				steps := 0
				began := false
				r, err := b.open(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
					name := filepath.Base(st.Path)
					if began && (strings.HasPrefix(name, queueDraft) || name == "project.json.new") {
						if steps++; steps == n && os.Remove(st.Path) == nil {
							tidied++
						}
					}
					return disktest.Action{}
				}))
				require.NoError(t, err)
				began = true
				require.NoError(t, act(r), "step %d", n)
				require.NoError(t, r.Close())
				reached = steps >= n
				found := 0
				require.NoError(t, filepath.WalkDir(filepath.Join(b.root, ".decree/inbox"), func(path string, d fs.DirEntry, err error) error {
					if data, rerr := os.ReadFile(path); rerr == nil && string(data) == "new\n" {
						found++
					}
					return err
				}))
				require.Equal(t, 1, found)
			}
			require.Positive(t, tidied)
		})
	}
}
