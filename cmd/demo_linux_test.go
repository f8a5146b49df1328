package cmd

import (
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDemo: the demo has all that the pages show, and leaves nothing behind.
func TestDemo(t *testing.T) {
	project := t.TempDir() // its temporary directory is in it
	tmp := filepath.Join(project, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(project, ".git"), 0o755))
	c := exec.Command(testBinary(t), "serve", "--demo")
	c.Dir, c.Env = tmp, append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp)
	s := serve(t, c)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	status, text := get(t, &http.Client{Jar: jar}, s.address)
	require.Equal(t, http.StatusOK, status)
	for _, badge := range []string{"Run", "Session", "Turn", "Race", "Outside", "Manual", "Auto", "Revert", "Restore"} {
		require.Contains(t, text, ">"+badge+"</span>")
	}
	require.Contains(t, text, "The project as it came")
	require.NotContains(t, text, "disabled", "all can be tried, although drafts wait")
	s.end()
	left, err := filepath.Glob(filepath.Join(tmp, "decree-demo-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoDirExists(t, filepath.Join(project, ".decree"), "the demo is a project of its own, wherever it lies")
}

// testBinary is this test as the command decree.
func testBinary(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "decree")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, bin))
	return bin
}
