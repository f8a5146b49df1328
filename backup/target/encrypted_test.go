package target_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/backup/target/targettest"
	"decree/disk"
)

// remembering is a machine's memory.
type remembering struct{ data []byte }

func (m *remembering) Load() ([]byte, error) { return m.data, nil }

func (m *remembering) Change(change func([]byte) ([]byte, error)) error {
	now, err := change(m.data)
	if err == nil && now != nil {
		m.data = bytes.Clone(now)
	}
	return err
}

// pair makes an identity: its file, and its recipient.
func pair(t *testing.T) (file, recipient string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "identity.txt")
	require.NoError(t, os.WriteFile(file, []byte("# a comment\n"+id.String()+"\n"), 0o600))
	return file, id.Recipient().String()
}

func encryptedAt(t *testing.T, at string, k target.Keys) target.Target {
	t.Helper()
	target.QuickPassphrases()
	d, err := target.OpenDirectory(disk.OS, at, true)
	require.NoError(t, err)
	e, err := target.Encrypted(d, k)
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

func TestAnEncryptedDirectoryIsATarget(t *testing.T) {
	identity, recipient := pair(t)
	for name, keys := range map[string]target.Keys{
		"recipients":         {Recipients: recipient, Memory: &remembering{}},
		"identity":           {Recipients: recipient, Identity: identity},
		"passphrase":         {Recipients: target.ByPassphrase, Passphrase: "correct horse"},
		"nothing to encrypt": {Identity: identity},
	} {
		t.Run(name, func(t *testing.T) {
			targettest.Run(t, func(t *testing.T) target.Target {
				return encryptedAt(t, filepath.Join(t.TempDir(), "to"), keys)
			})
		})
	}
}

func write(t *testing.T, tg target.Target, name, data string) {
	t.Helper()
	u, err := tg.Create(t.Context(), name)
	require.NoError(t, err)
	_, err = io.WriteString(u, data)
	require.NoError(t, err)
	require.NoError(t, u.Commit(t.Context(), name))
}

func swap(t *testing.T, tg target.Target, name, data string) {
	t.Helper()
	_, was, err := tg.Read(t.Context(), name, 1<<20)
	require.NoError(t, err)
	_, err = tg.Swap(t.Context(), name, []byte(data), was)
	require.NoError(t, err)
}

func read(t *testing.T, tg target.Target, name string) (string, error) {
	t.Helper()
	r, size, err := tg.Open(t.Context(), name, 0, -1)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err == nil {
		require.EqualValues(t, size, len(data))
	}
	return string(data), err
}

const (
	packName = "p/packs/2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae.pack"
	secret   = "the quick brown fox"
)

// generation writes what a backup writes.
func generation(t *testing.T, tg target.Target) {
	t.Helper()
	write(t, tg, packName, secret)
	write(t, tg, strings.TrimSuffix(packName, "pack")+"idx", "index of "+secret)
	write(t, tg, "p/archives/2026-02-27T124500Z.zip", "zip of "+secret)
	swap(t, tg, "p/manifest.json", `{"root":"/home/me/secret-project"}`)
	swap(t, tg, "p/decree-backup.json", `{"version":1}`)
}

func TestNothingIsReadableInAnEncryptedTarget(t *testing.T) {
	_, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	generation(t, encryptedAt(t, at, target.Keys{Recipients: recipient}))
	hash := strings.TrimSuffix(filepath.Base(packName), ".pack")
	raw, _ := hex.DecodeString(hash)
	var names []string
	require.NoError(t, filepath.WalkDir(at, func(name string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, _ := filepath.Rel(at, name)
		names = append(names, rel)
		for _, known := range []string{secret, hash, "secret-project", "index", string(raw)} {
			require.NotContains(t, rel, known)
			if !e.IsDir() {
				data, err := os.ReadFile(name)
				require.NoError(t, err)
				require.NotContains(t, string(data), known, rel)
			}
		}
		return nil
	}))
	marker, err := os.ReadFile(filepath.Join(at, "p/decree-backup.json"))
	require.NoError(t, err)
	require.Equal(t, `{"version":1}`, string(marker), "the marker is not encrypted")
	require.Contains(t, names, "p/key.age")
	require.Contains(t, names, "p/archives/2026-02-27T124500Z.zip")
	require.NoDirExists(t, filepath.Join(at, "p/current"))
}

// TestTheFirstGenerationIsProvenByWhatOpensIt: the key that a process has just made is none that proves anything.
func TestTheFirstGenerationIsProvenByWhatOpensIt(t *testing.T) {
	identity, recipient := pair(t)
	other, _ := pair(t)
	for given, want := range map[string]error{identity: nil, other: target.ErrWrongKey, other + "-": fs.ErrNotExist} {
		first := encryptedAt(t, filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient, Identity: given, Memory: &remembering{}})
		generation(t, first)
		require.ErrorIs(t, first.(target.Sealed).Readable(t.Context(), "p"), want)
	}
}

func TestRecipientsAreEnoughToWriteOnAndNotToRead(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	memory := &remembering{}
	first := encryptedAt(t, at, target.Keys{Recipients: recipient, Memory: memory})
	generation(t, first)
	got, err := read(t, first, packName)
	require.NoError(t, err, "what was just written is read back")
	require.Equal(t, secret, got)
	require.ErrorIs(t, first.(target.Sealed).Readable(t.Context(), "p"), target.ErrNoIdentity)

	later := encryptedAt(t, at, target.Keys{Recipients: recipient, Memory: memory})
	got, err = read(t, later, strings.TrimSuffix(packName, "pack")+"idx")
	require.NoError(t, err)
	require.Equal(t, "index of "+secret, got)
	data, _, err := later.Read(t.Context(), "p/manifest.json", 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(data), "secret-project")
	for range 3 {
		swap(t, later, "p/manifest.json", rand.Text())
	}
	require.Contains(t, names(t, later, "p/packs/"), packName)
	_, err = read(t, later, packName)
	require.ErrorIs(t, err, target.ErrNoIdentity)
	require.NotContains(t, string(memory.data), filepath.Base(packName), "keys that are not needed are not kept")

	whole := encryptedAt(t, at, target.Keys{Identity: identity})
	require.NoError(t, whole.(target.Sealed).Readable(t.Context(), "p"))
	got, err = read(t, whole, packName)
	require.NoError(t, err)
	require.Equal(t, secret, got)
}

func names(t *testing.T, tg target.Target, prefix string) (list []string) {
	t.Helper()
	require.NoError(t, tg.List(t.Context(), prefix, func(o target.Object) error {
		list = append(list, o.Name)
		return nil
	}))
	return list
}

func TestKeysThatDoNotFit(t *testing.T) {
	identity, recipient := pair(t)
	other, _ := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	generation(t, encryptedAt(t, at, target.Keys{Recipients: recipient}))
	by := filepath.Join(t.TempDir(), "by")
	generation(t, encryptedAt(t, by, target.Keys{Recipients: target.ByPassphrase, Passphrase: "right"}))
	for name, c := range map[string]struct {
		at   string
		keys target.Keys
		want error
		text string
	}{
		"no identity":       {at, target.Keys{Recipients: recipient}, target.ErrNoIdentity, "set backup.identity"},
		"another identity":  {at, target.Keys{Identity: other}, target.ErrWrongKey, "the identity in " + other + " does not open"},
		"identity is gone":  {at, target.Keys{Identity: identity + "-"}, fs.ErrNotExist, "backup.identity"},
		"a passphrase":      {at, target.Keys{Recipients: target.ByPassphrase, Passphrase: "right"}, target.ErrNoIdentity, "set backup.identity"},
		"no passphrase":     {by, target.Keys{Recipients: target.ByPassphrase}, target.ErrNoIdentity, "set DECREE_BACKUP_PASSPHRASE"},
		"wrong passphrase":  {by, target.Keys{Recipients: target.ByPassphrase, Passphrase: "wrong"}, target.ErrWrongKey, "DECREE_BACKUP_PASSPHRASE does not open"},
		"the right one":     {by, target.Keys{Passphrase: "right"}, nil, ""},
		"the identity":      {at, target.Keys{Identity: identity}, nil, ""},
		"identity, written": {at, target.Keys{Identity: identity, Recipients: recipient}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tg := encryptedAt(t, c.at, c.keys)
			_, _, err := tg.Read(t.Context(), "p/manifest.json", 1<<20)
			_, _, rangeErr := tg.Open(t.Context(), packName, 0, 5)
			readable := tg.(target.Sealed).Readable(t.Context(), "p")
			for _, err := range []error{err, rangeErr, readable} {
				if c.want == nil {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, c.want)
				var key *target.KeyError
				require.ErrorAs(t, err, &key)
				require.Contains(t, err.Error()+"; "+key.Hint(), c.text)
			}
		})
	}
}

func TestAMissingKeyFileIsSaidOrPutBack(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	memory := &remembering{}
	keys := target.Keys{Recipients: recipient, Memory: memory}
	generation(t, encryptedAt(t, at, keys))
	was, err := os.ReadFile(filepath.Join(at, "p/key.age"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(at, "p/key.age")))
	stranger := encryptedAt(t, at, target.Keys{Recipients: recipient, Identity: identity})
	_, _, err = stranger.Read(t.Context(), "p/manifest.json", 1<<20)
	require.ErrorIs(t, err, target.ErrNoKey)
	_, err = stranger.Create(t.Context(), packName)
	require.ErrorIs(t, err, target.ErrNoKey, "no second key is made beside contents of the first")
	require.NoFileExists(t, filepath.Join(at, "p/key.age"))

	write(t, encryptedAt(t, at, keys), "p/packs/more.pack", "more")
	now, err := os.ReadFile(filepath.Join(at, "p/key.age"))
	require.NoError(t, err)
	require.Equal(t, was, now)
	got, err := read(t, encryptedAt(t, at, target.Keys{Identity: identity}), packName)
	require.NoError(t, err)
	require.Equal(t, secret, got)
}

// TestADamagedKeyFileIsPutBack: this machine reads and writes on by its own copy, which it puts back; others are told what to do.
func TestADamagedKeyFileIsPutBack(t *testing.T) {
	identity, recipient := pair(t)
	flip := func(data []byte, at int) []byte {
		data = bytes.Clone(data)
		data[at] ^= 1
		return data
	}
	for name, spoil := range map[string]func(was []byte) []byte{
		"no age file":     func([]byte) []byte { return []byte("g") },
		"cut":             func(was []byte) []byte { return was[:len(was)-7] },
		"a flipped end":   func(was []byte) []byte { return flip(was, len(was)-5) },
		"a flipped share": func(was []byte) []byte { return flip(was, len("age-encryption.org/v1\n-> X25519 ")+5) },
		"the key's bytes": func(was []byte) []byte { return flip(was, len("age-encryption.org/v1\n-> X25519 ")+43+1+10) },
	} {
		t.Run(name, func(t *testing.T) {
			at, memory := filepath.Join(t.TempDir(), "to"), &remembering{}
			keys := target.Keys{Recipients: recipient, Identity: identity, Memory: memory}
			generation(t, encryptedAt(t, at, keys))
			file := filepath.Join(at, "p/key.age")
			was, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, spoil(was), 0o600))

			_, err = read(t, encryptedAt(t, at, target.Keys{Identity: identity}), packName)
			require.True(t, target.AboutKey(err), "%v", err)
			own := encryptedAt(t, at, keys)
			got, err := read(t, own, packName)
			require.NoError(t, err)
			require.Equal(t, secret, got)
			require.NoError(t, own.(target.Sealed).Readable(t.Context(), "p"))
			require.Error(t, own.(target.Sealed).Spoiled(t.Context(), "p"))
			swap(t, own, "p/proofs.jsonl", "{}")
			require.NoError(t, own.(target.Sealed).Spoiled(t.Context(), "p"))
			now, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, was, now)
		})
	}
	at, memory := filepath.Join(t.TempDir(), "to"), &remembering{}
	keys := target.Keys{Recipients: recipient, Memory: memory}
	generation(t, encryptedAt(t, at, keys))
	file := filepath.Join(at, "p/key.age")
	was, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte("g"), 0o600))
	_, _, err = encryptedAt(t, at, target.Keys{Recipients: recipient}).Read(t.Context(), "p/manifest.json", 1<<20)
	require.ErrorIs(t, err, target.ErrDamagedKey, "without an identity, too")
	swap(t, encryptedAt(t, at, keys), "p/manifest.json", "{}")
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, was, now, "what only writes puts it back, too")
}

// TestACutContentIsDamage: what was cut before its first byte is damage, and has the version that what replaces it has to name.
func TestACutContentIsDamage(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	tg := encryptedAt(t, at, target.Keys{Recipients: recipient, Identity: identity})
	generation(t, tg)
	file := filepath.Join(at, "p/manifest.json")
	for _, size := range []int64{0, 1, 40, 170, 190} {
		require.NoError(t, os.Truncate(file, size))
		_, version, err := tg.Read(t.Context(), "p/manifest.json", 1<<20)
		require.ErrorIs(t, err, target.ErrDamaged, "cut at %d", size)
		_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("{} and more"), version)
		require.NoError(t, err)
	}
}

func TestANewRecipientCanReadWhatOldOnesCould(t *testing.T) {
	identity, recipient := pair(t)
	identity2, recipient2 := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	memory := &remembering{}
	generation(t, encryptedAt(t, at, target.Keys{Recipients: recipient, Memory: memory}))
	_, err := encryptedAt(t, at, target.Keys{Recipients: recipient2, Memory: memory}).Create(t.Context(), packName)
	require.ErrorIs(t, err, target.ErrNoIdentity)
	require.ErrorContains(t, err, "backup.encrypt was changed")
	write(t, encryptedAt(t, at, target.Keys{Recipients: recipient2, Identity: identity, Memory: memory}), "p/packs/more.pack", "more")
	got, err := read(t, encryptedAt(t, at, target.Keys{Identity: identity2}), packName)
	require.NoError(t, err)
	require.Equal(t, secret, got)
	_, err = read(t, encryptedAt(t, at, target.Keys{Identity: identity}), packName)
	require.ErrorIs(t, err, target.ErrWrongKey)
}

func TestAKeyFileThatSomebodyHasReplaced(t *testing.T) {
	identity, recipient := pair(t)
	at, forged := filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "forged")
	memory := &remembering{}
	keys := target.Keys{Recipients: recipient, Identity: identity, Memory: memory}
	generation(t, encryptedAt(t, at, keys))
	generation(t, encryptedAt(t, forged, target.Keys{Recipients: recipient}))
	data, err := os.ReadFile(filepath.Join(forged, "p/key.age"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(at, "p/key.age"), data, 0o600))
	_, err = encryptedAt(t, at, keys).Create(t.Context(), packName)
	require.ErrorIs(t, err, target.ErrWrongKey)
	require.ErrorContains(t, err, "somebody has replaced")
}

func TestPlainBackupsAreNotEncryptedHalfWay(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	generation(t, encryptedAt(t, at, target.Keys{}))
	tg := encryptedAt(t, at, target.Keys{Recipients: recipient, Identity: identity})
	_, err := tg.Create(t.Context(), packName)
	require.ErrorContains(t, err, "are not encrypted, and backup.encrypt is set")
	got, err := read(t, tg, packName)
	require.NoError(t, err, "what is there can be read")
	require.Equal(t, secret, got)
	require.NoFileExists(t, filepath.Join(at, "p/key.age"))
}

func TestNoPlainFilesInAnEncryptedDirectory(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	tg := encryptedAt(t, at, target.Keys{Recipients: recipient, Identity: identity})
	generation(t, tg)
	_, shows := tg.(target.Shelf)
	require.False(t, shows)
	shelf := encryptedAt(t, at, target.Keys{Identity: identity}).(target.Shelf)
	err := shelf.Write(t.Context(), "p/current.new/config.yml", strings.NewReader(secret))
	require.ErrorContains(t, err, "set backup.encrypt")
	require.NoFileExists(t, filepath.Join(at, "p/current.new/config.yml"))
}

func TestChangedBytesOfAnEncryptedTargetAreFound(t *testing.T) {
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	tg := encryptedAt(t, at, target.Keys{Recipients: recipient, Identity: identity})
	large := strings.Repeat(secret, 20_000)
	write(t, tg, "p/packs/large", large)
	file := filepath.Join(at, "p/packs/large")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, damage := range map[string]func([]byte) []byte{
		"a bit of a chunk": func(b []byte) []byte { b[70_000] ^= 1; return b },
		"the last chunk":   func(b []byte) []byte { return b[:184+5*(64<<10+16)] },
		"half of a chunk":  func(b []byte) []byte { return b[:200_000] },
		"the header":       func(b []byte) []byte { b[60] ^= 1; return b },
		"nearly all":       func(b []byte) []byte { return b[:50] },
		"all":              func(b []byte) []byte { return nil },
	} {
		require.NoError(t, os.WriteFile(file, damage(bytes.Clone(whole)), 0o600))
		fresh := encryptedAt(t, at, target.Keys{Identity: identity})
		_, err := read(t, fresh, "p/packs/large")
		require.Error(t, err)
		_, err = part(t.Context(), fresh, "p/packs/large", 60_000, 100_000)
		require.Error(t, err)
	}
}

func part(ctx context.Context, tg target.Target, name string, offset, length int64) (string, error) {
	r, _, err := tg.Open(ctx, name, offset, length)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return string(data), err
}

func TestPartsOfEncryptedContents(t *testing.T) {
	_, recipient := pair(t)
	tg := encryptedAt(t, filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient})
	const chunk = 64 << 10
	for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk - 1, 3 * chunk, 3*chunk + 1, 9 * chunk} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		name := "p/packs/" + rand.Text()
		write(t, tg, name, string(data))
		got, err := read(t, tg, name)
		require.NoError(t, err)
		require.Equal(t, string(data), got)
		for _, offset := range []int{0, 1, chunk - 1, chunk, 2*chunk + 7, size - 1, size} {
			for _, length := range []int{0, 1, 100, chunk, 2*chunk + 1, 20 * chunk, -1} {
				if offset < 0 || offset > size {
					continue
				}
				end := min(size, offset+length)
				if length < 0 {
					end = size
				}
				got, err := part(t.Context(), tg, name, int64(offset), int64(length))
				require.NoError(t, err, "%d: %d+%d", size, offset, length)
				require.Equal(t, string(data[offset:end]), got, "%d: %d+%d", size, offset, length)
			}
		}
	}
}

// TestPartsOfAContentThatWasReplaced: of what is read now nothing is taken from the one before.
func TestPartsOfAContentThatWasReplaced(t *testing.T) {
	_, recipient := pair(t)
	tg := encryptedAt(t, filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient})
	for _, data := range []string{"short", strings.Repeat("longer", 30_000), "other"} {
		swap(t, tg, "p/archives/a.zip", data)
		got, err := part(t.Context(), tg, "p/archives/a.zip", 1, 4)
		require.NoError(t, err)
		require.Equal(t, data[1:5], got)
	}
}

func TestARecipientThatIsNone(t *testing.T) {
	identity, _ := pair(t)
	text, err := os.ReadFile(identity)
	require.NoError(t, err)
	key := strings.TrimSpace(strings.TrimPrefix(string(text), "# a comment\n"))
	_, err = target.Encrypted(nil, target.Keys{Recipients: key})
	require.ErrorContains(t, err, "must be kept secret")
	require.NotContains(t, err.Error(), key)
	_, err = target.Encrypted(nil, target.Keys{Recipients: "me@example.org"})
	require.ErrorContains(t, err, "age1")
}

// TestAgeAloneOpensABackup reads an encrypted target with nothing but age, where that is installed.
func TestAgeAloneOpensABackup(t *testing.T) {
	if _, err := exec.LookPath("age"); err != nil {
		t.Skip("age is not here")
	}
	identity, recipient := pair(t)
	at := filepath.Join(t.TempDir(), "to")
	generation(t, encryptedAt(t, at, target.Keys{Recipients: recipient}))
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, exec.Command("age", "-d", "-i", identity, "-o", key, filepath.Join(at, "p/key.age")).Run())
	out, err := exec.Command("age", "-d", "-i", key, filepath.Join(at, "p/manifest.json")).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "secret-project")
}

// TestAPlantedKeyFile: a key.age that lies where no backup is, which anybody can make who knows the recipients, is not written with.
func TestAPlantedKeyFile(t *testing.T) {
	identity, recipient := pair(t)
	theirs, at := filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "to")
	generation(t, encryptedAt(t, theirs, target.Keys{Recipients: recipient}))
	data, err := os.ReadFile(filepath.Join(theirs, "p/key.age"))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(at, "p"), 0o700))
	file := filepath.Join(at, "p/key.age")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	for _, k := range []target.Keys{{Recipients: recipient, Identity: identity, Memory: &remembering{}}, {Recipients: recipient}} {
		tg := encryptedAt(t, at, k)
		_, err = tg.Swap(t.Context(), "p/manifest.json", []byte("secret"), "")
		require.ErrorIs(t, err, target.ErrWrongKey)
		require.ErrorContains(t, err, "this machine has not made it")
		require.NoFileExists(t, filepath.Join(at, "p/manifest.json"))
	}
	// Beside a generation it is another machine's, which goes on.
	second := target.Keys{Recipients: recipient, Identity: identity, Memory: &remembering{}}
	_, was, err := encryptedAt(t, theirs, second).Read(t.Context(), "p/manifest.json", 100)
	require.NoError(t, err)
	_, err = encryptedAt(t, theirs, second).Swap(t.Context(), "p/manifest.json", []byte("the second's"), was)
	require.NoError(t, err)

	require.NoError(t, os.Remove(file))
	generation(t, encryptedAt(t, at, second))
}

// TestAReplacedKeyFileWithoutIdentity is told of by who can only write, with the way out.
func TestAReplacedKeyFileWithoutIdentity(t *testing.T) {
	_, recipient := pair(t)
	theirs, at, keys := filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "to"), target.Keys{Recipients: recipient, Memory: &remembering{}}
	generation(t, encryptedAt(t, theirs, target.Keys{Recipients: recipient}))
	generation(t, encryptedAt(t, at, keys))
	file := filepath.Join(at, "p/key.age")
	own, err := os.ReadFile(file)
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(theirs, "p/key.age"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	_, err = encryptedAt(t, at, keys).Swap(t.Context(), "p/proofs.jsonl", []byte("x"), "")
	require.ErrorIs(t, err, target.ErrNoIdentity)
	require.ErrorContains(t, err, "not the one that this machine knows")
	var k *target.KeyError
	require.ErrorAs(t, err, &k)
	require.Contains(t, k.Next, "remove it there")
	require.NoError(t, os.Remove(file))
	swap(t, encryptedAt(t, at, keys), "p/manifest.json", "goes on")
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, own, now)
}
