package runner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/runner/fence"
)

// fenced is a place that may be written and one beside it that may not. The test is skipped
// where the kernel has no fence.
func fenced(t *testing.T) (f fence.Fence, in, out string) {
	t.Helper()
	if hold, lacks := fence.HoldOf(fence.Kernel()); hold != fence.Whole {
		t.Skip(lacks)
	}
	base := t.TempDir()
	in, out = filepath.Join(base, "in"), filepath.Join(base, "out")
	for _, d := range []string{in, out} {
		require.NoError(t, os.Mkdir(d, 0o755))
		require.NoError(t, os.WriteFile(d+"/old", []byte("old\n"), 0o644))
	}
	return fence.Fence{Write: []string{in, os.DevNull, base + "/missing"}}, in, out
}

// TestFence: all kinds of writes work inside, none outside, and reading works everywhere.
func TestFence(t *testing.T) {
	f, in, out := fenced(t)
	for _, script := range []string{
		"echo new >new", "echo more >>old", ": >old", "rm old", "mv old new", "mkdir d", "ln -s old l", "ln old h", "mkfifo p", "truncate -s0 old",
		"mkdir a b && echo x >a/f && mv a/f b/f", helperEnv + "=truncates $TEST_BINARY old",
	} {
		for dir, want := range map[string]int{in: 0, out: 1} {
			c := shell("cat ../out/old && (" + script + ") 2>/dev/null")
			c.Dir, c.Fence, c.Stdout = dir, f, output(t)
			c.Env = append(c.Env, "TEST_BINARY="+os.Args[0])
			res := run(t, c)
			assert.Equal(t, want, min(1, res.ExitCode), "%s in %s", script, dir)
			assert.Equal(t, "old\n", content(t, c.Stdout))
		}
		require.NoError(t, os.RemoveAll(in))
		require.NoError(t, os.Mkdir(in, 0o755))
		require.NoError(t, os.WriteFile(in+"/old", []byte("old\n"), 0o644))
	}
	list, err := os.ReadDir(out)
	require.NoError(t, err)
	assert.Len(t, list, 1)
	text, err := os.ReadFile(out + "/old")
	require.NoError(t, err)
	assert.Equal(t, "old\n", string(text))
}

// TestFenceOfAFile: a place may be a file; what is not there is passed over.
func TestFenceOfAFile(t *testing.T) {
	f, in, out := fenced(t)
	f.Write = []string{in + "/old", out + "/none"}
	c := shell("echo more >>old; : >old && (rm old || echo new >new) 2>/dev/null")
	c.Dir, c.Fence = in, f
	assert.NotZero(t, run(t, c).ExitCode)
	list, err := os.ReadDir(in)
	require.NoError(t, err)
	assert.Len(t, list, 1)
}

// TestFenceIsInherited: what the command starts is kept in too; what it writes to a handle
// that it was given comes through, and this process has no fence.
func TestFenceIsInherited(t *testing.T) {
	f, in, out := fenced(t)
	c := shell(`setsid sh -c 'echo x >../out/new' 2>/dev/null; echo said`)
	c.Dir, c.Fence = in, f
	given, err := os.OpenFile(out+"/old", os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer given.Close()
	c.Stdout = given
	run(t, c)
	assert.NoFileExists(t, out+"/new")
	text, err := os.ReadFile(out + "/old")
	require.NoError(t, err)
	assert.Equal(t, "old\nsaid\n", string(text))
	assert.NoError(t, os.WriteFile(out+"/new", nil, 0o600))
}

// TestFenceInOverlay: the place is the layer's mount, and what lies under it stays as it is.
func TestFenceInOverlay(t *testing.T) {
	m := layered(t)
	f, _, out := fenced(t)
	f.Write = []string{m.Root}
	c := shell(`echo new >new && rm old && mkdir d && mv new d/ && ! echo x >"$1/new"`, out)
	c.Dir, c.Overlay, c.Fence = m.Root, m, f
	assert.Zero(t, run(t, c).ExitCode)
	assert.FileExists(t, m.Layer+"/upper/d/new")
	assert.FileExists(t, m.Root+"/old")
	assert.NoFileExists(t, out+"/new")
}

func init() {
	helpers["truncates"] = func(args []string) {
		if os.Truncate(args[0], 0) != nil {
			os.Exit(1)
		}
	}
	helpers["dials"] = func(args []string) {
		for _, host := range []string{"127.0.0.1", "192.0.2.1"} {
			var errno syscall.Errno
			_, err := net.Dial("tcp4", net.JoinHostPort(host, args[0]))
			errors.As(err, &errno)
			fmt.Println(host, errno)
		}
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err == nil {
			_, err = net.Dial("tcp4", l.Addr().String())
		}
		if err == nil {
			fmt.Println("its own server is reached")
		}
	}
}

// unplugged skips a test where the machine makes no network namespaces.
func unplugged(t *testing.T) {
	t.Helper()
	if err := TryNoNet(); err != nil {
		t.Skip("this machine makes no network namespaces: ", err)
	}
}

// TestNoNet: nobody outside is reached, and a server of the command's own is.
func TestNoNet(t *testing.T) {
	unplugged(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for _, over := range []bool{false, true} {
		c := Command{Args: []string{os.Args[0], port}, Env: append(os.Environ(), helperEnv+"=dials"), Stdout: output(t), Fence: fence.Fence{NoNet: true}}
		if over {
			c.Overlay = layered(t)
		}
		res := run(t, c)
		assert.Zero(t, res.ExitCode)
		assert.Equal(t, "127.0.0.1 connection refused\n192.0.2.1 network is unreachable\nits own server is reached\n", content(t, c.Stdout))
	}
}

// TestNoNetKeepsWhoItIs: a plain user has neither capabilities nor another identity.
func TestNoNetKeepsWhoItIs(t *testing.T) {
	unplugged(t)
	c := shell(`id -u; grep CapEff /proc/self/status | tr -d '\t'`)
	c.Stdout, c.Fence = output(t), fence.Fence{NoNet: true}
	run(t, c)
	lines := strings.Split(content(t, c.Stdout), "\n")
	assert.Equal(t, strings.TrimSpace(exactOutput(t, "id", "-u")), lines[0])
	if os.Geteuid() != 0 {
		assert.Equal(t, "CapEff:0000000000000000", lines[1])
	}
}
