package project

import (
	"os"
	"path/filepath"
	"testing"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/require"
)

// TestActTriedAgain: where a routine deletes the inbox, with the draft of a message that is being sent,
// between the note and the move, the note of the next try is not that of another message of its name.
func TestActTriedAgain(t *testing.T) {
	root := t.TempDir()
	wipe := false
	p, err := Open(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if wipe && st.Op == "RenameNew" {
			wipe = false
			require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree/inbox")))
		}
		return disktest.Action{}
	}), Where{RootFlag: root, Cwd: root, Home: t.TempDir(), DataHome: t.TempDir()}, true)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.EnsureDecree())
	from, err := p.BeginActs(false)
	require.NoError(t, err)
	wipe = true
	require.NoError(t, p.Drop("a.md", []byte("one")))
	require.False(t, wipe)
	there := 0
	require.NoError(t, p.EachAct(from, func(_ int64, a Act) {
		if a.New {
			there++
		} else if a.Gone {
			there--
		}
	}))
	require.Equal(t, 1, there)
}
