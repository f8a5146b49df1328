package layer

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestClockSetBackAndForward: a clock that was set back while a run works, and forward again before its layer is read, is one that
// was set back, and of a clone all counts as written. The setting itself is told by the system, which a test cannot set.
func TestClockSetBackAndForward(t *testing.T) {
	was := ahead
	defer func() { ahead = was }()
	now := int64(1e18)
	ahead = func() int64 { return now }
	p := placeOf(t)
	require.NoError(t, os.Mkdir(filepath.Join(p.Root.Path(), "d"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(p.Root.Path(), "d/f"), nil, 0o644))
	for how, want := range map[time.Duration]bool{-time.Hour: true, time.Hour: false, -disk.FineTick: false} {
		l, err := p.Make("one", Clone, CloneOptions{Copy: true})
		require.NoError(t, err)
		require.NotNil(t, l.watch)
		assert.False(t, l.setBack())
		now += int64(how)
		l.watch.look()
		now -= int64(how)
		assert.Equal(t, want, l.setBack(), how)
		written := false
		require.NoError(t, l.Written("d", func(disk.Dir, disk.Entry) error { written = true; return nil }))
		assert.Equal(t, want, written, "what the run may have written then: %v", how)
		l.Close()
		require.NoError(t, p.Remove("one"))
	}
}
