//go:build growth

package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const rounds = 9

// TestIsolatedBars prints what isolated runs cost over a copy of GROWTH_TREE, beside a run in
// place, a git worktree and a copy. All are medians of nine, taken turn about.
func TestIsolatedBars(t *testing.T) {
	if !canOverlay() {
		t.Skip("overlays cannot be mounted here")
	}
	g := newGrowing(t, os.Getenv("GROWTH_TREE"))
	g.decree("checkpoint", "--yes")
	g.old()
	change := g.changeScript()
	cells := map[string][]time.Duration{}
	put := func(name string, d time.Duration) { cells[name] = append(cells[name], d) }
	for range rounds {
		for _, l := range []struct {
			name string
			args []string
		}{
			{"`run -- true` in place", []string{"run", "--yes", "--", "true"}},
			{"`run --isolated -- true`", []string{"run", "--isolated", "--", "true"}},
			{"`checkpoint`, nothing changed", []string{"checkpoint", "--yes"}},
		} {
			c, _ := g.decree(l.args...)
			put(l.name, c.wall)
		}
		put("ready: the isolated command's first output", g.ready())
		g.draft(change, put)
	}
	var names []string
	for name := range cells {
		slices.Sort(cells[name])
		names = append(names, name)
	}
	slices.Sort(names)
	at := func(name string) time.Duration { return cells[name][len(cells[name])/2] }
	t.Logf("| %d files | ms | |\n|---|---|---|", g.files())
	for _, name := range names {
		t.Logf("| %s | %.1f | %.3f of a run in place |", name, ms(at(name)), float64(at(name))/float64(at("`run -- true` in place")))
	}
	bare := at("20 changed, 5 deleted: the command alone")
	t.Logf("| the change found, diffed, recorded, beyond `true` and the command | %.1f | bar 40 |", ms(at("20 changed, 5 deleted: `run --isolated`")-at("`run --isolated -- true`")-bare))
	t.Logf("| the publish beyond a warm capture | %.1f | bar 60 |", ms(at("20 changed, 5 deleted: `publish`")-at("`checkpoint`, nothing changed")))
	g.rivals()
	g.eight(change)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// old waits until nothing in the tree is as young as the clock's tick: the next run's
// bases would be asked for otherwise.
func (g *growing) old() {
	probe := filepath.Join(g.home, "probe")
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		require.NoError(g.t, os.WriteFile(probe, nil, 0o600))
	}
}

func (g *growing) files() (n int) {
	out, err := exec.Command("sh", "-c", "find '"+g.dir+"' -name .decree -prune -o -type f -print | wc -l").Output()
	require.NoError(g.t, err)
	n, err = strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(g.t, err)
	return n
}

// changeScript changes twenty files and deletes five, spread over the tree.
func (g *growing) changeScript() string {
	var b strings.Builder
	for i := range 25 {
		rel, err := filepath.Rel(g.dir, g.plenty[i*7919%len(g.plenty)])
		require.NoError(g.t, err)
		if i < 20 {
			fmt.Fprintf(&b, "echo '// one line more' >>'%s'\n", rel)
		} else {
			fmt.Fprintf(&b, "rm '%s'\n", rel)
		}
	}
	return b.String()
}

// ready is the time from the start of decree to what the command first says: the time of day.
func (g *growing) ready() time.Duration {
	c := exec.Command(g.bin, "run", "--isolated", "--", "date", "+%s%N")
	c.Dir, c.Env = g.dir, g.env
	var out bytes.Buffer
	c.Stdout = &out
	begin := time.Now()
	require.NoError(g.t, c.Run())
	n, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	require.NoError(g.t, err)
	return time.Unix(0, n).Sub(begin)
}

// draft makes a draft of the change, publishes it and takes that back.
func (g *growing) draft(change string, put func(string, time.Duration)) {
	g.old()
	c, _ := g.decree("run", "--isolated", "--name", "change", "--", "sh", "-c", change)
	put("20 changed, 5 deleted: `run --isolated`", c.wall)
	c, _ = g.decree("publish", "change")
	put("20 changed, 5 deleted: `publish`", c.wall)
	g.decree("revert", "last")
	g.decree("discard", "--yes", "change")
	put("20 changed, 5 deleted: the command alone", g.alone(change))
	g.old()
}

// alone is how long the change takes without decree, on a copy of its files.
func (g *growing) alone(change string) time.Duration {
	scratch := filepath.Join(g.home, "scratch")
	require.NoError(g.t, os.RemoveAll(scratch))
	for _, line := range strings.Split(strings.TrimSpace(change), "\n") {
		rel := strings.Split(line, "'")[len(strings.Split(line, "'"))-2]
		require.NoError(g.t, os.MkdirAll(filepath.Dir(filepath.Join(scratch, rel)), 0o700))
		data, err := os.ReadFile(filepath.Join(g.dir, rel))
		require.NoError(g.t, err)
		require.NoError(g.t, os.WriteFile(filepath.Join(scratch, rel), data, 0o600))
	}
	begin := time.Now()
	g.sh(scratch, change)
	return time.Since(begin)
}

// rivals are what else gives a command a tree of its own.
func (g *growing) rivals() {
	second := filepath.Join(g.home, "second")
	began := time.Now()
	g.sh(g.home, "cp -a --reflink=auto '"+g.dir+"' '"+second+"'")
	g.t.Logf("| `cp -a --reflink=auto` | %.1f | |", ms(time.Since(began)))
	git := "git -c user.name=someone -c user.email=someone@example.org -c gc.auto=0 "
	g.sh(second, git+"init -q && "+git+"add -A && "+git+"commit -qm one")
	began = time.Now()
	g.sh(second, git+"worktree add -q ../third 2>/dev/null")
	g.t.Logf("| `git worktree add` (without what is ignored or not committed) | %.1f | |", ms(time.Since(began)))
	g.sh(g.home, "rm -rf second third")
}

// eight runs the change eight times at once: memory of the processes, disk of the store.
func (g *growing) eight(change string) {
	before := g.usage().total()
	list := make([]*exec.Cmd, 8)
	for i := range list {
		list[i] = exec.Command(g.bin, "run", "--isolated", "--", "sh", "-c", change+"sleep 2")
		list[i].Dir, list[i].Env = g.dir, g.env
		require.NoError(g.t, list[i].Start())
	}
	var most int64
	for _, c := range list {
		require.NoError(g.t, c.Wait())
		most = max(most, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	g.t.Logf("| eight at once | %.1f MB of disk | %.1f MB of memory each |", float64(g.usage().total()-before)/1e6, float64(most)/1e3)
}

func (g *growing) sh(dir, script string) {
	g.t.Helper()
	c := exec.Command("sh", "-c", script)
	c.Dir, c.Env = dir, g.env
	out, err := c.CombinedOutput()
	require.NoError(g.t, err, "%s\n%s", script, out)
}
