package runner

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const timensEnv = "DECREE_TEST_TIMENS"

// TestTimeNamespace: what was noted of a process outside means the same one to a decree in a
// time namespace, where the time since boot begins elsewhere.
func TestTimeNamespace(t *testing.T) {
	if text := os.Getenv(timensEnv); text != "" {
		var l Leader
		require.NoError(t, json.Unmarshal([]byte(text), &l))
		alive, err := Alive(l)
		require.NoError(t, err)
		require.Len(t, alive, 1)
		require.True(t, Lives(Ancestor{PID: l.PID, StartTime: l.StartTime}))
		require.NotZero(t, bootOffset())
		return
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	inside := func(args ...string) *exec.Cmd {
		return exec.Command("unshare", append([]string{"--time", "--boottime", "100000", "--fork"}, args...)...)
	}
	if err := inside("true").Run(); err != nil {
		t.Skip("no time namespace: ", err)
	}
	c := exec.Command("sleep", "300")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	text, err := json.Marshal(leaderAt(c.Process.Pid))
	require.NoError(t, err)
	again := inside(exe, "-test.run=^TestTimeNamespace$", "-test.v")
	again.Env = append(os.Environ(), timensEnv+"="+string(text))
	out, err := again.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PASS: TestTimeNamespace")
}

func TestParseOffsets(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "monotonic           0         0\nboottime       100000         0\n": 10_000_000,
		"monotonic           0         0\nboottime           -2 500000000\n": -150,
	} {
		require.Equal(t, want, int64(parseOffsets([]byte(text))), text) //nolint:gosec // one below 0 wraps round
	}
}
