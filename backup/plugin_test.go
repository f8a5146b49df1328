//go:build linux || darwin

package backup

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/runner"
)

func pluginRoot(t *testing.T) (string, disk.Dir) {
	t.Helper()
	root := t.TempDir()
	dir, err := disk.OS.OpenRoot(root)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	return root, dir
}

func TestPluginsFailAlone(t *testing.T) {
	root, _ := pluginRoot(t)
	failed, err := runCommands(t.Context(), root, os.Environ(), []project.Plugin{
		{Name: "one", Command: "echo working; echo database is locked >&2; exit 7", Timeout: time.Minute},
		{Name: "two", Command: `pwd -P > two; echo "$DECREE_ROOT" >> two`, Timeout: time.Minute},
		{Name: "three", Command: "no-such-program-of-anybody", Timeout: time.Minute},
		{Name: "four"},
	})
	require.NoError(t, err)
	require.Len(t, failed, 2)
	require.Equal(t, "plugin one: exit status 7: database is locked", failed[0].Error())
	require.Contains(t, failed[1].Error(), "plugin three: exit status 127")
	data, err := os.ReadFile(filepath.Join(root, "two"))
	require.NoError(t, err)
	real, err := filepath.EvalSymlinks(root)
	require.NoError(t, err)
	require.Equal(t, real+"\n"+root+"\n", string(data))
}

// TestAPluginsGrandchildrenEndWithIt has a grandchild that hears no TERM write its number, and looks
// for it when the plugin has been ended.
func TestAPluginsGrandchildrenEndWithIt(t *testing.T) {
	root, _ := pluginRoot(t)
	command := `sh -c 'sh grandchild & wait' & wait`
	require.NoError(t, os.WriteFile(filepath.Join(root, "grandchild"), []byte("trap '' TERM\necho $$ > child\nwhile :; do sleep 1; done\n"), 0o644))
	failed, err := runCommands(t.Context(), root, os.Environ(), []project.Plugin{{Name: "slow", Command: command, Timeout: 500 * time.Millisecond}})
	require.NoError(t, err)
	require.Len(t, failed, 1)
	require.Contains(t, failed[0].Error(), "plugin slow: not done in 500ms, and ended with its process group")
	data, err := os.ReadFile(filepath.Join(root, "child"))
	require.NoError(t, err, "the grandchild had begun")
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, err)
	require.False(t, runner.Lives(runner.ProcessAt(pid)))
}

func TestAnInterruptEndsThePlugins(t *testing.T) {
	root, _ := pluginRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := runCommands(ctx, root, os.Environ(), []project.Plugin{{Name: "a", Command: "touch ran", Timeout: time.Minute}, {Name: "b", Command: "touch ran", Timeout: time.Minute}})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, filepath.Join(root, "ran"))
}

func matched(t *testing.T, dir disk.Dir, patterns ...string) ([]string, error) {
	t.Helper()
	var names []string
	err := eachPluginFile(dir, project.Plugin{Name: "p", Include: patterns}, func(name string, f disk.File, size int64) error {
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Len(t, data, int(size))
		names = append(names, name)
		return nil
	})
	return names, err
}

func TestPluginFiles(t *testing.T) {
	root, dir := pluginRoot(t)
	for _, name := range []string{".beads/backup/a.jsonl", ".beads/backup/b.jsonl", ".beads/backup/old/c.jsonl", ".beads/db", "dump.sql", ".git/config", ".decree/backup/x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, ".beads/backup/link")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(root, "away")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, ".beads/backup/pipe"), 0o600))
	for _, c := range []struct {
		patterns, want []string
		without        string
	}{
		{[]string{".beads/backup/*"}, []string{".beads/backup/a.jsonl", ".beads/backup/b.jsonl", ".beads/backup/old/c.jsonl"}, ""},
		{[]string{".beads/backup"}, []string{".beads/backup/a.jsonl", ".beads/backup/b.jsonl", ".beads/backup/old/c.jsonl"}, ""},
		{[]string{".beads/*/*.jsonl", "*.sql", ".beads/backup/a*"}, []string{".beads/backup/a.jsonl", ".beads/backup/b.jsonl", "dump.sql"}, ""},
		{[]string{"dump.sql", "*.dump", "away/*", ".git/*", ".decree/backup/x"}, []string{"dump.sql"}, "plugin p: no file matches *.dump, away/*, .git/*, .decree/backup/x"},
		{[]string{"dump.sql/x"}, nil, "plugin p: no file matches dump.sql/x"},
		{nil, nil, ""},
	} {
		got, err := matched(t, dir, c.patterns...)
		require.Equal(t, c.want, got, "%q", c.patterns)
		if c.without == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.without)
		}
	}
	all, err := matched(t, dir, ".")
	require.NoError(t, err)
	require.Equal(t, []string{".beads/backup/a.jsonl", ".beads/backup/b.jsonl", ".beads/backup/old/c.jsonl", ".beads/db", "dump.sql"}, all)
}
