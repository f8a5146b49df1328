//go:build unix

package cmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program starts decree as a person would configure it, and talks to it over its streams.
func TestMCP(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	program := filepath.Join(dir, "decree")
	require.NoError(t, os.Symlink(self, program))
	root := filepath.Join(dir, "tree")
	require.NoError(t, os.Mkdir(root, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), []byte("a\n"), 0o644))

	start := exec.Command(program, "mcp", "--allow-write", "-C", root)
	start.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+filepath.Join(dir, "data"))
	start.Dir = dir
	ctx := context.Background()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: start}, nil)
	require.NoError(t, err)
	call := func(name string, arguments map[string]any) string {
		res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		require.NoError(t, err)
		text := res.Content[0].(*mcp.TextContent).Text
		require.False(t, res.IsError, text)
		return text
	}
	assert.Contains(t, call("checkpoint", map[string]any{"description": "by a program"}), `"description": "by a program"`)
	assert.Contains(t, call("history", nil), `"description": "by a program"`)
	assert.Contains(t, call("plan", map[string]any{"operation": "restore", "ref": "last"}), `"dry_run": true`)
	require.NoError(t, client.Close(), "it ends with its input, and well")
}

// A server stays at the tree that it looks at: also when the directory that it was started in is gone, or is a
// project of its own by now.
func TestServersStayAtTheirTree(t *testing.T) {
	env := hookBench(t)
	root, err := filepath.EvalSymlinks(env.Cwd)
	require.NoError(t, err)
	env.Cwd = filepath.Join(root, "gen")
	require.NoError(t, os.Mkdir(env.Cwd, 0o755))
	s := &session{env: env}
	s.stay()
	changes := func(where string) {
		rec, err := s.changeForServer(t.Context(), true)
		require.NoError(t, err)
		require.Equal(t, root, rec.Project().Root, where)
		require.NoError(t, rec.Close())
	}
	require.NoError(t, os.Mkdir(filepath.Join(env.Cwd, ".git"), 0o755))
	changes("it is a project of its own by now")
	require.NoError(t, os.RemoveAll(env.Cwd))
	changes("it is gone")
}
