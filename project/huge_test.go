package project

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// taken is how much memory do takes from the heap, all in all.
func taken(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHugeFilesTakeNoMemory: a file that is larger than any that decree writes, as a hole makes it, is not read into memory, and of the logs
// what stands behind the hole counts.
func TestHugeFilesTakeNoMemory(t *testing.T) {
	home, work := ground(t)
	p := open(t, Where{Cwd: work, Home: home}, true)
	const huge = 256 << 20
	grow := func(name, end string) {
		name = filepath.Join(p.StorePath, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(huge))
		_, err = f.WriteAt([]byte(end), huge)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	little := func(do func()) { require.Less(t, taken(do), uint64(2<<20)) }

	grow("any", "")
	little(func() {
		_, err := ReadFile(p.Store, "any", huge/2)
		require.ErrorIs(t, err, ErrTooLarge)
	})
	grow(filepath.Join(OwnLogs, AgentReportsLog), "\n{\"agent\":\"last\"}\n")
	little(func() {
		var agents []string
		require.NoError(t, p.EachAgentReport(func(_ int64, told AgentReport) { agents = append(agents, told.Agent) }))
		require.Equal(t, []string{"last"}, agents)
	})
	grow(filepath.Join(OwnLogs, ActsLog), "\n{\"mode\":420}\n")
	little(func() {
		_, err := p.ActAt(0)
		require.Error(t, err)
		a, err := p.ActAt(huge + 1)
		require.NoError(t, err)
		require.EqualValues(t, 420, a.Mode)
	})
	grow(hooksLog, "\n2026-01-01T00:00:00Z before\n")
	little(func() {
		lines, err := p.HooksLog(time.Time{})
		require.NoError(t, err)
		require.Equal(t, []string{"2026-01-01T00:00:00Z before"}, lines)
		require.NoError(t, p.NoteHook(time.Unix(1, 0), "after"))
		lines, err = p.HooksLog(time.Time{})
		require.NoError(t, err)
		require.Len(t, lines, 2)
	})
	st, err := p.Store.Stat(hooksLog)
	require.NoError(t, err)
	require.LessOrEqual(t, st.Size, int64(maxHooksLog))
}
