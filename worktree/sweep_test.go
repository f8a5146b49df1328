package worktree

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// before and after hold every kind of step at once.
var (
	before = files{
		"keep": file("kept"), "edit": file("old"), "gone": file("going"), "mode": moded(0o755, "#!"),
		"l": link("a"), "l2f": link("b"), "f2l": file("f"), "empty": file(""),
		"d": dir(0o755), "d/x": dir(0o700), "d/x/1": file("one"), "d/x/2": link("two"), "d/same": file("same"),
		"d2f": dir(0o755), "d2f/sub": dir(0o711), "d2f/sub/a": file("aa"), "d2f/b": file("bb"),
		"f2d": file("was a file"), "l2d": link("was/a/link"), "dm": dir(0o755), "dm/in": file("in"), "only": dir(0o755),
	}
	after = files{
		"keep": file("kept"), "edit": file("new and longer"), "mode": moded(0o600, "#!"),
		"l": link("b"), "l2f": file("file"), "f2l": link("link"), "empty": file("full"),
		"d": dir(0o755), "d/same": file("same"),
		"d2f": file("a file now"), "made": file("made"), "made.d": dir(0o750), "made.d/deep": dir(0o755), "made.d/deep/f": moded(0o400, "ff"),
		"f2d": dir(0o755), "f2d/x": file("x"), "l2d": dir(0o700), "l2d/y": link("y"), "dm": dir(0o500), "dm/in": file("changed"), "only": dir(0o711),
	}
)

// long says whether the long forms of the sweeps are asked for.
var long = os.Getenv("DECREE_LONG") != ""

// memRig is a rig on a disk in memory.
func memRig(t testing.TB, m *disktest.Mem, v *vault) *rig {
	return &rig{t: t, d: m, top: "/r", vault: v, workers: 1, many: 1}
}

func newMemRig(t testing.TB, tree files) (*rig, *disktest.Mem) {
	m := disktest.NewMem()
	m.NoSyncAll = true
	r := memRig(t, m, newVault())
	r.init(tree)
	for _, p := range []string{"", "tree", "tree/.decree", "tree/.decree/tmp", "txn"} {
		require.NoError(t, r.open(p).Sync())
	}
	root, err := m.OpenRoot("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	return r, m
}

// failAt makes the n-th step that count counts do what a says.
func failAt(n int, fired *bool, count func(disktest.Step) bool, a disktest.Action) func(dirs ...disk.Dir) []disk.Dir {
	return func(dirs ...disk.Dir) []disk.Dir {
		i := 0
		return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
			if !count(s) {
				return disktest.Action{}
			}
			i++
			if i-1 != n {
				return disktest.Action{}
			}
			*fired = true
			return a
		}, dirs...)
	}
}

func anyStep(disktest.Step) bool  { return true }
func writes(s disktest.Step) bool { return s.Write }

// oldOrNew says which of the two the tree is.
func oldOrNew(r *rig, from, to files) string {
	r.t.Helper()
	have := r.state()
	for path, n := range have {
		if from[path] != n && to[path] != n {
			require.Failf(r.t, "neither old nor new", "%s is %v", path, n)
		}
	}
	if fmt.Sprint(have) == fmt.Sprint(from) {
		return "old"
	}
	require.Equal(r.t, to, have)
	return "new"
}

// disks are what the disk in memory can and cannot do.
var disks = []struct {
	name                 string
	noExchange, flushAll bool
}{{"plain", false, false}, {"no exchange", true, false}, {"flushed whole", false, true}}

func TestErrorAtEveryStep(t *testing.T) {
	for _, kind := range disks {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC, syscall.EACCES} {
			t.Run(fmt.Sprint(kind.name, " ", cause), func(t *testing.T) {
				count := map[string]int{}
				for n := 0; ; n++ {
					fired := false
					r, m := newMemRig(t, before)
					m.NoExchange, m.NoSyncAll = kind.noExchange, !kind.flushAll
					r.wrap = failAt(n, &fired, anyStep, disktest.Action{Err: cause})
					out, err := r.move(steps(before, after))
					r.wrap = nil
					if !fired {
						require.NoError(t, err)
						break
					}
					got := oldOrNew(r, before, after)
					if err != nil {
						var c *ConflictError
						if !errors.As(err, &c) { // no permission is a conflict
							require.ErrorIs(t, err, cause, n)
						}
						var e *Error
						require.ErrorAs(t, err, &e)
						require.True(t, e.RolledBack, "step %d: %v", n, err)
						require.Equal(t, "old", got, "step %d: %v", n, err)
					} else {
						require.Equal(t, "new", got)
					}
					count[got]++
					_ = out
					_, _, err = r.recover()
					require.NoError(t, err)
					require.Equal(t, got, oldOrNew(r, before, after))
					r.clean()
				}
				t.Log(count)
				require.Greater(t, count["old"], 200)
			})
		}
	}
}

// TestTwoErrors fails a second step, of the taking back.
func TestTwoErrors(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	tries := 1500
	if long {
		tries = 50000
	}
	for range tries {
		r, m := newMemRig(t, before)
		m.NoExchange, m.NoSyncAll = rng.IntN(3) == 0, rng.IntN(2) == 0
		first, gap := rng.IntN(700), 1+rng.IntN(150)
		i := 0
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				i++
				if i-1 == first || i-1 == first+gap {
					return disktest.Action{Err: syscall.EIO}
				}
				return disktest.Action{}
			}, dirs...)
		}
		_, err := r.move(steps(before, after))
		r.wrap = nil
		var e *Error
		if errors.As(err, &e) && e.RolledBack {
			require.Equal(t, "old", oldOrNew(r, before, after))
		}
		_, out, err := r.recover()
		require.NoError(t, err)
		for _, o := range out {
			require.Empty(t, o.Left, "steps %d+%d", first, gap)
		}
		got := oldOrNew(r, before, after)
		if e != nil && e.RolledBack {
			require.Equal(t, "old", got, "steps %d+%d: reported as taken back, then finished", first, gap)
		}
		r.clean()
	}
}

func TestDeathAtEveryStep(t *testing.T) {
	for _, kind := range disks {
		t.Run(kind.name, func(t *testing.T) {
			count := map[string]int{}
			for n := 0; ; n++ {
				fired := false
				r, m := newMemRig(t, before)
				m.NoExchange, m.NoSyncAll = kind.noExchange, !kind.flushAll
				r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true, Torn: n % 7})
				_, err := r.move(steps(before, after))
				r.wrap = nil
				if !fired {
					require.NoError(t, err)
					break
				}
				if err != nil {
					require.ErrorIs(t, err, disktest.ErrDead)
				}
				r.vault.crash()
				results, out, err := r.recover()
				require.NoError(t, err, "step %d", n)
				got := oldOrNew(r, before, after)
				count[got]++
				for i, res := range results {
					require.Empty(t, out[i].Left)
					require.Equal(t, map[Result]string{Finished: "new", RolledBack: "old"}[res], got)
				}
				require.Zero(t, r.kept, "step %d", n)
				r.clean()
				_, err = r.move(steps(map[string]files{"old": before, "new": after}[got], files{"keep": file("kept")}))
				require.NoError(t, err)
				require.Equal(t, files{"keep": file("kept")}, r.state())
			}
			t.Log(count)
			require.Greater(t, count["old"], 50)
			require.Greater(t, count["new"], 50)
		})
	}
}

// TestPowerLossOfWhatWasDisplaced loses, with the power, the bytes that a command had written and
// nobody had flushed, after they were moved into their slots: to their end, in part or all of them.
func TestPowerLossOfWhatWasDisplaced(t *testing.T) {
	for _, kind := range disks {
		t.Run(kind.name, func(t *testing.T) {
			count, torn := map[string]int{}, 0
			for n := 0; ; n++ {
				fired := false
				r, m := newMemRig(t, before)
				m.NoExchange = kind.noExchange
				r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
				_, _ = r.move(steps(before, after))
				r.wrap = nil
				if !fired {
					break
				}
				torn += r.tearDisplaced(n % 3)
				_, out, err := r.recover()
				require.NoError(t, err, "step %d", n)
				count[oldOrNew(r, before, after)]++
				for _, o := range out {
					require.Empty(t, o.Left, "step %d", n)
				}
				r.clean()
			}
			t.Log(count, torn)
			require.Greater(t, torn, 100)
		})
	}
}

// tearDisplaced shortens or zeroes the slots that have what only before has, and says how many.
func (r *rig) tearDisplaced(how int) (torn int) {
	tmp := r.open("tree/.decree/tmp")
	defer tmp.Close()
	list, err := tmp.List()
	require.NoError(r.t, err)
	for _, e := range list {
		d, err := tmp.OpenDir(e.Name)
		require.NoError(r.t, err)
		slots, err := d.List()
		require.NoError(r.t, err)
		for _, slot := range slots {
			have, err := entryAt(d, slot.Name, true)
			require.NoError(r.t, err)
			displaced := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(path tree.Path) bool {
				n, now := before[path], after[path]
				return n.kind == "file" && n.data != now.data && have.is(n.entry())
			})
			if !displaced || have.entry.Size == 0 {
				continue
			}
			torn++
			r.tear(d, slot.Name, how, have)
		}
		d.Close()
	}
	return torn
}

// TestPowerLossOfWhatIsInPlace loses, with the power, such bytes of files that the move had not
// come to: they are known for what they are, unless somebody has written them since.
func TestPowerLossOfWhatIsInPlace(t *testing.T) {
	for _, edited := range []bool{false, true} {
		count, torn, left := map[string]int{}, 0, 0
		for n := 0; ; n++ {
			fired := false
			r, _ := newMemRig(t, before)
			r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
			_, _ = r.move(steps(before, after))
			r.wrap = nil
			if !fired {
				break
			}
			if waits, err := Pending(r.open("txn")); err != nil || len(waits) == 0 || waits[0].ext != extJournal {
				continue
			}
			torn += r.tearInPlace(n%3, edited)
			_, out, err := r.recover()
			require.NoError(t, err, "step %d", n)
			for _, o := range out {
				left += len(o.Left)
			}
			if !edited {
				count[oldOrNew(r, before, after)]++
				require.Zero(t, left, "step %d", n)
			}
			r.clean()
		}
		t.Log(edited, count, torn, left)
		require.Greater(t, torn, 30)
		require.Equal(t, edited, left > 0)
	}
}

// tearInPlace shortens or zeroes the files that stand at their paths as before has them, and
// after has not, and says how many. edited: it is somebody who does so now.
func (r *rig) tearInPlace(how int, edited bool) (torn int) {
	h := newHandles(r.open("tree"))
	defer h.close()
	for path, n := range before {
		if n.kind != "file" || n.data == after[path].data && after[path].kind == "file" {
			continue
		}
		d, err := h.dir(path.Parent())
		if err != nil {
			continue
		}
		have, err := entryAt(d.Dir, path.Name(), true)
		require.NoError(r.t, err)
		if have.is(n.entry()) && have.entry.Size > 0 {
			torn++
			r.tear(d.Dir, path.Name(), how, have)
			if !edited {
				require.NoError(r.t, d.SetMtime(path.Name(), have.info, have.info.Mtime))
			}
		}
		d.release()
	}
	return torn
}

// tear shortens or zeroes a file of which have was seen.
func (r *rig) tear(d disk.Dir, name string, how int, have state) {
	f, err := d.OpenWrite(name, 0o600)
	require.NoError(r.t, err)
	switch size := have.entry.Size; how {
	case 0:
		require.NoError(r.t, f.Truncate(0))
	case 1:
		require.NoError(r.t, f.Truncate(size-1))
	case 2:
		_, err = f.WriteAt(make([]byte, size), 0)
		require.NoError(r.t, err)
	}
	require.NoError(r.t, f.Close())
}

// TestDeathInRecovery dies in the move, in the recovery and in the recovery of that.
func TestDeathInRecovery(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	tries := 2500
	if long {
		tries = 100000
	}
	count := map[string]int{}
	for i := range tries {
		r, m := newMemRig(t, before)
		m.NoExchange, m.NoSyncAll = rng.IntN(3) == 0, rng.IntN(2) == 0
		lostStaging := i%5 == 0
		r.dying(rng, 150, func() error { _, err := r.move(steps(before, after)); return err })
		if lostStaging {
			r.loseStaging(rng)
		}
		deaths := 0
		for rng.IntN(4) > 0 {
			if r.dying(rng, 40, func() error { _, _, err := r.recover(); return err }) {
				deaths++
			}
		}
		_, out, err := r.recover()
		require.NoError(t, err, "try %d", i)
		for _, o := range out {
			require.Empty(t, o.Left, "try %d", i)
		}
		got := oldOrNew(r, before, after)
		count[fmt.Sprint(got, " after ", deaths, " deaths in recovery")]++
		r.clean()
	}
	t.Log(count)
	for _, got := range []string{"old", "new"} {
		require.Greater(t, count[got+" after 0 deaths in recovery"], tries/5)
		require.Greater(t, count[got+" after 1 deaths in recovery"], tries/30)
		require.Greater(t, count[got+" after 2 deaths in recovery"], tries/200)
	}
}

// dying runs do with a death at one of the next writing steps, or none.
func (r *rig) dying(rng *rand.Rand, within int, do func() error) bool {
	fired := false
	r.wrap = failAt(rng.IntN(within), &fired, writes, disktest.Action{Die: true, Torn: rng.IntN(5)})
	err := do()
	r.wrap = nil
	if fired && err != nil {
		require.ErrorIs(r.t, err, disktest.ErrDead)
	}
	r.vault.crash()
	return fired
}

// loseStaging deletes some or all of .decree/tmp, as a command may.
func (r *rig) loseStaging(rng *rand.Rand) {
	tmp := r.open("tree/.decree/tmp")
	list, err := tmp.List()
	require.NoError(r.t, err)
	for _, e := range list {
		d, err := tmp.OpenDir(e.Name)
		require.NoError(r.t, err)
		slots, err := d.List()
		require.NoError(r.t, err)
		all := rng.IntN(2) == 0
		for _, s := range slots {
			if all || rng.IntN(2) == 0 {
				require.NoError(r.t, d.Remove(s.Name))
			}
		}
		if all {
			require.NoError(r.t, tmp.Rmdir(e.Name))
		}
	}
}

// TestPowerLoss loses the power at every writing step of a move, several times
// with other luck, then in the recovery of that.
func TestPowerLoss(t *testing.T) {
	for _, kind := range disks {
		t.Run(kind.name, func(t *testing.T) {
			powerLoss(t, before, after, kind.noExchange, kind.flushAll, false)
		})
	}
}

// TestPowerLossAfterARecovery ends the process at every writing step of a move; then a recovery settles it, and the power
// goes: nothing that the dead process has done is only in the memory that is lost with it.
func TestPowerLossAfterARecovery(t *testing.T) {
	for _, flushAll := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(7, 8))
		for n, fired := 0, true; fired; n++ {
			r, m := newMemRig(t, before)
			m.NoSyncAll, fired = !flushAll, false
			i := 0
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if s.Write {
						i++
					}
					fired = fired || s.Write && i-1 == n
					return disktest.Action{Die: s.Write && i-1 == n}
				}, dirs...)
			}
			_, _ = r.move(steps(before, after))
			again := memRig(t, m, r.vault)
			_, _, err := again.recover()
			require.NoError(t, err)
			again.clean()
			got := oldOrNew(again, before, after)
			for range 6 {
				lost := memRig(t, m.Crash(rng), r.vault)
				_, _, err := lost.recover()
				require.NoError(t, err)
				require.Equal(t, got, oldOrNew(lost, before, after), "step %d", n)
			}
		}
	}
}

// TestPowerLossWithoutAStore does it with nothing but what is staged. (Files in
// directories that go need the store: the disk in memory may lose a file's
// removal from a directory and keep the directory's own.)
func TestPowerLossWithoutAStore(t *testing.T) {
	flat := func(f files) files {
		out := maps.Clone(f)
		maps.DeleteFunc(out, func(p tree.Path, n node) bool {
			return strings.HasPrefix(string(p), "d/x") || strings.HasPrefix(string(p), "d2f")
		})
		return out
	}
	for _, flushAll := range []bool{false, true} {
		powerLoss(t, flat(before), flat(after), false, flushAll, true)
	}
}

func powerLoss(t *testing.T, from, to files, noExchange, flushAll, storeless bool) {
	seeds := 12
	if long {
		seeds = 500
	}
	count := map[string]int{}
	rng := rand.New(rand.NewPCG(5, 6))
	r, m := newMemRig(t, from)
	m.NoExchange, m.NoSyncAll = noExchange, !flushAll
	n := 0
	lose := func() string {
		store, losses := r.vault, rng.IntN(3)
		if storeless {
			store, losses = newVault(), 0
		}
		return afterLoss(memRig(t, m.Crash(rng), store), from, to, rng, losses)
	}
	r.wrap = func(dirs ...disk.Dir) []disk.Dir {
		return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
			if s.Write {
				n++
				for range seeds {
					count[lose()]++
				}
			}
			return disktest.Action{}
		}, dirs...)
	}
	_, err := r.move(steps(from, to))
	require.NoError(t, err)
	for range seeds * 4 {
		require.Equal(t, "new", lose(), "a move that was acknowledged")
	}
	t.Log(n, "writing steps;", count)
	require.Greater(t, count["old"], 100)
	require.Greater(t, count["new"], 100)
	acknowledged(t, r, m, to, rng)
}

// afterLoss recovers on what the power left, with so many more losses on the
// way, and says what the tree is then.
func afterLoss(r *rig, from, to files, rng *rand.Rand, losses int) string {
	kept := newVault()
	r.vault.mu.Lock()
	maps.Copy(kept.objects, r.vault.objects)
	r.vault.mu.Unlock()
	m := r.d.(*disktest.Mem)
	for range losses {
		r = memRig(r.t, m, kept)
		r.dying(rng, 100, func() error { _, _, err := r.recover(); return err })
		m = m.Crash(rng)
	}
	r = memRig(r.t, m, kept)
	_, out, err := r.recover()
	require.NoError(r.t, err)
	for _, o := range out {
		require.Empty(r.t, o.Left)
	}
	r.clean()
	got := oldOrNew(r, from, to)
	// What a recovery has settled stays so.
	again := memRig(r.t, m.Crash(rng), kept)
	_, _, err = again.recover()
	require.NoError(r.t, err)
	require.Equal(r.t, got, oldOrNew(again, from, to))
	return got
}

// acknowledged edits after a move has returned, then loses the power: the move
// is over, and no recovery takes the edit for a reason to take it back.
func acknowledged(t *testing.T, r *rig, m *disktest.Mem, tree files, rng *rand.Rand) {
	root := r.open("tree")
	require.True(t, strangers["in place"](root, "edit"))
	f, err := root.Open("edit")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	want := tree.with(files{"edit": file(theirs)})
	for range 50 {
		again := memRig(t, m.Crash(rng), r.vault)
		results, _, err := again.recover()
		require.NoError(t, err)
		require.NotContains(t, results, RolledBack)
		require.Equal(t, want, again.state())
	}
}

// TestWholeFlushFails has whole flushes fail, as they do for what another could not write: the move
// comes to its end, and is durable by what was flushed after that.
func TestWholeFlushFails(t *testing.T) {
	for name, fails := range map[string]func(n int) bool{
		"the first":                         func(n int) bool { return n == 0 },
		"two":                               func(n int) bool { return n < 2 },
		"the one after the files are moved": func(n int) bool { return n == 1 },
		"each":                              func(int) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			r, m := newMemRig(t, before)
			m.NoSyncAll = false
			n, failed := 0, 0
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if s.Op != "SyncAll" {
						return disktest.Action{}
					}
					if n++; !fails(n - 1) {
						return disktest.Action{}
					}
					failed++
					return disktest.Action{Err: syscall.EIO}
				}, dirs...)
			}
			_, err := r.move(steps(before, after))
			require.NoError(t, err)
			require.Equal(t, after, r.state())
			require.NotZero(t, failed)
			rng := rand.New(rand.NewPCG(9, 10))
			for range 50 {
				lost := memRig(t, m.Crash(rng), r.vault)
				_, _, err := lost.recover()
				require.NoError(t, err)
				require.Equal(t, after, lost.state(), "a move that was acknowledged")
			}
			r.clean()
		})
	}
}

// TestWholeFlushFailsForOurs has also fail what flushes our own afterwards: that is told, and all is as it was.
func TestWholeFlushFailsForOurs(t *testing.T) {
	for _, op := range []string{"FileSync", "Sync"} {
		r, m := newMemRig(t, before)
		m.NoSyncAll = false
		whole := 0
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				if s.Op == "SyncAll" {
					whole++
				}
				if s.Op == "SyncAll" || s.Op == op && strings.Contains(s.Path, "tmp/txn-") {
					return disktest.Action{Err: syscall.EIO}
				}
				return disktest.Action{}
			}, dirs...)
		}
		_, err := r.move(steps(before, after))
		require.ErrorIs(t, err, syscall.EIO, op)
		require.Equal(t, wholeTries, whole)
		r.wrap = nil
		require.Equal(t, before, r.state())
		r.clean()
	}
}
