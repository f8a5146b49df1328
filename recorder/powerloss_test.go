package recorder

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/runner"
)

// lossy is a project on a disk in memory that forgets what was not flushed.
type lossy struct {
	t        *testing.T
	m        *disktest.Mem
	clk      time.Time
	at, what string            // the last death, and the try that it belongs to
	ran      int               // how often the command of a run was executed
	worked   map[string]string // the tree after its first execution
}

func (l *lossy) open(d disk.Disk) (*Recorder, error) {
	same := func(path string) (string, error) { return path, nil }
	r, err := Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk: d, Where: project.Where{RootFlag: "/w/tree", Cwd: "/w/tree", Home: "/w/home", StoreEnv: "/w/store", RealPath: same},
			Location: time.UTC,
			Clock:    func() time.Time { l.clk = l.clk.Add(time.Second); return l.clk },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
	if err == nil {
		r.execute = l.execute
	}
	return r, err
}

// execute stands for a command: its arguments are paths and what they become,
// flushed, since what a command leaves in the system's memory is its own affair.
// The last argument is its exit status.
func (l *lossy) execute(_ context.Context, c runner.Command) (res runner.Result, err error) {
	if err := c.Starting(runner.Leader{PID: 4711, PGID: 4711, BootID: "another boot"}); err != nil {
		return res, err
	}
	for i := 0; i+1 < len(c.Args); i += 2 {
		if st, err := l.root().Stat(c.Args[i]); err == nil && st.Kind == disk.Directory {
			continue // an earlier attempt made it
		}
		l.write(map[string]string{c.Args[i]: c.Args[i+1]})
	}
	l.ran++
	if l.ran == 1 {
		l.worked = l.state()
	}
	_, err = io.WriteString(c.Log, "the command ran\n")
	if err != nil {
		err = fmt.Errorf("%w: %w", runner.ErrLog, err)
	}
	res.ExitCode, _ = strconv.Atoi(c.Args[len(c.Args)-1])
	return res, err
}

// commanded is a run of a command that changes text, makes, deletes and
// changes kinds.
func commanded(exit, attempts int) func([]string, *Recorder) error {
	return func(_ []string, r *Recorder) error {
		res, err := r.Run(ctx(), RunOptions{
			Args: []string{"edit", "1\nother lines\n", "swap", "", "swap/in", "inside\n", "new/deep/f", "new\n", "z", "", strconv.Itoa(exit)},
			Dir:  "/w/tree", Attempts: attempts,
		})
		if err == nil && res.ExitCode == 125 {
			err = fmt.Errorf("%v", res.Notes)
		}
		return err
	}
}

// with does an operation on a disk that works.
func (l *lossy) with(do func(r *Recorder) error) {
	l.t.Helper()
	r, err := l.open(l.m)
	require.NoError(l.t, err)
	require.NoError(l.t, do(r))
	require.NoError(l.t, r.Close())
}

func (l *lossy) root() disk.Dir {
	d, err := l.m.OpenRoot("/w/tree")
	require.NoError(l.t, err)
	return d
}

// write makes files by hand, durably.
func (l *lossy) write(files map[string]string) {
	for path, data := range files {
		dir, name := "/w/tree", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir, name = dir+"/"+path[:i], path[i+1:]
		}
		d, err := l.m.MkdirAll(dir, 0o755)
		require.NoError(l.t, err)
		if err := d.Remove(name); err != nil {
			require.True(l.t, isMissing(err))
		}
		if data == "" {
			continue
		}
		f, err := d.Create(name, 0o644)
		require.NoError(l.t, err)
		_, err = f.Write([]byte(data))
		require.NoError(l.t, err)
	}
	flushAll(l.t, l.root())
}

func flushAll(t *testing.T, d disk.Dir) {
	list, err := d.List()
	require.NoError(t, err)
	for _, e := range list {
		if e.Kind == disk.Directory {
			sub, err := d.OpenDir(e.Name)
			require.NoError(t, err)
			flushAll(t, sub)
		} else {
			f, err := d.OpenWrite(e.Name, 0o644)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
		}
	}
	require.NoError(t, d.Sync())
}

// state maps each path of the tree to its mode and content.
func (l *lossy) state() map[string]string {
	out := map[string]string{}
	l.collect(l.root(), "", out)
	return out
}

func (l *lossy) collect(d disk.Dir, prefix string, out map[string]string) {
	list, err := d.List()
	require.NoError(l.t, err)
	for _, e := range list {
		if e.Name == ".decree" {
			continue
		}
		st, err := d.Stat(e.Name)
		require.NoError(l.t, err)
		if st.Kind == disk.Directory {
			out[prefix+e.Name] = fmt.Sprintf("dir %o", st.Mode)
			sub, err := d.OpenDir(e.Name)
			require.NoError(l.t, err)
			l.collect(sub, prefix+e.Name+"/", out)
			continue
		}
		f, err := d.Open(e.Name)
		require.NoError(l.t, err)
		data, err := io.ReadAll(f)
		require.NoError(l.t, err)
		out[prefix+e.Name] = fmt.Sprintf("%o %s", st.Mode, data)
	}
}

func (l *lossy) records() (ids []string) {
	l.with(func(r *Recorder) error {
		list, err := r.History().List(history.ListOptions{})
		require.NoError(l.t, err)
		for _, rec := range list.Records {
			ids = append(ids, rec.ID)
		}
		return nil
	})
	return ids
}

// newLossy has three checkpoints and two restores: records with changes.
func newLossy(t *testing.T) (*lossy, []string) {
	l := &lossy{t: t, m: disktest.NewMem(), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	for _, p := range []string{"/w/tree", "/w/store", "/w/home"} {
		_, err := l.m.MkdirAll(p, 0o700)
		require.NoError(t, err)
	}
	top, err := l.m.OpenRoot("/")
	require.NoError(t, err)
	flushAll(t, top)
	var ids []string
	for i := range 3 {
		l.write(map[string]string{
			"same": "same\n", "edit": fmt.Sprintf("%d\nlines\n", i), fmt.Sprintf("made/%d/f", i): "made\n", fmt.Sprintf("made/%d/f", i-2): "",
			"swap": strings.Repeat(fmt.Sprint(i), 3000), "d/x": "x\n", "d/y": fmt.Sprintf("y%d", i%2), "z": []string{"z\n", "", "zz\n"}[i],
		})
		l.with(func(r *Recorder) error {
			rec, err := r.Checkpoint(context.Background(), CheckpointOptions{})
			ids = append(ids, rec.ID)
			return err
		})
	}
	for _, to := range []int{0, 1} {
		l.with(func(r *Recorder) error {
			res, err := r.Restore(context.Background(), RestoreOptions{Ref: ids[to], Yes: true})
			ids = append(ids, res.Record.ID)
			return err
		})
	}
	return l, ids
}

// losesFlushed says whether the disk in memory may tear what an append did not touch.
func losesFlushed(t *testing.T) bool {
	m := disktest.NewMem()
	root, err := m.OpenRoot("/")
	require.NoError(t, err)
	f, err := root.Create("log", 0o600)
	require.NoError(t, err)
	_, err = f.Write([]byte("flushed\n"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, root.Sync())
	_, err = f.Write([]byte("not yet\n"))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		d, err := m.Crash(rng).OpenRoot("/")
		require.NoError(t, err)
		data, err := project.ReadFile(d, "log", 100)
		require.NoError(t, err)
		if !strings.HasPrefix(string(data), "flushed\n") {
			return true
		}
	}
	return false
}

// TestPowerLoss loses the power at the writing steps of each operation: what was
// acknowledged is there, what was not is all or nothing. Then it loses it in the
// recovery, and in the recovery of that.
func TestPowerLoss(t *testing.T) {
	require.False(t, losesFlushed(t), "the disk in memory loses flushed bytes of a file that is appended to, which no log survives")
	ctx := context.Background()
	turn := func(refs ...int) func(ids []string) MoveOptions {
		return func(ids []string) (o MoveOptions) {
			for _, i := range refs {
				o.Refs = append(o.Refs, ids[i])
			}
			return o
		}
	}
	revert := func(o func([]string) MoveOptions) func([]string, *Recorder) error {
		return func(ids []string, r *Recorder) error { _, err := r.Revert(ctx, o(ids)); return err }
	}
	apply := func(o func([]string) MoveOptions) func([]string, *Recorder) error {
		return func(ids []string, r *Recorder) error { _, err := r.Apply(ctx, o(ids)); return err }
	}
	none := func([]string, *Recorder) error { return nil }
	for _, op := range []struct {
		name        string
		prepare, do func(ids []string, r *Recorder) error
	}{
		{"checkpoint", none, func(_ []string, r *Recorder) error {
			_, err := r.Checkpoint(ctx, CheckpointOptions{Label: "here"})
			return err
		}},
		{"revert", none, revert(turn(4))},
		{"revert of two", none, revert(turn(3, 4))},
		{"apply", revert(turn(4)), apply(turn(4))},
		{"apply of two", revert(turn(3, 4)), apply(turn(3, 4))},
		{"restore", none, func(ids []string, r *Recorder) error {
			_, err := r.Restore(ctx, RestoreOptions{Ref: ids[2], Yes: true})
			return err
		}},
		{"run", none, commanded(0, 1)},
		{"run, put back", none, commanded(3, 1)},
		{"run, three attempts", none, commanded(3, 3)},
		{"revert with merge", nil, func(_ []string, r *Recorder) error {
			_, err := r.Revert(ctx, MoveOptions{Refs: []string{"last"}, Merge: plan.Refuse})
			return err
		}},
	} {
		t.Run(op.name, func(t *testing.T) {
			l, ids := newLossy(t)
			if op.prepare == nil {
				l.prepareMerge()
			} else {
				l.with(func(r *Recorder) error { return op.prepare(ids, r) })
			}
			for _, killed := range []bool{false, true} {
				sweep := *l
				t.Run(map[bool]string{false: "power", true: "kill, then power"}[killed], func(t *testing.T) {
					sweep.t = t
					powerLossSweep(t, &sweep, killed, strings.HasPrefix(op.name, "run"), func(r *Recorder) error { return op.do(ids, r) })
				})
			}
		})
	}
}

// prepareMerge makes a run whose file is then edited elsewhere.
func (l *lossy) prepareMerge() {
	body := strings.Repeat("a line\n", 30)
	l.write(map[string]string{"text": "first\n" + body + "last\n"})
	l.with(func(r *Recorder) error {
		_, err := r.Run(ctx(), RunOptions{Args: []string{"text", "FIRST\n" + body + "last\n", "made/by/run", "x\n", "0"}, Dir: "/w/tree"})
		return err
	})
	l.write(map[string]string{"text": "FIRST\n" + body + "LAST\n"})
}

// powerLossSweep loses the power in the operation, or has its process killed there, and loses the power in the recovery.
// After a kill the losses are in turn one of chance, and the two that are the worst for what was vouched for and not
// flushed; before these nothing else is lost, as what a loss leaves is flushed.
func powerLossSweep(t *testing.T, l *lossy, killed, command bool, do func(*Recorder) error) {
	rng := rand.New(rand.NewPCG(7, 8))
	defer func() {
		if t.Failed() {
			t.Log(l.what)
		}
	}()
	top, err := l.m.OpenRoot("/")
	require.NoError(t, err)
	flushAll(t, top)
	whole, before, known := l.m, l.state(), len(l.records())
	clone := func() { l.m = whole.Crash(rng) } // all of it is flushed
	clone()
	l.with(do)
	after := l.state()
	seeds, stride := 1, 3
	if os.Getenv("DECREE_LONG") != "" {
		seeds, stride = 20, 1
	}
	count := map[string]int{}
	for n, fired := 0, true; fired; n += stride {
		for try := range seeds {
			clone()
			l.ran, l.worked = 0, nil
			var err error
			die, deaths := l.dying, rng.IntN(3)
			if killed {
				die, deaths = l.killed, 1+rng.IntN(2)
			}
			worst := killed && (n/stride+try)%3 > 0
			if worst {
				deaths = 0
			}
			fired, err = die(n, rng, do)
			ran, worked := l.ran, l.worked
			l.what = fmt.Sprintf("step %d (%s): %v, then %d deaths (the worst loss: %v)", n, l.at, err, deaths, worst)
			for range deaths {
				_, _ = l.dying(rng.IntN(120), rng, func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
			}
			l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
			if killed { // what a recovery has come to the end with stays
				if worst {
					l.m = l.m.Lose((n/stride+try)%3 == 1)
				} else {
					l.m = l.m.Crash(rng)
				}
				l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err }) // takes away what the loss brought back, as lock.json
			}
			l.with(func(r *Recorder) error { requireSound(t, r); return nil })
			got, fresh := l.state(), len(l.records())-known
			what := fmt.Sprintf("step %d: %v", n, err)
			if ran > 0 && fired {
				count[l.judgeRun(before, worked, fresh, what)]++
				continue
			}
			if err == nil {
				require.Equal(t, after, got, what)
				require.Equal(t, 1, fresh, what)
			}
			if maps.Equal(before, after) || command && maps.Equal(before, got) { // it may be recorded that a run was interrupted
				require.Equal(t, before, got, what)
				count[fmt.Sprint(fresh, " new records")]++
				continue
			}
			if fresh == 0 {
				require.Equal(t, before, got, what)
				count["old"]++
				continue
			}
			require.Equal(t, 1, fresh, what)
			require.Equal(t, after, got, what)
			l.with(func(r *Recorder) error { _, err := r.Revert(ctx(), MoveOptions{Refs: []string{"last"}}); return err })
			require.Equal(t, before, l.state(), what)
			count["new"]++
		}
	}
	t.Log(count)
}

// TestFilesOfARecordAreFlushed before it has their hashes: what the command has left beside it, and the names that a
// killed decree has given there and not flushed.
func TestFilesOfARecordAreFlushed(t *testing.T) {
	l, ids := newLossy(t)
	top, err := l.m.OpenRoot("/")
	require.NoError(t, err)
	flushAll(t, top)
	whole := l.m
	for n, fired := 0, true; fired; n++ {
		l.m = whole.Lose(false) // all of it is flushed
		i, at := 0, ""
		r, err := l.open(disktest.Inject(l.m, func(st disktest.Step) disktest.Action {
			named := st.Op == "Sync" && strings.Contains(st.Path, "/.decree/runs/") // after a file was given its name
			if begins := st.Op == "Create" && strings.HasSuffix(st.Path, ".leader.new"); !named && !begins {
				return disktest.Action{}
			}
			i++
			if i != n+1 {
				return disktest.Action{}
			}
			at = st.Path
			return disktest.Action{Die: true}
		}))
		require.NoError(t, err)
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			for _, v := range c.Env {
				if dir, ok := strings.CutPrefix(v, "DECREE_RUN_DIR="); ok {
					d, err := l.m.OpenRoot(dir)
					require.NoError(t, err)
					f, err := d.OpenWrite("result", 0o644)
					require.NoError(t, err)
					_, err = f.WriteAt([]byte("a result\n"), 0)
					require.NoError(t, err)
				}
			}
			return l.execute(ctx, c)
		}
		err = commanded(3, 3)(ids, r)
		r.Close()
		fired = i > n
		require.Equal(t, fired, err != nil, "%s: %v", at, err)
		l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
		l.m = l.m.Lose(false)
		l.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
		l.with(func(r *Recorder) error { requireSound(t, r); return nil })
	}
}

// judgeRun judges a run whose command was executed: its work is in the tree or
// put back, and in both cases in a record, by which it goes and comes.
func (l *lossy) judgeRun(before, worked map[string]string, fresh int, what string) string {
	require.Equal(l.t, 1, fresh, what)
	last := func(do func(*Recorder, context.Context, MoveOptions) (*MoveResult, error)) map[string]string {
		l.with(func(r *Recorder) error { _, err := do(r, ctx(), MoveOptions{Refs: []string{"last"}}); return err })
		return l.state()
	}
	if got := l.state(); !maps.Equal(before, got) {
		require.Equal(l.t, worked, got, what)
		require.Equal(l.t, before, last((*Recorder).Revert), what)
		return "work"
	}
	var rec *history.Record
	l.with(func(r *Recorder) error {
		list, err := r.History().List(history.ListOptions{Limit: 1})
		rec = list.Records[0]
		return err
	})
	if rec.Changes == (history.Changes{}) { // put back for the last attempt: the work is in attempts/
		return "clean"
	}
	require.Equal(l.t, worked, last((*Recorder).Apply), what)
	require.Equal(l.t, before, last((*Recorder).Revert), what)
	return "put back"
}

func ctx() context.Context { return context.Background() }

// dying does an operation that dies at its n-th writing step, and then the power
// is lost; fired says whether it came so far.
func (l *lossy) dying(n int, rng *rand.Rand, do func(*Recorder) error) (fired bool, err error) {
	fired, err = l.killed(n, rng, do)
	l.m = l.m.Crash(rng)
	return fired, err
}

// killed does an operation whose process dies at its n-th writing step; what it wrote is still in the system's memory.
func (l *lossy) killed(n int, rng *rand.Rand, do func(*Recorder) error) (fired bool, err error) {
	i := 0
	r, err := l.open(disktest.Inject(l.m, func(st disktest.Step) disktest.Action {
		if !st.Write {
			return disktest.Action{}
		}
		i++
		if i-1 != n {
			return disktest.Action{}
		}
		fired, l.at = true, st.Op+" "+st.Path
		return disktest.Action{Die: true, Torn: rng.IntN(st.Size + 1)}
	}))
	if err == nil {
		err = do(r)
		r.Close()
	}
	return fired, err
}

// TestAfterAFirstCommandThatDied, which had not flushed all that it had made of a project, what the next one
// acknowledges stays through a power failure.
func TestAfterAFirstCommandThatDied(t *testing.T) {
	checkpoint := func(r *Recorder) error { _, err := r.Checkpoint(ctx(), CheckpointOptions{}); return err }
	for n, fired := 0, true; fired; n += disktest.Stride(3) {
		l := &lossy{t: t, m: disktest.NewMem(), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
		for _, p := range []string{"/w/tree", "/w/store", "/w/home"} {
			_, err := l.m.MkdirAll(p, 0o700)
			require.NoError(t, err)
		}
		top, err := l.m.OpenRoot("/")
		require.NoError(t, err)
		flushAll(t, top)
		l.write(map[string]string{"f": "f\n"})
		fired, _ = l.killed(n, rand.New(rand.NewPCG(1, uint64(n))), checkpoint)
		l.write(map[string]string{"f": "g\n"})
		l.with(checkpoint)
		known := l.records()
		for _, names := range []bool{false, true} {
			after := &lossy{t: t, m: l.m.Lose(names), clk: l.clk}
			what := fmt.Sprintf("step %d (%s), names %v", n, l.at, names)
			after.with(func(r *Recorder) error {
				list, err := r.History().List(history.ListOptions{})
				require.NoError(t, err, what)
				require.Len(t, list.Records, len(known), what)
				return nil
			})
			after.with(func(r *Recorder) error { _, err := r.Recover(ctx(), false); return err })
			after.with(func(r *Recorder) error {
				audit, err := r.history.ReadAudit(nil)
				require.NoError(t, err, what)
				require.NotZero(t, audit.Lines, what)
				requireSound(t, r)
				return nil
			})
		}
	}
}
