package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/history"
	"decree/layer"
	"decree/plan"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// An editor is a user who works in a tree by a seed, and remembers each state that it was in.
type editor struct {
	t      *testing.T
	root   string
	rng    *rand.Rand
	states []stateAt
}

// stateAt is the tree from a moment on, until the next one's.
type stateAt struct {
	from time.Time // a moment before which the change cannot have come
	tree map[tree.Path]string
}

// step makes one system call's change.
func (e *editor) step(change func() error) {
	before := time.Now()
	_ = change() // what cannot be done to this path is not done
	e.states = append(e.states, stateAt{before, treeNow(e.t, e.root)})
}

// treeNow is a tree as lines by path, without decree's own and without what is ignored.
func treeNow(t *testing.T, root string) map[tree.Path]string {
	out := map[tree.Path]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		text, _ := filepath.Rel(root, path)
		rel := tree.Path(text)
		if rel == "." {
			return nil
		}
		if d.Name() == ".decree" {
			return fs.SkipDir
		}
		in, err := d.Info()
		require.NoError(t, err)
		switch in.Mode().Type() {
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			out[rel] = "link " + target
		case 0:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			out[rel] = fmt.Sprintf("file %o %q", in.Mode().Perm(), b)
		default:
			out[rel] = in.Mode().String()
		}
		return nil
	}))
	return out
}

var editedPaths = []string{"a/f", "a/g", "a/b/f", "c/f", "c/new", "top", "new", "a/b/new", "c"}

func (e *editor) path() string { return editedPaths[e.rng.IntN(len(editedPaths))] }

// write writes in place; the file is empty in between.
func (e *editor) write(p, text string, flags int) {
	var f *os.File
	e.step(func() (err error) {
		f, err = os.OpenFile(p, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK|flags, 0o644)
		return err
	})
	if f == nil {
		return
	}
	e.step(func() error { _, err := f.WriteString(text); return err })
	f.Close()
}

// edit does one thing to one path.
func (e *editor) edit() {
	p := filepath.Join(e.root, e.path())
	dir, aside := filepath.Dir(p), filepath.Join(e.root, "moved"+strconv.Itoa(len(e.states)))
	mine := fmt.Sprintf("user %d\n", e.rng.IntN(1000))
	rename := func(from, to string) { e.step(func() error { return os.Rename(from, to) }) }
	switch e.rng.IntN(17) {
	case 0, 1:
		e.write(p, mine, os.O_TRUNC)
	case 2:
		e.write(p, mine, os.O_APPEND)
	case 3:
		e.step(func() error { return os.Remove(p) })
	case 4: // saved by rename, and looking as before
		in, err := os.Lstat(p)
		e.write(aside, mine, os.O_TRUNC)
		if err == nil {
			e.step(func() error { return os.Chtimes(aside, in.ModTime(), in.ModTime()) })
		}
		rename(aside, p)
	case 5: // edited and edited back
		in, err := os.Lstat(p)
		if err != nil || !in.Mode().IsRegular() {
			return
		}
		if was, err := os.ReadFile(p); err == nil {
			e.write(p, mine, os.O_TRUNC)
			e.write(p, string(was), os.O_TRUNC)
		}
	case 6:
		e.step(func() error { return os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)) })
	case 7:
		e.step(func() error { return os.Chmod(p, 0o600+fs.FileMode(e.rng.IntN(2))*0o155) })
	case 8: // a directory in the place of another
		e.step(func() error { return os.Mkdir(aside, 0o755) })
		e.write(filepath.Join(aside, filepath.Base(p)), mine, os.O_TRUNC)
		if dir != e.root {
			rename(dir, aside+"x")
			rename(aside, dir)
		}
	case 9: // a directory away and back
		if dir != e.root {
			rename(dir, aside)
			if e.rng.IntN(2) == 0 {
				e.write(filepath.Join(aside, filepath.Base(p)), mine, os.O_TRUNC)
			}
			rename(aside, dir)
		}
	case 10:
		e.step(func() error { return os.Symlink("nowhere", p) })
	case 11:
		e.step(func() error { return os.MkdirAll(p, 0o755) })
	case 12: // the place of a file by a directory, or a pipe
		rename(p, aside)
		if e.rng.IntN(2) == 0 {
			e.step(func() error { return os.Mkdir(p, 0o755) })
		} else {
			e.step(func() error { return syscall.Mkfifo(p, 0o644) })
		}
	case 13: // old things change places
		other := filepath.Join(e.root, e.path())
		e.step(func() error { return unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE) })
	case 14: // a sibling
		e.write(filepath.Join(dir, "sibling"), mine, os.O_TRUNC)
	case 15:
		e.write(filepath.Join(dir, ".gitignore"), "zzz\n", os.O_TRUNC)
	case 16:
		e.step(func() error { return os.Link(p, aside) })
		e.write(aside, mine, os.O_APPEND)
	}
}

// work edits some times, with pauses that are longer than a tick now and then.
func (e *editor) work(times int) {
	for range times {
		e.edit()
		for until := time.Now().Add(time.Duration(e.rng.IntN(9_000)) * time.Microsecond); time.Now().Before(until); {
			_, _ = os.Lstat(e.root)
		}
	}
}

// were are the states of path between two moments. A pipe is nothing to a record.
func (e *editor) were(path tree.Path, from, to time.Time) map[string]bool {
	out := map[string]bool{}
	for i, s := range e.states {
		over := i+1 < len(e.states) && !e.states[i+1].from.After(from)
		if over || !s.from.Before(to) { // the change came at s.from or later
			continue
		}
		out[s.tree[path]] = true
		if strings.HasPrefix(s.tree[path], "p") {
			out[""] = true
		}
	}
	return out
}

// isolatedWork is what the run does to the paths that the user edits.
const isolatedWork = `
	for p in a/f a/b/f c/new top a/b/new new; do
		[ ! -p "$p" ] || rm -f "$p"
		case $((seed % 7)) in
		0) rm -rf "$p"; echo run >"$p";;
		1) echo run >>"$p";;
		2) echo run >tmp; mv tmp "$p";;
		3) rm -rf "$p";;
		4) chmod 755 "$p"; : >>"$p";;
		5) rm -rf "$p"; ln -s run "$p";;
		6) d=$(dirname "$p"); [ "$d" = . ] || { rm -rf "$d"; mkdir -p "$d"; }; echo run >"$p";;
		esac
		seed=$((seed / 7))
	done 2>/dev/null
	rm -rf a/g; [ $((seed % 2)) = 0 ] || rm -rf c; exit 0`

// TestEditsWhileIsolated: a user edits, makes, deletes and replaces the paths that an isolated run
// changes, at any moment from before its start to its end. What the draft has for a path's
// base is what it was as the run began; a publish is refused for a path or leaves the
// user's bytes, and what --force overwrites comes back whole.
func TestEditsWhileIsolated(t *testing.T) {
	short, long := 24, 10_000
	if os.Getenv("DECREE_LONG") == "" {
		long = short
	}
	seen := map[string]int{}
	first := int(seedOf(t, 0))
	for n := first; n < first+long; n++ {
		if !t.Run(fmt.Sprintf("seed=%d", n), func(t *testing.T) { editsWhileIsolated(t, uint64(n), seen) }) {
			break
		}
	}
	t.Log(seen)
}

func editsWhileIsolated(t *testing.T, seed uint64, seen map[string]int) {
	rng := rand.New(rand.NewPCG(41, seed))
	b := newBench(t)
	defer os.RemoveAll(b.base)
	e := &editor{t: t, root: b.root, rng: rng}
	for _, p := range []string{"a/f", "a/g", "a/b/f", "c/f", "top", "old"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(b.root, p)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(b.root, p), []byte("first "+p+"\n"), 0o644))
	}
	e.step(func() error { return nil })
	settled(t, b)
	if rng.IntN(4) > 0 {
		with(b, func(r *Recorder) (*history.Record, error) {
			return r.Checkpoint(context.Background(), CheckpointOptions{})
		})
	}
	if rng.IntN(2) == 0 {
		e.work(rng.IntN(4))
		settled(t, b)
	}

	r := b.open()
	defer r.Close()
	var begun time.Time
	r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
		begun = time.Now()
		return runner.Run(ctx, c)
	}
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	called, done := time.Now(), make(chan bool)
	go func() {
		defer close(done)
		for until := time.Now().Add(time.Duration(e.rng.IntN(60_000)) * time.Microsecond); time.Now().Before(until); {
			_, _ = os.Lstat(e.root)
		}
		e.work(1 + e.rng.IntN(4))
	}()
	cpy := seed%3 == 2
	res, err := r.RunIsolated(context.Background(), RunOptions{
		Args: []string{"sh", "-c", isolatedWork}, Dir: b.root, Stdin: null, Grace: time.Second, Timeout: time.Minute, Env: append(os.Environ(), "seed="+strconv.FormatUint(seed*7919, 10)),
	}, IsolatedOptions{Clone: cpy, Copy: cpy})
	<-done
	if errors.As(err, new(*layer.Refusal)) {
		t.Skip(err)
	}
	require.NoError(t, err)
	if res.Record.Draft == nil {
		seen["no draft"]++
		return
	}
	now := treeNow(t, b.root)
	noBase := map[tree.Path]bool{}
	for _, p := range res.Record.Draft.NoBase {
		noBase[p] = true
	}
	for _, c := range res.Changes {
		if noBase[c.Path] {
			seen["no base"]++
			continue
		}
		seen["base"]++
		require.Contains(t, e.were(c.Path, called, begun), lineOf(t, r, c.Old), "the base of %s", c.Path)
	}
	publishEdited(t, b, r, res, now, seen, func(p tree.Path) map[string]bool { return e.were(p, called, begun) })
}

// settled waits until what is done from now on is told from what was done before.
func settled(t *testing.T, b *bench) {
	dir, err := disk.OS.OpenRoot(b.base)
	require.NoError(t, err)
	defer dir.Close()
	first, err := disk.Stamp(dir)
	require.NoError(t, err)
	for in := first; in.Ctime <= first.Ctime+2*int64(disk.FineTick); {
		in, err = disk.Stamp(dir)
		require.NoError(t, err)
	}
}

// lineOf is an entry as treeNow tells it.
func lineOf(t *testing.T, r *Recorder, e *tree.Entry) string {
	switch {
	case e == nil:
		return ""
	case e.Type == tree.Dir:
		return (fs.ModeDir | fs.FileMode(e.Mode)).String()
	case e.Type == tree.Symlink:
		return "link " + e.Target
	}
	data, err := r.object(e.SHA256)
	require.NoError(t, err)
	return fmt.Sprintf("file %o %q", e.Mode, data)
}

// publishEdited publishes a draft over what the user has left: whole, then what is not refused,
// then by force, which is taken back.
func publishEdited(t *testing.T, b *bench, r *Recorder, res *RunResult, user map[tree.Path]string, seen map[string]int, were func(tree.Path) map[string]bool) {
	ctx := context.Background()
	id := res.Record.ID
	_, err := r.Publish(ctx, PublishOptions{Ref: id})
	left := map[tree.Path]*tree.Entry{}
	var paths []tree.Path
	for _, c := range res.Changes {
		left[c.Path] = c.New
	}
	if err != nil {
		require.Equal(t, user, treeNow(t, b.root), "a refused publish changes nothing")
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			require.Equal(t, project.Refused, project.KindOf(err), "%v", err)
			seen["refused otherwise"]++
		} else {
			seen["refused"]++
			for _, it := range conflict.Items {
				delete(left, it.Path)
			}
			for p := range left {
				paths = append(paths, p)
			}
			if len(paths) > 0 {
				if _, err = r.Publish(ctx, PublishOptions{Ref: id, Paths: paths}); err != nil {
					require.Equal(t, user, treeNow(t, b.root))
					seen["part refused"]++
				} else {
					seen["part published"]++
				}
			}
		}
	} else {
		seen["published"]++
	}
	now := treeNow(t, b.root)
	for _, p := range keysOf(user, now) {
		if user[p] == now[p] {
			continue
		}
		want, of := left[p]
		if !of && user[p] == "" && now[p] == fs.ModeDir.String()[:1]+"rwxr-xr-x" {
			continue // what was published is in it
		}
		if _, data, _ := strings.Cut(user[p], "\""); !of && data != "" && strings.HasSuffix(now[p], data) {
			continue // the mode of another name of a file whose mode was published
		}
		require.True(t, of, "%s was refused and changed from %q to %q", p, user[p], now[p])
		require.Equal(t, lineOf(t, r, want), now[p], p)
		require.Contains(t, were(p), user[p], "%s: what the user has left is overwritten", p)
	}
	rec, err := r.history.Get(id)
	require.NoError(t, err)
	if !rec.Draft.Waits() {
		return
	}
	_, err = r.Publish(ctx, PublishOptions{Ref: id, Force: true, Yes: true})
	if err != nil {
		require.Equal(t, now, treeNow(t, b.root), "a refused publish changes nothing: %v", err)
		seen["not forced"]++
		return
	}
	seen["forced"]++
	forced := treeNow(t, b.root)
	last, err := r.history.Resolve("last", time.UTC)
	require.NoError(t, err)
	if !equalTrees(forced, now) {
		_, err = r.Revert(ctx, MoveOptions{Refs: []string{last.ID}, Merge: plan.Off})
		require.NoError(t, err)
		require.Equal(t, now, treeNow(t, b.root), "what was overwritten is stored")
	}
}

func equalTrees(a, b map[tree.Path]string) bool {
	for _, p := range keysOf(a, b) {
		if a[p] != b[p] {
			return false
		}
	}
	return true
}

func keysOf(maps ...map[tree.Path]string) (keys []tree.Path) {
	seen := map[tree.Path]bool{}
	for _, m := range maps {
		for k := range m {
			if !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// TestEditsAfterTheLook: what is edited after the walk beside the command has seen it has the
// base that the cache knows: an edit is a conflict that can be merged, a sibling none. Files
// that were edited since the last record, and then again, have none. In a directory that was made
// since the last record a new file beside another new one has one: it was not there.
func TestEditsAfterTheLook(t *testing.T) {
	b := newBench(t)
	write := func(p, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(b.root, p)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(b.root, p), []byte(text), 0o644))
	}
	for _, p := range []string{"d/merged", "d/gone", "d/back", "d/moved", "d/two", "e/f"} {
		write(p, "1\n2\n3\n4\n5\n")
	}
	settled(t, b)
	with(b, func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	})
	write("d/two", "edited before\n")
	write("made/deep/f", "1\n")
	settled(t, b)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	look := make(chan bool)
	res := with(b, func(r *Recorder) (*RunResult, error) {
		r.looked = func() { close(look) }
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			res, err := runner.Run(ctx, c)
			if err != nil { // no overlay here: the walk was not begun
				return res, err
			}
			<-look
			write("d/merged", "1\n2\n3\n4\nuser\n")
			write("d/back", "user\n")
			write("d/back", "1\n2\n3\n4\n5\n")
			write("d/two", "edited\n")
			write("d/sibling", "s\n")
			write("sibling", "s\n")
			write("made/deep/sibling", "s\n")
			require.NoError(t, os.Remove(filepath.Join(b.root, "d/gone")))
			require.NoError(t, os.Rename(filepath.Join(b.root, "e"), filepath.Join(b.root, "away")))
			return res, err
		}
		res, err := r.RunIsolated(context.Background(), RunOptions{
			Args: []string{"sh", "-euc", `for f in d/*; do sed -i s/1/run/ $f; done; mv d/moved d/to; echo run >d/two; echo n >d/new; echo n >new; mkdir n; echo n >n/n; echo n >made/deep/new; echo run >e/f`},
			Dir:  b.root, Stdin: null, Grace: time.Second, Env: os.Environ(),
		}, IsolatedOptions{})
		if errors.As(err, new(*layer.Refusal)) {
			t.Skip(err)
		}
		return res, err
	})
	require.Zero(t, res.ExitCode)
	require.Equal(t, []tree.Path{"d/back", "d/two"}, res.Record.Draft.NoBase)
	r := b.open()
	defer r.Close()
	_, err = r.Publish(context.Background(), PublishOptions{})
	var conflict *ConflictError
	require.ErrorAs(t, err, &conflict)
	var paths []tree.Path
	for _, it := range conflict.Items {
		paths = append(paths, it.Path)
	}
	require.Equal(t, []tree.Path{"d/back", "d/gone", "d/merged", "d/two", "e/f"}, paths)
	_, err = r.Publish(context.Background(), PublishOptions{Merge: plan.Refuse, Paths: []tree.Path{"d/merged", "d/moved", "d/to", "d/new", "new", "n", "made/deep/new"}})
	require.NoError(t, err)
	now := treeNow(t, b.root)
	require.Equal(t, `file 644 "run\n2\n3\n4\nuser\n"`, now["d/merged"])
	require.Equal(t, `file 644 "n\n"`, now["n/n"])
	require.NotContains(t, now, tree.Path("d/moved"))
}

// TestLookForOthers: who publishes beside a run waits for its look at the tree, though its command has ended by then: what is
// published has no path of the run's draft lose its base.
func TestLookForOthers(t *testing.T) {
	b := newBench(t)
	require.NoError(t, os.MkdirAll(filepath.Join(b.root, "a"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(b.root, "z"), 0o755))
	for i := range 4000 {
		require.NoError(t, os.WriteFile(filepath.Join(b.root, fmt.Sprintf("a/%d", i)), []byte("1\n"), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "z/f"), []byte("1\n"), 0o644))
	settled(t, b)
	with(b, func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	})
	i := &isolatedBench{b, IsolatedOptions{}}
	draft := i.isolated("echo >z/sibling").Record
	settled(t, b)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	var looked atomic.Bool
	published, waited := make(chan bool), false
	res := with(b, func(r *Recorder) (*RunResult, error) {
		r.looked = func() { looked.Store(true) }
		return r.RunIsolated(context.Background(), RunOptions{
			Args: []string{"sh", "-euc", "echo run >z/f"}, Dir: b.root, Stdin: null, Grace: time.Second, Env: os.Environ(),
			Freed: func() {
				go func() {
					defer close(published)
					other := b.open()
					defer other.Close()
					other.descent = descent(other.opt.Actor.Host, true)
					_, err = other.Publish(context.Background(), PublishOptions{Ref: draft.ID, Yes: true})
					waited = looked.Load()
				}()
			},
			Back: func() { <-published },
		}, IsolatedOptions{})
	})
	require.NoError(t, err)
	require.True(t, waited)
	require.Zero(t, res.ExitCode)
	require.Empty(t, res.Record.Draft.NoBase)
	require.FileExists(t, filepath.Join(b.root, "z/sibling"))
	_, err = func() (*MoveResult, error) {
		r := b.open()
		defer r.Close()
		return r.Publish(context.Background(), PublishOptions{Ref: res.Record.ID, Yes: true})
	}()
	require.NoError(t, err)
}
