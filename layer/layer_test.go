//go:build linux || darwin

package layer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer"
	"decree/layer/overlay"
	"decree/runner"
	"decree/tree"
)

// A site is a root and the place of its layers.
type site struct {
	t     testing.TB
	base  string
	root  string
	place *layer.Place
}

func newSite(t testing.TB) *site { return newSiteAt(t, t.TempDir(), "root") }

// newSiteAt makes the root at base/name.
func newSiteAt(t testing.TB, base, name string) *site {
	t.Helper()
	base, err := filepath.EvalSymlinks(base)
	require.NoError(t, err)
	s := &site{t: t, base: base, root: filepath.Join(base, name)}
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(base, "layers"), 0o700))
	s.place = &layer.Place{Dir: s.open(filepath.Join(base, "layers")), Root: s.open(s.root), Boot: "boot"}
	t.Cleanup(func() { // the kernel leaves directories without rights
		names, err := s.place.Names()
		require.NoError(t, err)
		for _, n := range names {
			assert.NoError(t, s.place.Remove(n))
		}
	})
	return s
}

func (s *site) open(path string) disk.Dir {
	d, err := disk.OS.OpenRoot(path)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = d.Close() })
	return d
}

// settle makes files until what was written before counts as settled.
func (s *site) settle() {
	first, err := disk.Stamp(s.place.Dir)
	require.NoError(s.t, err)
	for {
		in, err := disk.Stamp(s.place.Dir)
		require.NoError(s.t, err)
		if in.Ctime > first.Ctime+2*int64(disk.FineTick) {
			return
		}
	}
}

// sh runs a script in a directory, as everybody would.
func sh(t testing.TB, dir, script string) {
	t.Helper()
	c := exec.Command("sh", "-euc", script)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// make makes a layer, and skips the test where the machine makes no overlays.
func (s *site) make(name string, how layer.Mechanism) *layer.Layer {
	s.t.Helper()
	if how == layer.Overlay {
		var no *layer.Refusal
		if err := s.place.TryOverlay(); errors.As(err, &no) {
			s.t.Skip("no overlay here: ", no)
		} else {
			require.NoError(s.t, err)
		}
	}
	s.settle()
	l, err := s.place.Make(name, how, layer.CloneOptions{Copy: true})
	require.NoError(s.t, err)
	s.t.Cleanup(l.Close)
	return l
}

// run runs a script in the layer.
func (s *site) run(l *layer.Layer, script string) string {
	s.t.Helper()
	m, err := l.Mount()
	require.NoError(s.t, err)
	return s.runIn(l, m, script)
}

// runIn runs a script with the mount m.
func (s *site) runIn(l *layer.Layer, m *overlay.Mount, script string) string {
	s.t.Helper()
	out, err := os.Create(filepath.Join(s.t.TempDir(), "out"))
	require.NoError(s.t, err)
	defer out.Close()
	res, err := runner.Run(context.Background(), runner.Command{
		Args: []string{"sh", "-euc", script}, Dir: l.Workspace(), Env: os.Environ(), Overlay: m,
		Stdout: out, Stderr: out, Grace: time.Second,
	})
	require.NoError(s.t, err)
	said, err := os.ReadFile(out.Name())
	require.NoError(s.t, err)
	require.Zero(s.t, res.ExitCode, "%s", said)
	return string(said)
}

// changes are those of the layer, one line each, sorted; "?" marks what is not settled.
func (s *site) changes(l *layer.Layer, o layer.ChangeOptions) ([]string, layer.Tally) {
	s.t.Helper()
	var out []string
	tally, err := l.Changes(context.Background(), o, func(c *layer.Change) error {
		line := string(c.Path+": ") + s.told(c.From(), c.Name(), c.Before) + " -> " + s.told(c.To(), c.Name(), c.After)
		ok, err := c.Settled()
		require.NoError(s.t, err)
		if !ok {
			line += " ?"
		}
		out = append(out, line)
		return nil
	})
	require.NoError(s.t, err)
	sort.Strings(out)
	return out, tally
}

func (s *site) told(d disk.Dir, name string, in *disk.Info) string {
	if in == nil {
		return "none"
	}
	switch in.Kind {
	case disk.Symlink:
		target, err := d.Readlink(name)
		require.NoError(s.t, err)
		return "link " + target
	case disk.Directory:
		return fmt.Sprintf("dir %o", in.Mode)
	}
	f, err := d.Open(name)
	require.NoError(s.t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(s.t, err)
	return fmt.Sprintf("file %o %q", in.Mode, b)
}

// listed is a tree as lines by path, read in the plainest way: what the walk is held against.
func listed(t testing.TB, root string) map[tree.Path]string {
	t.Helper()
	out := map[tree.Path]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		text, _ := filepath.Rel(root, path)
		rel := tree.Path(text)
		if rel == "." {
			return nil
		}
		in, err := e.Info()
		require.NoError(t, err)
		switch in.Mode().Type() {
		case fs.ModeDir:
			out[rel] = fmt.Sprintf("dir %o", in.Mode().Perm())
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			out[rel] = "link " + target
		case 0:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			out[rel] = fmt.Sprintf("file %o %q", in.Mode().Perm(), b)
		}
		return nil
	}))
	return out
}

// differ are the changes from one tree to another.
func differ(was, is map[tree.Path]string) (out []string) {
	paths := map[tree.Path]bool{}
	for p := range was {
		paths[p] = true
	}
	for p := range is {
		paths[p] = true
	}
	for p := range paths {
		a, b := was[p], is[p]
		if a == b {
			continue
		}
		if a == "" {
			a = "none"
		}
		if b == "" {
			b = "none"
		}
		out = append(out, string(p+": ")+a+" -> "+b)
	}
	sort.Strings(out)
	return out
}

var mechanisms = []layer.Mechanism{layer.Overlay, layer.Clone}

// kinds make an entry $p of each kind; there are a file and a directory to link to.
var kinds = map[string]string{
	"nothing":  ``,
	"file":     `echo content >"$p"`,
	"other":    `echo other >"$p"`,
	"exec":     `echo content >"$p"; chmod 755 "$p"`,
	"empty":    `: >"$p"`,
	"dir":      `mkdir "$p"; echo in >"$p/in"; mkdir "$p/sub"; echo deep >"$p/sub/deep"`,
	"opaque":   `mkdir "$p"; echo other >"$p/in"; echo new >"$p/new"`,
	"bare":     `mkdir "$p"; chmod 700 "$p"`,
	"linkfile": `ln -s to-file "$p"`,
	"linkdir":  `ln -s to-dir "$p"`,
	"fifo":     `mkfifo "$p"`,
}

// TestKinds: every kind becomes every kind, and the changes are those of the same
// commands in a plain copy.
func TestKinds(t *testing.T) {
	var before, after strings.Builder
	for _, from := range slices.Sorted(mapsKeys(kinds)) {
		for _, to := range slices.Sorted(mapsKeys(kinds)) {
			fmt.Fprintf(&before, "p=%s-%s\n%s\n", from, to, kinds[from])
			fmt.Fprintf(&after, "p=%s-%s\nrm -rf \"$p\"\n%s\n", from, to, kinds[to])
		}
	}
	for _, how := range mechanisms {
		t.Run(string(how), func(t *testing.T) {
			s := newSite(t)
			sh(t, s.root, "echo target >to-file; mkdir to-dir; echo in >to-dir/in; umask 022\n"+before.String())
			was := listed(t, s.root)
			sh(t, s.base, "cp -a root plain; cd plain; umask 022\n"+after.String())
			l := s.make("one", how)
			s.run(l, "umask 022\n"+after.String())
			got, tally := s.changes(l, layer.ChangeOptions{})
			assert.Equal(t, differ(was, listed(t, filepath.Join(s.base, "plain"))), got)
			assert.Len(t, tally.Special, len(kinds)) // one of them made anew in a pipe's place
			assert.Equal(t, was, listed(t, s.root), "the root is as it was")
		})
	}
}

func mapsKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestNoChange: what was opened for writing, touched, moved away and back, or linked, and
// is as it was, is no change.
func TestNoChange(t *testing.T) {
	for _, how := range mechanisms {
		t.Run(string(how), func(t *testing.T) {
			s := newSite(t)
			sh(t, s.root, "mkdir d d/e; echo a >a; echo b >d/b; ln -s a l; echo x >x; ln x y; chmod 444 x")
			l := s.make("one", how)
			s.run(l, `: >>a; touch d/b; mv d/b d/c; mv d/c d/b; chmod 700 d; chmod 755 d; rm l; ln -s a l
				ln a a2; rm a; mv a2 a; mv d e || cp -r d e; rm -rf d; mv e d || { cp -r e d; rm -rf e; }; echo x >d/new; rm d/new; touch x`)
			got, tally := s.changes(l, layer.ChangeOptions{})
			assert.Empty(t, got)
			assert.Equal(t, layer.Tally{}, tally)
		})
	}
}

// TestMovedDirectories: what is in a directory that was moved, or changed places with another,
// is where it is now, though nothing of it was written.
func TestMovedDirectories(t *testing.T) {
	const before = `mkdir -p a/s b/s e f/s g; for d in a a/s b b/s e f f/s; do echo $d >$d/1; echo $d >$d/in-$(basename $d); done`
	const run = `mv a x; mv b a; mv a/s y; mv e f/e; mv f g/f; mv x/s z; mkdir x/s; mv z/1 x/s/1`
	for _, how := range mechanisms {
		t.Run(string(how), func(t *testing.T) {
			s := newSite(t)
			sh(t, s.root, before)
			was := listed(t, s.root)
			sh(t, s.base, "cp -a root plain; cd plain; "+run)
			l := s.make("one", how)
			s.run(l, run)
			got, _ := s.changes(l, layer.ChangeOptions{})
			assert.Equal(t, differ(was, listed(t, filepath.Join(s.base, "plain"))), got)
		})
	}
}

// TestHardLinks: one of two names is written; the other one shows it exactly where the
// mechanism lets it, and the changes say what the run saw.
func TestHardLinks(t *testing.T) {
	for _, how := range mechanisms {
		t.Run(string(how), func(t *testing.T) {
			s := newSite(t)
			sh(t, s.root, "echo x >x; ln x y")
			l := s.make("one", how)
			s.run(l, "echo more >>x; echo z >z; ln z z2")
			got, _ := s.changes(l, layer.ChangeOptions{})
			assert.Equal(t, []string{
				`x: file 644 "x\n" -> file 644 "x\nmore\n"`, `z2: none -> file 644 "z\n"`, `z: none -> file 644 "z\n"`,
			}, got)
		})
	}
}

// TestLeftOut: what is ignored by the root's rules is counted, .git too; the layer's own
// rules do not count.
func TestLeftOut(t *testing.T) {
	for _, how := range mechanisms {
		t.Run(string(how), func(t *testing.T) {
			s := newSite(t)
			sh(t, s.root, `mkdir .git .decree sub build; echo build/ >.gitignore; echo '*.log' >sub/.decreeignore
				echo 1 >.git/one; echo 2 >.git/two; echo o >build/o; echo p >build/p; echo l >sub/a.log; echo t >sub/t; echo s >a.secret`)
			l := s.make("one", how)
			s.run(l, `echo new >.git/three; rm .git/one; echo 2 >.git/two; echo x >build/o; mkdir build/d; echo q >build/d/q
				rm sub/a.log; echo l >sub/b.log; echo t2 >sub/t; echo '*' >.gitignore; rm sub/.decreeignore
				echo c >.decree/c; echo n >n.secret; rm a.secret`)
			got, tally := s.changes(l, layer.ChangeOptions{Outer: []layer.OuterRules{{Path: "/global", Data: []byte("*.secret\n")}}})
			assert.Equal(t, []string{
				`.gitignore: file 644 "build/\n" -> file 644 "*\n"`,
				`sub/.decreeignore: file 644 "*.log\n" -> none`,
				`sub/t: file 644 "t\n" -> file 644 "t2\n"`,
			}, got)
			assert.Equal(t, 6, tally.Ignored, "build/o, build/d/q, sub/a.log, sub/b.log, n.secret, a.secret")
			assert.Equal(t, 3, tally.Git)
		})
	}
}

// TestManyDeletions: a directory of many files is one deletion in an overlay, and a change
// for each path.
func TestManyDeletions(t *testing.T) {
	n := 2000
	if os.Getenv("DECREE_LONG") != "" {
		n = 200_000
	}
	s := newSite(t)
	sh(t, s.root, fmt.Sprintf("mkdir all; cd all; seq %d | xargs touch; mkdir ../some; cd ../some; seq %d | xargs touch; echo keep >keep", n, n))
	l := s.make("one", layer.Overlay)
	s.run(l, "rm -rf all; cd some; find . -type f ! -name keep -delete")
	seen := 0
	began := time.Now()
	_, err := l.Changes(t.Context(), layer.ChangeOptions{}, func(c *layer.Change) error {
		assert.Nil(t, c.After)
		seen++
		return nil
	})
	require.NoError(t, err)
	t.Log(time.Since(began))
	assert.Equal(t, 2*n+1, seen)
}

// TestOddRoots: a colon, a comma, a backslash and blanks in paths; a root that is reached
// by a link; a mode of its own; and the layer's path the same.
func TestOddRoots(t *testing.T) {
	for _, name := range []string{"a:b", "a,b", `a\b`, "a b\tc\nd", "a=b,upperdir=x", "ü#'\"", "lowerdir"} {
		base := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(base, 0o755))
		s := newSiteAt(t, base, name)
		require.NoError(t, os.Chmod(s.root, 0o710))
		sh(t, s.root, "echo old >old")
		l := s.make(name, layer.Overlay)
		out := s.run(l, `pwd; stat -c %a .; rm old; echo new >new`)
		assert.Equal(t, s.root+"\n710\n", out)
		got, _ := s.changes(l, layer.ChangeOptions{})
		assert.Equal(t, []string{`new: none -> file 644 "new\n"`, `old: file 644 "old\n" -> none`}, got)
		require.NoError(t, s.place.Remove(name))
	}
}

func TestRootByLink(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.Symlink("root", filepath.Join(s.base, "link")))
	s.root = filepath.Join(s.base, "link")
	s.place.Root = s.open(s.root)
	l := s.make("one", layer.Overlay)
	s.run(l, "echo new >new; ls ../root/new ../link/new")
	assert.NoFileExists(t, filepath.Join(s.base, "root", "new"))
	got, _ := s.changes(l, layer.ChangeOptions{})
	assert.Len(t, got, 1)
}

// TestRootReplaced: what stands in the root's place meanwhile is not worked on.
func TestRootReplaced(t *testing.T) {
	s := newSite(t)
	l := s.make("one", layer.Overlay)
	require.NoError(t, os.Rename(s.root, s.root+".old"))
	require.NoError(t, os.Mkdir(s.root, 0o755))
	m, err := l.Mount()
	require.NoError(t, err)
	_, err = runner.Run(t.Context(), runner.Command{Args: []string{"touch", "it-ran"}, Dir: s.root, Env: os.Environ(), Overlay: m})
	assert.ErrorContains(t, err, "in whose place is another directory")
	assert.NoFileExists(t, s.root+"/it-ran")
	assert.NoFileExists(t, filepath.Join(l.Path(), "upper/it-ran"))
}

// TestEnterAgain: a layer is worked in several times.
func TestEnterAgain(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "echo a >a; echo b >b; mkdir d; echo c >d/c")
		l := s.make("one", how)
		s.run(l, "rm a; echo more >>b; rm -r d; mkdir d; echo new >d/new")
		l.Close()
		l, err := s.place.Open("one")
		require.NoError(t, err)
		s.run(l, "test ! -e a; test ! -e d/c; cat d/new; echo a >a; echo again >>b; rm d/new")
		got, _ := s.changes(l, layer.ChangeOptions{})
		assert.Equal(t, []string{
			`b: file 644 "b\n" -> file 644 "b\nmore\nagain\n"`, `d/c: file 644 "c\n" -> none`,
		}, got, how)
		l.Close()
	}
}

func TestLife(t *testing.T) {
	s := newSite(t)
	l, err := s.place.Make("one", layer.Overlay, layer.CloneOptions{})
	require.NoError(t, err)
	_, err = s.place.Make("one", layer.Overlay, layer.CloneOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	unlock, err := l.Lock()
	require.NoError(t, err)
	other, err := s.place.Open("one")
	require.NoError(t, err)
	_, err = other.Lock()
	require.ErrorIs(t, err, disk.ErrLocked)
	require.NoError(t, unlock())
	other.Close()
	l.Close()

	names, err := s.place.Names()
	require.NoError(t, err)
	assert.Equal(t, []string{"one"}, names)
	require.NoError(t, os.Remove(filepath.Join(s.base, "layers/one/layer.json")))
	_, err = s.place.Open("one")
	require.ErrorIs(t, err, layer.ErrUnfinished)
	require.NoError(t, s.place.Remove("one"))
	require.NoError(t, s.place.Remove("one"))
	_, err = s.place.Open("one")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestSurvey counts what a clone takes, and names the links that lead out of it.
func TestSurvey(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, `mkdir d; echo four >d/f; ln -s "$PWD/d/f" abs; ln -s d/f rel; ln -s "$PWD" d/up; ln -s "${PWD}x" x; mkfifo p`)
	got, err := s.place.Survey(t.Context(), layer.CloneOptions{})
	require.NoError(t, err)
	assert.Equal(t, layer.Survey{Entries: 6, Bytes: 5, Absolute: []tree.Path{"abs", "d/up"}}, got)
}

// TestCloneShares: what is shared is the root's own, and said to be by being a link.
func TestCloneShares(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir -p a/mod b; echo m >a/mod/m; echo f >b/f; chmod 500 b; touch -d 2001-01-01 b/f")
	l, err := s.place.Make("one", layer.Clone, layer.CloneOptions{Copy: true, Share: []string{"a/mod"}})
	require.NoError(t, err)
	defer l.Close()
	target, err := os.Readlink(filepath.Join(l.Workspace(), "a/mod"))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(s.root, "a/mod"), target)
	was, is := listed(t, s.root), listed(t, l.Workspace())
	assert.Equal(t, was["b/f"], is["b/f"])
	assert.Equal(t, was["b"], is["b"])
	in, err := os.Stat(filepath.Join(l.Workspace(), "b/f"))
	require.NoError(t, err)
	assert.Equal(t, 2001, in.ModTime().UTC().Year())
	require.NoError(t, os.Chmod(filepath.Join(s.root, "b"), 0o755))
}

// union is a directory on a union of directories as mergerfs: the times of a directory are those of one of them, which need not be
// the one that lost a name.
type union struct{ disk.Dir }

func (u union) FileSystem() disk.FileSystem {
	fs := u.Dir.FileSystem()
	fs.Steady = false
	return fs
}

func (u union) OpenDir(name string) (disk.Dir, error) {
	d, err := u.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return union{d}, nil
}

func (u union) Self() (disk.Info, error) { return oldDirectory(u.Dir.Self()) }

func (u union) Stat(name string) (disk.Info, error) { return oldDirectory(u.Dir.Stat(name)) }

func oldDirectory(in disk.Info, err error) (disk.Info, error) {
	if in.Kind == disk.Directory {
		in.Ctime = 0
	}
	return in, err
}

// TestCloneOnAUnion: what a run deleted in a clone is found also where its directory's times do not tell it.
func TestCloneOnAUnion(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir d; echo a >d/a; echo b >d/b")
	l := s.make("one", layer.Clone)
	s.run(l, "rm d/a; mv d/b d/c")
	p := &layer.Place{Dir: union{s.place.Dir}, Root: s.place.Root}
	l, err := p.Open("one")
	require.NoError(t, err)
	defer l.Close()
	got, _ := s.changes(l, layer.ChangeOptions{})
	require.Len(t, got, 3, "%q", got)
}

// TestCloneOfAnothersSpecialBits: what gives another user's rights would give those of whoever makes the clone, so the
// clone has none of it. That this is missing there is no change of the run.
func TestCloneOfAnothersSpecialBits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give away")
	}
	s := newSite(t)
	sh(t, s.root, `mkdir tools; for f in user group own touched edited; do echo $f >tools/$f; done
		chown 60001:60001 tools/user tools/touched tools/edited; chgrp 60001 tools/group; chmod 4755 tools/*; chmod 6755 tools/group`)
	l := s.make("one", layer.Clone)
	modes := func() string { return s.run(l, "cd tools; stat -c '%n %a' *") }
	assert.Equal(t, "edited 755\ngroup 4755\nown 4755\ntouched 755\nuser 755\n", modes())
	s.run(l, "touch tools/touched; echo more >>tools/edited; mv tools/user .; mv tools/own .")
	want := []string{
		`own: none -> file 4755 "own\n"`,
		`tools/edited: file 4755 "edited\n" -> file 755 "edited\nmore\n"`,
		`tools/own: file 4755 "own\n" -> none`, `tools/user: file 4755 "user\n" -> none`, `user: none -> file 755 "user\n"`,
	}
	got, _ := s.changes(l, layer.ChangeOptions{})
	assert.Equal(t, want, got)

	sh(t, s.root, "touch tools/touched") // it is not known any more what it was
	found, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
	require.NoError(t, err)
	changes, _ := found.Changes()
	require.Len(t, changes, len(want))
	assert.Equal(t, tree.Owner{UID: 60001, GID: 60001, Known: true}, changes[3].Old.Owner)
	assert.Equal(t, tree.Path("tools/user"), changes[3].Path)
	assert.False(t, changes[4].New.Owner.Known)
}

// TestMountAside: who looks at a layer sees what its command made of the root, and changes
// neither.
func TestMountAside(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "echo r >r; echo gone >gone; mkdir d old; echo d >d/d; echo old >old/old; chmod 700 .")
	l := s.make("l", layer.Overlay)
	s.run(l, "echo n >n; echo more >>r; rm gone; rm -r d; mkdir d; echo new >d/new; mv old/old d; chmod 750 .")
	before, _ := s.changes(l, layer.ChangeOptions{})
	m, err := l.MountAside(t.Context())
	require.NoError(t, err)
	seen := s.runIn(l, m, `find . | sort | tr '\n' ' '; cat r; stat -c %a .; id -u; rm -r d; echo judged >n; echo >judged; chmod 711 .; ls`)
	assert.Equal(t, fmt.Sprintf(". ./d ./d/new ./d/old ./n ./old ./r r\nmore\n750\n%d\njudged\nn\nold\nr\n", os.Getuid()), seen)
	require.NoError(t, l.LeaveAside())
	assert.NoDirExists(t, filepath.Join(l.Path(), "aside"))
	after, _ := s.changes(l, layer.ChangeOptions{})
	assert.Equal(t, before, after)
	assert.Equal(t, ". ./d ./d/new ./d/old ./n ./old ./r ", s.run(l, `find . | sort | tr '\n' ' '`))

	c := s.make("c", layer.Clone)
	s.run(c, "echo n >n; echo more >>r; rm gone; ln -s n l; chmod 750 .")
	before, _ = s.changes(c, layer.ChangeOptions{})
	m, err = c.MountAside(t.Context())
	require.NoError(t, err)
	assert.Nil(t, m)
	assert.Equal(t, filepath.Join(c.Path(), "aside", "tree"), c.Workspace())
	assert.Equal(t, "c", layer.Inside(disk.OS, c.Workspace()))
	seen = s.run(c, `find . | sort | tr '\n' ' '; cat r l; stat -c %a .; rm -r d; echo judged >n; echo >judged; chmod 711 .`)
	assert.Equal(t, ". ./d ./d/d ./l ./n ./old ./old/old ./r r\nmore\nn\n750\n", seen)
	require.NoError(t, c.LeaveAside())
	assert.NoDirExists(t, filepath.Join(c.Path(), "aside"))
	after, _ = s.changes(c, layer.ChangeOptions{})
	assert.Equal(t, before, after)
	assert.Equal(t, ". ./d ./d/d ./l ./n ./old ./old/old ./r ", s.run(c, `find . | sort | tr '\n' ' '`))
}
