package cmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hookKilled calls a hook and kills it after a while; true if it came to its end before.
func (p *proving) hookKilled(after time.Duration, payload, event string) bool {
	p.t.Helper()
	c := exec.Command(p.bin, "hook", "codex", event)
	c.Dir, c.Env, c.Stdin = p.root, p.env, strings.NewReader(payload)
	var out strings.Builder
	c.Stdout = &out
	require.NoError(p.t, c.Start())
	timer := time.AfterFunc(after, func() { _ = c.Process.Signal(syscall.SIGKILL) })
	err := c.Wait()
	timer.Stop()
	require.Empty(p.t, out.String())
	if err == nil {
		return true
	}
	require.Equal(p.t, syscall.SIGKILL, c.ProcessState.Sys().(syscall.WaitStatus).Signal(), "a hook ends with 0 or is killed: %v", err)
	return false
}

// turns are the prompts of the turns, by what became of them.
func (p *proving) turns() map[string]string {
	p.t.Helper()
	var list []struct{ Prompt, Status, Continues string }
	code, out := p.decree("-q", "turns", "--json")
	require.Zero(p.t, code, out)
	require.NoError(p.t, json.Unmarshal([]byte(out), &list), out)
	by := map[string]string{}
	for _, r := range list {
		if r.Continues != "" {
			continue
		}
		require.NotContains(p.t, by, r.Prompt, "one prompt, one turn")
		by[r.Prompt] = r.Status
	}
	return by
}

// TestKilledHooks kills hooks at any moment. No turn whose prompt was recorded is lost, what is
// done in it is in its diff, and nothing is left half-written.
func TestKilledHooks(t *testing.T) {
	rounds := 12
	if os.Getenv("DECREE_LONG") != "" {
		rounds = 400 // of two hooks each, most of which are killed
	}
	rng := rand.New(rand.NewPCG(14, 3))
	p := newProving(t, rng)
	file := filepath.Join(p.root, "f")
	require.NoError(t, os.WriteFile(file, []byte("0\n"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(p.root, ".git"), 0o755))
	p.must("checkpoint")
	require.NoError(t, os.WriteFile(filepath.Join(p.root, ".decree/config.yml"), []byte("retention: {turn: all}\n"), 0o644))
	any := func() time.Duration { return time.Duration(rng.IntN(40_000)) * time.Microsecond }
	known, kills := map[string]bool{}, 0
	for n := 1; n <= rounds; n++ {
		prompt := fmt.Sprintf("prompt %d", n)
		opened := p.hookKilled(any(), fmt.Sprintf(`{"session_id":"s","prompt":%q}`, prompt), "UserPromptSubmit")
		turns := p.turns()
		if opened {
			require.Contains(t, turns, prompt, "acknowledged and lost")
		} else {
			kills++
		}
		for prompt := range known {
			require.Contains(t, turns, prompt, "a turn is lost")
		}
		require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintln(n)), 0o644))
		if !p.hookKilled(any(), `{"session_id":"s"}`, "Stop") {
			kills++
		}
		for prompt := range p.turns() {
			known[prompt] = true
		}
		if turns[prompt] == "open" && n%3 == 0 {
			p.must("-q", "undo")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NotEqual(t, fmt.Sprintln(n), string(data), "what was done in the turn is taken back")
		}
		if n%10 == 0 {
			p.must("recover")
			require.True(t, p.hookKilled(time.Minute, `{"session_id":"s"}`, "Stop"))
			p.sound(false)
		}
	}
	require.True(t, p.hookKilled(time.Minute, `{"session_id":"s"}`, "Stop"))
	p.must("checkpoint")
	p.sound(true)
	t.Logf("%d kills, %d turns", kills, len(known))
}
