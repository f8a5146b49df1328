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

// TestRestoresIntoADirectoryUnderKills ends a restore into an empty directory with SIGKILL at any moment, and sees that the
// same command, repeated, goes on with it to the same end, and that what reads says what is to be done.
// DECREE_KILLS and DECREE_SEED set how many such ends there are, and which.
func TestRestoresIntoADirectoryUnderKills(t *testing.T) {
	kills, least := int64(25), 1
	if testing.Short() {
		kills, least = 4, 0
	}
	kills = numberOf(t, "DECREE_KILLS", kills)
	p := newProving(t, rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 10)))
	p.grow(25)
	p.must("run", "--", "sh", p.script(0))
	target := filepath.Join(p.base, "target")
	p.must("send", "-m", "m", "a task")
	p.must("backup", "--to", target)
	want := p.look()
	p.env = append(p.env, "XDG_DATA_HOME="+filepath.Join(p.base, "elsewhere"))
	into := filepath.Join(p.base, "into")
	args := []string{"backup", "restore", "--from", target, "--into", into}
	began := time.Now()
	p.must(args...)
	whole := time.Since(began)

	said, killed := 0, int64(0)
	for killed < kills {
		require.NoError(t, os.RemoveAll(into))
		require.NoError(t, os.RemoveAll(filepath.Join(p.base, "elsewhere")))
		p.log = ""
		for ended := false; !ended; {
			c := exec.Command(p.bin, args...)
			c.Dir, c.Env = p.base, p.env
			var out strings.Builder
			c.Stdout, c.Stderr = &out, &out
			require.NoError(t, c.Start())
			after := time.Duration(p.rng.Int64N(int64(whole) * 5 / 4))
			timer := time.AfterFunc(after, func() { _ = c.Process.Signal(syscall.SIGKILL) })
			_ = c.Wait()
			timer.Stop()
			p.log += "\nkilled after " + after.String() + ": " + c.ProcessState.String() + ": " + out.String()
			if ended = c.ProcessState.ExitCode() >= 0; ended && strings.Contains(out.String(), "is not empty") {
				require.NoFileExists(t, filepath.Join(into, ".decree/into.json"), p.log) // the one before died behind the end
			} else if ended {
				require.Zero(t, c.ProcessState.ExitCode(), p.log)
			}
			if ended {
				break
			}
			killed++
			if _, err := os.Stat(filepath.Join(into, ".decree/into.json")); err == nil && p.rng.IntN(2) == 0 {
				there := *p
				there.root = into
				_, text := there.decree("log")
				require.Contains(t, text, "is not finished: 'decree backup restore' goes on with it there", p.log)
				said++
			}
		}
		p.same(want, lookAt(t, into), "the tree that came\n"+p.log)
		there := *p
		there.root = into
		there.must("verify", "--all")
		require.NotContains(t, there.must("log"), "not finished", p.log)
		require.Contains(t, there.must("inbox"), "a task", p.log)
		require.NoFileExists(t, filepath.Join(into, ".decree/into.json"))
	}
	require.GreaterOrEqual(t, said, least)
}
