package recorder

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/layer"
	"decree/runner"
	"decree/tree"
)

// eachCoarse runs a test on disks where no time tells what was changed before an isolated run from what was changed beside it.
func eachCoarse(t *testing.T, test func(t *testing.T, b *isolatedBench)) {
	t.Run("a second that does not end", func(t *testing.T) {
		b, now := newBench(t), time.Now().Truncate(time.Second).UnixNano()
		b.disk = disktest.Stamped(disk.OS, func(int64) int64 { return now })
		test(t, &isolatedBench{b, IsolatedOptions{}})
	})
	t.Run("no change times", func(t *testing.T) {
		b := newBench(t)
		b.disk = disktest.Stamped(disk.OS, nil)
		test(t, &isolatedBench{b, IsolatedOptions{}})
	})
	t.Run("no change times, copied", func(t *testing.T) {
		b := newBench(t)
		b.disk = disktest.Stamped(disk.OS, nil)
		test(t, &isolatedBench{b, IsolatedOptions{Copy: true}})
	})
	t.Run("an overlay over another file system", func(t *testing.T) {
		b := newBench(t)
		b.root = mountedOverlay(t)
		test(t, &isolatedBench{b, IsolatedOptions{}})
	})
	mount := func(name string, how IsolatedOptions, kind string, options ...string) {
		t.Run(name, func(t *testing.T) {
			at, b := mountedDisk(t, kind, options...), newBench(t)
			b.root = filepath.Join(at, "tree")
			require.NoError(t, os.Mkdir(b.root, 0o755))
			test(t, &isolatedBench{b, how})
		})
	}
	mount("ext4", IsolatedOptions{}, "ext4", "-q", "-F", "-I", "128")
	mount("ext4 copied", IsolatedOptions{Copy: true}, "ext4", "-q", "-F", "-I", "128")
	mount("ext3", IsolatedOptions{}, "ext3", "-q", "-F", "-I", "128")
}

// mountedOverlay is an overlay whose lower directory, with the file below in it, is on another file system than its upper one.
func mountedOverlay(t *testing.T) string {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	lower, upper, at := t.TempDir(), t.TempDir(), t.TempDir()
	mount := func(at string, args ...string) {
		if out, err := exec.Command("mount", append(args, at)...).CombinedOutput(); err != nil {
			t.Skipf("mount %v: %v: %s", args, err, out)
		}
		t.Cleanup(func() { require.NoError(t, exec.Command("umount", at).Run()) })
	}
	mount(lower, "-t", "tmpfs", "lower")
	mount(upper, "-t", "tmpfs", "upper")
	for _, dir := range []string{filepath.Join(lower, "low"), filepath.Join(upper, "up"), filepath.Join(upper, "work")} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(lower, "low/below"), []byte("1\n"), 0o644))
	mount(at, "-t", "overlay", "overlay", "-o", "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work")
	return at
}

// TestIsolatedOnAnOverlay: a file of an overlay's lower directory, which is another file system than the upper one, has a base.
func TestIsolatedOnAnOverlay(t *testing.T) {
	b := &isolatedBench{newBench(t), IsolatedOptions{}}
	b.root = mountedOverlay(t)
	for n := range 2 {
		res := b.atOnce(`echo x >>low/below`, nil)
		require.Empty(t, res.Record.Draft.NoBase, n)
		require.NoError(t, b.publish())
	}
	require.Equal(t, "1\nx\nx\n", b.read("low/below"))
	b.atOnce(`echo x >>low/below`, func() { b.sh(b.root, `echo mine >low/below`) })
	require.ErrorAs(t, b.publish(), new(*ConflictError))
	require.Equal(t, "mine\n", b.read("low/below"))
}

// atOnce runs a script in a layer, at once after whatever was done to the tree; beside is called after it, before the layer is read.
func (b *isolatedBench) atOnce(script string, beside func()) *RunResult {
	b.t.Helper()
	null, err := os.Open(os.DevNull)
	require.NoError(b.t, err)
	defer null.Close()
	res := with(b.bench, func(r *Recorder) (*RunResult, error) {
		r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
			res, err := runner.Run(ctx, c)
			if beside != nil {
				beside()
			}
			return res, err
		}
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

// TestIsolatedOnCoarseTimes: what was edited right before a run has a base all the same, and one publish
// can follow the other within a second; what was edited beside the run stands in the publish's way.
func TestIsolatedOnCoarseTimes(t *testing.T) {
	eachCoarse(t, func(t *testing.T, b *isolatedBench) {
		b.sh(b.root, `mkdir d; echo 1 >a; echo 2 >d/gone; echo 3 >other; echo 'ign' >.gitignore; echo 4 >same`)
		for range 2 {
			res := b.atOnce(`echo x >>a; rm -f d/gone; echo n >>d/new; cp same s; cat s >same; rm s; echo i >ign`, nil)
			require.Empty(t, res.Record.Draft.NoBase)
			require.NoError(t, b.publish())
		}
		require.Equal(t, "1\nx\nx\n", b.read("a"))
		require.Equal(t, "n\nn\n", b.read("d/new"))

		b.sh(b.root, `echo mine >>other`)
		res := b.atOnce(`echo run >>other; echo run >>a; echo run >>late; echo run >>d/new`, func() {
			b.sh(b.root, `echo late >>other; echo late >late; rm d/new`)
		})
		require.Empty(t, res.Record.Draft.NoBase)
		var base string
		for _, c := range res.Changes {
			if c.Path == "other" {
				base = c.Old.SHA256.String()
			}
		}
		require.Equal(t, tree.Sum([]byte("3\nmine\n")).String(), base)
		var conflict *ConflictError
		require.ErrorAs(t, b.publish(), &conflict)
		var refused []tree.Path
		for _, it := range conflict.Items {
			refused = append(refused, it.Path)
		}
		require.ElementsMatch(t, []tree.Path{"d/new", "late", "other"}, refused)
		require.NoError(t, b.publish("a"))
		require.Equal(t, "3\nmine\nlate\n", b.read("other"))
		require.Equal(t, "late\n", b.read("late"))
	})
}

// TestTimesSetBackOnCoarseTimes: a command sets the time of what it has changed back to what it was.
func TestTimesSetBackOnCoarseTimes(t *testing.T) {
	eachCoarse(t, func(t *testing.T, b *isolatedBench) {
		b.sh(b.root, `echo 1 >a; echo 1 >b; touch -d 2001-01-01 a b`)
		res := b.atOnce(`echo 2 >a; touch -d 2001-01-01 a`, func() { b.sh(b.root, `echo mine >b`) })
		require.Len(t, res.Changes, 1)
		require.NoError(t, b.publish())
		require.Equal(t, "2\n", b.read("a"))
		require.Equal(t, "mine\n", b.read("b"))
	})
}

// TestAttemptsOnCoarseTimes: the last attempt works in a layer of its own, which has what was published or edited before it.
func TestAttemptsOnCoarseTimes(t *testing.T) {
	eachCoarse(t, func(t *testing.T, b *isolatedBench) {
		b.sh(b.root, `echo 1 >a`)
		with(b.bench, func(r *Recorder) (*RunResult, error) {
			r.execute = func(ctx context.Context, c runner.Command) (runner.Result, error) {
				res, err := runner.Run(ctx, c)
				if res.ExitCode != 0 {
					b.sh(b.root, `echo 2 >>a`)
				}
				return res, err
			}
			res, err := r.RunIsolated(context.Background(), RunOptions{
				Args: []string{"sh", "-euc", `echo run >>a; test "$DECREE_ATTEMPT" = 2`}, Dir: b.root, Grace: time.Second, Env: os.Environ(), Attempts: 2,
			}, b.how)
			if errors.As(err, new(*layer.Refusal)) {
				b.t.Skip(err)
			}
			require.NoError(t, err)
			require.Equal(t, history.StatusSucceeded, res.Record.Status)
			require.Empty(t, res.Record.Draft.NoBase)
			return res, err
		})
		require.NoError(t, b.publish())
		require.Equal(t, "1\n2\nrun\n", b.read("a"))
	})
}

// TestEnterOnCoarseTimes: a command in a draft's layer finds what was just edited, and its base is that.
func TestEnterOnCoarseTimes(t *testing.T) {
	eachCoarse(t, func(t *testing.T, b *isolatedBench) {
		if b.how.Copy {
			t.Skip("a copy has what the tree had as it was made")
		}
		b.sh(b.root, `echo 1 >a; echo 1 >b; mkdir d; echo 1 >d/in`)
		b.atOnce(`echo run >>a; rm -r d; mkdir d`, nil)
		b.sh(b.root, `echo 2 >>b`)
		res := with(b.bench, func(r *Recorder) (*RunResult, error) {
			return r.Enter(context.Background(), EnterOptions{Args: []string{"sh", "-euc", `echo again >>a; echo again >>b; echo again >d/in`}, Dir: b.root, Grace: time.Second, Env: os.Environ()})
		})
		require.Empty(t, res.Record.Draft.NoBase)
		require.NoError(t, b.publish())
		require.Equal(t, "1\nrun\nagain\n", b.read("a"))
		require.Equal(t, "1\n2\nagain\n", b.read("b"))
		require.Equal(t, "again\n", b.read("d/in"))
	})
}

// TestIsolatedWithTimesInTheFuture: what was saved while the clock was ahead has a base all the same once the tree was captured since,
// as at the end of a run that had none there; what is edited beside the run has none.
func TestIsolatedWithTimesInTheFuture(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Second, 365 * 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) { isolatedWithTimesAhead(t, ahead) })
	}
}

func isolatedWithTimesAhead(t *testing.T, ahead time.Duration) {
	b, right := &isolatedBench{newBench(t), IsolatedOptions{}}, int64(0)
	b.disk = disktest.Stamped(disk.OS, func(at int64) int64 {
		if at < right {
			return at + int64(ahead)
		}
		return at
	})
	b.sh(b.root, `mkdir sub; echo 1 >f; echo 1 >late; echo 1 >moved; echo 1 >sub/g; echo 1 >sub/gone; echo 'ign' >.gitignore; ln -s f link`)
	in, err := os.Stat(filepath.Join(b.root, "link"))
	require.NoError(t, err)
	for right = in.ModTime().UnixNano() + 4*int64(disk.FineTick); time.Now().UnixNano() < right+2*int64(disk.FineTick); { // the clock goes on
	}
	script := `echo x >>f; echo x >>sub/g; rm sub/gone; echo x >sub/n; ln -sf sub link; echo x >>late; chmod 700 sub; echo i >ign; mkdir d; echo x >d/new`
	require.NotEmpty(t, b.atOnce(script, nil).Record.Draft.NoBase, "nothing was captured yet")
	with(b.bench, func(r *Recorder) (any, error) { return r.Discard(t.Context(), DiscardOptions{Yes: true}) })
	res := b.atOnce(script, func() { b.sh(b.root, `echo mine >late`) })
	require.Equal(t, []tree.Path{"late"}, res.Record.Draft.NoBase)
	require.NoError(t, b.publish("f", "sub/g", "sub/gone", "sub/n", "link", "sub", "d"))
	require.Equal(t, "1\nx\n", b.read("f"))
	require.Equal(t, "mine\n", b.read("late"))
}
