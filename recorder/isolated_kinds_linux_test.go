package recorder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/layer"
	"decree/runner"
	"decree/tree"
)

// isolatedKinds make an entry $p of each kind; there are a file and a directory to link to.
var isolatedKinds = map[string]string{
	"nothing":    ``,
	"file":       `echo content >"$p"`,
	"executable": `echo content >"$p"; chmod 755 "$p"`,
	"empty":      `: >"$p"`,
	"directory":  `mkdir "$p"; echo in >"$p/in"; mkdir "$p/sub"; echo deep >"$p/sub/deep"; ln -s in "$p/link"`,
	"opaque":     `mkdir "$p"; echo other >"$p/in"; echo new >"$p/new"; chmod 750 "$p"`,
	"filelink":   `ln -s to-file "$p"`,
	"dirlink":    `ln -s to-dir "$p"`,
	"fifo":       `mkfifo "$p"`,
}

// an isolated bench runs scripts in isolation.
type isolatedBench struct {
	*bench
	how IsolatedOptions
}

// isolated runs a script in a layer; the test is skipped where none can be made.
func (b *isolatedBench) isolated(script string) *RunResult {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(b.t, err)
	defer null.Close()
	settled(b.t, b.bench)
	res := with(b.bench, func(r *Recorder) (*RunResult, error) {
		res, err := r.RunIsolated(context.Background(), RunOptions{
			Args: []string{"sh", "-euc", script}, Dir: b.root, Stdin: null, Stderr: os.Stderr, Grace: time.Second, Env: os.Environ(),
		}, b.how)
		if errors.As(err, new(*layer.Refusal)) {
			b.t.Skip(err)
		}
		return res, err
	})
	require.Zero(b.t, res.ExitCode)
	return res
}

func (b *isolatedBench) sh(dir, script string) {
	b.t.Helper()
	c := exec.Command("sh", "-euc", script)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(b.t, err, "%s", out)
}

func (b *isolatedBench) publish(paths ...tree.Path) error {
	r := b.open()
	defer r.Close()
	_, err := r.Publish(context.Background(), PublishOptions{Paths: paths})
	return err
}

// eachMechanism runs a test on an overlay, a full copy, and clones that share blocks.
func eachMechanism(t *testing.T, test func(t *testing.T, b *isolatedBench)) {
	t.Run("overlay", func(t *testing.T) { test(t, &isolatedBench{newBench(t), IsolatedOptions{}}) })
	t.Run("copy", func(t *testing.T) { test(t, &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}) })
	for _, kind := range []string{"btrfs", "xfs"} {
		t.Run("clone on "+kind, func(t *testing.T) {
			at := mountedDisk(t, kind)
			b := newBench(t)
			b.base, b.root = at, filepath.Join(at, "tree")
			require.NoError(t, os.Mkdir(b.root, 0o755))
			test(t, &isolatedBench{b, IsolatedOptions{Clone: true}})
		})
	}
}

// mountedDisk is a file system of its own, made with options.
func mountedDisk(t *testing.T, kind string, options ...string) string {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 400<<20))
	for _, words := range [][]string{append(append([]string{"mkfs." + kind}, options...), image), {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", words, err, out)
		}
	}
	t.Cleanup(func() { require.NoError(t, exec.Command("umount", at).Run()) })
	return at
}

// TestEveryKindBecomesEveryKind: what every kind of path becomes in isolation is in the draft's
// diff, comes into the tree by the publish, and goes by its revert, byte for byte. Pipes are
// nothing to a record: one that a run makes does not come, and one that stands where a draft
// has something else is not touched.
func TestEveryKindBecomesEveryKind(t *testing.T) {
	eachMechanism(t, func(t *testing.T, b *isolatedBench) {
		var before, after strings.Builder
		kinds := slices.Sorted(maps.Keys(isolatedKinds))
		for _, from := range kinds {
			for _, to := range kinds {
				fmt.Fprintf(&before, "p=%s-%s\n%s\n", from, to, isolatedKinds[from])
				fmt.Fprintf(&after, "p=%s-%s\nrm -rf \"$p\"\n%s\n", from, to, isolatedKinds[to])
			}
		}
		b.sh(b.root, "umask 022; echo target >to-file; mkdir to-dir; echo in >to-dir/in\n"+before.String())
		was := treeNow(t, b.root)
		b.diffOf("umask 022\n" + after.String())

		err := b.publish()
		var conflict *ConflictError
		require.ErrorAs(t, err, &conflict, "pipes are in the way")
		require.Equal(t, was, treeNow(t, b.root))
		var refused []string
		for _, it := range conflict.Items {
			refused = append(refused, string(it.Path))
		}
		require.Equal(t, []string{"fifo-directory", "fifo-dirlink", "fifo-empty", "fifo-executable", "fifo-file", "fifo-filelink", "fifo-opaque"}, refused)
		b.sh(b.root, "find . -type p -delete")
		b.backAndForth()
	})
}

// diffOf runs a script in isolation, and in a plain copy of the tree, and holds the draft's diff
// against the difference.
func (b *isolatedBench) diffOf(script string) {
	t := b.t
	was := treeNow(t, b.root)
	t.Cleanup(func() { unlockTree(filepath.Join(b.base, "plain")) })
	b.sh(b.base, "cp -a tree plain; cd plain\n"+script)
	res := b.isolated(script)
	require.Equal(t, was, treeNow(t, b.root), "the tree is as it was")
	require.Empty(t, res.Record.Draft.NoBase)
	r := b.open()
	defer r.Close()
	changes, err := r.history.DiffChanges(res.Record)
	require.NoError(t, err)
	got := recorded(was)
	for _, c := range changes {
		require.Equal(t, lineOf(t, r, c.Old), got[c.Path], c.Path)
		got[c.Path] = lineOf(t, r, c.New)
		if c.New == nil {
			delete(got, c.Path)
		}
	}
	require.Equal(t, recorded(treeNow(t, filepath.Join(b.base, "plain"))), got, "the diff")
}

// backAndForth publishes the draft whose diff was held against the plain copy, takes that back,
// and that.
func (b *isolatedBench) backAndForth() {
	t := b.t
	was, want := treeNow(t, b.root), recorded(treeNow(t, filepath.Join(b.base, "plain")))
	require.NoError(t, b.publish())
	require.Equal(t, want, recorded(treeNow(t, b.root)), "published")
	b.revert("last")
	require.Equal(t, was, treeNow(t, b.root), "taken back")
	b.revert("last")
	require.Equal(t, want, recorded(treeNow(t, b.root)), "and that taken back")
}

// TestOddThingsInALayer: what an overlay does in its own way, and what lies in the way of one.
func TestOddThingsInALayer(t *testing.T) {
	for _, c := range []struct{ name, before, run string }{
		{"directories deleted, made anew, and deleted in part", `for d in a b c d/e/f; do mkdir -p $d/x; echo 1 >$d/1; echo 2 >$d/x/2; done`,
			`rm -r a; rm -r b; mkdir b; echo 1 >b/1; rm -r b; mkdir b; echo new >b/new; rm -r c/x d/e; mkdir -p d/e/f; echo 1 >d/e/f/1`},
		{"a directory in the place of one, from elsewhere", `mkdir -p a/x b/x; echo 1 >a/x/1; echo 2 >b/x/2; echo 3 >b/3`, `rm -r a; mv b a; mv a/x y`},
		{"directories of the tree renamed", `mkdir -p a/b/c; echo 1 >a/1; echo 2 >a/b/c/2; ln -s ../1 a/b/l; chmod 700 a/b`, `mv a z; mv z/b/c z/d; mkdir a; mv z/b a/b`},
		{"opened for writing, and as it was", `echo 1 >a; echo 2 >b; mkdir d; echo 3 >d/c; chmod 600 b`, `: >>a; touch b d/c; mv d/c d/x; mv d/x d/c; chmod 644 b; chmod 600 b; echo real >>d/c`},
		{"hard links", `echo 1 >a; ln a b; mkdir d; ln a d/c; echo 4 >e`, `rm b; echo new >d/c.new; mv d/c.new d/c; ln e f; rm e; ln f e`},
		{"modes", `mkdir a b; echo 1 >a/1; echo 2 >b/2; echo 3 >c; chmod 500 b`, `chmod 711 .; chmod 750 a; chmod 755 c; chmod 700 b; echo 3 >b/3; chmod 555 b; chmod 400 a/1`},
		{"names", `mkdir 'a:b' 'c,d' 'e\f'; echo 1 >'a:b/g,h'; echo 2 >'c,d/upperdir=x'; echo 3 >'e\f/\040'; echo 4 >' '`,
			`echo more >>'a:b/g,h'; rm 'c,d/upperdir=x'; mv 'e\f' 'e:f'; printf x >"$(printf 'new\nline \303\050')"; rm ' '; mkdir ' '; echo 5 >' /,'`},
		{"sockets and pipes", `mkdir d; mkfifo p; echo 1 >f; echo 2 >d/g`, `mkfifo q; rm f; mkfifo f; mkfifo d/p; echo new >d/new; rm -f p; mkfifo p`},
		{"names that overlays use", `mkdir .wh..wh..opq; echo 1 >.wh.a; echo 2 >a; echo 3 >work`, `rm .wh.a; rm -r .wh..wh..opq; echo 4 >a; mkdir upper; echo 5 >upper/work; rm work`},
		{"links", `mkdir d; echo 1 >d/f; ln -s d l; ln -s nowhere n; ln -s l/f m`, `echo 2 >l/f; rm l; mkdir l; echo 3 >l/f; rm n; ln -s . n; rm m; ln -s d/f m`},
		{"attributes of the file", `echo 1 >a; echo 2 >b; touch -d 2001-01-01 a b`, `echo 3 >>a; touch -d 2002-02-02 a b`},
	} {
		for how, options := range map[string]IsolatedOptions{"overlay": {}, "copy": {Copy: true}} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				b := &isolatedBench{newBench(t), options}
				b.sh(b.root, "umask 022\n"+c.before)
				mode := modeOf(t, b.root)
				b.diffOf("umask 022\n" + c.run)
				b.backAndForth()
				require.Equal(t, mode, modeOf(t, b.root), "the root's own mode is no part of a record")
			})
		}
	}
}

func modeOf(t *testing.T, path string) string {
	in, err := os.Lstat(path)
	require.NoError(t, err)
	return in.Mode().String()
}

// recorded is what of a tree a record has.
func recorded(all map[tree.Path]string) map[tree.Path]string {
	out := map[tree.Path]string{}
	for p, what := range all {
		if !strings.HasPrefix(what, "p") {
			out[p] = what
		}
	}
	return out
}

// TestManyDeletedInALayer: a run deletes very many files, by their directory and one by one.
func TestManyDeletedInALayer(t *testing.T) {
	n := 500
	if os.Getenv("DECREE_LONG") != "" {
		n = 100_000
	}
	b := &isolatedBench{newBench(t), IsolatedOptions{}}
	b.sh(b.root, fmt.Sprintf(`mkdir -p all some; for d in all some; do (cd $d; seq %d | xargs touch); done; echo keep >some/keep`, n))
	with(b.bench, func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	})
	b.diffOf(`rm -rf all; cd some; find . -type f ! -name keep -delete`)
	b.backAndForth()
}

// TestMountBelowTheRoot: an overlay would hide what is mounted there, and a copy has it; what is
// changed in there has no base, for nobody knows that file system's clock; what is new in there was not there.
func TestMountBelowTheRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	at := filepath.Join(b.root, "sub")
	require.NoError(t, os.Mkdir(at, 0o755))
	if err := syscall.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Skip("no mounts here: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(at, 0)) }()
	b.sh(b.root, `echo 1 >sub/in; echo 2 >sub/gone; echo 3 >out`)
	was := treeNow(t, b.root)
	r := b.open()
	_, err := r.RunIsolated(context.Background(), RunOptions{Args: []string{"true"}, Dir: b.root, Env: os.Environ()}, IsolatedOptions{})
	require.ErrorContains(t, err, "something is mounted below the root, at "+at)
	require.NoError(t, r.Close())
	res := b.isolated(`echo more >>sub/in; rm sub/gone; echo new >sub/new; echo more >>out`)
	require.Equal(t, was, treeNow(t, b.root))
	require.Equal(t, []tree.Path{"sub/gone", "sub/in"}, res.Record.Draft.NoBase)
	require.Error(t, b.publish())
	require.NoError(t, b.publish("out"))
	was["out"] = `file 644 "3\nmore\n"`
	require.Equal(t, was, treeNow(t, b.root))
}

// TestRootByALink: a run that is called through a link to the root works in the root's place.
func TestRootByALink(t *testing.T) {
	b := &isolatedBench{newBench(t), IsolatedOptions{}}
	b.sh(b.root, `mkdir d; echo 1 >d/f`)
	require.NoError(t, os.Symlink("tree", filepath.Join(b.base, "link")))
	real := b.root
	b.root = filepath.Join(b.base, "link")
	b.isolated(`test "$(cat d/f)" = 1; echo 2 >d/f; echo 3 >"$DECREE_ROOT/new"; test -e ../link/new; test -e ../tree/new`)
	b.root = real
	require.Equal(t, map[tree.Path]string{"d": "drwxr-xr-x", "d/f": `file 644 "1\n"`}, treeNow(t, b.root))
	require.NoError(t, b.publish())
	require.Equal(t, map[tree.Path]string{"d": "drwxr-xr-x", "d/f": `file 644 "2\n"`, "new": `file 644 "3\n"`}, treeNow(t, b.root))
}

// TestLinkInThePlaceOfAClone: root's command works in the clone that was made, though the owner of the store puts a link to
// another directory in its place, in the root and below it.
func TestLinkInThePlaceOfAClone(t *testing.T) {
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.root, `mkdir -p sub shared .decree; mkdir ../private ../private/sub; echo 'isolated: {share: [shared]}' >.decree/config.yml`)
	private := filepath.Join(filepath.Dir(b.root), "private")
	for _, dir := range []string{"", "sub", "shared"} {
		r := b.open()
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			tree := c.Root
			require.NoError(t, os.Rename(tree, tree+".real"))
			require.NoError(t, os.Symlink(private, tree))
			defer func() {
				require.NoError(t, os.Remove(tree))
				require.NoError(t, os.Rename(tree+".real", tree))
			}()
			require.NoError(t, os.MkdirAll(filepath.Join(private, "shared"), 0o755))
			return runner.Run(ctx, c)
		}
		res, err := r.RunIsolated(context.Background(), RunOptions{Args: []string{"sh", "-c", "echo >f"}, Dir: filepath.Join(b.root, dir), Env: os.Environ()}, b.how)
		require.NoError(t, err)
		require.Zero(t, res.ExitCode)
		require.NoError(t, r.Close())
		if dir != "shared" {
			require.Len(t, res.Changes, 1)
			require.Equal(t, tree.Path(filepath.Join(dir, "f")), res.Changes[0].Path)
		}
		require.NoFileExists(t, filepath.Join(private, dir, "f"))
	}
	require.FileExists(t, filepath.Join(b.root, "shared", "f"))
}
