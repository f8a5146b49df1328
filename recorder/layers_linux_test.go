package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestRemoveLayerAdvice: what is to be typed as root removes that layer, and nothing else, whatever its path.
func TestRemoveLayerAdvice(t *testing.T) {
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.base = filepath.Join(b.base, "My Data")
	require.NoError(t, os.Mkdir(b.base, 0o700))
	b.isolated("echo b >b")
	s := &sweep{bench: b.bench, t: t}
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		if s.Write && strings.Contains(s.Path, "/layers/2") && strings.Contains(s.Path, "/tree") {
			return disktest.Action{Err: syscall.EACCES}
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		_, err := r.Discard(context.Background(), DiscardOptions{Yes: true})
		return err
	}))
	assert.Contains(t, strings.Join(s.said, "\n"), "'sudo rm -rf '"+b.layerDir()+"'' removes it")
}
