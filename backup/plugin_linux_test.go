package backup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/runner"
)

// TestWhoLeavesAPluginsSessionIsNamed has a plugin that takes too long start a process in a session of its own, which no end of a
// process group reaches.
func TestWhoLeavesAPluginsSessionIsNamed(t *testing.T) {
	root, _ := pluginRoot(t)
	command := `setsid sh -c 'echo $$ > child; exec sleep 1000' & until [ -s child ]; do sleep 0.01; done; sleep 1000`
	failed, err := runCommands(t.Context(), root, os.Environ(), []project.Plugin{{Name: "slow", Command: command, Timeout: time.Second}})
	data, rerr := os.ReadFile(filepath.Join(root, "child"))
	require.NoError(t, rerr, "it had begun")
	pid, rerr := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(t, rerr)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	require.NoError(t, err)
	require.True(t, runner.Lives(runner.ProcessAt(pid)))
	require.Len(t, failed, 1)
	require.Equal(t, "plugin slow: not done in 1s, and ended with its process group; process "+strconv.Itoa(pid)+" (sleep) has left the group and goes on", failed[0].Error())
}
