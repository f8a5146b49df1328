//go:build linux || darwin

package runner

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const lineageEnv = "DECREE_TEST_LINEAGE"

// A process descends from those that started it, through a shell too, and from none that
// has ended before it.
func TestLineage(t *testing.T) {
	if pid := os.Getenv(lineageEnv); pid != "" {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		found := slices.IndexFunc(Lineage(), func(a Ancestor) bool { return a.PID == n && a.StartTime != 0 })
		os.Stdout.WriteString("found at " + strconv.Itoa(found) + "\n")
		return
	}
	self := Lineage()
	require.NotEmpty(t, self)
	assert.Equal(t, os.Getpid(), self[0].PID)
	assert.Equal(t, os.Getppid(), self[1].PID)

	exe, err := os.Executable()
	require.NoError(t, err)
	run := func(script string) string {
		c := exec.Command("sh", "-c", script)
		c.Env = append(os.Environ(), lineageEnv+"="+strconv.Itoa(os.Getpid()), "EXE="+exe)
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	assert.Contains(t, run(`"$EXE" -test.run='^TestLineage$'; true`), "found at 2\n")
	out := run(`sh -c 'while kill -0 $PPID 2>/dev/null && test "$(ps -o ppid= -p $$ | tr -d " ")" = '$$'; do :; done; "$EXE" -test.run="^TestLineage$"' & exit 0`)
	assert.True(t, strings.Contains(out, "found at -1\n"), out)
}
