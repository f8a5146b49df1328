package capture

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mounted makes a file system in a file and mounts it; only root may.
func mounted(t *testing.T, kind, size string) string {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs." + kind)
	if os.Geteuid() != 0 || err != nil {
		t.Skip("needs root and mkfs." + kind)
	}
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, exec.Command("truncate", "-s", size, image).Run())
	out, err := exec.Command(mkfs, image).CombinedOutput()
	require.NoError(t, err, string(out))
	if out, err := exec.Command("mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("no loop mounts here: %s", out)
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", at).Run()) })
	return at
}

// TestHiddenEditOnFAT changes a file and sets its time back: FAT has no other time that
// would tell.
func TestHiddenEditOnFAT(t *testing.T) {
	at := mounted(t, "vfat", "40M")
	s := newSite(t)
	s.dir = at
	s.req.Root = open(t, at)
	past := time.Now().Add(-time.Hour).Truncate(2 * time.Second)
	for _, content := range []string{"aaaa", "bbbb"} {
		s.write("f", content)
		require.NoError(t, os.Chtimes(s.path("f"), past, past))
		r := s.capture()
		require.NoError(t, r.Commit())
		for it, err := range r.Entries() {
			require.NoError(t, err)
			require.Equal(t, content, string(s.store.data[it.Entry.SHA256]))
		}
		require.NoError(t, r.Close())
	}
	require.NoError(t, s.req.Root.Close())
}
