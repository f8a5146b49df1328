package project

import (
	"os"
	"path/filepath"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// place for a test: a home and a directory for projects, real paths.
func ground(t *testing.T) (home, work string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	home, work = filepath.Join(base, "home"), filepath.Join(base, "work")
	mkdirs(t, home, work)
	return home, work
}

func mkdirs(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		require.NoError(t, os.MkdirAll(p, 0o755))
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	mkdirs(t, filepath.Dir(path))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func TestFindRoot(t *testing.T) {
	home, work := ground(t)
	p := func(s string) string { return filepath.Join(work, s) }
	mkdirs(t, p("proj/.decree"), p("proj/a/b"), p("proj/a/.git"), p("proj/c"), p("repo/.git"), p("repo/x/y"), p("plain/z"),
		p("file/sub"), filepath.Join(home, ".decree"), filepath.Join(home, ".git"), filepath.Join(home, "src/new"), p("wt/sub"))
	write(t, p("file/.decree"), "a file is no project")
	write(t, p("wt/.git"), "gitdir: elsewhere\n")
	require.NoError(t, os.Symlink(p("proj"), p("link")))
	require.NoError(t, os.Symlink(home, p("homelink")))

	for _, c := range []struct{ name, cwd, flag, want string }{
		{"holds .decree", p("proj"), "", p("proj")},
		{"ancestor holds .decree, a nearer one .git", p("proj/a/b"), "", p("proj/a")},
		{"ancestor holds .git", p("repo/x/y"), "", p("repo")},
		{".git is a file", p("wt/sub"), "", p("wt")},
		{"nothing: the working directory", p("plain/z"), "", p("plain/z")},
		{".decree is a file", p("file/sub"), "", p("file/sub")},
		{"through a link", p("link/c"), "", p("proj")},
		{"home is passed over", filepath.Join(home, "src/new"), "", filepath.Join(home, "src/new")},
		{"flag, relative", p("plain"), "../repo", p("repo")},
		{"flag, a link", p("plain"), p("link"), p("proj")},
		{"flag, home", p("plain"), home, home},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := FindRoot(disk.OS, Where{Cwd: c.cwd, RootFlag: c.flag, Home: home})
			require.NoError(t, err)
			assert.Equal(t, c.want, root)
		})
	}
	for _, c := range []struct{ name, cwd, flag, home string }{
		{"home itself", home, "", home},
		{"home through a link", p("homelink"), "", home},
		{"home is the link", home, "", p("homelink")},
		{"the file system's root", "/", "", home},
		{"flag names nothing", work, "missing", home},
		{"flag names a file", work, "file/.decree", home},
	} {
		t.Run("refused: "+c.name, func(t *testing.T) {
			_, err := FindRoot(disk.OS, Where{Cwd: c.cwd, RootFlag: c.flag, Home: c.home})
			require.Error(t, err)
			assert.Equal(t, Usage, KindOf(err))
			if c.flag == "" {
				assert.Contains(t, HintOf(err), "--root")
			}
		})
	}
}
