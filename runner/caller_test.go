//go:build linux || darwin

package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCaller has a shell start this program again, one that is known and one that is not: who
// started the shell is its caller.
func TestCaller(t *testing.T) {
	line := filepath.Base(os.Args[0]) + " -test.run=TestCaller$ -test.v=false -test.short=true" // as no person calls this test
	if os.Getenv("TEST_CALLER") != "" {
		caller, ok := Caller(line)
		require.True(t, ok)
		_, err := os.Stdout.WriteString("caller=" + strconv.Itoa(caller.PID) + "\n")
		require.NoError(t, err)
		return
	}
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	unknown := filepath.Join(t.TempDir(), "xonsh")
	require.NoError(t, os.Symlink(sh, unknown))
	for _, shell := range []string{sh, unknown} {
		c := exec.Command(shell, "-c", line+" || :")
		c.Env = append(os.Environ(), "TEST_CALLER=1", "PATH="+filepath.Dir(os.Args[0])+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "caller="+strconv.Itoa(os.Getpid())+"\n", shell)
	}
	// What only speaks of the line is a caller like others.
	c := exec.Command(unknown, "-c", ": ; "+line+" || :")
	c.Env = append(os.Environ(), "TEST_CALLER=1", "PATH="+filepath.Dir(os.Args[0])+":"+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "caller="+strconv.Itoa(c.Process.Pid)+"\n")
}

// TestLives tells a process from one that has ended, and from a later one of its number.
func TestLives(t *testing.T) {
	self := Lineage()[0]
	require.True(t, Lives(self))
	self.StartTime++
	require.False(t, Lives(self))

	c := exec.Command("cat")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	start, live := startAt(c.Process.Pid)
	require.True(t, live)
	gone := Ancestor{PID: c.Process.Pid, StartTime: start}
	require.NoError(t, in.Close())
	require.NoError(t, c.Wait())
	require.False(t, Lives(gone))
	require.Equal(t, "", strings.TrimSpace(nameAt(1<<30)))
}
