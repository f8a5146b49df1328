//go:build unix

package cmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLeasesUnderKills has runs with records, failing runs and reverts inside them, others
// at work beside them, and SIGKILL at any moment for the run's process, or for it and its
// command. After each the project is sound and the run's work can be taken back, to the
// same tree by hash. DECREE_KILLS and DECREE_SEED set how many rounds and which.
func TestLeasesUnderKills(t *testing.T) {
	rounds := 24
	switch {
	case os.Getenv("DECREE_LONG") != "":
		rounds = 400
	case testing.Short():
		rounds = 8
	}
	rounds = int(numberOf(t, "DECREE_KILLS", int64(rounds)))
	seed := numberOf(t, "DECREE_SEED", 1)
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	l := &leased{proving: newProving(t, rng)}
	l.grow(60)
	l.must("checkpoint", "--label", "first")
	first := l.look()
	for n := range rounds {
		l.round(n)
	}
	l.sound(true)
	l.must("restore", "--yes", "first")
	l.same(first, l.look(), "back at the first record")
	t.Logf("seed %d: %d rounds, %d kills, records by status: %v", seed, rounds, l.kills, l.by)
}

type leased struct {
	*proving
	kills int
	by    map[string]int
}

// work is the command of a run, as a script.
func (l *leased) work() string {
	script := []string{fmt.Sprintf("echo $$ >%s", l.pid())}
	for range 2 + l.rng.IntN(5) {
		file := fmt.Sprintf("w%d", l.rng.IntN(6))
		script = append(script, []string{
			fmt.Sprintf("echo %d >>%s", l.rng.IntN(100), file),
			"rm -f " + file,
			l.bin + " -q checkpoint",
			l.bin + " -q label mark last",
			fmt.Sprintf("%s -q run -- sh -c 'echo %d >>%s; echo >in%d; exit %d'", l.bin, l.rng.IntN(100), file, l.rng.IntN(4), l.rng.IntN(2)),
			l.bin + " -q revert --yes last",
			l.bin + " -q restore --yes first",
		}[l.rng.IntN(7)]+" || :")
	}
	return strings.Join(append(script, fmt.Sprintf("exit %d", l.rng.IntN(2))), "\n")
}

// beside does what others may do while a run works; it may be refused for a moment.
func (l *leased) beside(n int) (what [][]string) {
	for range l.rng.IntN(4) {
		what = append(what, [][]string{
			{"-q", "checkpoint", "--wait", "20s"}, {"label", "--wait", "20s", "beside", "first"}, {"send", "-m", fmt.Sprintf("m%d-%d", n, l.rng.IntN(1e6)), "work"},
			{"gc", "--wait", "20s"}, {"status"}, {"log"}, {"run", "true"},
		}[l.rng.IntN(7)])
	}
	return what
}

func (l *leased) round(n int) {
	l.t.Helper()
	before := l.look()
	name := fmt.Sprintf("round %d", n)
	script, others := l.work(), l.beside(n)
	l.log = fmt.Sprintf("%s, beside it %v:\n%s", name, others, script)
	c := exec.Command(l.bin, "-q", "run", "-d", name, "--", "sh", "-c", script)
	c.Dir, c.Env = l.root, l.env
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(l.t, c.Start())
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, args := range others {
			l.decree(args...)
		}
	})
	if l.rng.IntN(3) > 0 {
		kill := time.AfterFunc(time.Duration(l.rng.IntN(250))*time.Millisecond, func() { _ = c.Process.Kill() })
		_ = c.Wait()
		if !kill.Stop() && !c.ProcessState.Exited() {
			l.kills++
			if l.rng.IntN(2) == 0 {
				l.killCommand()
			}
		}
	} else {
		_ = c.Wait()
	}
	wg.Wait()
	// A run inside may have lived on, and ended while the first recovery worked.
	l.must("recover", "--kill", "--wait", "20s")
	l.must("recover", "--kill", "--wait", "20s")
	require.Empty(l.t, l.inStore("leases"), l.log)
	require.Empty(l.t, l.inStore("open"), l.log)
	l.judge(name, before)
	if n%6 == 0 {
		l.sound(true)
	}
	_ = os.RemoveAll(filepath.Join(l.root, ".decree/inbox"))
}

// judge looks at the run's record: what it did can be taken back, and brought again.
func (l *leased) judge(name string, before state) {
	l.t.Helper()
	var list []struct{ ID, Status, Description, Inside string }
	out := l.must("log", "--json", "--limit", "60")
	require.NoError(l.t, json.Unmarshal([]byte(out), &list), out)
	if l.by == nil {
		l.by = map[string]int{}
	}
	for _, r := range list {
		require.NotEqual(l.t, "open", r.Status, l.log)
		if r.Description != name {
			continue
		}
		l.by[r.Status]++
		now := l.look()
		if r.Status == "reverted" {
			l.same(before, now, "put back")
			l.must("apply", "--yes", r.ID)
			l.must("revert", "--yes", "last")
			l.same(before, l.look(), "its work, brought and taken back")
			return
		}
		l.must("revert", "--yes", r.ID)
		l.same(before, l.look(), "taken back")
		l.must("apply", "--yes", r.ID)
		l.same(now, l.look(), "brought again")
		return
	}
	l.same(before, l.look(), "no record, no change")
}
