package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

const theirs = "another's work"

// strangers are ways to write at a path while a transaction is on. They say
// whether they did.
var strangers = map[string]func(d disk.Dir, name string) bool{
	"in place": func(d disk.Dir, name string) bool {
		st, err := d.Stat(name)
		if err != nil || st.Kind != disk.Regular {
			return false
		}
		f, err := d.OpenWrite(name, 0o644)
		if err != nil || f.Truncate(0) != nil {
			return false
		}
		_, err = f.Write([]byte(theirs))
		return err == nil
	},
	"a new file over it": func(d disk.Dir, name string) bool {
		f, err := d.Create("stranger.tmp", 0o644)
		if err != nil {
			return false
		}
		if _, err := f.Write([]byte(theirs)); err != nil {
			return false
		}
		if d.Rename("stranger.tmp", d, name) != nil {
			_ = d.Remove("stranger.tmp")
			return false
		}
		return true
	},
	"deletes it": func(d disk.Dir, name string) bool { return d.Remove(name) == nil },
}

// TestAnotherWritesAtEveryStep lets somebody write at each path before each
// writing step of a move. Their bytes stay at the path, or beside it, and all
// other paths are all old or all new.
func TestAnotherWritesAtEveryStep(t *testing.T) {
	paths := slices.Sorted(maps.Keys(before.with(after)))
	for name, strange := range strangers {
		for _, noExchange := range []bool{false, true} {
			t.Run(fmt.Sprint(name, noExchange), func(t *testing.T) {
				count := map[string]int{}
				stride := 4
				if long {
					stride = 1
				}
				for i, path := range paths {
					for n := i % stride; ; n += stride {
						did, fired := false, false
						r, m := newMemRig(t, before)
						m.NoExchange = noExchange
						r.wrap = func(dirs ...disk.Dir) []disk.Dir {
							i := 0
							return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
								if !s.Write {
									return disktest.Action{}
								}
								if i++; i-1 == n {
									fired = true
									d, err := newHandles(r.open("tree")).dir(path.Parent())
									did = err == nil && strange(d.Dir, path.Name())
								}
								return disktest.Action{}
							}, dirs...)
						}
						_, err := r.move(steps(before, after))
						r.wrap = nil
						if !fired {
							break
						}
						count[checkStranger(t, r, path, did, name != "deletes it", err)]++
					}
				}
				t.Log(count)
				require.Greater(t, count["rolled back"], 100)
			})
		}
	}
}

// TestAnotherWritesWhileItIsTakenBack has a fault at one step and somebody's
// write at a later one.
func TestAnotherWritesWhileItIsTakenBack(t *testing.T) {
	paths := slices.Sorted(maps.Keys(before.with(after)))
	ways := slices.Sorted(maps.Keys(strangers))
	tries := 3000
	if long {
		tries = 200000
	}
	rng := rand.New(rand.NewPCG(11, 12))
	count := map[string]int{}
	for range tries {
		path, way := paths[rng.IntN(len(paths))], ways[rng.IntN(len(ways))]
		fault, gap := 60+rng.IntN(60), 1+rng.IntN(60)
		did := false
		r, m := newMemRig(t, before)
		m.NoExchange = rng.IntN(3) == 0
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			i := 0
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				if !s.Write {
					return disktest.Action{}
				}
				switch i++; i {
				case fault:
					return disktest.Action{Err: errors.New("a fault")}
				case fault + gap:
					d, err := newHandles(r.open("tree")).dir(path.Parent())
					did = err == nil && strangers[way](d.Dir, path.Name())
				}
				return disktest.Action{}
			}, dirs...)
		}
		_, err := r.move(steps(before, after))
		r.wrap = nil
		count[checkStranger(t, r, path, did, way != "deletes it", err)]++
	}
	t.Log(count)
	require.Greater(t, count["rolled back"], tries/5)
}

// TestDeathRightAfterAnotherWrote dies when somebody's bytes may have been
// taken out of the tree and not yet been looked at.
func TestDeathRightAfterAnotherWrote(t *testing.T) {
	paths := slices.Sorted(maps.Keys(before))
	count := map[string]int{}
	for _, noExchange := range []bool{false, true} {
		for _, path := range paths {
			for n := 60; n < 130; n++ {
				did := false
				r, m := newMemRig(t, before)
				m.NoExchange = noExchange
				r.wrap = func(dirs ...disk.Dir) []disk.Dir {
					i := 0
					return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
						if !s.Write {
							return disktest.Action{}
						}
						if i++; i == n {
							d, err := newHandles(r.open("tree")).dir(path.Parent())
							did = err == nil && strangers["a new file over it"](d.Dir, path.Name())
						}
						return disktest.Action{Die: i == n+1}
					}, dirs...)
				}
				_, err := r.move(steps(before, after))
				r.wrap = nil
				results, _, rerr := r.recover()
				require.NoError(t, rerr)
				have := r.state()
				kept := slices.ContainsFunc(slices.Collect(maps.Keys(have)), func(p tree.Path) bool { return have[p].data == theirs })
				require.Equal(t, did, kept, "%s, step %d: %v", path, n, err)
				r.clean()
				count[fmt.Sprint(did, results)]++
			}
		}
	}
	t.Log(count)
	require.Greater(t, count["true [taken back]"], 100, "written, and taken out or stumbled over")
	require.Greater(t, count["true []"]+count["true [finished]"], 100, "written before and after the moves")
}

// TestTwoFaultsAndTwoWrites has two faults and two writes of somebody's at any
// steps, so that what was taken out by mistake cannot always be put back either.
// Their bytes are somewhere in the tree afterwards, whatever else became of it.
func TestTwoFaultsAndTwoWrites(t *testing.T) {
	paths := slices.Sorted(maps.Keys(before.with(after)))
	ways := []string{"a new file over it", "in place"}
	tries := 6000
	if long {
		tries = 300000
	}
	rng := rand.New(rand.NewPCG(21, 22))
	count := map[string]int{}
	for try := range tries {
		var marks []string
		r, m := newMemRig(t, before)
		m.NoExchange, m.NoSyncAll = rng.IntN(3) == 0, rng.IntN(2) == 0
		at := 40 + rng.IntN(90)
		does := map[int]string{}
		order := []string{"write", "fault", "fault", "write"}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, what := range order {
			does[at] = what
			at += 1 + rng.IntN(2)*rng.IntN(40)
		}
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			i := 0
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				if !s.Write {
					return disktest.Action{}
				}
				i++
				switch does[i] {
				case "fault":
					return disktest.Action{Err: syscall.EIO}
				case "write":
					var at []tree.Path
					if own := strings.TrimPrefix(s.Path, "/r/tree/"); own != s.Path && !strings.HasPrefix(own, ".decree") {
						at = append(at, tree.Path(own)) // the very path that is about to be changed
					}
					for _, i := range rng.Perm(len(paths)) {
						at = append(at, paths[i])
					}
					if mark := r.strangerAt(at[rng.IntN(2):], ways[rng.IntN(len(ways))], len(marks)); mark != "" {
						marks = append(marks, mark)
					}
				}
				return disktest.Action{}
			}, dirs...)
		}
		_, err := r.move(steps(before, after))
		r.wrap = nil
		_, _, rerr := r.recover()
		require.NoError(t, rerr)
		r.clean()
		have := r.state()
		for _, mark := range marks {
			kept := slices.ContainsFunc(slices.Collect(maps.Values(have)), func(n node) bool { return strings.Contains(n.data, mark) })
			require.True(t, kept, "try %d: %q is lost; %v\n%v", try, mark, err, have)
		}
		count[fmt.Sprint(len(marks), " writes")]++
		for p := range have {
			if strings.Contains(string(p), "decree-kept-") {
				count["kept beside"]++
			}
		}
	}
	t.Log(count)
	require.Greater(t, count["2 writes"], tries/5)
	require.Greater(t, count["kept beside"], tries/500)
}

// strangerAt writes at the first of paths where that can be done and returns the
// bytes that must not be lost. Where a stranger has written nobody does again: who
// overwrites those bytes has lost them, not the move.
func (r *rig) strangerAt(paths []tree.Path, way string, n int) string {
	mark := fmt.Sprintf("%s %d", theirs, n)
	for _, path := range paths {
		d, err := newHandles(r.open("tree")).dir(path.Parent())
		if err != nil || strings.Contains(r.bytesAt(d, path.Name()), theirs) || !strangers[way](d.Dir, path.Name()) {
			continue
		}
		f, err := d.OpenWrite(path.Name(), 0o644)
		require.NoError(r.t, err)
		_, err = f.WriteAt([]byte(mark), 0)
		require.NoError(r.t, err)
		f.Close()
		return mark
	}
	return ""
}

// bytesAt returns the bytes of a regular file, "" where there is none.
func (r *rig) bytesAt(d disk.Dir, name string) string {
	f, err := d.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	require.NoError(r.t, err)
	return string(data)
}

// TestAnothersDirectoryStays: an empty directory that somebody made where the
// plan makes one is not taken for ours.
func TestAnothersDirectoryStays(t *testing.T) {
	r, _ := newMemRig(t, before)
	r.wrap = func(dirs ...disk.Dir) []disk.Dir {
		made := false
		return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
			if !made && s.Op == "Mkdir" && strings.HasSuffix(s.Path, "/made.d") {
				made = true
				require.NoError(t, r.open("tree").Mkdir("made.d", 0o750))
			}
			return disktest.Action{}
		}, dirs...)
	}
	_, err := r.move(steps(before, after))
	r.wrap = nil
	require.ErrorIs(t, err, os.ErrExist)
	require.ErrorContains(t, err, "everything was taken back; left as it is: made.d: made by another process meanwhile")
	require.Equal(t, before.with(files{"made.d": dir(0o750)}), r.state())
	r.clean()
}

func checkStranger(t *testing.T, r *rig, path tree.Path, did, wrote bool, err error) string {
	t.Helper()
	_, _, rerr := r.recover()
	require.NoError(t, rerr)
	r.clean()
	have := r.state()
	if did && wrote {
		kept := slices.ContainsFunc(slices.Collect(maps.Keys(have)), func(p tree.Path) bool {
			return have[p].data == theirs && (p == path || strings.Contains(string(p), "decree-kept-"))
		})
		require.True(t, kept, "%s: another's bytes are lost; %v", path, err)
	}
	from, to := maps.Clone(before), maps.Clone(after)
	for _, f := range []files{from, to, have} {
		for p := range f {
			if did && (p == path || p.Below(path) || path.Below(p)) || strings.Contains(string(p), "decree-kept-") {
				delete(f, p)
			}
		}
	}
	var e *Error
	switch {
	case err == nil:
		require.Equal(t, to, have, "%s", path)
		return "done"
	case errors.As(err, &e) && !e.Moved:
		require.Equal(t, from, have, "%s", path)
		return "refused"
	}
	require.Equal(t, from, have, "%s: %v", path, err)
	return "rolled back"
}

// TestEditBetweenCheckAndMove is the plain story on the system's disk.
func TestEditBetweenCheckAndMove(t *testing.T) {
	was, will := files{"a": file("1"), "b": file("2"), "c": file("3")}, files{"a": file("x"), "b": file("y"), "d": file("z")}
	r := newRig(t, was)
	wrote := false
	r.wrap = func(dirs ...disk.Dir) []disk.Dir {
		return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
			if !wrote && s.Op == "Exchange" && strings.HasSuffix(s.Path, "/tree/b") {
				wrote = true
				r.write("b", theirs)
			}
			return disktest.Action{}
		}, dirs...)
	}
	_, err := r.move(steps(was, will))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, tree.Path("b"), e.Path)
	require.True(t, e.RolledBack)
	require.Equal(t, []Left{{"b", "edited since"}}, e.Left)
	require.EqualError(t, err, "b: written by another process while it was moved; everything was taken back; left as it is: b: edited since (move)")
	require.Equal(t, was.with(files{"b": file(theirs)}), r.state())
	r.clean()
}

// TestWriterWithAnOpenHandle writes to a file that was already taken out of the tree.
func TestWriterWithAnOpenHandle(t *testing.T) {
	was, will := files{"a": file("1"), "b": file("2")}, files{"a": file("x")}
	for _, path := range []tree.Path{"a", "b"} {
		r := newRig(t, was)
		f, err := os.OpenFile(r.path(path), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		defer f.Close()
		moved := false
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				if moved && s.Op == "Sync" {
					moved = false
					_, err := f.WriteString(theirs)
					require.NoError(t, err)
				}
				moved = moved || s.Op == "RenameNew" && strings.HasSuffix(s.Path, "/tree/b")
				return disktest.Action{}
			}, dirs...)
		}
		_, err = r.move(steps(was, will))
		require.ErrorContains(t, err, string(path+": written by another process while it was moved"))
		require.Equal(t, was[path].data+theirs, r.state()[path].data)
		r.clean()
	}
}

// TestRecoveryLeavesLaterEdits dies in the middle, then a user edits.
func TestRecoveryLeavesLaterEdits(t *testing.T) {
	for _, path := range []tree.Path{"edit", "gone", "keep2", "made", "d/x/1", "f2l"} {
		wrote, waited := 0, 0
		for n := 40; n < 110; n += 3 {
			fired := false
			r, _ := newMemRig(t, before)
			r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
			_, _ = r.move(steps(before, after))
			r.wrap = nil
			d, err := newHandles(r.open("tree")).dir(path.Parent())
			did := err == nil && strangers["a new file over it"](d.Dir, path.Name())
			pending, err := Pending(r.open("txn"))
			require.NoError(t, err)
			waits := len(pending) == 1 && !pending[0].Settled
			results, out, err := r.recover()
			require.NoError(t, err)
			if did {
				wrote++
				require.Equal(t, theirs, r.state()[path].data, "%s, step %d", path, n)
			}
			if did && waits {
				waited++
			}
			if did && waits && path != "keep2" {
				require.Equal(t, []Result{RolledBack}, results)
				require.Equal(t, path, out[0].Left[0].Path)
			}
			r.clean()
		}
		t.Logf("%s: written %d times, %d of them while a transaction waited", path, wrote, waited)
		require.GreaterOrEqual(t, wrote, 15, path)
		require.GreaterOrEqual(t, waited, 8, path)
	}
}

// TestSwappedDirectories runs moves while a directory is exchanged with a link
// to the outside all the time. Nothing outside is written.
func TestSwappedDirectories(t *testing.T) {
	rounds := 150
	if long {
		rounds = 5000
	}
	was := files{"d": dir(0o755), "d/a": file("1"), "d/b": file("2"), "d/e": dir(0o755), "d/e/c": file("3"), "top": file("t")}
	will := files{"d": dir(0o755), "d/a": file("x"), "d/n": file("y"), "d/e": dir(0o755), "d/e/c": link("z"), "top": file("u")}
	r := newRig(t, was)
	r.workers = 4
	outside := filepath.Join(r.top, "outside")
	require.NoError(t, os.MkdirAll(outside+"/e", 0o755))
	for _, p := range []string{"a", "b", "e/c"} {
		require.NoError(t, os.WriteFile(filepath.Join(outside, p), []byte("out of reach"), 0o644))
	}
	require.NoError(t, os.Symlink(outside, r.path("evil")))
	root := r.open("tree")
	defer root.Close()
	if errors.Is(root.Exchange("top", root, "top"), errors.ErrUnsupported) {
		t.Skip("the system cannot exchange")
	}
	var stop atomic.Bool
	swapped := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			_ = root.Exchange("d", root, "evil")
		}
		swapped <- n
	}()
	state, count := "old", map[string]int{}
	for range rounds {
		from, to := was, will
		if state == "new" {
			from, to = will, was
		}
		_, err := r.move(steps(from, to))
		if err == nil {
			state = map[string]string{"old": "new", "new": "old"}[state]
		}
		count[fmt.Sprint(err == nil)]++
		// What could not be taken back for the swapping is settled in a quiet moment below.
		if pending, _ := Pending(r.open("txn")); len(pending) > 0 {
			stop.Store(true)
			<-swapped
			settleSwapped(t, r, root)
			if state = oldOrNewBelow(r, was, will); state == "" {
				r.rebuild(was)
				state = "old"
				count["mixed"]++
			}
			stop.Store(false)
			go func() {
				n := 0
				for ; !stop.Load(); n++ {
					_ = root.Exchange("d", root, "evil")
				}
				swapped <- n
			}()
		}
	}
	stop.Store(true)
	n := <-swapped
	t.Log(n, "swaps;", count)
	got := map[string]string{}
	require.NoError(t, filepath.WalkDir(outside, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, _ := os.ReadFile(p)
			got[strings.TrimPrefix(p, outside+"/")] = string(data)
		}
		return err
	}))
	require.Equal(t, map[string]string{"a": "out of reach", "b": "out of reach", "e/c": "out of reach"}, got)
}

func settleSwapped(t *testing.T, r *rig, root disk.Dir) {
	if st, err := root.Stat("d"); err == nil && st.Kind == disk.Symlink {
		require.NoError(t, root.Exchange("d", root, "evil"))
	}
	_, _, err := r.recover()
	require.NoError(t, err)
}

func oldOrNewBelow(r *rig, was, will files) string {
	have := r.state()
	delete(have, "evil")
	switch fmt.Sprint(have) {
	case fmt.Sprint(was):
		return "old"
	case fmt.Sprint(will):
		return "new"
	}
	return ""
}

func (r *rig) rebuild(tree files) {
	for path := range r.state() {
		if path != "evil" {
			require.NoError(r.t, os.RemoveAll(r.path(path)))
		}
	}
	r.build(tree)
}

// TestEditedSlotsAndALink has somebody, after a death, write into what the transaction had staged and taken out, and
// put a link in the place of a directory of its paths: it is settled all the same, and these bytes are kept in the tree.
func TestEditedSlotsAndALink(t *testing.T) {
	was, will := files{"d": dir(0o755), "d/e": dir(0o755), "d/e/a": file("1"), "d/e/b": file("2")}, files{"d": dir(0o755), "d/e": dir(0o755), "d/e/a": file("one")}
	kept := 0
	for n := 0; ; n++ {
		fired := false
		r := newRig(t, was)
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
		_, _ = r.move(steps(was, will))
		r.wrap = nil
		if !fired {
			break
		}
		pending, err := Pending(r.open("txn"))
		require.NoError(t, err)
		slots, err := filepath.Glob(r.path(".decree/tmp/txn-t1/[sd]*"))
		require.NoError(t, err)
		for _, slot := range slots {
			require.NoError(t, os.WriteFile(slot, []byte(theirs), 0o644))
		}
		require.NoError(t, os.Rename(r.path("d/e"), r.path("elsewhere")))
		require.NoError(t, os.Symlink("../elsewhere", r.path("d/e")))
		_, out, err := r.recover()
		require.NoError(t, err, "step %d", n)
		r.clean()
		if len(pending) == 0 || len(slots) == 0 {
			continue
		}
		require.NotEmpty(t, out[0].Left, "step %d", n)
		found, err := filepath.Glob(r.path("d/decree-kept-t1-*"))
		require.NoError(t, err)
		require.Len(t, found, len(slots), "step %d", n)
		kept += len(found)
	}
	require.Greater(t, kept, 3)
}
