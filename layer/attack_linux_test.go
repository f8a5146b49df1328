package layer_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/layer"
	"decree/layer/overlay"
	"decree/runner"
	"decree/runner/gate"
	"decree/tree"
)

// rounds is how often something is tried by seed.
func rounds(short, long int) int {
	if os.Getenv("DECREE_LONG") != "" {
		return long
	}
	return short
}

// edits are what a user does to a path while a run works, each a few system calls.
var edits = []func(root, p string){
	func(root, p string) { _ = os.WriteFile(root+"/"+p, []byte("user\n"), 0o644) },
	func(root, p string) { _ = os.Remove(root + "/" + p) },
	func(root, p string) { // saved by rename, and looking as before
		in, err := os.Lstat(root + "/" + p)
		if err != nil {
			return
		}
		_ = os.WriteFile(root+"/.save", []byte("USER\n"), 0o644)
		_ = os.Chtimes(root+"/.save", in.ModTime(), in.ModTime())
		_ = os.Rename(root+"/.save", root+"/"+p)
	},
	func(root, p string) { // edited and edited back
		was, err := os.ReadFile(root + "/" + p)
		if err == nil {
			_ = os.WriteFile(root+"/"+p, []byte("user\n"), 0o644)
			_ = os.WriteFile(root+"/"+p, was, 0o644)
		}
	},
	func(root, p string) { _ = os.Chtimes(root+"/"+p, time.Unix(1, 0), time.Unix(1, 0)) },
	func(root, p string) { _ = os.Chmod(root+"/"+p, 0o600) },
	func(root, p string) { // a parent in the place of another
		d := filepath.Dir(p)
		_ = os.Rename(root+"/"+d, root+"/moved")
		_ = os.Mkdir(root+"/"+d, 0o755)
		_ = os.WriteFile(root+"/"+p, []byte("other\n"), 0o644)
	},
	func(root, p string) { _ = os.Symlink("nowhere", root+"/"+p) },
	func(root, p string) { _ = os.MkdirAll(root+"/"+p, 0o755) },
	func(root, p string) { _ = os.WriteFile(root+"/"+filepath.Dir(p)+"/.gitignore", []byte("zzz\n"), 0o644) },
}

// TestEditsDuringTheRun: whatever a user does at any moment, before, during and after the run
// and while the layer is read: what counts as settled is what was there when the run
// began, by content and mode.
func TestEditsDuringTheRun(t *testing.T) {
	const seed = 13
	settled, doubted := 0, 0
	for n := range rounds(40, 10_000) {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		s := newSite(t)
		paths := []string{"a/f", "a/g", "a/b/f", "c/f", "c/new", "top"}
		sh(t, s.root, "mkdir -p a/b c; echo 1 >a/f; echo 2 >a/g; echo 3 >a/b/f; echo 4 >c/f; echo 5 >top; echo zz >a/.gitignore")
		was := listed(t, s.root)
		l := s.make("one", mechanisms[rng.IntN(2)])
		done, stop := make(chan bool), make(chan bool)
		go func() {
			defer close(done)
			for range rng.IntN(3) {
				edits[rng.IntN(len(edits))](s.root, paths[rng.IntN(len(paths))])
				for range rng.IntN(40_000) {
					select {
					case <-stop:
					default:
						_, _ = os.Lstat(s.root)
					}
				}
			}
		}()
		s.run(l, "for p in a/f a/b/f c/new top; do rm -rf $p || :; (echo run >$p) || :; done 2>/dev/null; rm -rf a/g c/f || :")
		_, err := l.Changes(t.Context(), layer.ChangeOptions{}, func(c *layer.Change) error {
			seen := ""
			if c.Before != nil {
				seen = told(c)
			}
			ok, err := c.Settled()
			if err != nil {
				return err
			}
			if !ok {
				doubted++
				return nil
			}
			settled++
			if !assert.Equal(t, was[c.Path], seen, "%s, round %d", c.Path, n) {
				t.FailNow()
			}
			return nil
		})
		close(stop)
		<-done
		if err != nil && !raced(err) {
			require.NoError(t, err)
		}
		l.Close()
		require.NoError(t, s.place.Remove("one"))
		require.NoError(t, os.RemoveAll(s.root))
	}
	t.Log(settled, "settled,", doubted, "doubted")
	assert.NotZero(t, settled)
	assert.NotZero(t, doubted)
}

// raced says whether a walk stumbled over what vanished or changed its kind under it: then
// it is made again.
func raced(err error) bool {
	for _, e := range []error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP} {
		if strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// told is Before as listed tells it; "?" where it cannot be read any more.
func told(c *layer.Change) string {
	switch c.Before.Kind {
	case disk.Directory:
		return fmt.Sprintf("dir %o", c.Before.Mode)
	case disk.Symlink:
		target, _ := c.From().Readlink(c.Name())
		return "link " + target
	}
	f, err := c.From().Open(c.Name())
	if err != nil {
		return "?"
	}
	defer f.Close()
	b, _ := io.ReadAll(f)
	return fmt.Sprintf("file %o %q", c.Before.Mode, b)
}

// helperEnv makes the test binary be a decree that makes a layer and runs a command in it.
const helperEnv = "LAYER_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv("DECREE_TEST_INSIDE") != "" {
		dir, _ := os.Getwd()
		fmt.Println(layer.Inside(disk.OS, dir))
		return
	}
	base := os.Getenv(helperEnv)
	if base == "" {
		os.Exit(m.Run())
	}
	if err := live(base); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// live is the life of a layer, from the making to the removal.
func live(base string) error {
	p := &layer.Place{Boot: "b"}
	var err error
	if p.Dir, err = disk.OS.OpenRoot(base + "/layers"); err != nil {
		return err
	}
	if p.Root, err = disk.OS.OpenRoot(base + "/root"); err != nil {
		return err
	}
	for {
		if err := p.TryOverlay(); err != nil {
			return err
		}
		l, err := p.Make("one", layer.Overlay, layer.CloneOptions{})
		if err != nil {
			return err
		}
		m, err := l.Mount()
		if err != nil {
			return err
		}
		_, err = runner.Run(context.Background(), runner.Command{Env: os.Environ(), Overlay: m, Dir: base + "/root",
			Args: []string{"sh", "-c", `rm -rf d; echo x >>f; (setsid sleep 100 &); cp -r /etc/init.d new 2>/dev/null; mv f g`}})
		if err != nil {
			return err
		}
		if _, err := l.Changes(context.Background(), layer.ChangeOptions{}, func(*layer.Change) error { return nil }); err != nil {
			return err
		}
		l.Close()
		if err := p.Remove("one"); err != nil {
			return err
		}
	}
}

// TestKilled ends the process, or it and all of its group, at any moment. The root never differs
// in a byte, a mode or a time, and nothing is left once the layers are cleared away.
func TestKilled(t *testing.T) {
	const seed = 17
	s := newSite(t)
	s.make("try", layer.Overlay)
	require.NoError(t, s.place.Remove("try"))
	sh(t, s.root, "echo f >f; mkdir d; echo d >d/d; ln -s f l")
	state := func() string {
		out, err := exec.Command("sh", "-c", `cd "$1" && find . -printf '%p %m %T@ %C@ %s %l\n' | sort && cat f d/d`, "sh", s.root).Output()
		require.NoError(t, err)
		return string(out)
	}
	was := state()
	rng := rand.New(rand.NewPCG(seed, 0))
	met := 0
	for n := range rounds(30, 1000) {
		c := exec.Command(os.Args[0])
		c.Env, c.SysProcAttr = append(os.Environ(), helperEnv+"="+s.base), &syscall.SysProcAttr{Setpgid: true}
		var said strings.Builder
		c.Stderr = &said
		require.NoError(t, c.Start())
		timer := time.NewTimer(time.Duration(rng.IntN(60_000)) * time.Microsecond)
		<-timer.C
		who := c.Process.Pid
		if rng.IntN(2) == 0 {
			who = -who
		}
		require.NoError(t, syscall.Kill(who, syscall.SIGKILL))
		_ = c.Wait()
		require.Empty(t, said.String())
		clearAway := func() (none bool) {
			names, err := s.place.Names()
			require.NoError(t, err)
			for _, name := range names {
				ended, err := runner.KillMounted(s.place.MountName(name), nil, 0)
				require.NoError(t, err)
				met += len(ended)
				require.NoError(t, s.place.Remove(name))
			}
			return len(names) == 0
		}
		clearAway()
		require.Equal(t, was, state(), "round %d", n)
		// A process that tried something in a scratch directory may outlive its caller by a moment and hold that directory.
		require.Eventually(t, clearAway, 20*time.Second, time.Millisecond, "round %d", n)
		// One that was to start the command sees that its caller has died and ends by itself.
		require.Eventually(t, func() bool { return len(processesOf(t, s.base)) == 0 }, 20*time.Second, time.Millisecond,
			"round %d: the command's sleep lives on", n)
	}
	t.Log(met, "processes were left and ended")
}

// TestMountOutlivesItsLayer: a process that is to mount a layer, and whose caller has died, may be
// held up until that layer is removed and another one is at its path. It does not touch that.
func TestMountOutlivesItsLayer(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "echo f >f")
	l := s.make("one", layer.Overlay)
	m, err := l.Mount()
	require.NoError(t, err)
	err = mountedLate(t, m, func() {
		l.Close()
		require.NoError(t, s.place.Remove("one"))
		l = s.make("one", layer.Overlay)
		m, err = l.Mount()
		require.NoError(t, err)
	})
	var refused *overlay.Error
	assert.ErrorAs(t, err, &refused)
	assert.Equal(t, "f\n", s.runIn(l, m, "cat f"))
}

// TestLinkInThePlaceOfUpper: a link that somebody puts into the layer in the last moment is not
// followed: the command would work in the directory that it leads to.
func TestLinkInThePlaceOfUpper(t *testing.T) {
	s := newSite(t)
	l := s.make("one", layer.Overlay)
	m, err := l.Mount()
	require.NoError(t, err)
	err = mountedLate(t, m, func() {
		sh(t, m.Layer, "mv upper was; mkdir ../elsewhere; ln -s ../elsewhere upper")
	})
	var refused *overlay.Error
	assert.ErrorAs(t, err, &refused)
}

// mountedLate has a process mount m after do, and returns its error. What it mounts was opened before.
func mountedLate(t *testing.T, m *overlay.Mount, do func()) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	runtime.LockOSThread() // who traces is a thread
	defer runtime.UnlockOSThread()
	late, err := gate.Start(gate.Command{Args: []string{"none"}, Mount: m, Attr: syscall.ProcAttr{
		Dir: "/", Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Ptrace: true},
	}})
	require.NoError(t, err)
	var stopped syscall.WaitStatus
	_, err = syscall.Wait4(late.PID, &stopped, 0, nil)
	require.NoError(t, err)
	require.True(t, stopped.Stopped())
	do()
	require.NoError(t, syscall.PtraceDetach(late.PID))
	err = late.Ready()
	if err == nil {
		_ = syscall.Kill(late.PID, syscall.SIGKILL)
	}
	return err
}

// processesOf are the processes that name base in their environment or words.
func processesOf(t *testing.T, base string) (out []string) {
	all, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, p := range all {
		b, _ := os.ReadFile(p + "/environ")
		w, _ := os.ReadFile(p + "/cmdline")
		if p != fmt.Sprintf("/proc/%d", os.Getpid()) && strings.Contains(string(b)+string(w), base) {
			out = append(out, p+" "+string(w))
		}
	}
	return out
}

// TestNested: an isolated run in an isolated run, whose layer lies outside of the outer root.
func TestNested(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("without capabilities root may not map itself; TestAsAnotherUser tries it")
	}
	outer := newSite(t)
	sh(t, outer.root, "mkdir -p in/root; echo f >in/root/f")
	l := outer.make("one", layer.Overlay)
	require.NoError(t, os.MkdirAll(outer.base+"/second/layers", 0o700))
	require.NoError(t, os.Symlink(outer.root+"/in/root", outer.base+"/second/root"))
	t.Cleanup(func() { // what the inner kill left there
		second := &layer.Place{Dir: outer.open(outer.base + "/second/layers")}
		require.NoError(t, second.Remove("one"))
	})
	// The inner life goes on for ever; it is ended with the outer run.
	m, err := l.Mount()
	require.NoError(t, err)
	said, err := os.Create(outer.base + "/said")
	require.NoError(t, err)
	defer said.Close()
	res, err := runner.Run(t.Context(), runner.Command{Args: []string{os.Args[0]}, Overlay: m, Timeout: time.Second, Grace: 0,
		Env: append(os.Environ(), helperEnv+"="+outer.base+"/second"), Stderr: said})
	require.NoError(t, err)
	assert.True(t, res.TimedOut)
	b, err := os.ReadFile(said.Name())
	require.NoError(t, err)
	assert.Empty(t, string(b))
	assert.Empty(t, processesOf(t, outer.base))
	got, _ := outer.changes(l, layer.ChangeOptions{})
	assert.Empty(t, got)
}

// TestFaults: each disk step of making, reading and removing a layer fails in turn. The fault
// is told, nothing but a layer that can be removed is left, and the next try does it.
func TestFaults(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir d; echo f >f; echo g >d/g; ln -s f l; echo x >.gitignore")
	s.settle()
	for _, how := range mechanisms {
		for n := 0; ; n++ {
			fired, what := false, disktest.Step{}
			hook := func(step disktest.Step) disktest.Action {
				if step.N != n {
					return disktest.Action{}
				}
				fired, what = true, step
				return disktest.Action{Err: syscall.EIO}
			}
			dirs := disktest.InjectDirs(hook, s.place.Dir, s.place.Root)
			p := &layer.Place{Dir: dirs[0], Root: dirs[1]}
			err := whole(p, how)
			if !fired {
				require.NoError(t, err)
				break
			}
			if err != nil {
				require.ErrorIs(t, err, syscall.EIO, "step %d of %s", n, how)
			} else {
				require.Contains(t, []string{"Remove", "Rmdir"}, what.Op, "%v: only of a directory, which is then emptied", what)
			}
			names, err := s.place.Names()
			require.NoError(t, err)
			for _, name := range names {
				require.NoError(t, s.place.Remove(name))
			}
		}
	}
}

// whole is a life of a layer without a run.
func whole(p *layer.Place, how layer.Mechanism) error {
	l, err := p.Make("one", how, layer.CloneOptions{Copy: true})
	if err != nil {
		return err
	}
	l.Close()
	if l, err = p.Open("one"); err != nil {
		return err
	}
	defer l.Close()
	if _, err := l.Mount(); err != nil {
		return err
	}
	if _, err := l.Changes(context.Background(), layer.ChangeOptions{}, func(*layer.Change) error { return nil }); err != nil {
		return err
	}
	return p.Remove("one")
}

// TestInside: a command of a layer's run is inside of it, whatever directory it is in, and
// so is who comes to a clone from outside; nobody else is.
func TestInside(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "mkdir -p d/tree")
		l := s.make("one", how)
		self, err := os.Executable()
		require.NoError(t, err)
		got := s.run(l, "for d in . d/tree /; do (cd $d; DECREE_TEST_INSIDE=1 "+self+"); done")
		assert.Equal(t, "one\none\n\n", got, how)
		for _, path := range []string{s.root, s.root + "/d/tree", l.Path(), s.base} {
			assert.Empty(t, layer.Inside(disk.OS, path), path)
		}
	}
}

// TestCollectWhileTheRootChanges: what vanishes between two looks, or is another kind of thing at
// the second, is looked at again.
func TestCollectWhileTheRootChanges(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir d; echo f >d/f; echo g >g; echo x >.gitignore")
	l := s.make("one", layer.Overlay)
	s.run(l, "echo run >d/f; rm g")
	l.Close()
	old := map[tree.Path]*tree.Entry{"d/f": file("f\n"), "g": file("g\n")}
	for n := 0; ; n++ {
		fired := false
		hook := func(step disktest.Step) disktest.Action {
			if step.N != n {
				return disktest.Action{}
			}
			fired = true
			return disktest.Action{Err: []error{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP}[n%3]}
		}
		root := disktest.InjectDirs(hook, s.place.Root)[0]
		again, err := (&layer.Place{Dir: s.place.Dir, Root: root}).Open("one")
		require.NoError(t, err)
		got, err := again.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
		again.Close()
		require.NoError(t, err, "step %d", n)
		for _, touched := range got.Touched {
			if want, ok := old[touched.Path]; !touched.NoBase {
				require.True(t, ok, touched.Path)
				require.Equal(t, want, touched.Old, touched.Path)
			}
		}
		if !fired {
			require.Len(t, got.Touched, 2)
			break
		}
	}
}

// TestCloneWhileTheRootChanges: what is gone by the time that it is cloned is not in the clone,
// and is not counted as deleted by the run.
func TestCloneWhileTheRootChanges(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir -p d/e; echo f >d/f; echo g >d/e/g; ln -s f l; echo h >h")
	s.settle()
	for n := 0; ; n++ {
		fired := false
		hook := func(step disktest.Step) disktest.Action {
			if step.N != n || step.Op != "OpenDir" && step.Op != "Open" && step.Op != "Readlink" && step.Op != "Stat" {
				fired = fired || step.N == n
				return disktest.Action{}
			}
			fired = true
			if step.Op == "OpenDir" && n%2 == 1 {
				return disktest.Action{Err: syscall.ENOTDIR}
			}
			return disktest.Action{Err: fs.ErrNotExist}
		}
		p := &layer.Place{Dir: s.place.Dir, Root: disktest.InjectDirs(hook, s.place.Root)[0]}
		l, err := p.Make("one", layer.Clone, layer.CloneOptions{Copy: true})
		require.NoError(t, err, "step %d", n)
		l.Close()
		whole, err := s.place.Open("one")
		require.NoError(t, err)
		got, _ := s.changes(whole, layer.ChangeOptions{})
		assert.Empty(t, got, "step %d", n)
		whole.Close()
		require.NoError(t, s.place.Remove("one"))
		if !fired {
			break
		}
	}
}
