package backup

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/tree"
)

// flat is a target as object storage is one: without locks and directories. once is called when something
// of a name that contains at is begun, the first time.
type flat struct {
	target.Target
	at   string
	once func()
}

func (f *flat) Create(ctx context.Context, near string) (target.Upload, error) {
	if f.once != nil && strings.Contains(near, f.at) {
		once := f.once
		f.once = nil
		once()
	}
	return f.Target.Create(ctx, near)
}

// TestTheSlowerOfTwoBackupsTakesNothingFromTheFaster has one backup make a generation while another of the
// same second is about to write its archive. It is refused, and what the first was told stands.
func TestTheSlowerOfTwoBackupsTakesNothingFromTheFaster(t *testing.T) {
	w := newWorld(t)
	now := w.now().Add(time.Hour)
	var fast *Made
	err := w.with(func(o Options) error {
		o.Now = func() time.Time { return now }
		o.Target = &flat{Target: o.Target, at: "/archives/", once: func() {
			require.NoError(t, w.with(func(o Options) (err error) {
				w.write("tree/a", "meanwhile")
				o.Now = func() time.Time { return now }
				o.Target = &flat{Target: o.Target}
				fast, err = generate(t.Context(), o)
				return err
			}))
		}}
		_, err := generate(t.Context(), o)
		return err
	})
	require.ErrorIs(t, err, target.ErrConflict)
	require.Contains(t, w.generations("after both"), fast.Manifest.Generation())
	require.NoError(t, w.with(func(o Options) error {
		o.Target = &flat{Target: o.Target}
		_, err := generate(t.Context(), o)
		return err
	}))
	require.Contains(t, w.generations("after another"), fast.Manifest.Generation())
}

// failing is a target that cannot be read from any more once something is there.
type failing struct {
	target.Target
	now bool
}

var errLine = errors.New("the line is cut")

func (f *failing) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	if f.now && strings.HasSuffix(name, ".pack") {
		return nil, 0, errLine
	}
	return f.Target.Open(ctx, name, offset, length)
}

// TestAPackThatCannotBeReadBackStays has the line cut as a pack is read back that was there before: generations need it.
func TestAPackThatCannotBeReadBackStays(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		place, err := findOf(t.Context(), o.Target, "tree", o.Recorder.Project().ID)
		require.NoError(t, err)
		for h, size := range place.Manifest.Packs {
			r, _, err := o.Target.Open(t.Context(), place.packName(h), 0, -1)
			require.NoError(t, err)
			data, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Len(t, data, int(size))
			again := *place
			again.Target = &failing{Target: o.Target, now: true}
			u := &upload{ctx: t.Context(), p: &again, packs: map[tree.Hash]int64{}, said: func(int64) {}}
			to, err := u.begin()
			require.NoError(t, err)
			_, err = to.Write(data)
			require.NoError(t, err)
			require.NoError(t, u.end(nil))
			require.ErrorIs(t, u.ending.Wait(), errLine)
			r, _, err = o.Target.Open(t.Context(), place.packName(h), 0, -1)
			require.NoError(t, err, "the pack is gone")
			r.Close()
		}
		return nil
	}))
}
