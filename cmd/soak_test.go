//go:build unix

package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/view"
)

// TestSoak ends decree with SIGKILL in whatever it is doing, over and over, on a
// tree of 500 files, and compares the whole tree by hash after each recovery.
// DECREE_KILLS and DECREE_SEED set how many deaths and which: 50 and 1 by
// default, and 1,000 on 2,000 files with DECREE_LONG. DECREE_BIN names the binary to
// kill.
func TestSoak(t *testing.T) {
	kills, files := 50, 500
	switch {
	case os.Getenv("DECREE_LONG") != "":
		kills, files = 1000, 2000
	case testing.Short():
		kills = 10
	}
	kills = int(numberOf(t, "DECREE_KILLS", int64(kills)))
	seed := numberOf(t, "DECREE_SEED", 1)
	count := &landings{by: map[string]map[string]int{}}
	for seed := seed; count.kills < kills; seed++ {
		// A new project each time: the history of hundreds of deaths makes the
		// checks slow and shows nothing new.
		s := newSoak(t, rand.New(rand.NewPCG(uint64(seed), 0)), files, count)
		for end := count.kills + 50; count.kills < min(end, kills); {
			s.turn()
		}
		require.NoError(t, os.RemoveAll(s.base))
	}
	t.Logf("from seed %d: %d kills, %d of them in recoveries; the tree was whole after each\n%s", seed, count.kills, count.recoveries, count)
}

func numberOf(t *testing.T, name string, otherwise int64) int64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// landings counts in which phase of which operation the deaths came.
type landings struct {
	kills, recoveries int
	by                map[string]map[string]int
}

// phases in which a death can come, in their order, told by what it leaves.
var phases = []string{"before", "opened", "command", "staged", "moving", "moved", "closing", "done"}

func (l *landings) add(op, phase string) {
	l.kills++
	if l.by[op] == nil {
		l.by[op] = map[string]int{}
	}
	l.by[op][phase]++
}

// String is a table: a line for each operation, a column for each phase.
func (l *landings) String() string {
	var b strings.Builder
	row := func(name string, cell func(phase string) any) {
		fmt.Fprintf(&b, "| %-22s |", name)
		for _, p := range phases {
			fmt.Fprintf(&b, " %7v |", cell(p))
		}
		b.WriteByte('\n')
	}
	row("", func(p string) any { return p })
	sum := map[string]int{}
	for _, op := range slices.Sorted(maps.Keys(l.by)) {
		row(op, func(p string) any { sum[p] += l.by[op][p]; return l.by[op][p] })
	}
	row("all", func(p string) any { return sum[p] })
	return b.String()
}

// state maps each path of a tree to its kind, mode and content's hash.
type state map[string]string

// soak is one project that decree dies on.
type soak struct {
	*proving
	count *landings
	cur   state
	took  map[string]time.Duration // how long each operation takes undisturbed
	// fault, if set, gives what stands before decree's command line instead of
	// a kill: a tracer that makes a system call fail.
	fault func(name string) []string
}

func newSoak(t *testing.T, rng *rand.Rand, files int, count *landings) *soak {
	s := &soak{proving: newProving(t, rng), count: count, took: map[string]time.Duration{}}
	s.grow(files)
	s.cur = s.look()
	s.must("checkpoint")
	return s
}

// turn does one operation that is killed, with what it needs before.
func (s *soak) turn() {
	switch s.rng.IntN(12) {
	case 0:
		s.checkpoint()
	case 1:
		s.run(0)
	case 2, 3:
		s.run(3)
	case 4:
		s.run(3, "--attempts", "2")
	case 5, 6:
		id, from, _ := s.work()
		s.move("revert", from, "revert", id)
	case 7:
		first, from, _ := s.work()
		second, _, _ := s.work()
		s.move("revert of two", from, "revert", first+".."+second)
	case 8:
		id, from, to := s.work()
		s.must("revert", id)
		s.cur = from
		s.move("apply", to, "apply", id)
	case 9:
		first, from, _ := s.work()
		second, _, to := s.work()
		s.must("revert", second, first)
		s.cur = from
		s.move("apply of two", to, "apply", first, second)
	case 10:
		id, from, _ := s.work()
		s.edit()
		s.move("restore", from, "restore", "--yes", id)
	case 11:
		s.merge()
	}
}

// work is a run that nobody kills; it returns its id and the trees around it.
func (s *soak) work() (id string, from, to state) {
	from = s.cur
	s.must("run", "sh", s.script(0))
	s.cur = s.look()
	return s.newest()[0], from, s.cur
}

func (s *soak) checkpoint() {
	s.edit()
	newest := s.newest()
	code, _ := s.strike("checkpoint", "checkpoint")
	s.settle()
	s.same(s.cur, s.look(), "a checkpoint")
	if code == 0 {
		s.added(newest)
	}
}

// run kills a run. Its command may have come to any point: what it did has to be
// in a record that takes it back.
func (s *soak) run(exit int, flags ...string) {
	name := "run"
	if exit != 0 {
		name = "run that fails"
	}
	name = strings.Join(append([]string{name}, flags...), " ")
	from, newest := s.cur, s.newest()
	code, _ := s.strike(name, append(append([]string{"run"}, flags...), "sh", s.script(exit))...)
	s.settle()
	now := s.look()
	if code == 0 || code == exit {
		s.added(newest)
	}
	if code == exit && exit != 0 {
		s.same(from, now, name)
	}
	s.cur = now
	if maps.Equal(from, now) {
		return
	}
	s.added(newest)
	code, out := s.decree("revert", s.newest()[0])
	if code == 4 && strings.Contains(s.log, "not recorded: ") {
		// A fault hid a directory from the look after the command: what it holds is in
		// no record, so it must stay.
		require.Contains(s.t, out, "must stay", s.log)
		s.same(now, s.look(), "a refused revert")
		return
	}
	require.Zero(s.t, code, "%s\nbefore that: %s", out, s.log)
	s.cur = s.look()
	hidden := staying(out)
	s.same(apart(from, hidden), apart(s.cur, hidden), "the revert of a killed run")
	if s.rng.IntN(2) == 0 {
		s.must("apply", "last~1")
		s.cur = s.look()
		s.same(now, s.cur, "the apply of a killed run")
	}
}

// move kills an operation that takes the tree to a known state.
func (s *soak) move(name string, want state, args ...string) {
	from, newest := s.cur, s.newest()
	code, _ := s.strike(name, args...)
	s.settle()
	s.cur = s.look()
	if code == 0 {
		s.same(want, s.cur, name)
	}
	if maps.Equal(from, s.cur) {
		require.Equal(s.t, newest, s.newest(), "a record of what was not done: %s", s.log)
		return
	}
	s.same(want, s.cur, name)
	s.added(newest)
	if s.rng.IntN(2) == 0 {
		s.must("revert", "last")
		s.cur = s.look()
		s.same(from, s.cur, "the revert of a killed "+name)
	}
}

// merge kills a revert that takes a run's lines out of files edited since.
func (s *soak) merge() {
	id, _, _ := s.work()
	s.editRun()
	s.cur = s.look()
	edited := s.cur
	if code, _ := s.decree("revert", "--merge", id); code != 0 {
		s.same(edited, s.look(), "a refused merge")
		return
	}
	merged := s.look()
	s.must("revert", "last")
	s.same(edited, s.look(), "the revert of a merge")
	s.move("revert with merge", merged, "revert", "--merge", id)
}

// settle recovers: after deaths of some recoveries, by one that is left alone.
// Then all must be in its place.
func (s *soak) settle() {
	for s.rng.IntN(2) == 0 && len(s.inStore("open")) > 0 {
		s.strike("recover", "recover")
		s.count.recoveries++
	}
	code, out := s.decree("log", "--limit", "1")
	require.Zero(s.t, code, "a reader has to work whatever waits\n%s", out)
	for {
		code, out = s.decree("recover")
		if code != 4 || !strings.Contains(out, "still runs") {
			break
		}
		if s.rng.IntN(2) == 0 {
			code, out = s.decree("recover", "--kill")
			break
		}
	}
	s.log += "\nrecover: " + out
	require.Zero(s.t, code, s.log)
	s.sound(s.count.kills%5 == 0)
}

// strike starts decree in a process group of its own and kills that at a moment
// of chance: anywhere in the time it takes, or soon after its open record or its
// journal is there. The command's own group dies with it or goes on. code is -1
// when decree died.
func (s *soak) strike(name string, args ...string) (code int, phase string) {
	lines := s.lines()
	_ = os.Remove(s.pid())
	out, err := os.Create(filepath.Join(s.base, "out"))
	require.NoError(s.t, err)
	defer out.Close()
	line := append([]string{s.bin}, args...)
	moment := s.moment(name)
	if s.fault != nil {
		line = append(s.fault(name), line...)
		moment = func(time.Duration) bool { return false }
	}
	c := exec.Command(line[0], line[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = s.root, s.env, out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := time.Now()
	require.NoError(s.t, c.Start())
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	for !moment(time.Since(start)) {
		select {
		case <-ended:
			moment = func(time.Duration) bool { return true }
		case <-time.After(100 * time.Microsecond):
		}
	}
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	<-ended
	code = c.ProcessState.ExitCode()
	phase = "done"
	took := time.Since(start)
	if code < 0 {
		phase = s.phase(lines)
		took += took / 4 // at least so long
	}
	if known := s.took[name]; code >= 0 && known > 0 {
		took = (known + took) / 2
	}
	if code >= 0 || took > s.took[name] {
		s.took[name] = took
	}
	if s.fault != nil || s.rng.IntN(4) > 0 {
		s.killCommand()
	}
	s.count.add(name, phase)
	text, err := os.ReadFile(out.Name())
	require.NoError(s.t, err)
	s.log = fmt.Sprintf("kill %d: %v: exit %d, %s\n%s", s.count.kills, line, code, phase, text)
	return code, phase
}

// moment returns a function that says, from how long it runs, when the time has come.
func (s *soak) moment(name string) func(time.Duration) bool {
	took := s.took[name]
	if took == 0 {
		took = 100 * time.Millisecond
	}
	some := time.Duration(s.rng.Float64() * float64(took))
	watch := func(dir, suffix string, wait time.Duration) func(time.Duration) bool {
		var seen time.Duration
		return func(d time.Duration) bool {
			if seen == 0 && slices.ContainsFunc(s.inStore(dir), func(n string) bool { return strings.HasSuffix(n, suffix) }) {
				seen = d
			}
			return seen > 0 && d >= seen+wait
		}
	}
	soon := time.Duration(math.Pow(s.rng.Float64(), 2) * float64(took) / 4)
	switch s.rng.IntN(6) {
	case 0, 1, 2:
		return watch("txn", ".journal", soon/2)
	case 3:
		return watch("open", ".json", soon)
	case 4:
		return watch("open", ".leader", soon)
	}
	return func(d time.Duration) bool { return d >= some }
}

// phase says from what is in the store in what decree died; lines are the lines
// that the log of records had before.
func (s *soak) phase(lines int) string {
	for _, n := range s.inStore("txn") {
		switch filepath.Ext(n) {
		case ".new":
			return "staged"
		case ".journal", ".back":
			return "moving"
		case ".done", ".undone":
			return "moved"
		}
	}
	open := s.inStore("open")
	switch {
	case len(open) > 0 && s.lines() > lines:
		return "closing"
	case slices.ContainsFunc(open, func(n string) bool { return strings.HasSuffix(n, ".leader") }):
		return "command"
	case len(open) > 0:
		return "opened"
	case s.lines() > lines:
		return "done"
	}
	return "before"
}

// proving is a tree with decree beside it: a ground for real processes.
type proving struct {
	t          *testing.T
	rng        *rand.Rand
	bin        string
	base, root string
	env        []string
	log        string // what was done last
	made       int
}

func newProving(t *testing.T, rng *rand.Rand) *proving {
	t.Helper()
	bin := os.Getenv("DECREE_BIN")
	if bin == "" {
		bin = "decree"
	}
	bin, err := exec.LookPath(bin)
	require.NoError(t, err)
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &proving{t: t, rng: rng, bin: bin, base: base, root: filepath.Join(base, "tree")}
	for _, d := range []string{"tree", "home"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "DECREE_") && !strings.HasPrefix(e, "XDG_") && !strings.HasPrefix(e, "HOME=") {
			p.env = append(p.env, e)
		}
	}
	p.env = append(p.env, "HOME="+filepath.Join(base, "home"), "XDG_DATA_HOME="+filepath.Join(base, "data"), "NO_COLOR=1", "GOMAXPROCS=2")
	return p
}

// decree runs it to its end.
func (p *proving) decree(args ...string) (code int, out string) {
	p.t.Helper()
	c := exec.Command(p.bin, args...)
	c.Dir, c.Env = p.root, p.env
	b, err := c.CombinedOutput()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit { //nolint:errorlint // it is never wrapped
		require.NoError(p.t, err)
	}
	return c.ProcessState.ExitCode(), string(b)
}

func (p *proving) must(args ...string) string {
	p.t.Helper()
	code, out := p.decree(args...)
	require.Zero(p.t, code, "%v\n%s\nbefore that: %s", args, out, p.log)
	return out
}

func (p *proving) pid() string { return filepath.Join(p.base, "pid") }

// killCommand ends what the last work script left running.
func (p *proving) killCommand() {
	data, err := os.ReadFile(p.pid())
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// inStore lists a directory of the store.
func (p *proving) inStore(dir string) (names []string) {
	stores, _ := filepath.Glob(filepath.Join(p.base, "data/decree/*"))
	for _, s := range stores {
		list, _ := os.ReadDir(filepath.Join(s, dir))
		for _, e := range list {
			names = append(names, e.Name())
		}
	}
	return names
}

// lines counts the lines of the log of records.
func (p *proving) lines() int {
	logs, _ := filepath.Glob(filepath.Join(p.base, "data/decree/*/records.jsonl"))
	n := 0
	for _, l := range logs {
		data, _ := os.ReadFile(l)
		n += bytes.Count(data, []byte("\n"))
	}
	return n
}

// newest are the ids of the last two records, newest first.
func (p *proving) newest() (ids []string) {
	p.t.Helper()
	var list []struct{ ID string }
	out := p.must("log", "--json", "--limit", "2")
	require.NoError(p.t, json.Unmarshal([]byte(out), &list), out)
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// added says that one record was added to those that were the newest.
func (p *proving) added(before []string) {
	p.t.Helper()
	now := p.newest()
	require.Len(p.t, now, 2, p.log)
	require.NotEqual(p.t, before[0], now[0], "no record of it: %s", p.log)
	require.Equal(p.t, before[0], now[1], "more than one record of it: %s", p.log)
}

// sound asks decree itself: doctor finds nothing, the objects that the newest
// record names are there, or those of all records.
func (p *proving) sound(all bool) {
	p.t.Helper()
	// What a fault kept out of .decree/runs was named, with the command that brings it back.
	if strings.Contains(p.log, "could not be written to .decree/runs") {
		code, out := p.decree("doctor", "--repair")
		require.Zero(p.t, code, "%s\n%s", out, p.log)
	}
	var checks []view.Check
	code, out := p.decree("doctor", "--json")
	require.Zero(p.t, code, "%s\n%s", out, p.log)
	require.NoError(p.t, json.Unmarshal([]byte(out), &checks), out)
	for _, c := range checks {
		require.Contains(p.t, []string{"ok", "info"}, c.Level, "%v\n%s", c, p.log)
	}
	which := "last"
	if all {
		which = "--all"
	}
	code, out = p.decree("verify", which)
	require.Zero(p.t, code, "%s\n%s", out, p.log)
	for _, dir := range []string{"txn", "open"} {
		require.Empty(p.t, p.inStore(dir), p.log)
	}
	left, err := os.ReadDir(filepath.Join(p.root, ".decree/tmp"))
	require.NoError(p.t, err)
	require.Empty(p.t, left, p.log)
}

func (p *proving) look() state { return lookAt(p.t, p.root) }

var stays = regexp.MustCompile(`(?m)not recorded by \S+, and stays as it is: (.*)$`)

// staying are the directories that a revert leaves as they are, as it says: a fault hid
// them from the look after the command.
func staying(out string) (dirs []string) {
	for _, m := range stays.FindAllStringSubmatch(out, -1) {
		dirs = append(dirs, strings.Split(m[1], ", ")...)
	}
	return dirs
}

// apart is the state without what is in dirs.
func apart(s state, dirs []string) state {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(path, _ string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
	})
	return s
}

func (p *proving) same(want, have state, what string) {
	p.t.Helper()
	var differ []string
	for path := range want {
		if want[path] != have[path] {
			differ = append(differ, fmt.Sprintf("%s: %q, should be %q", path, have[path], want[path]))
		}
	}
	for path := range have {
		if _, ok := want[path]; !ok {
			differ = append(differ, path+": should not be")
		}
	}
	slices.Sort(differ)
	require.Empty(p.t, differ[:min(len(differ), 20)], "%s: %d paths differ\n%s", what, len(differ), p.log)
}
