package runner

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGroupOfAContainer: a command that a dead decree of a container has left is seen and
// ended from outside, where its numbers are others.
func TestGroupOfAContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for a namespace of pids")
	}
	first := exec.Command("sh", "-c", "setsid sleep 300 & echo; wait")
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	out, err := first.StdoutPipe()
	require.NoError(t, err)
	if err := first.Start(); err != nil {
		t.Skip("no namespace of pids: ", err)
	}
	t.Cleanup(func() { _ = first.Process.Kill(); _ = first.Wait() })
	_, err = out.Read(make([]byte, 1)) // the shell has forked
	require.NoError(t, err)
	leads := func(r row) bool { return r.parent == first.Process.Pid && r.pgrp == r.pid }
	var leader row
	require.Eventually(t, func() bool {
		rows, err := processes(0)
		require.NoError(t, err)
		for _, r := range rows {
			if leads(r) {
				leader = r
			}
		}
		return leader.pid != 0
	}, time.Minute, time.Millisecond)
	l := Leader{PID: 2, PGID: 2, StartTime: leader.start, BootID: BootID(), Space: space(strconv.Itoa(leader.pid))}
	require.NotEqual(t, space("self"), l.Space)
	alive, err := Alive(l)
	require.NoError(t, err)
	require.Len(t, alive, 1)
	require.Equal(t, leader.pid, alive[0].PID)
	require.NoError(t, Kill(l, nil, time.Minute))
	alive, err = Alive(l)
	require.NoError(t, err)
	require.Empty(t, alive)
}
