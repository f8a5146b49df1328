//go:build unix

package cmd

import (
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

// TestRestoresATreeUnderKills ends a restore of records and tree over a project with SIGKILL at any moment. After the next command all is as before, or
// both are the generation's, or the records are and it is said what to type for the tree, which does that.
// DECREE_KILLS and DECREE_SEED set how many such ends there are, and which.
func TestRestoresATreeUnderKills(t *testing.T) {
	kills, least := int64(40), 1
	if testing.Short() {
		kills, least = 6, 0
	}
	kills = numberOf(t, "DECREE_KILLS", kills)
	p := newProving(t, rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 11)))
	p.grow(25)
	p.must("run", "--", "sh", p.script(0))
	target := filepath.Join(p.base, "target")
	p.must("backup", "--to", target)
	want := p.look()
	p.must("run", "--", "sh", p.script(0))
	p.must("run", "--", "sh", "-c", "echo later >later")
	was := p.look()
	saved := filepath.Join(p.base, "saved")
	save(t, saved, p.root, filepath.Join(p.base, "data"))
	args := []string{"backup", "restore", "current", "--from", target, "--tree", "--yes"}
	began := time.Now()
	p.must(args...)
	whole := time.Since(began)

	said := 0
	for killed := int64(0); killed < kills; {
		save(t, p.base, filepath.Join(saved, "tree"), filepath.Join(saved, "data"))
		p.log = ""
		c := exec.Command(p.bin, args...)
		c.Dir, c.Env = p.root, p.env
		require.NoError(t, c.Start())
		after := time.Duration(p.rng.Int64N(int64(whole) * 5 / 4))
		timer := time.AfterFunc(after, func() { _ = c.Process.Signal(syscall.SIGKILL) })
		_ = c.Wait()
		timer.Stop()
		if c.ProcessState.ExitCode() < 0 {
			killed++
		}
		p.must("recover")
		log := p.must("log")
		switch records := !strings.Contains(log, "later"); {
		case !records:
			p.same(was, p.look(), "nothing was restored\n"+p.log)
			require.NotContains(t, log, "not finished", p.log)
		case strings.Contains(log, "not finished"):
			require.Contains(t, log, "'decree backup restore --tree --yes' goes on with the tree", p.log)
			p.must("backup", "restore", "--tree", "--yes")
			said++
			fallthrough
		default:
			p.same(want, p.look(), "all was restored\n"+p.log)
			require.NotContains(t, p.must("log"), "not finished", p.log)
		}
		p.must("verify", "--all")
	}
	require.GreaterOrEqual(t, said, least)
	t.Logf("%d of %d kills left a tree that was to follow", said, kills)
}

// save copies directories into another one, in place of what it has of their names.
func save(t *testing.T, into string, dirs ...string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(into, 0o755))
	for _, dir := range dirs {
		require.NoError(t, os.RemoveAll(filepath.Join(into, filepath.Base(dir))))
		out, err := exec.Command("cp", "-a", dir, into).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
