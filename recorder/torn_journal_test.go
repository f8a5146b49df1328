package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestRevertWithTornJournal: of a revert that died in the midst of its moves, and whose
// journal is damaged, nobody knows what it has moved; that is what recover says.
func TestRevertWithTornJournal(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	for _, name := range []string{"a", "b", "c", "d"} {
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
	moved := 0
	err = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Exchange" {
			moved++
		}
		return disktest.Action{Die: moved == 3}
	}), func(r *Recorder) error {
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}})
		return err
	})
	require.Error(t, err)
	require.Equal(t, 3, moved)
	journals, err := filepath.Glob(filepath.Join(s.base, "store", "*", "txn", "*.journal"))
	require.NoError(t, err)
	require.Len(t, journals, 1)
	data, err := os.ReadFile(journals[0])
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(journals[0], data, 0o600))

	done := with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
	var said strings.Builder
	for _, d := range done {
		said.WriteString(d.What + "\n")
	}
	require.Contains(t, said.String(), "an interrupted revert may have moved a part of its paths")
	require.NotContains(t, said.String(), "nothing yet")
}
