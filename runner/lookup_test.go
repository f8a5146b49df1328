//go:build linux || darwin

package runner

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"tool": 0o755, "bin/tool2": 0o755, "deny/tool2": 0o644, "deny/text": 0o644} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), mode))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "deny/sub"), 0o755))
	locked := filepath.Join(dir, "locked")
	require.NoError(t, os.Mkdir(locked, 0))
	abs := filepath.Join(dir, "bin")
	tests := []struct {
		what, name, path string
		file             string
		code             int
		err              error
	}{
		{"relative to the directory", "./tool", "", "./tool", 0, nil},
		{"absolute", abs + "/tool2", "", abs + "/tool2", 0, nil},
		{"in an absolute element", "tool2", abs, abs + "/tool2", 0, nil},
		{"in a relative element", "tool2", "bin", "bin/tool2", 0, nil},
		{"in an empty element", "tool", "/nowhere:", "./tool", 0, nil},
		{"passing over what may not be executed", "tool2", "deny:bin", "bin/tool2", 0, nil},
		{"passing over a directory", "sub", "deny", "", 127, errNotFound},
		{"only what may not be executed", "text", "deny:bin", "", 126, fs.ErrPermission},
		{"passing over what may not be searched", "tool2", "locked:bin", "bin/tool2", 0, nil},
		{"nowhere that may be searched", "tool3", "locked:bin", "", 127, errNotFound},
		{"not executable beside what may not be searched", "text", "locked:deny", "", 126, fs.ErrPermission},
		{"nowhere", "tool3", "bin:deny", "", 127, errNotFound},
		{"no such path", "./tool3", "", "", 127, fs.ErrNotExist},
		{"below a file", "./tool/x", "", "", 127, syscall.ENOTDIR},
		{"a directory", "./bin", "", "", 126, syscall.EISDIR},
		{"not executable", "deny/text", "", "", 126, fs.ErrPermission},
		{"empty name", "", "bin:", "", 127, errNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			file, code, err := lookup(tt.name, dir, tt.path)
			assert.Equal(t, tt.file, file)
			assert.Equal(t, tt.code, code)
			assert.ErrorIs(t, err, tt.err)
		})
	}
}

func TestLastWins(t *testing.T) {
	got := lastWins([]string{"A=1", "B=2", "A=3", "plain", "A=4=5"})
	assert.Equal(t, []string{"B=2", "plain", "A=4=5"}, got)
	assert.NotNil(t, lastWins(nil), "nil would mean decree's own environment")
}

func TestNotStarted(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), mode))
		return "./" + name
	}
	tests := map[string]struct {
		name string
		code int
	}{
		"not found":              {"no-such-command-here", 127},
		"not executable":         {write("plain", "#!/bin/sh\n", 0o644), 126},
		"a directory":            {dir, 126},
		"no format":              {write("garbage", "\x7fnothing\x00", 0o755), 126},
		"no interpreter":         {write("orphan", "#!/no/such/interpreter\n", 0o755), 126},
		"empty file":             {write("empty", "", 0o755), 126},
		"relative to another":    {"runner.test", 127},
		"empty name":             {"", 127},
		"below a file":           {"./plain/x", 127},
		"name of another's home": {"~/x", 127},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			var l Leader
			res := run(t, Command{Args: []string{tt.name}, Dir: dir, Env: os.Environ(), Starting: func(got Leader) error { l = got; return nil }})
			assert.Equal(t, tt.code, res.ExitCode)
			assert.ErrorContains(t, res.NotStarted, tt.name)
			if l.PGID != 0 {
				alive, err := Alive(l)
				require.NoError(t, err)
				assert.Empty(t, alive)
			}
		})
	}
}

func TestRunRefuses(t *testing.T) {
	_, err := Run(t.Context(), Command{})
	require.Error(t, err)
	_, err = Run(t.Context(), Command{Args: []string{"true"}, Dir: filepath.Join(t.TempDir(), "gone")})
	require.ErrorIs(t, err, fs.ErrNotExist)
	file := output(t).Name()
	_, err = Run(t.Context(), Command{Args: []string{"true"}, Dir: file})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.ErrorContains(t, err, file)
}
