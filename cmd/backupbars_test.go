//go:build growth

package cmd

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBackupBars prints what backups of a copy of GROWTH_TREE cost, beside a copy of the store and, where it is
// installed, restic, in BACKUP_ROUNDS rounds, and what a backup costs after GROWTH_RUNS runs. "make backup-bench" calls it.
func TestBackupBars(t *testing.T) {
	g := newGrowing(t, os.Getenv("GROWTH_TREE"))
	b := &backupBars{growing: g, base: filepath.Dir(g.dir), rows: map[string][]backupCost{}}
	defer b.print()
	g.decree("checkpoint", "--yes", "-q")
	restic, _ := exec.LookPath("restic")
	for n := range growNumber(t, "BACKUP_ROUNDS", 3) {
		b.round(n, restic)
	}
	if runs := growNumber(t, "GROWTH_RUNS", 0); runs > 0 {
		for n := range runs {
			g.change(n)
		}
		b.backup(fmt.Sprintf("first backup of %d runs", runs), "target")
		for i := range 3 {
			b.edit(100 + i)
			b.backup("backup after 20 changes, then", "target")
		}
	}
}

// round measures each step of both programs, one right after the other, and who is first by turns.
func (b *backupBars) round(n int, restic string) {
	b.t.Helper()
	b.measure("the store: cp -r and sync", "sh", "-c", `cp -r "$1" "$2" && sync -f "$2"`, "sh", filepath.Join(b.home, "data"), b.at("copy"))
	b.remove("copy")
	target := fmt.Sprint("target", n) // one that is emptied would be refused
	rival := func(name string, args ...string) func() {
		return func() {
			if restic != "" {
				b.measure("restic: "+name, append([]string{restic, "-q", "-r", b.at("repository")}, args...)...)
			}
		}
	}
	turn := n
	both := func(first, second func()) {
		if turn%2 == 1 {
			first, second = second, first
		}
		first()
		second()
		turn++
	}
	rival("init", "init")()
	both(func() { b.backup("first backup", target) }, rival("first backup", "backup", "."))
	b.edit(n)
	both(func() { b.backup("backup after 20 changes", target) }, rival("backup after 20 changes", "backup", "."))
	both(func() { b.measure("drill --whole", b.bin, "backup", "drill", "--whole", "--to", b.at(target)) },
		rival("check --read-data", "check", "--read-data"))
	both(func() {
		b.measure("restore --into", b.bin, "backup", "restore", "--yes", "--from", b.at(target), "--into", b.at("into"))
		b.remove("into")
	}, func() {
		rival("restore", "restore", "latest", "--target", b.at("restored"))()
		b.remove("restored")
	})
	b.remove(target, "repository", "cache")
}

func (b *backupBars) remove(names ...string) {
	b.t.Helper()
	for _, name := range names {
		require.NoError(b.t, os.RemoveAll(b.at(name)))
	}
}

// backupBars is a project that is backed up.
type backupBars struct {
	*growing
	base  string
	names []string
	rows  map[string][]backupCost
}

type backupCost struct {
	wall, cpu time.Duration
	memory    memoryPeak
	load      float64 // of the last minute, at the end
	said      string
}

func (b *backupBars) at(name string) string { return filepath.Join(b.base, name) }

func (b *backupBars) measure(name string, args ...string) {
	b.t.Helper()
	require.NoError(b.t, exec.Command("sync").Run())
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = b.dir, append(slices.Clone(b.env), "RESTIC_PASSWORD=x", "RESTIC_CACHE_DIR="+b.at("cache"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	require.NoError(b.t, c.Start())
	peak := watchMemory(c.Process.Pid)
	err := c.Wait()
	cost := backupCost{wall: time.Since(began), cpu: c.ProcessState.UserTime() + c.ProcessState.SystemTime(), memory: peak()}
	require.NoError(b.t, err, "%v\n%s", args, out.String())
	cost.said = strings.Join(saidOfBackup.FindAllString(out.String(), -1), ", ")
	load, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(load), &cost.load)
	if b.rows[name] == nil {
		b.names = append(b.names, name)
	}
	b.rows[name] = append(b.rows[name], cost)
	fmt.Printf("%s: %.2f s, %.2f s of CPU, %d MB\n", name, cost.wall.Seconds(), cost.cpu.Seconds(), cost.memory.resident/1024)
}

// memoryPeak is how much memory a process had at most, in KiB: all that was resident, mapped files too, and of
// it what is its own, as often as it was looked at.
type memoryPeak struct{ resident, anonymous int }

// watchMemory looks at a process's memory until the function that it returns is called. What the system tells of
// a process that has ended has the peak of the one that started it in it, which here is the tests' own.
func watchMemory(pid int) func() memoryPeak {
	over, seen := make(chan struct{}), make(chan memoryPeak)
	go func() {
		var peak memoryPeak
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-over:
				tick.Stop()
				seen <- peak
				return
			case <-tick.C:
			}
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			of := func(field string) (kib int) {
				_, rest, _ := strings.Cut(string(status), field)
				_, _ = fmt.Sscan(rest, &kib)
				return kib
			}
			peak = memoryPeak{max(peak.resident, of("VmHWM:")), max(peak.anonymous, of("RssAnon:"))}
		}
	}()
	return func() memoryPeak { close(over); return <-seen }
}

// saidOfBackup is how much was sent, and how long the proof took, which a backup's time includes.
var saidOfBackup = regexp.MustCompile(`[\d.]+ \w+ sent|in [\d.]+ s`)

func (b *backupBars) backup(name, target string) {
	b.t.Helper()
	b.measure(name, b.bin, "backup", "--yes", "--to", b.at(target))
}

// edit makes 20 files a line longer.
func (b *backupBars) edit(n int) {
	for i := range 20 {
		f, err := os.OpenFile(b.plenty[(20*n+i)*7919%len(b.plenty)], os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(b.t, err)
		_, err = fmt.Fprintf(f, "change %d\n", n)
		require.NoError(b.t, err)
		require.NoError(b.t, f.Close())
	}
}

func (b *backupBars) print() {
	fmt.Printf("| what | wall s: all, in their order | CPU s: all | median | peak MB, anonymous | load | sent, proof |\n|---|---|---|---|---|---|---|\n")
	for _, name := range b.names {
		var wall, cpu, peak, load, said []string
		for _, c := range b.rows[name] {
			wall = append(wall, fmt.Sprintf("%.2f", c.wall.Seconds()))
			cpu = append(cpu, fmt.Sprintf("%.2f", c.cpu.Seconds()))
			peak = append(peak, fmt.Sprintf("%d (%d)", c.memory.resident/1024, c.memory.anonymous/1024))
			load = append(load, fmt.Sprintf("%.0f", c.load))
			said = append(said, c.said)
		}
		sorted := slices.SortedFunc(slices.Values(b.rows[name]), func(x, y backupCost) int { return cmp.Compare(x.cpu, y.cpu) })
		all := func(of []string) string { return strings.Join(of, " ") }
		fmt.Printf("| %s | %s | %s | %.2f | %s | %s | %s |\n", name, all(wall), all(cpu), sorted[len(sorted)/2].cpu.Seconds(), all(peak), all(load), strings.Join(said, "; "))
	}
}
