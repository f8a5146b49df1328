package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

// randomTree makes a tree of few names, so that two of them often have
// something of another kind at one path.
func randomTree(rng *rand.Rand, prefix tree.Path, depth int, out files) {
	for _, name := range []string{"a", "a-b", "a.c", "b", "\xff\n"} {
		path := prefix + tree.Path(name)
		switch k := rng.IntN(8); {
		case k < 2:
			out[path] = moded([]uint32{0o644, 0o600, 0o755, 0o444, 0o4755}[rng.IntN(5)], strings.Repeat("x", rng.IntN(3)*rng.IntN(2000)))
		case k < 3:
			out[path] = link([]string{"a", "../b", "/nowhere", "."}[rng.IntN(4)])
		case k < 6 && depth > 0:
			out[path] = dir([]uint32{0o755, 0o700, 0o555, 0o1777}[rng.IntN(4)])
			randomTree(rng, path+"/", depth-1, out)
		}
	}
}

// TestRandomTrees moves between random trees with a random fault, death or
// none, and at last to the second tree.
func TestRandomTrees(t *testing.T) {
	tries := 1200
	if long {
		tries = 60000
	}
	for seed := range uint64(tries) {
		rng := rand.New(rand.NewPCG(seed, 7))
		from, to := files{}, files{}
		randomTree(rng, "", 2, from)
		randomTree(rng, "", 2, to)
		r, m := newMemRig(t, from)
		m.NoExchange = rng.IntN(4) == 0
		r.workers = 1 + rng.IntN(4)
		fired := false
		count := anyStep
		if rng.IntN(2) == 0 {
			count = writes
		}
		r.wrap = failAt(rng.IntN(800), &fired, count, []disktest.Action{
			{Die: true, Torn: rng.IntN(10)}, {Err: errors.New("some fault")},
		}[rng.IntN(2)])
		_, err := r.move(steps(from, to))
		r.wrap = nil
		_, out, rerr := r.recover()
		require.NoError(t, rerr, "seed %d: %v", seed, err)
		for _, o := range out {
			require.Empty(t, o.Left, "seed %d", seed)
		}
		r.clean()
		if oldOrNew(r, from, to) == "old" && fmt.Sprint(from) != fmt.Sprint(to) {
			require.Error(t, err, "seed %d", seed)
			_, err = r.move(steps(from, to))
			require.NoError(t, err, "seed %d", seed)
		}
		require.Equal(t, to, r.state(), "seed %d", seed)
		r.clean()
	}
}

func TestRandomTreesOnTheSystem(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 8))
		from, to := files{}, files{}
		randomTree(rng, "", 2, from)
		randomTree(rng, "", 2, to)
		r := newRig(t, from)
		r.workers = 0
		_, err := r.move(steps(from, to))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, to, r.state(), "seed %d", seed)
		_, err = r.move(steps(to, from))
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, from, r.state(), "seed %d", seed)
		r.clean()
	}
}

func TestHardLinksAreNamedAndUnshared(t *testing.T) {
	was := files{"a": file("1"), "b": file("1"), "c": file("1")}
	r := newRig(t, files{"a": file("1")})
	require.NoError(t, os.Link(r.path("a"), r.path("b")))
	require.NoError(t, os.Link(r.path("a"), r.path("c")))
	will := files{"a": file("x"), "b": moded(0o600, "1")}
	out, err := r.move(steps(was, will))
	require.NoError(t, err)
	require.Equal(t, []string{"a: no longer hard-linked to its other names (it had 3)"}, out.Notes)
	require.Equal(t, will, r.state())
	r.clean()
}

// TestAnIDIsUsedOnce: a transaction never touches what waits under its id.
func TestAnIDIsUsedOnce(t *testing.T) {
	for _, lose := range []bool{false, true} {
		fired := false
		r, _ := newMemRig(t, before)
		r.wrap = failAt(80, &fired, writes, disktest.Action{Die: true})
		_, err := r.move(steps(before, after))
		require.Error(t, err)
		r.wrap = nil
		if lose {
			r.loseStaging(rand.New(rand.NewPCG(0, 0)))
		}
		_, err = r.move(steps(files{"keep": file("kept")}, files{"keep": file("x")}))
		require.ErrorIs(t, err, os.ErrExist)
		require.ErrorContains(t, err, "nothing was changed")
		results, _, err := r.recover()
		require.NoError(t, err)
		require.Len(t, results, 1)
		oldOrNew(r, before, after)
		r.clean()
	}
}

// TestHalfARename stops renames that are made of a link and an unlink between
// the two: the n-th of a move, or, after a fault, of its taking back.
func TestHalfARename(t *testing.T) {
	for n := range 40 {
		for _, back := range []bool{false, true} {
			r, _ := newMemRig(t, before)
			goesBack, dead := false, false
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				i := 0
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					if back && !goesBack && s.Op == "Sync" && strings.HasPrefix(s.Path, "/r/tree") && i > 5 {
						goesBack = true
						return disktest.Action{Err: errors.New("no flush")}
					}
					if s.Op != "RenameNew" || strings.HasPrefix(s.Path, "/r/txn") {
						return disktest.Action{}
					}
					if i++; back != goesBack || i < n {
						return disktest.Action{}
					}
					dead = true
					r.linkFor(s.Path)
					return disktest.Action{Die: true}
				}, dirs...)
			}
			_, _ = r.move(steps(before, after))
			r.wrap = nil
			_, out, err := r.recover()
			require.NoError(t, err)
			for _, o := range out {
				require.Empty(t, o.Left, "rename %d", n)
			}
			require.True(t, dead || n > 6)
			oldOrNew(r, before, after)
			r.clean()
		}
	}
}

// linkFor makes the link of the rename from path: from a slot to the step's
// path, or from a path to the slot that it would go to.
func (r *rig) linkFor(path string) {
	pending, err := Pending(r.open("txn"))
	require.NoError(r.t, err)
	stage, err := newHandles(r.open("tree/.decree/tmp")).dir("txn-t1")
	require.NoError(r.t, err)
	for s := range pending[0].steps.all() {
		slot := "d" + fmt.Sprint(s.n)
		if s.kind == create || s.kind == dirToFile {
			slot = "s" + fmt.Sprint(s.n)
		}
		d, err := newHandles(r.open("tree")).dir(s.Path.Parent())
		switch {
		case strings.HasSuffix(path, string("/tree/"+s.Path)):
			require.NoError(r.t, err)
			require.NoError(r.t, d.Link(s.Path.Name(), stage.Dir, slot))
		case strings.HasSuffix(path, "/txn-t1/"+slot):
			require.NoError(r.t, err)
			require.NoError(r.t, stage.Link(slot, d.Dir, s.Path.Name()))
		}
	}
}

// TestCommitSeesTheNewTreeAndTheJournal holds what an owner builds on: after
// Commit began, the transaction is known as finished until Commit succeeds.
func TestCommitSeesTheNewTreeAndTheJournal(t *testing.T) {
	r, _ := newMemRig(t, before)
	live, journals, done := r.tree()
	defer done()
	failed := errors.New("not written")
	plan := Plan{ID: "t1", Steps: steps(before, after), Meta: []byte(`{"record":"r"}`), Commit: func(*Outcome) error {
		require.Equal(t, after, r.state())
		return failed
	}}
	_, err := live.Move(context.Background(), plan, r.vault, journals)
	require.ErrorIs(t, err, failed)
	for range 2 {
		pending, err := Pending(journals)
		require.NoError(t, err)
		require.Len(t, pending, 1)
		require.True(t, pending[0].Settled)
		require.Equal(t, `{"record":"r"}`, string(pending[0].Meta))
		pending[0].Commit = func(res Result, _ *Outcome) error {
			require.Equal(t, Finished, res)
			return failed
		}
		_, _, err = live.Recover(context.Background(), pending[0])
		require.ErrorIs(t, err, failed)
	}
	results, _, err := r.recover()
	require.NoError(t, err)
	require.Equal(t, []Result{Finished}, results)
	require.Equal(t, after, r.state())
	r.clean()
}

func TestCancelTakesBack(t *testing.T) {
	for n := 0; ; n += 5 {
		r, _ := newMemRig(t, before)
		ctx, cancel := context.WithCancel(context.Background())
		i := 0
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(disktest.Step) disktest.Action {
				if i++; i == n {
					cancel()
				}
				return disktest.Action{}
			}, dirs...)
		}
		tree, journals, done := r.tree()
		_, err := tree.Move(ctx, Plan{ID: "t1", Steps: steps(before, after)}, r.vault, journals)
		r.wrap = nil
		done()
		cancel()
		got := oldOrNew(r, before, after)
		r.clean()
		if err == nil {
			require.Equal(t, "new", got)
			if n > i {
				return
			}
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "old", got)
	}
}

func TestLook(t *testing.T) {
	r := newRig(t, files{"f": file("abc"), "d": dir(0o755), "d/l": link(".."), "d/f": file("")})
	live, _, done := r.tree()
	defer done()
	for path, want := range map[tree.Path]*tree.Entry{
		"f": file("abc").entry(), "d": dir(0o755).entry(), "d/l": link("..").entry(), "d/f": file("").entry(),
		"no": nil, "no/such": nil, "f/below": nil, "d/f/below/it": nil,
	} {
		have, err := live.Look(path)
		require.NoError(t, err, path)
		require.Equal(t, want, have, path)
	}
	_, err := live.Look("d/l/f")
	require.Equal(t, &LinkError{Path: "d/l/f", At: "d/l"}, err)
	require.EqualError(t, err, "d/l/f: d/l is a symbolic link")
	_, err = live.Look("d/../f")
	require.ErrorContains(t, err, `".." in path`)
	_, err = live.Read("d/l/f")
	require.ErrorContains(t, err, "d/l is a symbolic link")
	_, err = live.Read("no/such")
	require.ErrorIs(t, err, os.ErrNotExist)
	all, err := live.LookAll(context.Background(), []tree.Path{"f", "d/l/x", "no"})
	require.NoError(t, err)
	require.Equal(t, file("abc").entry(), all[0].Entry)
	require.Error(t, all[1].Err)
	require.Equal(t, Looked{}, all[2])
}

// folding is a directory whose names are the same without their case and
// without the characters that HFS+ ignores; GIT~1 is its short name of .git.
type folding struct{ disk.Dir }

func fold(name string) string {
	name = strings.TrimRight(strings.ToLower(strings.ReplaceAll(name, "\u200c", "")), ". ")
	if name == "git~1" {
		return ".git"
	}
	return name
}

func (d folding) OpenDir(name string) (disk.Dir, error) {
	c, err := d.Dir.OpenDir(fold(name))
	if err != nil {
		return nil, err
	}
	return folding{c}, nil
}

func (d folding) Stat(name string) (disk.Info, error)      { return d.Dir.Stat(fold(name)) }
func (d folding) Open(name string) (disk.File, error)      { return d.Dir.Open(fold(name)) }
func (d folding) Mkdir(name string, perm uint32) error     { return d.Dir.Mkdir(fold(name), perm) }
func (d folding) Remove(name string) error                 { return d.Dir.Remove(fold(name)) }
func (d folding) Rmdir(name string) error                  { return d.Dir.Rmdir(fold(name)) }
func (d folding) Readlink(name string) (string, error)     { return d.Dir.Readlink(fold(name)) }
func (d folding) Symlink(target, name string) error        { return d.Dir.Symlink(target, fold(name)) }
func (d folding) Xattrs(name string) ([]disk.Xattr, error) { return d.Dir.Xattrs(fold(name)) }

func (d folding) Chmod(name string, is disk.Info, mode uint32) error {
	return d.Dir.Chmod(fold(name), is, mode)
}

func (d folding) Chown(name string, is disk.Info, uid, gid uint32) error {
	return d.Dir.Chown(fold(name), is, uid, gid)
}

func (d folding) Create(name string, perm uint32) (disk.File, error) {
	return d.Dir.Create(fold(name), perm)
}

func (d folding) Rename(old string, to disk.Dir, name string) error {
	return d.Dir.Rename(fold(old), unfolded(to), fold(name))
}

func (d folding) RenameNew(old string, to disk.Dir, name string) error {
	return d.Dir.RenameNew(fold(old), unfolded(to), fold(name))
}

func (d folding) Exchange(a string, to disk.Dir, b string) error {
	return d.Dir.Exchange(fold(a), unfolded(to), fold(b))
}

func unfolded(d disk.Dir) disk.Dir {
	for {
		switch f := d.(type) {
		case folding:
			d = f.Dir
		case *handle:
			d = f.Dir
		default:
			return d
		}
	}
}

// spellings are names that some file system takes for .git or .decree.
var spellings = []string{".GIT", ".Git", ".g\u200cit", ".git\u200c", "GIT~1", "git~1", ".DECREE", ".decreE", ".d\u200cecree"}

// TestWritesToOtherSpellings plans all kinds of writes below and at another
// spelling of .git and .decree, where one is there and where none is yet.
// (A file system of the system's that folds case is not to be had everywhere:
// ext4 needs a kernel with CONFIG_UNICODE.)
func TestWritesToOtherSpellings(t *testing.T) {
	for _, there := range []bool{true, false} {
		for _, name := range spellings {
			for at, prefix := range map[string]string{"top": "", "below": "x/"} {
				decree := !strings.Contains(strings.ToLower(name), "it")
				if !there && (name[0] != '.' || decree && prefix == "") {
					continue // .decree is always there; GIT~1 is nothing without .git
				}
				for what, to := range map[string]files{
					"in it":     {"config": file("evil")},
					"dir in it": {"hooks": dir(0o755), "hooks/x": moded(0o755, "evil")},
					"itself":    {"": link("/etc")},
					"a dir":     {"": dir(0o700)},
				} {
					t.Run(fmt.Sprint(there, name, at, what), func(t *testing.T) {
						r := newRig(t, files{"x": dir(0o755), "z": file("z")})
						if there {
							for _, own := range []tree.Path{".git", "x/.git", "x/.decree"} {
								require.NoError(t, os.Mkdir(r.path(own), 0o755))
								require.NoError(t, os.WriteFile(r.path(own+"/config"), []byte("mine"), 0o600))
							}
						}
						snapshot := func() string { return treeText(t, r.path("")) }
						was := snapshot()
						r.wrap = func(dirs ...disk.Dir) []disk.Dir {
							for i := range dirs {
								dirs[i] = folding{dirs[i]}
							}
							return dirs
						}
						want := files{"z": file("changed")}
						if !there && strings.HasPrefix(what, "in") || what == "dir in it" && !there {
							want[tree.Path(prefix+name)] = dir(0o755)
						}
						for p, n := range to {
							want[tree.Path(strings.TrimSuffix(prefix+name+"/"+string(p), "/"))] = n
						}
						_, err := r.move(steps(files{"z": file("z")}, want))
						require.Error(t, err)
						require.True(t, strings.Contains(err.Error(), "another spelling of") || strings.Contains(err.Error(), "is there"), err)
						require.Equal(t, was, snapshot())
						r.clean()
					})
				}
			}
		}
	}
}

// TestDeathBeforeTheSpellingIsSeen dies at every step of a move that makes
// another spelling of .git: the recovery comes to an end, and names what it must
// not touch any more.
func TestDeathBeforeTheSpellingIsSeen(t *testing.T) {
	left := 0
	for n := 0; ; n++ {
		fired := false
		r := newRig(t, files{"x": dir(0o755), "z": file("z")})
		inject := failAt(n, &fired, anyStep, disktest.Action{Die: true})
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			for i := range dirs {
				dirs[i] = folding{dirs[i]}
			}
			return inject(dirs...)
		}
		_, err := r.move(steps(files{"z": file("z")}, files{"z": file("changed"), "x/.GIT": file("gitdir: /evil")}))
		require.Error(t, err)
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			for i := range dirs {
				dirs[i] = folding{dirs[i]}
			}
			return dirs
		}
		_, out, err := r.recover()
		require.NoError(t, err)
		for _, o := range out {
			for _, l := range o.Left {
				require.Equal(t, tree.Path("x/.GIT"), l.Path)
				left++
			}
		}
		r.clean()
		require.Equal(t, "z", r.state()["z"].data)
		if !fired {
			break
		}
	}
	require.Positive(t, left)
}

// treeText is everything below top, .git and .decree too, as text.
func treeText(t *testing.T, top string) string {
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprint(&b, strings.TrimPrefix(p, top), " ", st.Mode())
		if st.Mode().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

// TestOtherSpellingsOfGit asks for .git by another case on a disk that folds it.
func TestOtherSpellingsOfGit(t *testing.T) {
	r := newRig(t, files{"x": dir(0o755)})
	for _, own := range []string{".git", "x/.git"} {
		require.NoError(t, os.MkdirAll(r.path(tree.Path(own)), 0o755))
	}
	root := r.open("tree")
	defer root.Close()
	live := Open(folding{root}, Options{})
	for path, is := range map[tree.Path]string{".GIT/hooks/x": ".git", ".Git": ".git", "x/.gIt/config": ".git", ".DECREE/tmp": ".decree", "X/.GIT": ".git", ".git./x": ".git", ".decree. ./x": ".decree"} {
		_, err := live.Look(path)
		var f *ForbiddenError
		require.ErrorAs(t, err, &f, path)
		require.Equal(t, is, f.Is)
	}
	// Where case counts they are names like others.
	_, err := r.move(steps(files{}, files{".GIT": dir(0o755), ".GIT/x": file("x")}))
	require.NoError(t, err)
	require.Equal(t, file("x"), r.state()[".GIT/x"])
	require.True(t, suspicious(".g\u200cit") && suspicious("GIT~1") && suspicious(".Decree") && suspicious(".git. .") && suspicious(".Decree::$INDEX_ALLOCATION"))
	require.False(t, suspicious("git") || suspicious(".gitignore"))
}

// TestHandlesAreBounded walks more directories than may be open.
func TestHandlesAreBounded(t *testing.T) {
	have := files{}
	for i := range 3 * maxHandles {
		have[tree.Path(fmt.Sprintf("d%d", i))] = dir(0o755)
	}
	deep := tree.Path("")
	for range 300 {
		deep += "/d"
		have[deep[1:]] = dir(0o755)
	}
	r, _ := newMemRig(t, have)
	open := 0
	root := counting{r.open("tree"), &open}
	h := newHandles(root)
	for range 2 {
		for path := range have {
			d, err := h.dir(path)
			require.NoError(t, err)
			d.release()
			require.LessOrEqual(t, open, maxHandles+keepAbove+2)
		}
	}
	held, err := h.dir("d1")
	require.NoError(t, err)
	h.forget("d1")
	_, err = held.Self()
	require.NoError(t, err)
	h.close()
	require.Equal(t, 1, open)
	held.release()
	require.Equal(t, 0, open)
}

// counting counts the directories that are open.
type counting struct {
	disk.Dir
	open *int
}

func (c counting) OpenDir(name string) (disk.Dir, error) {
	d, err := c.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	*c.open++
	return counting{d, c.open}, nil
}

func (c counting) Close() error { *c.open--; return c.Dir.Close() }

func TestTidyRemovesWhatNeverMoved(t *testing.T) {
	for n := range 60 {
		fired := false
		r, _ := newMemRig(t, before)
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true, Torn: 4})
		_, err := r.move(steps(before, after))
		require.Error(t, err)
		r.wrap = nil
		pending, err := Pending(r.open("txn"))
		require.NoError(t, err)
		if len(pending) > 0 {
			break
		}
		tree, journals, done := r.tree()
		kept, err := tree.Tidy(journals, func(string) bool { return true })
		require.NoError(t, err)
		require.Empty(t, kept)
		done()
		r.clean()
		require.Equal(t, before, r.state())
	}
}
