//go:build growth

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// growing is a tree with a history that becomes long, and the built binary. Its
// command is real: each figure is a process, with its start.
type growing struct {
	t         *testing.T
	bin, dir  string
	home      string
	env       []string
	plenty    []string // small files, spread over the tree
	plainFrom usage    // where the twenty plain manifests are complete
	runs      []cost
}

// cost is what one process took.
type cost struct{ wall, cpu time.Duration }

func growNumber(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// newGrowing copies tree, or makes a small one where none is named.
func newGrowing(t *testing.T, tree string) *growing {
	t.Helper()
	bin, err := filepath.Abs("../bin/decree")
	require.NoError(t, err)
	require.FileExists(t, bin, "make build comes first")
	base := os.Getenv("GROWTH_DIR")
	if base == "" {
		base = t.TempDir()
	} else {
		base = filepath.Join(base, filepath.Base(t.Name()))
		require.NoError(t, os.MkdirAll(base, 0o700))
	}
	g := &growing{t: t, bin: bin, dir: filepath.Join(base, "tree"), home: filepath.Join(base, "home")}
	require.NoError(t, os.Mkdir(g.home, 0o700))
	g.env = append(os.Environ(), "HOME="+g.home, "XDG_DATA_HOME="+g.home+"/data", "NO_COLOR=1", "DECREE_STORE=", "TZ=UTC")
	if tree == "" {
		require.NoError(t, os.Mkdir(g.dir, 0o700))
		for i := range 100 {
			require.NoError(t, os.WriteFile(filepath.Join(g.dir, fmt.Sprintf("file%02d", i)), fmt.Appendf(nil, "%d\n", i), 0o600))
		}
	} else {
		out, err := exec.Command("cp", "-R", tree, g.dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NoError(t, os.RemoveAll(filepath.Join(g.dir, ".decree")))
	}
	// Retention would keep the history short, and with it the figures.
	require.NoError(t, os.MkdirAll(filepath.Join(g.dir, ".decree"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(g.dir, ".decree/config.yml"), []byte("retention: {run: {last: 1000000}, manual: {last: 1000000}}\n"), 0o600))
	g.pick()
	return g
}

// pick lists the files that the runs change: small, so that contents are few bytes.
func (g *growing) pick() {
	err := filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.Contains(path, "/.") {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > 8<<10 {
			return err
		}
		g.plenty = append(g.plenty, path)
		return nil
	})
	require.NoError(g.t, err)
	require.NotEmpty(g.t, g.plenty)
}

// decree runs the binary in the tree.
func (g *growing) decree(args ...string) (cost, string) {
	g.t.Helper()
	c := exec.Command(g.bin, args...)
	c.Dir, c.Env = g.dir, g.env
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	start := time.Now()
	err := c.Run()
	wall := time.Since(start)
	require.NoError(g.t, err, "%v\n%s", args, errs.Bytes())
	return cost{wall, c.ProcessState.UserTime() + c.ProcessState.SystemTime()}, out.String()
}

// change makes the n-th run: a line more in ten files, others than in the runs before.
func (g *growing) change(n int) {
	g.t.Helper()
	args := []string{"run", "--yes", "--", "sh", "-c", `for f; do echo "one line more" >> "$f"; done`, "sh"}
	for i := range 10 {
		args = append(args, g.plenty[(10*n+i)*7919%len(g.plenty)])
	}
	c, _ := g.decree(args...)
	g.runs = append(g.runs, c)
}

// around is the median of the eleven runs around the n-th, or of what there is.
func (g *growing) around(n int) cost {
	part := g.runs[max(0, min(n-6, len(g.runs)-11)):min(n+5, len(g.runs))]
	return cost{median(part, func(c cost) time.Duration { return c.wall }), median(part, func(c cost) time.Duration { return c.cpu })}
}

func median(list []cost, of func(cost) time.Duration) time.Duration {
	var all []time.Duration
	for _, c := range list {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// repeat is the median of several processes.
func (g *growing) repeat(args ...string) cost {
	g.t.Helper()
	var all []cost
	for range 9 {
		c, _ := g.decree(args...)
		all = append(all, c)
	}
	return cost{median(all, func(c cost) time.Duration { return c.wall }), median(all, func(c cost) time.Duration { return c.cpu })}
}

// usage is the disk space of the record directories and of the store, by file name.
type usage map[string]int64

func (g *growing) usage() usage {
	u := usage{}
	seen := map[uint64]bool{}
	add := func(root, name string) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			if seen[st.Ino] {
				return nil
			}
			seen[st.Ino] = true
			key := name
			if key == "" {
				key = strings.SplitN(strings.TrimPrefix(path, g.home+"/data/decree/"), "/", 3)[min(1, strings.Count(strings.TrimPrefix(path, g.home+"/data/decree/"), "/"))]
			}
			if filepath.Base(path) == "manifest.json" {
				key = "manifest.json"
			}
			u[key] += st.Blocks * 512
			return nil
		})
		require.NoError(g.t, err)
	}
	add(filepath.Join(g.dir, ".decree/runs"), "runs")
	add(filepath.Join(g.home, "data/decree"), "")
	return u
}

func (u usage) total() (n int64) {
	for _, v := range u {
		n += v
	}
	return n
}

// listed is what the looks need of a record.
type listed struct{ ID, Started string }

// records are all records, newest first.
func (g *growing) records() (all []listed) {
	_, out := g.decree("log", "--json", "--limit", "0")
	require.NoError(g.t, json.Unmarshal([]byte(out), &all))
	return all
}

// looks are the commands that read the history, for one of n records.
func (g *growing) looks() []look {
	all := g.records()
	mid, when := all[len(all)/2].ID, all[len(all)/2].Started
	rel, err := filepath.Rel(g.dir, g.plenty[0])
	require.NoError(g.t, err)
	return []look{
		{"--version", []string{"--version"}},
		{"log", []string{"log"}},
		{"log --json", []string{"log", "--json"}},
		{"log -n 20", []string{"log", "-n", "20"}},
		{"show last", []string{"show", "last"}},
		{"show ID", []string{"show", mid}},
		{"show last~50", []string{"show", fmt.Sprintf("last~%d", min(50, len(all)-1))}},
		{"show @TIME", []string{"show", "@" + when}},
		{"show ID:PATH", []string{"show", mid + ":" + rel}},
		{"at TIME", []string{"at", when}},
		{"at TIME PATH", []string{"at", when, rel}},
	}
}

type look struct {
	name string
	args []string
}

// grownTable prints costs, a column for each count.
type grownTable struct {
	counts []int
	names  []string
	cells  map[string]map[int]cost
}

func (t *grownTable) put(name string, n int, c cost) {
	if t.cells == nil {
		t.cells = map[string]map[int]cost{}
	}
	if t.cells[name] == nil {
		t.cells[name] = map[int]cost{}
		t.names = append(t.names, name)
	}
	t.cells[name][n] = c
}

func (t *grownTable) print(w io.Writer) {
	fmt.Fprint(w, "| |")
	for _, n := range t.counts {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(t.counts)))
	for _, name := range t.names {
		fmt.Fprintf(w, "| `%s` |", name)
		for _, n := range t.counts {
			c := t.cells[name][n]
			fmt.Fprintf(w, " %.1f (%.1f) |", float64(c.wall.Microseconds())/1e3, float64(c.cpu.Microseconds())/1e3)
		}
		fmt.Fprintln(w)
	}
}

// stages are the counts of records at which the reading commands are measured.
func stages(n int) (out []int) {
	for _, s := range []int{10, 100, 1000, 10_000} {
		if s < n {
			out = append(out, s)
		}
	}
	return append(out, n)
}

// TestGrowth makes a long history and prints what it costs. GROWTH_TREE is a tree
// that is copied, GROWTH_RUNS how many runs of ten small changes are made over it,
// GROWTH_RECORDS how many records the listing is measured with, on a small tree.
func TestGrowth(t *testing.T) {
	t.Logf("%s/%s, %d processors, %s; cells are wall ms (CPU ms)", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().Format(time.DateOnly))
	t.Run("runs", func(t *testing.T) {
		g := newGrowing(t, os.Getenv("GROWTH_TREE"))
		g.manyRuns(growNumber(t, "GROWTH_RUNS", 1000))
	})
	t.Run("records", func(t *testing.T) {
		g := newGrowing(t, "")
		g.manyRecords(growNumber(t, "GROWTH_RECORDS", 10_000))
	})
}

func (g *growing) manyRuns(n int) {
	require.Greater(g.t, n, 30, "the first twenty keep a plain manifest")
	table := &grownTable{counts: stages(n)}
	for i := range n {
		g.change(i)
		if i+1 == 25 {
			g.plainFrom = g.usage()
		}
		if slices.Contains(table.counts, i+1) {
			for _, l := range g.looks() {
				table.put(l.name, i+1, g.repeat(l.args...))
			}
		}
	}
	for _, at := range table.counts {
		table.put("run, ten changes", at, g.around(at))
	}
	var text strings.Builder
	table.print(&text)
	first, last := g.around(10), g.around(n)
	fmt.Fprintf(&text, "\nthe last runs cost %.2f times the tenth in wall time, %.2f times in CPU time (bar 1.2)\n", float64(last.wall)/float64(first.wall), float64(last.cpu)/float64(first.cpu))
	end := g.usage()
	runs := int64(n - 25)
	fmt.Fprintf(&text, "disk a run, from the 25th: %d bytes\n", (end.total()-g.plainFrom.total())/runs)
	var names []string
	for name := range end {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&text, "  %-14s %8d a run, %12d in all\n", name, (end[name]-g.plainFrom[name])/runs, end[name])
	}
	fmt.Print(text.String())
}

func (g *growing) manyRecords(n int) {
	table := &grownTable{counts: stages(n)}
	for i := range n {
		args := []string{"checkpoint", "-d", "a state to come back to"}
		if i%2 == 0 {
			args = []string{"run", "--", "true"}
		}
		c, _ := g.decree(args...)
		g.runs = append(g.runs, c)
		if slices.Contains(table.counts, i+1) {
			for _, l := range g.looks() {
				table.put(l.name, i+1, g.repeat(l.args...))
			}
		}
	}
	for _, at := range table.counts {
		table.put("run -- true, checkpoint", at, g.around(at))
	}
	table.print(os.Stdout)
}
