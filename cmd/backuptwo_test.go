//go:build unix

package cmd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBackupsAtOnce has two commands of a project, and a machine with another project of the same name, make
// backups in one target at the same moment, and be killed. What each of them was told to be made is
// there as it was, and the two projects are never mixed. With
// DECREE_LONG there are 50,000 objects of others in the target.
func TestBackupsAtOnce(t *testing.T) {
	rounds, foreign := 6, 300
	switch {
	case os.Getenv("DECREE_LONG") != "":
		rounds, foreign = 60, 50_000
	case testing.Short():
		rounds, foreign = 2, 20
	}
	for _, kind := range []struct {
		name string
		open func(*battered) (to, files string)
	}{
		{"directory", func(b *battered) (string, string) { return b.directory(), b.directory() }},
		{"bucket", func(b *battered) (string, string) {
			to, dir := b.gateway()
			return to, filepath.Join(dir, "bucket/under")
		}},
		{"ssh", func(b *battered) (string, string) { return b.ssh(), filepath.Join(b.base, "target") }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			b := newBattered(t, rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 10)))
			to, files := kind.open(b)
			for i := range foreign {
				dir := filepath.Join(files, []string{".", "others", "tree/packs", "tree/archives", "other"}[i%5], fmt.Sprint(i%50))
				if i < 250 {
					require.NoError(t, os.MkdirAll(dir, 0o755))
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("foreign", i)), []byte("not ours"), 0o644))
			}
			b.begin(to, false)
			machines := []*battered{b, nil, b.another(to)}
			machines[1] = b.second()
			for n := range rounds {
				together(machines, n)
			}
			for _, m := range machines {
				m.settleAmong(machines)
			}
			left, err := filepath.Glob(filepath.Join(files, "others", "*", "foreign*"))
			require.NoError(t, err)
			require.Len(t, left, foreign/5, "files of others stay")
		})
	}
}

// second is for another command in this project.
func (b *battered) second() *battered {
	m := newBattered(b.t, b.rng)
	m.proving, m.want, m.newest, m.clk, m.took, m.name = b.proving, b.want, b.newest, b.clk, b.took, b.name
	return m
}

// another is a machine with another project, which is called the same.
func (b *battered) another(to string) *battered {
	m := newBattered(b.t, b.rng)
	for _, e := range b.env {
		if strings.HasPrefix(e, "AWS_") {
			m.env = append(m.env, e)
		}
	}
	if keys := filepath.Join(b.base, "home/.ssh"); strings.HasPrefix(to, "sftp:") {
		require.NoError(b.t, os.CopyFS(filepath.Join(m.base, "home/.ssh"), os.DirFS(keys)))
	}
	m.name = "tree-2"
	m.begin(to, false)
	b.name = "tree"
	return m
}

// together has all make a backup at once; every third round some of them are killed.
func together(machines []*battered, n int) {
	b := machines[0]
	now := b.clk
	var running []*exec.Cmd
	outputs := make([]strings.Builder, len(machines))
	for i, m := range machines {
		if i != 1 && m.rng.IntN(2) == 0 {
			m.must("run", "--", "sh", m.script(0))
		}
		m.clk = now // the same clock, so that they would give the same name
		c := exec.Command(m.bin, "backup")
		c.Dir, c.Env = m.root, append(slices.Clone(m.env), "DECREE_NOW="+now.Add(time.Hour).Format(time.RFC3339))
		c.Stdout, c.Stderr = &outputs[i], &outputs[i]
		running = append(running, c)
	}
	for i, c := range running {
		require.NoError(b.t, c.Start())
		if n%3 == 2 && b.rng.IntN(2) == 0 {
			timer := time.AfterFunc(time.Duration(1+b.rng.IntN(200))*time.Millisecond, func() { _ = c.Process.Signal(syscall.SIGKILL) })
			defer timer.Stop()
		}
		machines[i].clk = now.Add(time.Hour)
	}
	for i, c := range running {
		_ = c.Wait()
		m, code, out := machines[i], c.ProcessState.ExitCode(), outputs[i].String()
		m.log += fmt.Sprintf("\nround %d, machine %d: exit %d: %s", n, i, code, out)
		made := madeGeneration.FindStringSubmatch(out)
		require.True(b.t, code == -1 || code == 4 || code == 0 && made != nil, "%s", m.log)
		m.exits[code]++
		if made == nil {
			continue
		}
		m.newest = made[1]
		_, twice := m.want[made[1]]
		require.False(b.t, twice, "two generations have the same name\n%s", m.log)
		m.want[made[1]] = m.look() // commands of one project share this map
	}
	if machines[1].newest > b.newest {
		b.newest = machines[1].newest
	}
	machines[1].newest = b.newest
}

// settleAmong sees in the end that a backup can be made and all that is listed can be restored.
func (b *battered) settleAmong(machines []*battered) {
	b.t.Helper()
	for _, m := range machines {
		b.clk = maxTime(b.clk, m.clk)
	}
	b.settle()
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
