package backup

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARestoreKeepsWhatItCanBringBack: what is here is replaced only when the archive of it was restored to scratch. Here it has a
// file of labels that is none, as a writer that errs would have made it.
func TestARestoreKeepsWhatItCanBringBack(t *testing.T) {
	for _, bucket := range []bool{false, true} {
		w := newWorld(t)
		err := w.with(func(o Options) error {
			o = asBucket(o, bucket)
			place, err := One(t.Context(), o.Target, "tree")
			require.NoError(t, err)
			src, err := place.Generation(t.Context(), place.Manifest.Generation())
			require.NoError(t, err)
			o.Extra = func(put func(string, io.Reader, int64) error) ([]string, error) {
				text := "{"
				return nil, put(storePart+"forgotten.json", strings.NewReader(text), int64(len(text)))
			}
			_, err = Restore(t.Context(), o, RestoreOptions{Source: src})
			return err
		})
		require.ErrorContains(t, err, "cannot be restored")
		require.Equal(t, "later\n", w.read("tree/.decree/inbox/later.md"))
		require.NotContains(t, strings.Join(w.names("target/tree/archives"), "\n"), preRestore)
		require.Empty(t, w.strays())
	}
}

// names are those in a directory.
func (w *world) names(at string) (out []string) {
	dir, err := w.m.OpenRoot("/w/" + at)
	require.NoError(w.t, err)
	defer dir.Close()
	list, err := dir.List()
	require.NoError(w.t, err)
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out
}

// TestNothingIsReplacedThatWasRecordedMeanwhile: a restore to where nothing was keeps no archive of what is there, so it does not replace
// what somebody has recorded since.
func TestNothingIsReplacedThatWasRecordedMeanwhile(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error { _, err := generate(t.Context(), o); return err }))
	was := w.decreeFiles()
	require.NoError(t, w.with(func(o Options) error {
		place, err := One(t.Context(), o.Target, "tree")
		require.NoError(t, err)
		src, err := place.Generation(t.Context(), place.Manifest.Generation())
		require.NoError(t, err)
		_, err = Restore(t.Context(), o, RestoreOptions{Source: src, Fresh: true})
		require.ErrorContains(t, err, "something was recorded here while the backup was looked at")
		return nil
	}))
	require.Equal(t, was, w.decreeFiles())
}
