package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/tree"
)

// sealedTo opens an encrypted directory of a project with this store, with recipients alone.
func sealedTo(t *testing.T, at, recipient string, store disk.Dir) target.Target {
	t.Helper()
	tg, err := Open(t.Context(), OpenOptions{To: at, Disk: disk.OS, Create: true, Store: store, Config: project.Backup{Encrypt: recipient}})
	require.NoError(t, err)
	t.Cleanup(func() { tg.Close() })
	return tg
}

// TestSeveralRememberKeysAtOnce has backups of one project go to several encrypted targets at the same moment: what each needs to write on
// without an identity is there afterwards.
func TestSeveralRememberKeysAtOnce(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	store, err := disk.OS.MkdirAll(filepath.Join(t.TempDir(), "store"), 0o700)
	require.NoError(t, err)
	dir := t.TempDir()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		tg := sealedTo(t, filepath.Join(dir, fmt.Sprint(i)), id.Recipient().String(), store)
		wg.Go(func() {
			var version target.Version
			for n := 0; n < 10 && errs[i] == nil; n++ {
				version, errs[i] = tg.Swap(t.Context(), "p/manifest.json", fmt.Append(nil, n), version)
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err)
		data, _, err := sealedTo(t, filepath.Join(dir, fmt.Sprint(i)), id.Recipient().String(), store).Read(t.Context(), "p/manifest.json", 100)
		require.NoError(t, err)
		require.Equal(t, "9", string(data))
	}
}

// TestADamagedMemoryOfKeysSaysTheWayOut has what a death of an earlier decree could leave.
func TestADamagedMemoryOfKeysSaysTheWayOut(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	store, err := disk.OS.MkdirAll(filepath.Join(t.TempDir(), "store"), 0o700)
	require.NoError(t, err)
	require.NoError(t, project.ReplaceFile(store, keysFile, []byte(`{"version":1,"ke`), 0o600, true))
	tg := sealedTo(t, filepath.Join(t.TempDir(), "to"), id.Recipient().String(), store)
	_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("{}"), "")
	require.ErrorContains(t, err, filepath.Join(store.Path(), keysFile))
	require.True(t, strings.HasPrefix(project.HintOf(err), "remove it: with backup.identity"), "%v", err)
}

// TestAnEncryptedDirectoryHasNoCurrent also for who reads it alone: what is said of a lost manifest.json names archives, where copies of it
// are.
func TestAnEncryptedDirectoryHasNoCurrent(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	dir := t.TempDir()
	at, file := filepath.Join(dir, "to"), filepath.Join(dir, "identity")
	require.NoError(t, os.WriteFile(file, []byte(id.String()), 0o600))
	writes := sealedTo(t, at, id.Recipient().String(), nil)
	for name, text := range map[string]string{"p/manifest.json": "lost", "p/decree-backup.json": string(Marker{Version: 1, Project: strings.Repeat("a", 32), Manifest: tree.Sum(nil)}.Encode())} {
		_, err = writes.Swap(t.Context(), name, []byte(text), "")
		require.NoError(t, err)
	}
	reads, err := Open(t.Context(), OpenOptions{To: at, Disk: disk.OS, Config: project.Backup{Identity: file}})
	require.NoError(t, err)
	defer reads.Close()
	_, is := reads.(target.Shelf)
	require.True(t, is)
	_, err = One(t.Context(), reads, "p")
	require.Contains(t, project.HintOf(err), "no generation there has a copy of it that can be read, in "+at+"/p/archives:", "%v", err)
}
