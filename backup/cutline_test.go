package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk/disktest"
	"decree/project"
	"decree/tree"
)

// cutLine is a target of which the bodies of names that contain at end in the middle, with err.
type cutLine struct {
	target.Target
	at  string
	err error
}

func (c *cutLine) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	r, size, err := c.Target.Open(ctx, name, offset, length)
	if err != nil || !strings.Contains(name, c.at) {
		return r, size, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r, 3), iotest.ErrReader(c.err)), r}, size, nil
}

// TestALineThatIsCutIsNoDamage has the line cut for good, or the command ended, while what was sent is read back: the bytes there may
// be as they should be, so that nothing is removed.
func TestALineThatIsCutIsNoDamage(t *testing.T) {
	for _, cut := range []error{
		fmt.Errorf("%w: %w", target.ErrGone, io.ErrUnexpectedEOF),
		fmt.Errorf("%w: %w", target.ErrGone, io.EOF),
		fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, context.Canceled),
	} {
		dir, err := target.OpenDirectory(disktest.NewMem(), "/t", true)
		require.NoError(t, err)
		data := "the bytes of a pack"
		require.ErrorIs(t, sendPack(t, &cutLine{dir, "", cut}, []byte(data)), cut)
		name := (&Place{Name: "p"}).packName(tree.Sum([]byte(data)))
		require.NoError(t, verify(t.Context(), dir, name, tree.Sum([]byte(data)), int64(len(data))), "it stays")
		_, err = (&ranges{t.Context(), &cutLine{dir, "", cut}, name}).ReadAt(make([]byte, len(data)), 0)
		require.ErrorIs(t, err, cut)
	}
	dir, err := target.OpenDirectory(disktest.NewMem(), "/t", true)
	require.NoError(t, err)
	require.NoError(t, put(t.Context(), dir, "p/a", strings.NewReader("short")))
	_, err = (&ranges{t.Context(), dir, "p/a"}).ReadAt(make([]byte, 10), 0)
	require.Equal(t, io.EOF, err, "what is shorter than it should be ends")
}

// TestAnArchiveThatCannotBeReadBackNow is none that is damaged.
func TestAnArchiveThatCannotBeReadBackNow(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		o.Target = &cutLine{o.Target, "/archives/", fmt.Errorf("%w: %w", target.ErrGone, io.ErrUnexpectedEOF)}
		_, err := generate(t.Context(), o)
		require.ErrorIs(t, err, target.ErrGone)
		require.NotEqual(t, project.Integrity, project.KindOf(err))
		return nil
	}))
}
