package backup

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// arrive restores the world's newest generation into /w/new, or goes on with that.
func (w *world) arrive(d disk.Disk) error {
	const root = "/w/new"
	ctx := context.Background()
	in, err := project.ReadInto(d, root)
	if err != nil {
		return err
	}
	if in == nil {
		if others, err := project.BesideInto(d, root, false); err != nil || len(others) > 0 {
			return fmt.Errorf("%v: %w", others, err)
		}
		if err := project.BeginInto(d, root, project.Into{Project: strings.Repeat("a", 32)}, nil); err != nil {
			return err
		}
	}
	o, done, err := w.options(d)
	if err != nil {
		return err
	}
	defer done()
	theirs := o.Recorder.Project().ID
	place, err := findOf(ctx, o.Target, "tree", theirs)
	if err != nil {
		return err
	}
	src, err := place.Generation(ctx, place.Manifest.Generation())
	if err != nil {
		return err
	}
	same := func(p string) (string, error) { return p, nil }
	r, err := recorder.Open(ctx, recorder.Options{
		ReaderOptions: recorder.ReaderOptions{Disk: d, Where: project.Where{RootFlag: root, Cwd: root, Home: "/w/home", StoreEnv: "/w/store", RealPath: same, Arriving: true}, Location: time.UTC, Clock: w.now},
		Create:        true, Actor: history.Actor{User: "u", Host: "h"},
	})
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := r.Recover(ctx, false); err != nil {
		return err
	}
	if r.Project().From() != theirs {
		others, err := project.BesideInto(d, root, true)
		if err != nil || len(others) > 0 {
			return fmt.Errorf("%v: %w", others, err)
		}
		o.Recorder = r
		if _, err := Restore(ctx, o, RestoreOptions{Source: src, Fresh: true}); err != nil {
			return err
		}
	}
	if _, err := r.Fill(ctx, src.Manifest.Tree); err != nil {
		return err
	}
	return r.Project().EndInto()
}

// arrived is what is in /w/new: the tree, and what people have in .decree.
func (w *world) arrived(what string) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"a", "d/b", ".decree/config.yml", ".decree/inbox/m0.md", ".decree/inbox/m1.md"} {
		dir, err := w.m.OpenRoot(path.Join("/w/new", path.Dir(name)))
		require.NoError(w.t, err, what)
		f, err := dir.Open(path.Base(name))
		require.NoError(w.t, err, "%s: %s", what, name)
		data, err := io.ReadAll(f)
		require.NoError(w.t, err, what)
		out[name] = string(data)
		f.Close()
		dir.Close()
	}
	dir, err := w.m.OpenRoot("/w/new/.decree")
	require.NoError(w.t, err)
	defer dir.Close()
	_, err = dir.Stat(project.IntoFile)
	require.ErrorIs(w.t, err, fs.ErrNotExist, what)
	return out
}

// TestARestoreIntoADirectoryGoesOn sees that a restore into an empty directory which failed or died at any step goes on when it is
// repeated, and leads to the same.
func TestARestoreIntoADirectoryGoesOn(t *testing.T) {
	base := newWorld(t)
	_, err := base.m.MkdirAll("/w/new", 0o755)
	require.NoError(t, err)
	top, err := base.m.OpenRoot("/")
	require.NoError(t, err)
	flush(t, top)
	whole := base.copy()
	require.NoError(t, whole.arrive(whole.m))
	want := whole.arrived("undisturbed")
	require.Equal(t, "a1", want["a"])
	began := 0
	eachFault(t, base, (*world).arrive, func(w *world, err error, what string) {
		in, rerr := project.ReadInto(w.m, "/w/new")
		if rerr == nil && in != nil {
			began++
		}
		if rerr == nil && in == nil { // nothing was made yet, or it died behind the end
			if others, err := project.BesideInto(w.m, "/w/new", false); err == nil && len(others) > 0 {
				require.Equal(t, want, w.arrived(what), what)
				return
			}
		}
		if err != nil {
			require.NoError(t, w.arrive(w.m), what)
		}
		require.Equal(t, want, w.arrived(what), what)
	})
	require.Positive(t, began)
}
