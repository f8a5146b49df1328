package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// world is a project and its target on a disk in memory that forgets what was not flushed.
type world struct {
	t   *testing.T
	m   *disktest.Mem
	clk time.Time
	// wait is how long a command waits for others.
	wait time.Duration
}

func (w *world) now() time.Time { w.clk = w.clk.Add(time.Second); return w.clk }

func (w *world) options(d disk.Disk) (Options, func(), error) {
	same := func(p string) (string, error) { return p, nil }
	where := project.Where{RootFlag: "/w/tree", Cwd: "/w/tree", Home: "/w/home", StoreEnv: "/w/store", RealPath: same}
	r, err := recorder.Open(context.Background(), recorder.Options{
		ReaderOptions: recorder.ReaderOptions{Disk: d, Where: where, Location: time.UTC, Clock: w.now},
		Create:        true, Wait: w.wait, Actor: history.Actor{User: "u", Host: "h"},
	})
	if err != nil {
		return Options{}, nil, err
	}
	t, err := target.OpenDirectory(d, "/w/target", true)
	if err != nil {
		_ = r.Close()
		return Options{}, nil, err
	}
	return Options{Recorder: r, Target: t, Where: where, Version: "test", Host: "h", Now: w.now, Tell: func(string) {}, Progress: func(string, int64, int64) {}},
		func() { t.Close(); _ = r.Close() }, nil
}

func (w *world) with(do func(o Options) error) error {
	o, done, err := w.options(w.m)
	if err != nil {
		return err
	}
	defer done()
	return do(o)
}

func (w *world) write(name, text string) {
	dir, err := w.m.MkdirAll(path.Dir(path.Join("/w", name)), 0o755)
	require.NoError(w.t, err)
	require.NoError(w.t, project.ReplaceFile(dir, path.Base(name), []byte(text), 0o644, true))
}

func (w *world) checkpoint(label string) {
	require.NoError(w.t, w.with(func(o Options) error {
		_, err := o.Recorder.Checkpoint(context.Background(), recorder.CheckpointOptions{Label: label})
		return err
	}))
}

func flush(t *testing.T, d disk.Dir) {
	list, err := d.List()
	require.NoError(t, err)
	for _, e := range list {
		if st, err := d.Stat(e.Name); err == nil && st.Kind == disk.Directory {
			sub, err := d.OpenDir(e.Name)
			require.NoError(t, err)
			flush(t, sub)
			sub.Close()
		} else if st.Kind == disk.Regular {
			f, err := d.OpenWrite(e.Name, 0o600)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			f.Close()
		}
	}
	require.NoError(t, d.Sync())
}

// newWorld has two generations, and a change since.
func newWorld(t *testing.T) *world {
	w := &world{t: t, m: disktest.NewMem(), clk: time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)}
	for _, p := range []string{"/w/tree/d", "/w/store", "/w/home", "/w/target"} {
		_, err := w.m.MkdirAll(p, 0o700)
		require.NoError(t, err)
	}
	for i := range 2 {
		w.write("tree/a", fmt.Sprint("a", i))
		w.write("tree/d/b", strings.Repeat(fmt.Sprint(i), 2000))
		w.checkpoint(fmt.Sprint("n", i))
		w.write("tree/.decree/config.yml", fmt.Sprintf("max_depth: %d\n", 5+i))
		w.write(fmt.Sprintf("tree/.decree/inbox/m%d.md", i), "do it\n")
		require.NoError(t, w.with(func(o Options) error { _, err := generate(context.Background(), o); return err }))
	}
	w.write("tree/a", "a2")
	w.write("tree/.decree/inbox/later.md", "later\n")
	w.checkpoint("n2")
	root, err := w.m.OpenRoot("/")
	require.NoError(t, err)
	flush(t, root)
	return w
}

// copy is the world as it is, on a disk of its own.
func (w *world) copy() *world {
	return &world{t: w.t, m: w.m.Crash(rand.New(rand.NewPCG(1, 1))), clk: w.clk}
}

// generations proves all that the target has and returns for each its tree and number of records.
func (w *world) generations(what string) map[string]string {
	out := map[string]string{}
	require.NoError(w.t, w.with(func(o Options) error {
		place, err := findOf(context.Background(), o.Target, "tree", o.Recorder.Project().ID)
		require.NoError(w.t, err, what)
		require.NotNil(w.t, place.Manifest, what)
		for i, name := range place.Generations() {
			src, err := place.Generation(context.Background(), name)
			require.NoError(w.t, err, "%s: %s", what, name)
			dir, err := w.m.MkdirAll(fmt.Sprintf("/w/scratch%d-%d", w.clk.Unix(), i), 0o700)
			require.NoError(w.t, err)
			staged, err := Stage(context.Background(), src, dir, project.Site{Disk: w.m, Store: dir}, func(int64, int64) {})
			require.NoError(w.t, err, "%s: %s", what, name)
			w.clk = w.clk.Add(time.Second)
			for h := range staged.Needs.All() {
				require.NoError(w.t, staged.Store.Verify(h), "%s: %s", what, name)
			}
			out[name] = keyOf(staged.Manifest)
			staged.Close()
			dir.Close()
		}
		return nil
	}), what)
	return out
}

// strays are what a backup that died leaves, and the next one removes.
func (w *world) strays() (out []string) {
	dir, err := w.m.OpenRoot("/w/target")
	require.NoError(w.t, err)
	var walk func(d disk.Dir, at string)
	walk = func(d disk.Dir, at string) {
		list, err := d.List()
		require.NoError(w.t, err)
		for _, e := range list {
			name := path.Join(at, e.Name)
			if strings.HasPrefix(e.Name, target.Unfinished) && !strings.HasSuffix(e.Name, "lock") || strings.HasSuffix(e.Name, newSuffix) {
				out = append(out, name)
			}
			if sub, err := d.OpenDir(e.Name); err == nil {
				walk(sub, name)
				sub.Close()
			}
		}
	}
	walk(dir, "")
	return out
}

// eachFault calls do on copies of the world, in which one step of the disk fails, or the process dies
// there and the disk forgets what was not flushed.
func eachFault(t *testing.T, base *world, do func(w *world, d disk.Disk) error, check func(w *world, err error, what string)) {
	stride := disktest.Stride(5)
	for _, die := range []bool{true, false} {
		for n := 0; ; n += stride {
			w := base.copy()
			fired, what := false, ""
			err := do(w, disktest.Inject(w.m, func(s disktest.Step) disktest.Action {
				if s.N < n || fired && !die || !s.Write && die && s.N == n {
					return disktest.Action{}
				}
				if fired {
					return disktest.Action{Die: true}
				}
				fired, what = true, fmt.Sprintf("step %d, %s %s, dying %v", s.N, s.Op, s.Path, die)
				if die {
					return disktest.Action{Die: true, Torn: s.Size / 2}
				}
				return disktest.Action{Err: errors.New("no space left on device, say")}
			}))
			if die {
				w.m = w.m.Crash(rand.New(rand.NewPCG(7, uint64(n))))
			}
			check(w, err, what)
			if !fired {
				require.NoError(t, err)
				break
			}
		}
	}
}

func TestABackupThatFailsLeavesTheOneBefore(t *testing.T) {
	base := newWorld(t)
	before := base.copy().generations("before")
	require.Len(t, before, 2)
	eachFault(t, base, func(w *world, d disk.Disk) error {
		o, done, err := w.options(d)
		if err != nil {
			return err
		}
		defer done()
		_, err = generate(t.Context(), o)
		return err
	}, func(w *world, err error, what string) {
		now := w.generations(what)
		for name, is := range before {
			require.Equal(t, is, now[name], what)
		}
		if err == nil {
			require.Len(t, now, 3, what)
		}
		require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }), what)
		again := w.generations("after " + what)
		require.Len(t, again, len(now)+1, what)
		for name, is := range now {
			require.Equal(t, is, again[name], what)
		}
		require.Empty(t, w.strays(), what)
	})
}

// state is what a restore replaces.
func (w *world) state(what string) string {
	var out []string
	require.NoError(w.t, w.with(func(o Options) error {
		_, err := o.Recorder.Recover(context.Background(), false)
		require.NoError(w.t, err, what)
		problems := o.Recorder.History()
		list, err := problems.Logged()
		require.NoError(w.t, err, what)
		for _, rec := range list {
			out = append(out, rec.ID)
			require.NoError(w.t, problems.Closure(rec.ID, history.Once(), func(p *history.Part) error {
				if p.Err != nil {
					return p.Err
				}
				if !p.Object.IsZero() {
					r, err := o.Recorder.OpenContent(p.Object)
					if err != nil {
						return err
					}
					_, err = io.Copy(io.Discard, r)
					r.Close()
					return err
				}
				return nil
			}), what)
			require.True(w.t, problems.HasRun(rec.ID), "%s: %s", what, rec.ID)
		}
		labels, err := problems.Labels()
		require.NoError(w.t, err)
		out = append(out, fmt.Sprint(labels))
		return nil
	}), what)
	for _, name := range []string{"config.yml", "inbox/m0.md", "inbox/m1.md", "inbox/later.md"} {
		dir, err := w.m.OpenRoot(path.Join("/w/tree/.decree", path.Dir(name)))
		require.NoError(w.t, err, what)
		data, err := project.ReadFile(dir, path.Base(name), 1000)
		if err != nil {
			data = []byte(" is missing")
		}
		out = append(out, name+string(data))
	}
	return strings.Join(out, "\n")
}

func TestARestoreIsAllOrNothing(t *testing.T) {
	base := newWorld(t)
	restore := func(w *world, d disk.Disk) error {
		o, done, err := w.options(d)
		if err != nil {
			return err
		}
		defer done()
		place, err := findOf(t.Context(), o.Target, "tree", o.Recorder.Project().ID)
		if err != nil {
			return err
		}
		names := place.Generations()
		src, err := place.Generation(t.Context(), names[0])
		if err != nil {
			return err
		}
		_, err = Restore(t.Context(), o, RestoreOptions{Source: src})
		return err
	}
	before := base.copy().state("before")
	whole := base.copy()
	require.NoError(t, restore(whole, whole.m))
	after := whole.state("after")
	require.NotEqual(t, before, after)
	require.Contains(t, after, "max_depth: 5")
	states := map[string]int{}
	eachFault(t, base, restore, func(w *world, err error, what string) {
		is := w.state(what)
		require.Contains(t, []string{before, after}, is, what)
		if err == nil {
			require.Equal(t, after, is, what)
		}
		states[is]++
		require.Subset(t, slices.Collect(keysOf(w.generations(what))), slices.Collect(keysOf(base.copy().generations(""))), what)
	})
	require.Len(t, states, 2)
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// keyOf tells one generation from another.
func keyOf(m *Manifest) string { return fmt.Sprint(m.Tree, m.Counts.Records) }

func listNames(t *testing.T, o Options, names *[]string) error {
	return o.Target.List(t.Context(), "tree/", func(o target.Object) error {
		*names = append(*names, o.Name)
		return nil
	})
}
