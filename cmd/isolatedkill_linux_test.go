package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
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
	"golang.org/x/sys/unix"

	"decree/history"
)

// An isolatedProving is a tree with isolated runs that are killed.
type isolatedProving struct {
	*proving
	fate map[string]int // how often it came to what
}

// work is a command whose writes take a while: what it has done is in $BASE/ran, what it
// leaves at each path is one of what possible says. %[1]d is its number.
const work = `set -e; echo %[1]d >>"$BASE/ran"
setsid sleep 600 &
for i in 1 2 3 4 5 6; do echo work %[1]d >f$i; rm g$i; mkdir n$i; echo work %[1]d >n$i/new; chmod 700 x$i; ln -sf work%[1]d l$i; done
mv g7 moved; rm -r e; echo work %[1]d >e; mkdir -p skip; echo %[1]d >skip/out
exit %[2]d`

func newIsolatedProving(t *testing.T, rng *rand.Rand) *isolatedProving {
	p := &isolatedProving{proving: newProving(t, rng), fate: map[string]int{}}
	p.env = append(p.env, "BASE="+p.base)
	for i := 1; i <= 7; i++ {
		for name, text := range map[string]string{"f": "first\n", "g": "gone\n", "x": "#!/bin/sh\n", "other/": "stays\n"} {
			path := filepath.Join(p.root, fmt.Sprint(name, i))
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
		require.NoError(t, os.Symlink("first", filepath.Join(p.root, fmt.Sprint("l", i))))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(p.root, "e/deep"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(p.root, "e/deep/file"), []byte("deep\n"), 0o640))
	require.NoError(t, os.WriteFile(filepath.Join(p.root, ".gitignore"), []byte("skip/\n"), 0o644))
	p.must("checkpoint")
	return p
}

// mtimes are those of all that is in the tree, but for .decree.
func (p *isolatedProving) mtimes() state {
	out := state{}
	require.NoError(p.t, filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".decree" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		out[path] = info.ModTime().Format(time.RFC3339Nano)
		return err
	}))
	return out
}

// settle returns once what changes now is later than the tree by more than any clock's tick.
func (p *isolatedProving) settle() {
	var newest time.Time
	for path := range p.mtimes() {
		var st syscall.Stat_t
		require.NoError(p.t, syscall.Lstat(path, &st))
		if changed := time.Unix(st.Ctim.Unix()); changed.After(newest) {
			newest = changed
		}
	}
	probe := filepath.Join(p.base, "probe")
	for {
		require.NoError(p.t, os.WriteFile(probe, nil, 0o600))
		now, err := os.Stat(probe)
		require.NoError(p.t, err)
		if now.ModTime().Sub(newest) > 50*time.Millisecond {
			return
		}
	}
}

// ours are the processes that decree or its commands have left: their homes are the proving's.
func (p *isolatedProving) ours() (list []int) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(p.t, err)
	for _, dir := range all {
		env, err := os.ReadFile(dir + "/environ")
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if err == nil && bytes.Contains(env, []byte("\x00BASE="+p.base+"\x00")) {
			list = append(list, pid)
		}
	}
	return list
}

// mounts are the overlays of this proving that any process sees.
func (p *isolatedProving) mounts() (list []string) {
	all, err := filepath.Glob("/proc/[0-9]*/mountinfo")
	require.NoError(p.t, err)
	for _, name := range all {
		data, _ := os.ReadFile(name)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, " overlay ") && strings.Contains(line, p.base) {
				list = append(list, name+": "+line)
			}
		}
	}
	return list
}

// killed starts decree and sends SIGKILL to whom, somewhere in the first limit. It says
// whether decree had ended by itself.
func (p *isolatedProving) killed(whom string, limit time.Duration, args ...string) (itself bool) {
	c := exec.Command(p.bin, args...)
	c.Dir, c.Env = p.root, p.env
	var out bytes.Buffer
	c.Stderr = &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second // what a command left alive may hold the pipe
	require.NoError(p.t, c.Start())
	timer := time.NewTimer(time.Duration(p.rng.Int64N(int64(limit))))
	<-timer.C
	self := c.Process.Pid
	switch others := slices.DeleteFunc(p.ours(), func(pid int) bool { return pid == self }); {
	case whom == "child" && len(others) > 0:
		_ = syscall.Kill(others[p.rng.IntN(len(others))], syscall.SIGKILL)
	case whom == "all":
		for _, pid := range append(others, self) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	default:
		_ = c.Process.Kill()
	}
	err := c.Wait()
	p.log = fmt.Sprintf("%v, %s killed: %v\n%s", args, whom, err, out.String())
	return c.ProcessState.Exited()
}

// drafts are the records of drafts that wait.
func (p *isolatedProving) drafts() (list []*history.Record) {
	var raw []json.RawMessage
	require.NoError(p.t, json.Unmarshal([]byte(p.must("drafts", "--json")), &raw))
	for _, r := range raw {
		rec, err := history.ParseRecord(r)
		require.NoError(p.t, err)
		list = append(list, rec)
	}
	return list
}

// nothingLeft holds what is so after a recovery: no mount, process, open record or journal,
// and no layer but those of drafts that wait. A clone has no mount by which those are found
// that left the command's group.
func (p *isolatedProving) nothingLeft(clone bool) {
	p.t.Helper()
	require.Empty(p.t, p.mounts(), p.log)
	if clone {
		p.killStragglers()
	}
	require.Empty(p.t, p.ours(), p.log)
	for _, dir := range []string{"open", "txn", "leases"} {
		require.Empty(p.t, p.inStore(dir), p.log)
	}
	waiting := map[string]bool{"works": true}
	for _, rec := range p.drafts() {
		waiting[rec.ID] = true
	}
	for _, name := range p.inStore("layers") {
		require.True(p.t, waiting[name], "layer %s is left\n%s", name, p.log)
	}
}

// killStragglers ends those that have left the command's session.
func (p *isolatedProving) killStragglers() {
	p.t.Helper()
	for left := p.ours(); len(left) > 0; left = p.ours() {
		for _, pid := range left {
			session, err := unix.Getsid(pid)
			require.True(p.t, err != nil || session == pid, "process %d is left\n%s", pid, p.log)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// published is the tree as the command's work would leave it.
func (p *isolatedProving) published(before state, n int) state {
	copied := filepath.Join(p.base, "copy")
	require.NoError(p.t, os.RemoveAll(copied))
	require.NoError(p.t, exec.Command("cp", "-a", p.root, copied).Run())
	c := exec.Command("sh", "-c", strings.Replace(fmt.Sprintf(work, n, 0), "setsid sleep 600 &", "", 1))
	c.Dir, c.Env = copied, append(slices.Clone(p.env), "BASE="+copied+"/.decree")
	out, err := c.CombinedOutput()
	require.NoError(p.t, err, string(out))
	after := lookAt(p.t, copied)
	for path := range after {
		if path == "skip" || strings.HasPrefix(path, "skip/") {
			if _, was := before[path]; !was {
				delete(after, path)
			}
		}
	}
	return after
}

// checkMoved holds that the tree is all old, with its times, or all new; it says which.
func (p *isolatedProving) checkMoved(before, times, after state) (moved bool) {
	p.t.Helper()
	now := p.look()
	if maps.Equal(before, now) {
		return false
	}
	p.same(after, now, "neither old nor new")
	mtimes := p.mtimes()
	for path, what := range after {
		if full := filepath.Join(p.root, path); before[path] == what && what[0] != 'd' {
			require.Equal(p.t, times[full], mtimes[full], "%s was touched\n%s", path, p.log)
		}
	}
	return true
}

// same as before, also in its times.
func (p *isolatedProving) untouched(before, times state, when string) {
	p.t.Helper()
	p.same(before, p.look(), when)
	p.same(times, p.mtimes(), when+", mtimes")
}

// once kills one operation and looks at what is left.
func (p *isolatedProving) once(op, how, whom string) {
	p.made++
	n := p.made
	p.settle()
	exit := p.rng.IntN(2) * 3
	if op != "run" {
		exit = 0
	}
	run := []string{"run", "--isolated", "--grace", "1ms", "--name", fmt.Sprint("w", n)}
	if how == "clone" {
		run = append(run, "--copy")
	}
	command := []string{"--", "sh", "-c", fmt.Sprintf(work, n, exit)}
	before, times := p.look(), p.mtimes()
	after := p.published(before, n)
	known := len(p.records())
	args := append(slices.Clone(run), command...)
	switch op {
	case "auto":
		args = append(append(run, "--auto"), command...)
	case "publish", "discard":
		p.must(args...)
		known++
		p.untouched(before, times, "the run before it")
		p.killStragglers() // a clone's
		args = []string{op, "--yes", fmt.Sprint("w", n)}
	}
	limit := 100 * time.Millisecond
	if op == "publish" || op == "discard" {
		limit = 40 * time.Millisecond
	}
	itself := p.killed(whom, limit, args...)
	if op == "run" || op == "discard" {
		p.untouched(before, times, "right after the kill")
	}
	p.log += p.must("recover")
	p.nothingLeft(how == "clone")
	moved := false
	if op == "run" || op == "discard" {
		p.untouched(before, times, "after the recovery")
	} else if moved = p.checkMoved(before, times, after); !moved {
		p.untouched(before, times, "after the recovery")
	}
	p.judge(op, n, known, itself, moved)
	if moved {
		p.must("revert", "last")
		p.same(before, p.look(), "the revert of what was published")
	}
	for _, rec := range p.drafts() {
		p.tryDraft(rec, before, after)
	}
}

// judge holds the records against what has happened.
func (p *isolatedProving) judge(op string, n, known int, itself, moved bool) {
	p.t.Helper()
	ran, _ := os.ReadFile(filepath.Join(p.base, "ran"))
	executed := slices.Contains(strings.Fields(string(ran)), strconv.Itoa(n))
	drafts, fresh := p.drafts(), p.records()
	fresh = fresh[:len(fresh)-known]
	fate := op + ": "
	switch {
	case op == "discard" && len(drafts) == 0:
		fate += "discarded"
	case moved:
		fate += "published"
		require.Len(p.t, drafts, 0, p.log)
		require.Equal(p.t, history.Publish, fresh[0].Reason, p.log)
		fresh = fresh[1:]
	case op == "publish" || op == "discard":
		fate += "still waiting"
		require.Len(p.t, drafts, 1, p.log)
	case !executed:
		fate += "not begun"
	default:
		require.NotEmpty(p.t, fresh, "it ran, and there is no record of it\n%s", p.log)
		fate += string(fresh[0].Status)
	}
	if op == "run" || op == "auto" {
		require.LessOrEqual(p.t, len(fresh), 1, p.log)
		for _, rec := range fresh {
			require.NotEqual(p.t, history.StatusOpen, rec.Status, p.log)
			require.True(p.t, itself || rec.Status == history.StatusInterrupted || rec.Status != history.StatusOpen, p.log)
		}
	}
	p.fate[fate]++
}

// records are all of the log, newest first.
func (p *isolatedProving) records() (list []*history.Record) {
	var raw []json.RawMessage
	require.NoError(p.t, json.Unmarshal([]byte(p.must("log", "--json")), &raw))
	for _, r := range raw {
		rec, err := history.ParseRecord(r)
		require.NoError(p.t, err)
		list = append(list, rec)
	}
	return list
}

// tryDraft publishes what a killed run has left, looks, takes it back and gives it up. Each
// path is as it was, or as the command leaves it, or a file whose writing had just begun.
func (p *isolatedProving) tryDraft(rec *history.Record, before, after state) {
	p.t.Helper()
	p.settle()
	if rec.Changes != (history.Changes{}) {
		p.log += p.must("publish", rec.ID)
		for path, what := range p.look() {
			was, there := before[path]
			full := filepath.Join(p.root, path)
			info, err := os.Lstat(full)
			require.NoError(p.t, err)
			empty := info.Mode().IsRegular() && info.Size() == 0
			require.True(p.t, there && what == was || what == after[path] || empty, "%s is %s: neither old nor new\n%s", path, what, p.log)
		}
		p.must("revert", "last")
		p.same(before, p.look(), "the revert of a draft's publish")
	}
	p.must("discard", "--yes", rec.ID)
}

// TestIsolatedKilled sends SIGKILL to isolated runs, publishes and discards: to decree, to
// one of the command's processes, to all, at any moment. The tree is as it was to the
// last mtime, or all of it is published; a recovery leaves no mount, process or layer,
// and the draft and the records say what happened. DECREE_KILLS and DECREE_SEED are as for
// TestSoak.
func TestIsolatedKilled(t *testing.T) {
	kills := 24
	switch {
	case os.Getenv("DECREE_LONG") != "":
		kills = 1000
	case testing.Short():
		kills = 8
	}
	kills = int(numberOf(t, "DECREE_KILLS", int64(kills)))
	rng := rand.New(rand.NewPCG(uint64(numberOf(t, "DECREE_SEED", 1)), 0))
	p := newIsolatedProving(t, rng)
	hows := []string{"clone"}
	if canOverlay() {
		hows = []string{"overlay", "overlay", "clone"}
	}
	for n := range kills {
		op := []string{"run", "run", "auto", "publish", "discard"}[rng.IntN(5)]
		how, whom := hows[rng.IntN(len(hows))], []string{"decree", "child", "all"}[rng.IntN(3)]
		p.once(op, how, whom)
		if n%20 == 0 {
			p.sound(false)
		}
	}
	p.sound(true)
	t.Logf("%d kills: %v", kills, p.fate)
}
