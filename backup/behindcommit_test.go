package backup

import (
	"context"
	"fmt"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
)

// cutAt is a target whose line is cut at a replacement: before it is made, or before the answer to it comes.
type cutAt struct {
	target.Target
	name string
	made bool
}

func (c cutAt) Swap(ctx context.Context, name string, data []byte, was target.Version) (target.Version, error) {
	if path.Base(name) != c.name {
		return c.Target.Swap(ctx, name, data, was)
	}
	if c.made {
		if _, err := c.Target.Swap(ctx, name, data, was); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: %w", name, target.ErrGone)
}

// TestABackupThatCountsSaysSo: a line that is cut once manifest.json is written, or may be, does not have a backup say that none was made.
func TestABackupThatCountsSaysSo(t *testing.T) {
	for _, c := range []struct {
		cut          cutAt
		says         string
		made, failed bool
	}{
		{cutAt{name: markerFile}, "was made, but", true, false},
		{cutAt{name: manifestFile, made: true}, "may have been made", true, true},
		{cutAt{name: manifestFile}, "may have been made", false, true},
	} {
		w := newWorld(t)
		require.NoError(t, w.with(func(o Options) error {
			c.cut.Target = o.Target
			o.Target = c.cut
			_, err := Run(t.Context(), o, RunOptions{})
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "no new one was made")
			known := ReadMemory(o.Recorder.Project().Store).Targets[o.Target.String()]
			require.Equal(t, c.failed, known.Failed != nil)
			require.Equal(t, !c.failed, len(known.Generations) == 3, "what counts is remembered")
			return nil
		}))
		want := 2
		if c.made {
			want = 3
		}
		require.Len(t, w.generations(c.says), want)
	}
}
