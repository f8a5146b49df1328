//go:build unix

package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// halfReverted is a tree with a run, and then a person's edits in all its files; the process of a
// forced revert died after some of these were displaced. older gets the store as it was before them, if it is not "".
func halfReverted(t *testing.T, older string) *sweep {
	s := &sweep{bench: newBench(t), t: t}
	for _, name := range halfFiles {
		s.write(name, "one\n")
	}
	s.checkpoint(CheckpointOptions{})
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	with(s.bench, func(r *Recorder) (*RunResult, error) {
		return r.Run(context.Background(), RunOptions{
			Args: []string{"/bin/sh", "-c", "for f in a b c d; do echo two >$f; done"}, Dir: s.root, Stdin: null, Env: os.Environ(),
		})
	})
	if older != "" {
		copyTree(t, filepath.Join(s.base, "store"), older)
	}
	for _, name := range halfFiles {
		s.write(name, personal(name))
	}
	moved := 0
	err = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Exchange" {
			moved++
		}
		return disktest.Action{Die: moved == 3}
	}), func(r *Recorder) error {
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}, Force: true, Yes: true})
		return err
	})
	require.Error(t, err)
	require.Equal(t, 3, moved, err)
	return s
}

var halfFiles = []string{"a", "b", "c", "d"}

func personal(name string) string { return "a person's text in " + name + "\n" }

// stages are the staging directories of the tree.
func (s *sweep) stages() []string {
	list, err := filepath.Glob(filepath.Join(s.root, ".decree/tmp/txn-*"))
	require.NoError(s.t, err)
	return list
}

// recovered recovers and returns what that said.
func (s *sweep) recovered() string {
	var said strings.Builder
	for _, d := range with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) }) {
		fmt.Fprintln(&said, d.What)
	}
	return said.String()
}

// TestSomethingElseInTheStagesPlace has a link, a file or a pipe in the place of the staging directory of a
// move that died: it is put aside, and the move taken back from what the store has.
func TestSomethingElseInTheStagesPlace(t *testing.T) {
	for name, make := range map[string]func(at, outside string) error{
		"a link to it":   func(at, outside string) error { return errors.Join(os.Rename(at, outside), os.Symlink(outside, at)) },
		"another's link": func(at, _ string) error { return errors.Join(os.RemoveAll(at), os.Symlink(t.TempDir(), at)) },
		"a file": func(at, _ string) error {
			return errors.Join(os.RemoveAll(at), os.WriteFile(at, []byte("theirs"), 0o600))
		},
		"a pipe": func(at, _ string) error { return errors.Join(os.RemoveAll(at), syscall.Mkfifo(at, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := halfReverted(t, "")
			stage := s.stages()[0]
			require.NoError(t, make(stage, filepath.Join(t.TempDir(), "moved")))
			was, err := os.Lstat(stage)
			require.NoError(t, err)
			require.Contains(t, s.recovered(), "an interrupted revert was taken back")
			for _, name := range halfFiles {
				require.Equal(t, personal(name), s.read(name))
			}
			is, err := os.Lstat(filepath.Join(s.root, ".decree/aside/tmp-"+filepath.Base(stage)))
			require.NoError(t, err)
			require.Equal(t, was.Mode(), is.Mode())
			require.Empty(t, s.stages())
			require.Equal(t, "", s.recovered())
		})
	}
}

// TestMoveWithoutItsJournal has the journal of a move that died lost, or the whole store: what was displaced then
// lies in .decree/tmp alone, or nowhere that a record names. It is kept, and told.
func TestMoveWithoutItsJournal(t *testing.T) {
	for name, lose := range map[string]func(s *sweep, older string){
		"the journal": func(s *sweep, _ string) { s.inJournals(os.Remove) },
		"its name": func(s *sweep, _ string) {
			s.inJournals(func(at string) error {
				return os.Rename(at, filepath.Join(filepath.Dir(at), "2020010100000000-0.journal"))
			})
		},
		"an older store": func(s *sweep, older string) {
			store := filepath.Join(s.base, "store")
			require.NoError(t, os.RemoveAll(store))
			require.NoError(t, os.Mkdir(store, 0o755))
			copyTree(t, older, store)
		},
		"a new store": func(s *sweep, _ string) {
			require.NoError(t, os.RemoveAll(filepath.Join(s.base, "store")))
			require.NoError(t, os.Remove(filepath.Join(s.root, ".decree/project.json")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			older := t.TempDir()
			s := halfReverted(t, older)
			id := strings.TrimPrefix(filepath.Base(s.stages()[0]), "txn-")
			lose(s, older)
			said := s.recovered()
			require.Contains(t, said, id+", may have moved a part of its paths")
			require.Contains(t, said, "is kept in .decree/aside/txn-"+id)
			require.NotContains(t, said, "nothing yet")
			require.Equal(t, halfFiles, s.texts())
			require.Empty(t, s.stages())
			require.Equal(t, "", s.recovered())
			require.Equal(t, halfFiles, s.texts())
		})
	}
}

func (s *sweep) inJournals(do func(at string) error) {
	list, err := filepath.Glob(filepath.Join(s.base, "store", "*", "txn", "*.journal"))
	require.NoError(s.t, err)
	require.Len(s.t, list, 1)
	require.NoError(s.t, do(list[0]))
}

// texts are the files whose personal text is in the tree, or in .decree/aside.
func (s *sweep) texts() (found []string) {
	aside, err := filepath.Glob(filepath.Join(s.root, ".decree/aside/txn-*/*"))
	require.NoError(s.t, err)
	for _, name := range halfFiles {
		if slices.ContainsFunc(append(aside, filepath.Join(s.root, name)), func(at string) bool {
			data, err := os.ReadFile(at)
			return err == nil && string(data) == personal(name)
		}) {
			found = append(found, name)
		}
	}
	return found
}
