//go:build growth

package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBackupBars prints what backups of a copy of GROWTH_TREE cost, beside a copy of the store and, where it is
// installed, restic, and what a backup costs after GROWTH_RUNS runs. "make backup-bench" calls it.
func TestBackupBars(t *testing.T) {
	g := newGrowing(t, os.Getenv("GROWTH_TREE"))
	b := &backupBars{growing: g, base: filepath.Dir(g.dir)}
	g.decree("checkpoint", "--yes", "-q")
	data := filepath.Join(g.home, "data")
	for i := range 3 {
		b.measure("the store: cp -r and sync", "sh", "-c", `cp -r "$1" "$2" && sync -f "$2"`, "sh", data, b.at("copy"))
		require.NoError(t, os.RemoveAll(b.at("copy")))
		b.backup("first backup", fmt.Sprint("target", i))
	}
	for i := range 3 {
		b.edit(i)
		b.backup("backup after 20 changes", "target2")
	}
	b.measure("drill --whole", g.bin, "backup", "drill", "--whole", "--to", b.at("target2"))
	b.measure("restore --into", g.bin, "backup", "restore", "--yes", "--from", b.at("target2"), "--into", b.at("into"))
	require.NoError(t, os.RemoveAll(b.at("into")))
	if restic, err := exec.LookPath("restic"); err == nil {
		b.restic(restic)
	}
	if runs := growNumber(t, "GROWTH_RUNS", 0); runs > 0 {
		for n := range runs {
			g.change(n)
		}
		b.backup(fmt.Sprintf("first backup of %d runs", runs), "target3")
		for i := range 3 {
			b.edit(100 + i)
			b.backup("backup after 20 changes, then", "target3")
		}
	}
	b.print()
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
	peak      int64 // KiB
	said      string
}

func (b *backupBars) at(name string) string { return filepath.Join(b.base, name) }

func (b *backupBars) measure(name string, args ...string) string {
	b.t.Helper()
	require.NoError(b.t, exec.Command("sync").Run())
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = b.dir, append(slices.Clone(b.env), "RESTIC_PASSWORD=x", "RESTIC_CACHE_DIR="+b.at("cache"))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	began := time.Now()
	err := c.Run()
	cost := backupCost{wall: time.Since(began)}
	require.NoError(b.t, err, "%v\n%s", args, out.String())
	use := c.ProcessState.SysUsage().(*syscall.Rusage)
	cost.cpu, cost.peak = c.ProcessState.UserTime()+c.ProcessState.SystemTime(), use.Maxrss
	if m := saidOfBackup.FindAllString(out.String(), -1); m != nil {
		cost.said = fmt.Sprint(m)
	}
	if b.rows == nil {
		b.rows = map[string][]backupCost{}
	}
	if b.rows[name] == nil {
		b.names = append(b.names, name)
	}
	b.rows[name] = append(b.rows[name], cost)
	return out.String()
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

func (b *backupBars) restic(bin string) {
	b.t.Helper()
	repo := []string{bin, "-q", "-r", b.at("repository")}
	do := func(name string, args ...string) { b.measure(name, append(slices.Clone(repo), args...)...) }
	do("restic init", "init")
	do("restic: first backup", "backup", ".")
	for i := range 3 {
		b.edit(10 + i)
		do("restic: backup after 20 changes", "backup", ".")
	}
	do("restic: check --read-data", "check", "--read-data")
	do("restic: restore", "restore", "latest", "--target", b.at("into"))
	require.NoError(b.t, os.RemoveAll(b.at("into")))
}

func (b *backupBars) print() {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("load: %s\n| what | wall s: all, in their order | CPU s | peak MB | sent, proof |\n|---|---|---|---|---|\n", bytes.TrimSpace(load))
	for _, name := range b.names {
		walls, last := "", backupCost{}
		for _, c := range b.rows[name] {
			walls += fmt.Sprintf(" %.2f", c.wall.Seconds())
			last = c
		}
		fmt.Printf("| %s |%s | %.2f | %d | %s |\n", name, walls, last.cpu.Seconds(), last.peak/1024, last.said)
	}
}
