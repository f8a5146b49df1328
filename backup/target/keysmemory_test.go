package target_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// dying ends before it replaces a name.
type dying struct {
	target.Target
	name string
}

func (d dying) Swap(ctx context.Context, name string, data []byte, was target.Version) (target.Version, error) {
	if name == d.name {
		return "", errors.New("the machine died")
	}
	return d.Target.Swap(ctx, name, data, was)
}

// TestADeathBeforeKeyFileIsReplaced leaves the key.age of before, whose writers go on without an identity; and where it is lost
// just then, this machine's copy is put in its place.
func TestADeathBeforeKeyFileIsReplaced(t *testing.T) {
	identity, recipient := pair(t)
	_, other := pair(t)
	for _, lost := range []bool{false, true} {
		at, memory := filepath.Join(t.TempDir(), "to"), &remembering{}
		before := target.Keys{Recipients: recipient, Memory: memory}
		generation(t, encryptedAt(t, at, before))
		d, err := target.OpenDirectory(disk.OS, at, false)
		require.NoError(t, err)
		both := target.Keys{Recipients: recipient + " " + other, Identity: identity, Memory: memory}
		dead, err := target.Encrypted(dying{d, "p/key.age"}, both)
		require.NoError(t, err)
		_, err = dead.Swap(t.Context(), "p/manifest.json", []byte("dead"), "")
		require.ErrorContains(t, err, "the machine died")

		if lost {
			require.NoError(t, os.Remove(filepath.Join(at, "p/key.age")))
		} else {
			swap(t, encryptedAt(t, at, before), "p/manifest.json", "of before")
		}
		swap(t, encryptedAt(t, at, both), "p/manifest.json", "for both")
		require.Equal(t, 1, strings.Count(string(memory.data), `"key_age"`), "of one key one file is remembered: %s", memory.data)
		both.Identity = ""
		swap(t, encryptedAt(t, at, both), "p/manifest.json", "without an identity")
	}
}

// TestAKeyWithWhichNothingWasWrittenIsNoOther: the first backup could not write key.age. Later the one of the key that was used instead is
// lost, and this machine's copy of that takes its place.
func TestAKeyWithWhichNothingWasWrittenIsNoOther(t *testing.T) {
	identity, recipient := pair(t)
	for name, lose := range map[string]func(file string) error{
		"missing": os.Remove,
		"damaged": func(file string) error { return os.WriteFile(file, []byte("g"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			at, keys := filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient, Identity: identity, Memory: &remembering{}}
			d, err := target.OpenDirectory(disk.OS, at, true)
			require.NoError(t, err)
			refused, err := target.Encrypted(dying{d, "p/key.age"}, keys)
			require.NoError(t, err)
			_, err = refused.Swap(t.Context(), "p/manifest.json", []byte("refused"), "")
			require.Error(t, err)

			generation(t, encryptedAt(t, at, keys))
			file := filepath.Join(at, "p/key.age")
			was, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, lose(file))
			swap(t, encryptedAt(t, at, keys), "p/manifest.json", "the next")
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, was, now)
		})
	}
}
