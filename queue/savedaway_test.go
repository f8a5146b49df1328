//go:build unix

package queue

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestSpecsGoneWhileOneIsMarked: the directory of specs is removed while a spec is marked as processed: it is marked later, if it comes back.
func TestSpecsGoneWhileOneIsMarked(t *testing.T) {
	b := newBench(t, map[string]string{"specs/a.spec.md": "a\n"})
	require.ErrorIs(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if strings.Contains(st.Path, listDraft) {
			require.NoError(t, os.RemoveAll(filepath.Join(b.root, "specs")))
		}
		return disktest.Action{}
	}), func(q *Queue) error {
		_, err := q.job(q.o.Recorder, nil).markSpecs(doneSpec{Spec: "specs/a.spec.md"})
		return err
	}), fs.ErrNotExist)
	require.NoDirExists(t, filepath.Join(b.root, "specs"))
}

// TestSavedAndMovedAway: a text that a person saves while the message is completed, and whose name he then takes away, stays.
func TestSavedAndMovedAway(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.md")
	require.NoError(t, os.WriteFile(path, []byte("was\n"), 0o600))
	exchanges := 0
	root, err := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Exchange" {
			switch exchanges++; exchanges {
			case 1:
				require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))
			case 2:
				require.NoError(t, os.Rename(path, filepath.Join(dir, "moved")))
			}
		}
		return disktest.Action{}
	}).OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	info, err := root.Stat("a.md")
	require.NoError(t, err)
	require.ErrorIs(t, rewrite(root, "a.md", []byte("completed\n"), info, []byte("was\n")), errChanged)
	require.Equal(t, 2, exchanges)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "saved\n", string(data))
}

// textsIn are what the files of a directory hold.
func textsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	texts := map[string]bool{}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range files {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		texts[string(data)] = true
	}
	return texts
}

// TestSavedAgainAfterADeath: a text that a person saves while an earlier one is brought back that a death has left stays too. So does that
// one where it was no death, and the edit that goes on exchanges it once more.
func TestSavedAgainAfterADeath(t *testing.T) {
	for name, what := range map[string]struct {
		op     string // before which it happens
		beside func(plain disk.Dir, path, swap string) error
		want   map[string]bool
	}{
		"saved again": {"Exchange", func(_ disk.Dir, path, _ string) error { return os.WriteFile(path, []byte("again\n"), 0o600) }, map[string]bool{"saved\n": true, "again\n": true}},
		"an edit goes on, and looks": {"Rename", func(plain disk.Dir, _, swap string) error { return plain.Exchange(swap, plain, "a.md") },
			map[string]bool{"saved\n": true, "completed\n": true}},
		"an edit goes on": {"Remove", func(plain disk.Dir, _, swap string) error {
			return disk.UnlessMissing(plain.Exchange(swap, plain, "a.md"))
		}, map[string]bool{"saved\n": true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.md")
			require.NoError(t, os.WriteFile(path, []byte("completed\n"), 0o600))
			swap := swapName([]byte("completed\n"), []byte("was\n"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, swap), []byte("saved\n"), 0o600))
			plain, err := disk.OS.OpenRoot(dir)
			require.NoError(t, err)
			defer plain.Close()
			happened := false
			root, err := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if st.Op == what.op && !happened {
					happened = true
					require.NoError(t, what.beside(plain, path, swap))
				}
				return disktest.Action{}
			}).OpenRoot(dir)
			require.NoError(t, err)
			defer root.Close()
			require.NoError(t, removeDraft(root, swap))
			require.True(t, happened)
			require.Equal(t, what.want, textsIn(t, dir))
		})
	}
}

// TestSavedTwiceBesideAnEdit: what a person saves over a text that has just come out, and goes back, stays too.
func TestSavedTwiceBesideAnEdit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.md")
	require.NoError(t, os.WriteFile(path, []byte("was\n"), 0o600))
	exchanges := 0
	root, err := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Exchange" {
			exchanges++
			require.NoError(t, os.WriteFile(path+".new", fmt.Appendf(nil, "saved %d\n", exchanges), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		}
		return disktest.Action{}
	}).OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	info, err := root.Stat("a.md")
	require.NoError(t, err)
	require.ErrorIs(t, writeEdited(root, "a.md", []byte("edited\n"), info, inItsPlace([]byte("edited\n"), []byte("was\n"))), ErrEdited)
	require.Equal(t, 2, exchanges)
	require.Equal(t, map[string]bool{"saved 1\n": true, "saved 2\n": true}, textsIn(t, dir))
}

// TestSavedBesideAnEdit: a text that a person saves while the text of an edit takes its place stays, also where the name is taken away before
// it can go back there, and where a queue that begins finds it on its way; the edit is refused.
func TestSavedBesideAnEdit(t *testing.T) {
	for _, what := range []string{"taken away", "a queue begins"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a.md")
			require.NoError(t, os.WriteFile(path, []byte("was\n"), 0o600))
			plain, err := disk.OS.OpenRoot(dir)
			require.NoError(t, err)
			defer plain.Close()
			exchanges, looked := 0, false
			root, err := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				switch {
				case st.Op == "Exchange":
					switch exchanges++; exchanges {
					case 1:
						require.NoError(t, os.WriteFile(path, []byte("saved\n"), 0o600))
					case 2:
						require.NoError(t, os.Rename(path, filepath.Join(dir, "moved")))
					}
				case exchanges == 1 && !looked && what != "taken away":
					looked = true
					require.NoError(t, clean(plain, begins(queueDraft), nil))
				}
				return disktest.Action{}
			}).OpenRoot(dir)
			require.NoError(t, err)
			defer root.Close()
			info, err := plain.Stat("a.md")
			require.NoError(t, err)
			require.ErrorIs(t, writeEdited(root, "a.md", []byte("edited\n"), info, inItsPlace([]byte("edited\n"), []byte("was\n"))), ErrEdited)
			require.NoError(t, clean(plain, begins(queueDraft), nil))
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "saved\n", string(data))
		})
	}
}
