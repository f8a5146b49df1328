//go:build linux || darwin

package layer_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer"
	"decree/tree"
)

// stored keeps contents by hash.
type stored map[tree.Hash]string

func (s stored) PutFile(f io.Reader, _ int64) (tree.Hash, int64, error) {
	b, err := io.ReadAll(f)
	h, _ := s.PutBytes(b)
	return h, int64(len(b)), err
}

func (s stored) PutBytes(b []byte) (tree.Hash, error) {
	s[tree.Sum(b)] = string(b)
	return tree.Sum(b), nil
}

func file(text string) *tree.Entry {
	return &tree.Entry{SHA256: tree.Sum([]byte(text)), Size: int64(len(text)), Mode: 0o644}
}

// TestCollect: both sides are stored; what is not settled is asked for, and what nobody
// knows has no base.
func TestCollect(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "mkdir -p d p/e; echo a >d/a; echo b >p/e/b; echo c >p/e/c; echo g >p/e/gone; ln -s a d/l; echo k >p/e/known; echo same >p/e/same; echo x >x")
		l := s.make("one", how)
		s.run(l, "echo run >d/a; ln -sf b d/l; echo run >p/e/b; echo run >p/e/c; rm p/e/gone; echo run >p/e/known; echo new >p/e/new; chmod 700 d; : >>p/e/same; touch x; mkdir n; echo n >n/n")
		sh(t, s.root, "mv p/e p/away; mv p/away p/e; echo user >p/e/c") // all of p/e is doubted now
		kept := stored{}
		known := map[tree.Path]*tree.Entry{"p/e/known": file("k\n"), "p/e/same": file("same\n"), "p/e/new": nil,
			"p/.gitignore": nil, "p/.decreeignore": nil, "p/e/.gitignore": nil, "p/e/.decreeignore": nil}
		var asked []string
		got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: kept, ChangeOptions: layer.ChangeOptions{Known: func(p tree.Path) (*tree.Entry, bool) {
			asked = append(asked, string(p))
			e, ok := known[p]
			return e, ok
		}}})
		require.NoError(t, err)
		assert.NoDirExists(t, l.Path()+"/work", "a plain user may not look into it")
		link := func(to string) *tree.Entry {
			return &tree.Entry{SHA256: tree.Sum([]byte(to)), Size: int64(len(to)), Mode: 0o777, Type: tree.Symlink, Target: to}
		}
		dir := func(mode uint32) *tree.Entry { return &tree.Entry{Mode: mode, Type: tree.Dir} }
		want := []layer.Touched{
			{Change: tree.Change{Path: "d", Old: dir(0o755), New: dir(0o700)}},
			{Change: tree.Change{Path: "d/a", Old: file("a\n"), New: file("run\n")}},
			{Change: tree.Change{Path: "d/l", Old: link("a"), New: link("b")}},
			{Change: tree.Change{Path: "n", New: dir(0o755)}},
			{Change: tree.Change{Path: "n/n", New: file("n\n")}},
			{Change: tree.Change{Path: "p/e/b", Old: file("b\n"), New: file("run\n")}, NoBase: true},
			{Change: tree.Change{Path: "p/e/c", Old: file("user\n"), New: file("run\n")}, NoBase: true},
			{Change: tree.Change{Path: "p/e/gone", Old: file("g\n")}, NoBase: true},
			{Change: tree.Change{Path: "p/e/known", Old: file("k\n"), New: file("run\n")}},
			{Change: tree.Change{Path: "p/e/new", New: file("new\n")}},
		}
		assert.Equal(t, want, got.Touched, how)
		for _, touched := range got.Touched {
			for _, e := range []*tree.Entry{touched.Old, touched.New} {
				if e != nil && e.Type == tree.Regular {
					assert.Contains(t, kept, e.SHA256)
				}
			}
		}
		assert.Subset(t, asked, []string{"p/e/b", "p/e/c", "p/e/gone", "p/e/known"})
		assert.Equal(t, how != layer.Clone, slices.Contains(asked, "p/e/new"), "a clone knows what it never had")
		assert.NotContains(t, asked, "d/a")
	}
}

// full is a store whose disk is full.
type full struct{ stored }

var errFull = errors.New("no space left on device")

func (full) PutFile(io.Reader, int64) (tree.Hash, int64, error) { return tree.Hash{}, 0, errFull }

// TestCollectBeingWritten: what a mapping writes that was first written to before the run leaves no
// new change time, so what somebody has mapped is no base.
func TestCollectBeingWritten(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who has a file open")
	}
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "echo a >a; echo b >b")
		f, err := os.OpenFile(s.root+"/a", os.O_RDWR, 0)
		require.NoError(t, err)
		mapped, err := syscall.Mmap(int(f.Fd()), 0, 2, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		mapped[0] = 'a'
		l := s.make("one", how)
		s.run(l, "echo run >a; echo run >b")
		mapped[0] = 'u'
		got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
		require.NoError(t, err)
		require.Equal(t, []layer.Touched{
			{Change: tree.Change{Path: "a", Old: file("u\n"), New: file("run\n")}, NoBase: true},
			{Change: tree.Change{Path: "b", Old: file("b\n"), New: file("run\n")}},
		}, got.Touched, how)
		require.NoError(t, syscall.Munmap(mapped))
	}
}

// TestCollectUnread: what cannot be read of the layer is told, and never taken for nothing;
// the store's own trouble is an error.
func TestCollectUnread(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "echo a >a; echo b >b; chmod 000 b")
	l := s.make("one", layer.Overlay)
	s.run(l, "echo n >n; chmod 000 n; echo run >a; rm -f b")
	_, err := l.Collect(t.Context(), layer.CollectOptions{Writer: full{}})
	require.ErrorIs(t, err, errFull)
	got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		assert.Len(t, got.Touched, 3)
		return
	}
	assert.Equal(t, []tree.Path{"b", "n"}, got.Unread)
	assert.Equal(t, []layer.Touched{{Change: tree.Change{Path: "a", Old: file("a\n"), New: file("run\n")}}}, got.Touched)
}

// barredModes are rights with which a directory's owner may not list it, or only that.
var barredModes = []string{"000", "300", "400", "644"}

// TestCollectBarred: what lies in a directory that its owner may not look into is told, and ends
// neither the walk nor the next one, whatever the root has there. The layer can be entered and removed.
func TestCollectBarred(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may look into all")
	}
	for _, how := range mechanisms {
		for _, mode := range barredModes {
			s := newSite(t)
			sh(t, s.root, "echo a >a; mkdir -p D/sub E .git/sub ignored; echo d >D/sub/d; echo e >E/e; echo g >.git/sub/g; echo ignored >.gitignore; echo i >ignored/i")
			l := s.make("one", how)
			s.run(l, "echo run >a; echo n >D/sub/n; rm -r E; mkdir E N; echo n >E/n; echo n >N/n; echo n >.git/sub/n; echo n >ignored/n; chmod "+mode+" D/sub E N .git/sub .git ignored")
			for range 2 {
				got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
				require.NoError(t, err, "%s %s", how, mode)
				require.Equal(t, []tree.Path{"D/sub", "E", "N"}, got.Unrecorded(), "%s %s", how, mode)
				require.Equal(t, []int{1, 1}, []int{got.Tally.Git, got.Tally.Ignored}, "or the layer could go with what is in it")
				all, _ := got.Changes()
				require.Len(t, all, 4, "a and three directories' modes: %v", all)
				require.Equal(t, tree.Change{Path: "a", Old: file("a\n"), New: file("run\n")}, all[3])
			}
			require.NoError(t, l.Enter())
			require.NoError(t, s.place.Remove("one"), "%s %s", how, mode)
		}
	}
}

// TestCollectBarredInTheRoot: what the run did in a directory that may not be looked into in the root, or
// no more, is told; the rights alone of such a directory are a change as any.
func TestCollectBarredInTheRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may look into all")
	}
	for _, how := range mechanisms {
		for _, mode := range barredModes {
			s := newSite(t)
			sh(t, s.root, "echo a >a; mkdir -p gone rights written; for d in gone rights written; do echo f >$d/f; done")
			l := s.make("one", how)
			s.run(l, "echo run >a; rm -r gone; chmod 700 rights; echo run >written/f")
			sh(t, s.root, "chmod "+mode+" gone rights written")
			got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
			require.NoError(t, err, "%s %s", how, mode)
			sh(t, s.root, "chmod 755 gone rights written") // or nobody could remove it
			unread := []tree.Path{"gone", "rights", "written"}
			if how == layer.Overlay {
				unread = []tree.Path{"gone", "written"}
			}
			require.Equal(t, unread, got.Unrecorded(), "%s %s", how, mode)
			var paths []tree.Path
			for _, c := range got.Touched {
				paths = append(paths, c.Path)
			}
			require.Contains(t, paths, tree.Path("a"))
			require.Contains(t, paths, tree.Path("rights"))
			require.NotContains(t, paths, tree.Path("gone"))
		}
	}
}

// TestSealedByTheRun: a run that takes all rights from the root and from .decree is collected.
func TestSealedByTheRun(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "echo a >a")
		l := s.make("one", how)
		s.run(l, "echo n >n; mkdir -p .decree/runs; echo x >.decree/runs/f; chmod 0 .decree/runs .decree .")
		got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
		require.NoError(t, err)
		require.Equal(t, []layer.Touched{{Change: tree.Change{Path: "n", New: file("n\n")}}}, got.Touched)
		require.NoError(t, l.Written(".decree/runs", func(dir disk.Dir, e disk.Entry) error {
			require.Equal(t, "f", e.Name)
			for range 3 {
				self, err := dir.Self()
				require.NoError(t, err)
				require.EqualValues(t, 0o700, self.Mode&0o700, dir.Path())
				up, err := disk.OS.OpenRoot(filepath.Dir(dir.Path()))
				require.NoError(t, err)
				defer up.Close()
				dir = up
			}
			return nil
		}))
	}
}

// TestCollectTheSameEdit: what the root has got meanwhile as the run made it is no change, and
// would be none in the diff.
func TestCollectTheSameEdit(t *testing.T) {
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "echo a >a; echo b >b; echo c >c")
		l := s.make("one", how)
		s.run(l, "echo both >a; rm b; echo run >c")
		sh(t, s.root, "echo both >a; rm b")
		got, err := l.Collect(t.Context(), layer.CollectOptions{Writer: stored{}})
		require.NoError(t, err)
		all, noBase := got.Changes()
		assert.Equal(t, []tree.Change{{Path: "c", Old: file("c\n"), New: file("run\n")}}, all, how)
		if runtime.GOOS == "linux" {
			assert.Empty(t, noBase, "of its directory it is known which entries were changed")
		} else {
			assert.Equal(t, []tree.Path{"c"}, noBase, "its directory was changed too")
		}
	}
}
