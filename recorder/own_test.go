package recorder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestADraftIsNotAMove: a message that lies under another name was moved by somebody.
// But its draft is what a death left of writing it again, and may have got the inode
// that became free: the message is missing still. So is one whose new name no queue takes for a message's.
func TestADraftIsNotAMove(t *testing.T) {
	b := newBench(t)
	b.run(500, 0, nil)
	inbox := filepath.Join(b.root, ".decree", "inbox")
	for _, dir := range []string{"dead", "old"} {
		require.NoError(t, os.MkdirAll(filepath.Join(inbox, dir), 0o755))
	}
	for name, moved := range map[string]bool{"other.md": true, "dead/b.md": true, "b.mdx": false, "b.md.bak": false, ".b.md": false, "old/b.md": true, ownDraft: false} {
		require.NoError(t, os.WriteFile(filepath.Join(inbox, "b.md"), []byte("second\n"), 0o644))
		missing := with(b, func(r *Recorder) ([]ownFile, error) {
			dir, err := disk.OS.OpenRoot(inbox)
			require.NoError(t, err)
			defer dir.Close()
			st, err := dir.Stat("b.md")
			require.NoError(t, err)
			require.NoError(t, os.Rename(filepath.Join(inbox, "b.md"), filepath.Join(inbox, name)))
			missing, _, err := r.missingOwn(ownSet{files: []ownFile{{Path: "inbox/b.md", Mode: st.Mode, Ino: st.Ino, Hash: sha256.Sum256([]byte("second\n"))}}})
			return missing, err
		})
		require.Equal(t, moved, len(missing) == 0, name)
		require.NoError(t, os.Remove(filepath.Join(inbox, name)))
	}
}

// TestWhatMayHaveMovedTakesNoMemory: what lies under the name of a missing message is compared with it, however large it is.
func TestWhatMayHaveMovedTakesNoMemory(t *testing.T) {
	b := newBench(t)
	b.run(500, 0, nil)
	const huge = 128 << 20
	done := filepath.Join(b.root, ".decree", "inbox", "done")
	require.NoError(t, os.MkdirAll(done, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(done, "b.md"), nil, 0o644))
	require.NoError(t, os.Truncate(filepath.Join(done, "b.md"), huge))
	with(b, func(r *Recorder) (struct{}, error) {
		missing := []ownFile{{Path: "inbox/b.md", Mode: 0o644, Ino: 1, Hash: sha256.Sum256([]byte("second\n"))}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		left, err := r.withoutMoved(ownSet{}, missing)
		runtime.ReadMemStats(&after)
		require.Equal(t, missing, left)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
		return struct{}{}, err
	})
}

// TestCopiedFromDone: a message that is a copy of one in done, and was deleted, is missing, unless that one came there while the run went on.
func TestCopiedFromDone(t *testing.T) {
	b := newBench(t)
	done := filepath.Join(b.root, ".decree/inbox/done")
	require.NoError(t, os.MkdirAll(done, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(done, "b.md"), []byte("second\n"), 0o644))
	with(b, func(r *Recorder) (struct{}, error) {
		copied := []ownFile{{Path: "inbox/b.md", Mode: 0o644, Ino: 1, Hash: sha256.Sum256([]byte("second\n"))}}
		for began, missing := range map[int64]int{0: 0, 1: 0, time.Now().Add(time.Hour).UnixNano(): 1} {
			left, err := r.withoutMoved(ownSet{began: began}, copied)
			require.NoError(t, err)
			require.Len(t, left, missing)
		}
		return struct{}{}, nil
	})
}

// TestManyComeBack: each of many messages that a command has deleted is flushed before it has its name, and their directory once for all of them.
func TestManyComeBack(t *testing.T) {
	const many = 70
	b := newBench(t)
	name := func(i int) string { return fmt.Sprintf(".decree/inbox/m%02d.md", i) }
	for i := range many {
		b.write(name(i), fmt.Sprintf("task %d\n", i))
	}
	inbox := filepath.Join(b.root, ".decree", "inbox")
	old := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	require.NoError(t, os.Chtimes(filepath.Join(b.root, name(7)), old, old))
	dirs, flushed := 0, map[string]bool{}
	b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		switch {
		case st.Op == "Sync" && st.Path == inbox:
			dirs++
		case st.Op == "FileSync":
			flushed[st.Path] = true
		case st.Op == "RenameNew" && filepath.Dir(st.To) == inbox:
			assert.True(t, flushed[st.Path], st.Path)
		}
		return disktest.Action{}
	})
	r := b.commanded(func() int { require.NoError(t, os.RemoveAll(inbox)); return 0 })
	defer func() { require.NoError(t, r.Close()) }()
	_, err := r.Run(context.Background(), command(b))
	require.NoError(t, err)
	for i := range many {
		require.Equal(t, fmt.Sprintf("task %d\n", i), b.read(name(i)))
	}
	st, err := os.Stat(filepath.Join(b.root, name(7)))
	require.NoError(t, err)
	require.Equal(t, old, st.ModTime())
	list, err := os.ReadDir(inbox)
	require.NoError(t, err)
	require.Len(t, list, many)
	require.LessOrEqual(t, dirs, 2)
}
