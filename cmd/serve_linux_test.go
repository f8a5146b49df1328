package cmd

import (
	"bufio"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// served is a decree that serves, as a process of its own.
type served struct {
	t       *testing.T
	command *exec.Cmd
	out     *bufio.Reader
	address string
}

// serve starts it, and waits for its address.
func serve(t *testing.T, c *exec.Cmd) *served {
	t.Helper()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	s := &served{t: t, command: c, out: bufio.NewReader(out)}
	t.Cleanup(func() { _ = c.Process.Kill() })
	line, err := s.out.ReadString('\n')
	require.NoError(t, err)
	s.address = strings.TrimSuffix(line, "\n")
	return s
}

// end interrupts it, and returns what else stood on stdout.
func (s *served) end() string {
	s.t.Helper()
	require.NoError(s.t, s.command.Process.Signal(syscall.SIGINT))
	rest, err := io.ReadAll(s.out)
	require.NoError(s.t, err)
	require.NoError(s.t, s.command.Wait())
	return string(rest)
}

func get(t *testing.T, client *http.Client, address string) (int, string) {
	t.Helper()
	res, err := client.Get(address)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

// TestServeIsForOneUser: another user of the machine reaches the port as well as its owner, and sees all
// arguments of all processes. Nothing that he can read has the token; without it he gets nothing.
func TestServeIsForOneUser(t *testing.T) {
	u := newUsers(t)
	u.dir(ann, 0o700, "home")
	tmp := u.dir(ann, 0o755, "tmp")
	root := u.dir(ann, 0o755, "tree")
	bin := u.dir(ann, 0o755, "bin")
	seen := filepath.Join(tmp, "arguments")
	// A browser that tells what it was called with, and what leads there.
	opener := "#!/bin/sh\nstat -c '%a %u' \"$1\" \"${1%/*}\" >>" + seen + "\ncat \"$1\" >" + tmp + "/page\ntr '\\0' ' ' </proc/$$/cmdline >>" + seen + "\necho >>" + seen + "\n: >" + tmp + "/opened\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o755))
	require.NoError(t, syscall.Mkfifo(filepath.Join(tmp, "opened"), 0o666))
	require.NoError(t, os.Chown(filepath.Join(tmp, "opened"), ann, ann))
	require.NoError(t, os.WriteFile(filepath.Join(root, "f"), []byte("secret work\n"), 0o600))
	require.NoError(t, os.Chown(filepath.Join(root, "f"), ann, ann))
	code, out := u.decree(ann, root, nil, "checkpoint", "-d", "secret words")
	require.Zero(t, code, out)

	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := serve(t, u.command(ann, root, []string{"TMPDIR=" + tmp}, "serve", "--open"))
	_, err := os.ReadFile(filepath.Join(tmp, "opened")) // until it was
	require.NoError(t, err)
	place, token, ok := strings.Cut(s.address, "?token=")
	require.True(t, ok, s.address)

	data, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.Contains(t, string(data), "600 60001\n700 60001\n")
	require.NotContains(t, string(data), token)
	data, err = os.ReadFile(filepath.Join(tmp, "page"))
	require.NoError(t, err)
	require.Contains(t, string(data), s.address)
	arguments, err := exec.Command("ps", "-eo", "args").Output()
	require.NoError(t, err)
	require.NotContains(t, string(arguments), token)

	status, text := get(t, &http.Client{}, place)
	require.Equal(t, http.StatusForbidden, status)
	require.NotContains(t, text, "secret")
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	status, text = get(t, &http.Client{Jar: jar}, s.address)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "secret words")

	require.Empty(t, s.end(), "the address stands alone on stdout")
	left, err := filepath.Glob(filepath.Join(tmp, "decree-open-*"))
	require.NoError(t, err)
	require.Empty(t, left, "the file that led there goes with the server")
}
