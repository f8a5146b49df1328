//go:build linux || darwin

package runner

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCaller has a shell start this program again: who started the shell is its caller.
func TestCaller(t *testing.T) {
	if os.Getenv("TEST_CALLER") != "" {
		caller, ok := Caller()
		require.True(t, ok)
		_, err := os.Stdout.WriteString("caller=" + strconv.Itoa(caller.PID) + "\n")
		require.NoError(t, err)
		return
	}
	c := exec.Command("sh", "-c", `"$0" -test.run=TestCaller$ || :`, os.Args[0])
	c.Env = append(os.Environ(), "TEST_CALLER=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "caller="+strconv.Itoa(os.Getpid())+"\n")
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
