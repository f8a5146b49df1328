package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// fat is a directory on a file system that takes no colon in a name.
type fat struct{ *target.Directory }

func (f fat) takes(name string) error {
	if strings.Contains(name, ":") {
		return &fs.PathError{Op: "open", Path: name, Err: syscall.EINVAL}
	}
	return nil
}

func (f fat) Write(ctx context.Context, name string, r io.Reader) error {
	return errors.Join(f.takes(name), f.Directory.Write(ctx, name, r))
}

func (f fat) Link(ctx context.Context, old, name string) error {
	return errors.Join(f.takes(name), f.Directory.Link(ctx, old, name))
}

func (f fat) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	if err := f.takes(name); err != nil {
		return nil, 0, err
	}
	return f.Directory.Open(ctx, name, offset, length)
}

// TestNamesThatTheTargetCannotHold: what people have in .decree under names that a file system like exFAT does not take
// is in the backup, but not as a plain file.
func TestNamesThatTheTargetCannotHold(t *testing.T) {
	w := newWorld(t)
	w.write("tree/.decree/inbox/fix: it.md", "fix it\n")
	w.write("tree/.decree/inbox/plain.md", "plain\n")
	want := w.decreeFiles()
	told := ""
	onFat := func(o Options) Options {
		dir, ok := o.Target.(*target.Directory)
		require.True(t, ok)
		o.Target, o.Tell = fat{dir}, func(text string) { told += text + "\n" }
		return o
	}
	require.NoError(t, w.with(func(o Options) error {
		_, err := generate(t.Context(), onFat(o))
		return err
	}))
	require.Contains(t, told, "inbox/fix: it.md is in the backup, and not in ")
	require.NotContains(t, told, "plain.md")
	told = ""
	require.NoError(t, w.with(func(o Options) error {
		proof, err := Drill(t.Context(), onFat(o), true)
		require.NoError(t, err)
		require.True(t, proof.OK, proof.Problems)
		require.Empty(t, proof.Damaged)
		return nil
	}))
	require.Empty(t, told)
	w.rewrite("tree/.decree/inbox/fix: it.md", func(string) string { return "changed" })
	require.NoError(t, w.with(func(o Options) error {
		o = onFat(o)
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		src, err := place.Generation(t.Context(), place.Manifest.Generation())
		require.NoError(t, err)
		_, err = Restore(t.Context(), o, RestoreOptions{Source: src})
		return err
	}))
	require.Equal(t, want["inbox/fix: it.md"], w.decreeFiles()["inbox/fix: it.md"])
}
