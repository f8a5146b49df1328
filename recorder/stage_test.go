//go:build unix

package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// halfReverted is a tree with a run, and then a person's edits in all its files; the process of a
// forced revert died after some of these were displaced.
func halfReverted(t *testing.T) *sweep {
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
			s := halfReverted(t)
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
