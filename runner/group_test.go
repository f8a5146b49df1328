//go:build linux || darwin

package runner

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// start runs script as the leader of a group, as an earlier decree would have,
// and waits for its first line.
func start(t *testing.T, script string) (*exec.Cmd, Leader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	_, err = out.Read(make([]byte, 64))
	require.NoError(t, err)
	return cmd, leaderAt(cmd.Process.Pid)
}

func TestAliveAndKill(t *testing.T) {
	cmd, l := start(t, "sleep 1000 & echo ready; exec sleep 1000")
	alive, err := Alive(l)
	require.NoError(t, err)
	require.Len(t, alive, 2)
	assert.Equal(t, l.PID, alive[0].PID)
	assert.NotEmpty(t, alive[1].Name)
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	require.NoError(t, Kill(l, nil, 10*time.Second))
	require.Error(t, <-done)
	alive, err = Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
	require.NoError(t, Kill(l, nil, 0), "a group that is gone")
}

func TestKillWithoutGrace(t *testing.T) {
	cmd, l := start(t, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	require.NoError(t, Kill(l, nil, time.Millisecond))
	require.ErrorContains(t, <-done, "killed")
}

func TestLeaderGoneMembersAlive(t *testing.T) {
	cmd, l := start(t, "sleep 1000 >/dev/null & echo ready; exit 0")
	require.NoError(t, cmd.Wait())
	alive, err := Alive(l)
	require.NoError(t, err)
	require.Len(t, alive, 1)
	assert.NotEqual(t, l.PID, alive[0].PID)
	require.NoError(t, Kill(l, nil, 10*time.Second))
}

func TestZombiesDoNotCount(t *testing.T) {
	cmd, l := start(t, "echo ready; read x")
	// Its end, but nobody reaps it.
	change := awaitChangeOnly(t, cmd.Process.Pid)
	assert.True(t, change)
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Empty(t, alive)
	require.NoError(t, Kill(l, nil, time.Hour))
}

func TestGuards(t *testing.T) {
	_, l := start(t, "echo ready; exec sleep 1000")
	gone := func(what string, l Leader) {
		t.Helper()
		alive, err := Alive(l)
		require.NoError(t, err, what)
		assert.Empty(t, alive, what)
		require.NoError(t, Kill(l, nil, 0), what)
	}
	if BootID() != "" {
		other := l
		other.BootID = "another"
		gone("another boot", other)
	}
	if l.StartTime != 0 {
		later := l
		later.StartTime++
		gone("the number is another's, older", later)
		earlier := l
		earlier.StartTime--
		gone("the number is another's, younger", earlier)
	}
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Len(t, alive, 1, "still there after all that")

	for _, pgid := range []int{1, 0, -1, -5} {
		_, err := Alive(Leader{PID: pgid, PGID: pgid})
		require.ErrorIs(t, err, errGroup)
		require.ErrorIs(t, Kill(Leader{PID: pgid, PGID: pgid}, nil, 0), errGroup)
	}
	own := Leader{PID: syscall.Getpgrp(), PGID: syscall.Getpgrp()}
	require.Error(t, Kill(own, nil, 0), "would end this process")
}

func TestNames(t *testing.T) {
	assert.Equal(t, "sh (12), sleep (13)", names([]Process{{12, "sh"}, {13, "sleep"}}))
	assert.Empty(t, names(nil))
}

func TestKillOnlyOf(t *testing.T) {
	cmd, l := start(t, "echo ready; exec sleep 1000")
	own := uint32(os.Getuid())
	other := own + 1
	var foreign *ForeignError
	require.ErrorAs(t, Kill(l, &other, time.Minute), &foreign)
	require.Len(t, foreign.Processes, 1)
	assert.Equal(t, l.PID, foreign.Processes[0].PID)
	alive, err := Alive(l)
	require.NoError(t, err)
	assert.Len(t, alive, 1, "another's process is left alone")
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	require.NoError(t, Kill(l, &own, time.Minute))
	require.Error(t, <-done)
}
