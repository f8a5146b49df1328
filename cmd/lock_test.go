//go:build unix

package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// holding starts a run that goes on until release; its command has begun.
func (p *proving) holding(script string) (c *exec.Cmd, release func() int) {
	p.t.Helper()
	started, end := filepath.Join(p.base, "started"), filepath.Join(p.base, "end")
	_ = os.Remove(started)
	_ = os.Remove(end)
	require.NoError(p.t, syscall.Mkfifo(started, 0o600))
	require.NoError(p.t, syscall.Mkfifo(end, 0o600))
	c = exec.Command(p.bin, "-q", "run", "--", "sh", "-c", fmt.Sprintf("echo $$ >%s; %s; echo >%s; read line <%s", p.pid(), script, started, end))
	c.Dir, c.Env = p.root, p.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(p.t, c.Start())
	_, err := os.ReadFile(started) // until the command closes it
	require.NoError(p.t, err)
	return c, func() int {
		require.NoError(p.t, os.WriteFile(end, []byte("go\n"), 0o600))
		_ = c.Wait()
		return c.ProcessState.ExitCode()
	}
}

// as is the same tree for another user with a store elsewhere.
func (p *proving) as(name string) *proving {
	other := *p
	other.env = append(append([]string(nil), p.env...), "HOME="+filepath.Join(p.base, name), "XDG_DATA_HOME="+filepath.Join(p.base, name, "data"))
	return &other
}

// TestSixteenProcessesAreAllRecorded starts them at once, in a tree without a
// project: one makes it, each waits for the others, and no two are ever inside.
func TestSixteenProcessesAreAllRecorded(t *testing.T) {
	p := newProving(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "f"), []byte("one\n"), 0o644))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			code, out := p.decree("-q", "run", "--wait", "10m", "-d", fmt.Sprint("process ", i), "--", "sh", "-c",
				fmt.Sprintf("mkdir ../inside || echo %d >>../both; echo %d >>f; rmdir ../inside", i, i))
			assert.Zero(t, code, out)
		})
	}
	wg.Wait()
	assert.NoFileExists(t, filepath.Join(p.base, "both"), "two writers were in at once")
	log := p.must("log")
	for i := range 16 {
		assert.Contains(t, log, fmt.Sprintf("process %d ", i))
	}
	data, err := os.ReadFile(filepath.Join(p.root, "f"))
	require.NoError(t, err)
	assert.Equal(t, 17, bytes.Count(data, []byte("\n")))
	p.sound(true)
	for range 16 { // one on the other, back to the first
		p.must("revert", "--yes", strings.Fields(lastRun(p))[0])
	}
	data, err = os.ReadFile(filepath.Join(p.root, "f"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(data))
}

// lastRun is the line of the newest run that is not undone.
func lastRun(p *proving) string {
	for line := range strings.Lines(p.must("log", "--reason", "run", "--limit", "100")) {
		if strings.Contains(line, "succeeded") {
			return line
		}
	}
	require.Fail(p.t, "no run is left")
	return ""
}

// TestReadersNeverBlock while a run goes on; what would move files is told who is at work.
func TestReadersNeverBlock(t *testing.T) {
	p := newProving(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "f"), []byte("one\n"), 0o644))
	p.must("run", "--", "sh", "-c", "echo two >f")
	c, release := p.holding("echo three >f")
	for _, args := range [][]string{
		{"log"}, {"status"}, {"show", "last"}, {"diff", "last"}, {"files"}, {"ignored", "f"}, {"verify", "last"}, {"verify", "--all"},
		{"doctor"}, {"audit"}, {"at", "1s ago", "--json"}, {"label"},
	} {
		code, out := p.decree(args...)
		if args[0] == "audit" && code == 2 || args[0] == "at" && code == 3 {
			continue // not there (yet), which is no waiting
		}
		assert.Zero(t, code, "%v: %s", args, out)
	}
	for _, args := range [][]string{{"revert", "last"}, {"restore", "last", "--yes"}, {"forget", "f", "--yes"}, {"revert", "last", "--wait", "1ms"}} {
		code, out := p.decree(args...)
		assert.Equal(t, 4, code, "%v: %s", args, out)
		assert.Contains(t, out, fmt.Sprintf("process %d ", c.Process.Pid), "%v", args)
		assert.Contains(t, out, "nothing was changed", "%v", args)
	}
	p.must("checkpoint")
	p.must("label", "x", "last")
	p.must("recover")
	assert.Zero(t, release())
	p.must("checkpoint")
	p.sound(true)
}

// TestTwoStoresExcludeEachOther: the lock is the root's, not the store's.
func TestTwoStoresExcludeEachOther(t *testing.T) {
	p := newProving(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "f"), []byte("one\n"), 0o644))
	root := p.as("root")
	root.must("checkpoint")
	require.NoError(t, os.RemoveAll(filepath.Join(p.root, ".decree")))
	p.must("checkpoint")
	_, release := p.holding("rm -rf .decree; echo two >f")
	code, out := root.decree("checkpoint")
	assert.Equal(t, 4, code, out)
	assert.Contains(t, out, "another decree is at work on this tree; nothing was changed")
	code, out = root.decree("run", "true")
	assert.Equal(t, 125, code, out)
	assert.Zero(t, release())
	p.sound(true)
	p.must("revert", "last")
}

// TestLockIsFreeAfterAKill, whatever the dead process has said about itself.
func TestLockIsFreeAfterAKill(t *testing.T) {
	p := newProving(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "f"), []byte("one\n"), 0o644))
	p.must("checkpoint")
	c, _ := p.holding("echo two >f")
	require.NoError(t, syscall.Kill(-c.Process.Pid, syscall.SIGKILL))
	_ = c.Wait()
	code, out := p.decree("checkpoint")
	assert.Equal(t, 4, code, "its command still runs: %s", out)
	p.killCommand()
	require.Contains(t, p.must("recover"), "was interrupted")
	p.sound(true)
	p.must("revert", "last")
	data, err := os.ReadFile(filepath.Join(p.root, "f"))
	require.NoError(t, err)
	assert.Equal(t, "one\n", string(data))
}
