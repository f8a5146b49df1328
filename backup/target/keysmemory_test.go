package target_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/disk"
)

// swapping does something once each Swap of a name has been done.
type swapping struct {
	target.Target
	name string
	then func()
}

func (s *swapping) Swap(ctx context.Context, name string, data []byte, was target.Version) (target.Version, error) {
	v, err := s.Target.Swap(ctx, name, data, was)
	if name == s.name {
		s.then()
	}
	return v, err
}

// TestTheKeyOfWhatWasAcknowledgedIsRemembered has two backups of one machine replace a manifest.json at the same moment, with
// nothing that opens it but what the machine remembers: the second one comes when the first one's is there and not settled.
func TestTheKeyOfWhatWasAcknowledgedIsRemembered(t *testing.T) {
	_, recipient := pair(t)
	at, keys := filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient, Memory: &remembering{}}
	second := encryptedAt(t, at, keys)
	generation(t, second)
	_, was, err := second.Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	d, err := target.OpenDirectory(disk.OS, at, false)
	require.NoError(t, err)
	first, err := target.Encrypted(&swapping{d, "p/manifest.json", func() {
		_, err := second.Swap(t.Context(), "p/manifest.json", []byte("the second"), was)
		require.ErrorIs(t, err, target.ErrConflict)
	}}, keys)
	require.NoError(t, err)
	_, err = first.Swap(t.Context(), "p/manifest.json", []byte("the first"), was)
	require.NoError(t, err)
	data, _, err := encryptedAt(t, at, keys).Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	require.Equal(t, "the first", string(data))
}
