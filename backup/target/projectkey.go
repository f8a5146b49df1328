package target

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"filippo.io/age"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// Keys are what encrypted backups are written and read with.
type Keys struct {
	Recipients string // of age, with spaces between them, or ByPassphrase; "": nothing is encrypted anew
	Identity   string // the path of a file with age identities; "": none
	Passphrase string
	Memory     Memory // what this machine remembers; nil: as long as the process lives
}

// ByPassphrase stands in the place of recipients.
const ByPassphrase = "passphrase"

// Memory is a small private content of this machine's. It is safe for concurrent use, also by several processes: backups of one
// project to several targets have one.
type Memory interface {
	Load() ([]byte, error) // nothing where there is none yet
	// Change replaces the content by what change makes of it, while nobody else does; nil of change leaves it as it is.
	Change(change func(was []byte) (now []byte, err error)) error
}

// The categories of errors about keys.
var (
	// ErrNoIdentity: what is to be read is encrypted, and what opens it was not given.
	ErrNoIdentity = errors.New("these backups are encrypted")
	// ErrWrongKey: what was given does not open it.
	ErrWrongKey = errors.New("the key does not fit")
	// ErrNoKey: key.age is missing, without which nothing can be read.
	ErrNoKey = errors.New(KeyFile + " is missing")
	// errNoPassphrase: what is to be written is to be encrypted by a passphrase, and there is none.
	errNoPassphrase = errors.New("backup.encrypt is passphrase, and DECREE_BACKUP_PASSPHRASE is not set")
	// ErrDamagedKey: key.age is not what was written there.
	ErrDamagedKey = errors.New(KeyFile + " is damaged")
)

// KeyError is that backups cannot be read with what was given: an error of one of the categories above, with what to do.
type KeyError struct {
	Err  error
	Next string
}

func (e *KeyError) Error() string { return e.Err.Error() }

func (e *KeyError) Unwrap() error { return e.Err }

// Hint is what to do.
func (e *KeyError) Hint() string { return e.Next }

// AboutKey says whether an error is one of these categories.
func AboutKey(err error) bool {
	return slices.ContainsFunc([]error{ErrNoIdentity, ErrWrongKey, ErrNoKey, errNoPassphrase, ErrDamagedKey}, func(is error) bool { return errors.Is(err, is) })
}

// aboutKeyFile is an error of opening a key.age.
func aboutKeyFile(file []byte, err error) error {
	next := "set backup.identity, or DECREE_BACKUP_IDENTITY where there is no config yet, to the file with an age identity that opens them"
	switch {
	case errors.Is(err, ErrDamagedKey):
		next = lostKeyNext
	case byPassphrase(file):
		next = "set DECREE_BACKUP_PASSPHRASE to their passphrase"
	}
	return &KeyError{err, next}
}

// lostKeyNext is what to do about a key.age that is lost.
const lostKeyNext = "nothing there can be read without it: 'decree backup' or a drill in the project itself puts it back, whose store has a copy; else put a copy in its place"

// Lacks is the error of backups with that key.age, nil where it is not known, that are to be read with nothing that opens them.
func Lacks(file []byte) error {
	return aboutKeyFile(file, fmt.Errorf("%w, and nothing that opens them was given", ErrNoIdentity))
}

// KeyFile has the key of a project's directory, which is encrypted.
const KeyFile = "key.age"

const (
	maxKeyFile   = 1 << 20
	markerFile   = project.BackupMarker
	manifestFile = project.BackupManifest
	packsDir     = project.BackupPacks
)

// projectKey is the key of one project's directory: a pair of age's, of which the secret part lies
// in key.age, encrypted to the recipients. Who has once made it or opened it remembers the public part
// and the key of the names, which is all that writing needs.
type projectKey struct {
	file      []byte // key.age
	recipient *age.X25519Recipient
	names     []byte
	written   bool                // key.age is there, and for the recipients of now
	identity  *age.X25519Identity // nil until it was needed
	locked    error               // why it cannot be had
	spoiled   error               // what is wrong with the key.age there, in whose place this machine's copy is taken
}

// knownKey is what the memory has of one project's key.
type knownKey struct {
	Place     tree.Text            `json:"place"` // the target and the project's directory there
	KeyFile   []byte               `json:"key_age"`
	To        string               `json:"to"` // whom key.age is encrypted to; "": not known
	Recipient string               `json:"recipient"`
	Names     []byte               `json:"names"`
	Files     map[string][]fileKey `json:"files"` // of what this machine has written and must read to write on
}

// fileKey is what opens one file: age makes a new one for each. Share is how its header tells it from others.
type fileKey struct {
	Share string `json:"share"`
	Key   []byte `json:"key"`
}

type knownKeys struct {
	Version int         `json:"version"`
	Keys    []*knownKey `json:"keys"`
}

// of is what is remembered of a key.age.
func (m *knownKeys) of(file []byte) *knownKey {
	for _, r := range m.Keys {
		if bytes.Equal(r.KeyFile, file) {
			return r
		}
	}
	return nil
}

// at is the place, whose target an earlier decree may have spelled otherwise.
func (r *knownKey) at() string {
	place := string(r.Place)
	n := max(0, strings.LastIndexByte(place, ' '))
	return Clean(place[:n]) + place[n:]
}

// at are the keys of a place, each with its last key.age. It has several where disks take turns there. A key with which nothing was
// written there, as where key.age itself could not be, has acknowledged nothing, and is none of them.
func (m *knownKeys) at(place string) (list []*knownKey) {
	for _, r := range m.Keys {
		if r.at() == place && len(r.Files) > 0 {
			list = slices.DeleteFunc(list, func(before *knownKey) bool { return before.Recipient == r.Recipient })
			list = append(list, r)
		}
	}
	return list
}

func (e *encrypted) load() (*knownKeys, error) {
	data, err := e.keys.Memory.Load()
	if err != nil {
		return nil, err
	}
	return parseMemory(data)
}

func parseMemory(data []byte) (*knownKeys, error) {
	m := &knownKeys{Version: 1}
	if len(data) == 0 {
		return m, nil
	}
	return m, json.Unmarshal(data, m)
}

// change changes what is remembered. It is called before what that is needed for is acknowledged,
// so that a death leaves too much of it and never too little. False of change is that nothing has changed.
func (e *encrypted) change(change func(*knownKeys) bool) error {
	return e.keys.Memory.Change(func(was []byte) ([]byte, error) {
		m, err := parseMemory(was)
		if err != nil || !change(m) {
			return nil, err
		}
		return json.Marshal(m)
	})
}

// remember writes down what is known of a key. Until forget, what is known of was, the key.age that it had, is kept too: a death may
// leave either of them there.
func (e *encrypted) remember(project string, k *projectKey, was []byte, to string) error {
	return e.change(func(m *knownKeys) bool {
		r := m.of(k.file)
		if r == nil {
			r = &knownKey{Files: map[string][]fileKey{}}
			if before := m.of(was); before != nil {
				maps.Copy(r.Files, before.Files)
			}
			m.Keys = append(m.Keys, r)
		}
		r.Place, r.KeyFile, r.Recipient, r.Names, r.To = tree.Text(e.place(project)), k.file, k.recipient.String(), k.names, to
		return true
	})
}

// forget drops what a key had for its key.age before the one that is there now.
func (e *encrypted) forget(project string, k *projectKey) error {
	return e.change(func(m *knownKeys) bool {
		n := len(m.Keys)
		m.Keys = slices.DeleteFunc(m.Keys, func(r *knownKey) bool {
			return r.at() == e.place(project) && r.Recipient == k.recipient.String() && !bytes.Equal(r.KeyFile, k.file)
		})
		return len(m.Keys) < n
	})
}

// key finds the key of a project's directory; nil where that is not encrypted. To write, a directory that
// is empty gets one if there are recipients, and key.age is brought up to date.
func (e *encrypted) key(ctx context.Context, project string, write bool) (*projectKey, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if k := e.projects[project]; k != nil && (k.written || !write) {
		return k, nil
	}
	file, version, err := e.inner.Read(ctx, path.Join(project, KeyFile), maxKeyFile)
	if err != nil {
		return nil, err
	}
	m, err := e.load()
	if err != nil {
		return nil, err
	}
	if file == nil {
		file, err = e.missing(ctx, project, write, m.at(e.place(project)))
		if err != nil || file == nil && (!write || e.keys.Recipients == "") {
			return nil, err
		}
	}
	var k *projectKey
	if file != nil && write && m.of(file) == nil && len(m.at(e.place(project))) == 0 {
		if err := e.planted(ctx, project); err != nil {
			return nil, err
		}
	}
	if file == nil {
		k, err = e.newKey(ctx, project)
	} else {
		k, err = e.openKey(project, file, m)
		if err == nil && version == "" {
			k.spoiled = ErrNoKey
		}
		if err == nil && write {
			err = e.updateKey(ctx, project, k, version, m.of(k.file))
		}
	}
	if err != nil {
		return nil, err
	}
	e.projects[project] = k
	return k, nil
}

func (e *encrypted) place(project string) string { return e.inner.String() + " " + project }

// missing says what a directory without key.age is: empty or not encrypted, which is no key.age
// and no error; else the key.age that this machine remembers.
func (e *encrypted) missing(ctx context.Context, project string, write bool, known []*knownKey) ([]byte, error) {
	name := path.Join(project, manifestFile)
	r, _, err := e.inner.Open(ctx, name, 0, int64(len(ageIntro)))
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer r.Close()
	intro, err := io.ReadAll(r)
	switch {
	case err != nil:
		return nil, err
	case IsEncrypted(intro) && len(known) == 1:
		return known[0].KeyFile, nil
	case IsEncrypted(intro):
		return nil, &KeyError{fmt.Errorf("%s: %w", path.Join(e.inner.String(), project), ErrNoKey), lostKeyNext}
	case write && e.keys.Recipients != "":
		return nil, fmt.Errorf("%s: the backups there are not encrypted, and backup.encrypt is set: give backup.name another name, or take them away", path.Join(e.inner.String(), project))
	}
	return nil, nil
}

// planted refuses to write the first generation with a key that this machine has not made: who has put it there could read all of it, and needed
// the recipients alone for that. Where a generation stands, another machine goes on with its key.
func (e *encrypted) planted(ctx context.Context, project string) error {
	r, _, err := e.inner.Open(ctx, path.Join(project, manifestFile), 0, 0)
	if err == nil {
		return r.Close()
	}
	if !isMissing(err) {
		return err
	}
	return &KeyError{fmt.Errorf("%s: %w: %s is there and no backup, and this machine has not made it: who has put it there could read what is written with it", path.Join(e.inner.String(), project), ErrWrongKey, KeyFile),
		"if no other machine is making its first backup there just now, remove " + KeyFile + " there: the next backup makes one; or give backup.name another name"}
}

// newKey makes the key of an empty directory.
func (e *encrypted) newKey(ctx context.Context, project string) (*projectKey, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	k := &projectKey{identity: identity, recipient: identity.Recipient(), names: namesKey(identity), written: true}
	if k.file, err = e.wrap(identity); err != nil {
		return nil, err
	}
	if err := e.remember(project, k, nil, e.keys.Recipients); err != nil {
		return nil, err
	}
	_, err = e.inner.Swap(ctx, path.Join(project, KeyFile), k.file, "")
	if errors.Is(err, ErrConflict) { // the other's key counts
		err = errors.Join(err, e.change(func(m *knownKeys) bool {
			m.Keys = slices.DeleteFunc(m.Keys, func(r *knownKey) bool { return bytes.Equal(r.KeyFile, k.file) })
			return true
		}))
	}
	k.identity = nil // it is had by what opens key.age alone, so that a proof with it is one for later, too
	return k, err
}

// wrap encrypts the secret part of a key for those who may read.
func (e *encrypted) wrap(identity *age.X25519Identity) ([]byte, error) {
	if len(e.recipients) == 0 {
		return nil, &KeyError{errNoPassphrase, "set it, here and where a daemon or cron makes backups, or name age recipients with backup.encrypt"}
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, e.recipients...)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, identity.String()+"\n"); err != nil {
		return nil, err
	}
	err = w.Close() // which writes the last chunk
	return out.Bytes(), err
}

// openKey is the key that lies in a key.age. Its secret part is opened only where it must be: that
// takes a second by a passphrase.
func (e *encrypted) openKey(project string, file []byte, m *knownKeys) (*projectKey, error) {
	k := &projectKey{file: file}
	if r := m.of(file); r != nil {
		recipient, err := age.ParseX25519Recipient(r.Recipient)
		k.recipient, k.names = recipient, r.Names
		return k, err
	}
	if e.unlock(k) == nil {
		others := m.at(e.place(project))
		same := slices.ContainsFunc(others, func(r *knownKey) bool { return r.Recipient == k.recipient.String() })
		if len(others) > 0 && !same {
			return nil, &KeyError{fmt.Errorf("%s: %w: this machine has written there with another key, so somebody has replaced %s", path.Join(e.inner.String(), project), ErrWrongKey, KeyFile),
				"if these are this machine's own backups, remove " + KeyFile + " there: the next backup puts this machine's copy in its place; or give backup.name another name"}
		}
	}
	if own := e.ownCopy(project, k.locked, m); own != nil {
		return own, nil
	}
	if errors.Is(k.locked, ErrNoIdentity) && len(m.at(e.place(project))) > 0 {
		k.locked = &KeyError{fmt.Errorf("%w; %s there is not the one that this machine knows", k.locked, KeyFile),
			"if another machine has changed backup.encrypt, set backup.identity once; else somebody has replaced " + KeyFile + ": remove it there, and the next backup puts this machine's copy in its place"}
	}
	return k, nil // k.locked says why it cannot be opened, to whom it concerns
}

// ownCopy is the key in the key.age that this machine remembers of a place, where why says that the one there is damaged, or is opened
// by nothing that opens this one; nil where there is none, or several.
func (e *encrypted) ownCopy(project string, why error, m *knownKeys) *projectKey {
	known := m.at(e.place(project))
	if len(known) != 1 || !errors.Is(why, ErrDamagedKey) && !errors.Is(why, ErrWrongKey) {
		return nil
	}
	own, err := e.openKey(project, known[0].KeyFile, m)
	if err != nil || errors.Is(why, ErrWrongKey) && e.unlock(own) != nil {
		return nil
	}
	own.spoiled = why
	return own
}

// updateKey sees to it that key.age is there and is for those who may read now.
func (e *encrypted) updateKey(ctx context.Context, project string, k *projectKey, was Version, known *knownKey) error {
	if k.recipient == nil {
		return k.locked
	}
	to, file := e.keys.Recipients, k.file
	if to == "" && known != nil {
		to = known.To
	}
	same := known != nil && known.To == to || to == ""
	if !same {
		if err := e.unlock(k); err != nil {
			return fmt.Errorf("backup.encrypt was changed, so %s must be encrypted anew: %w", KeyFile, err)
		}
		var err error
		if k.file, err = e.wrap(k.identity); err != nil {
			return err
		}
	}
	if err := e.remember(project, k, file, to); err != nil {
		return err
	}
	if !same || k.spoiled != nil {
		if _, err := e.inner.Swap(ctx, path.Join(project, KeyFile), k.file, was); err != nil {
			return err
		}
	}
	k.written, k.spoiled = true, nil
	return e.forget(project, k)
}

// unlock opens the secret part of a key, once.
func (e *encrypted) unlock(k *projectKey) error {
	if k.identity != nil || k.locked != nil {
		return k.locked
	}
	k.locked = func() error {
		if !IsEncrypted(k.file) {
			return aboutKeyFile(k.file, fmt.Errorf("%w: it was not encrypted by age", ErrDamagedKey))
		}
		identities, err := e.identities(k.file)
		if err != nil {
			return err
		}
		r, err := age.Decrypt(bytes.NewReader(k.file), identities...)
		if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
			return aboutKeyFile(k.file, fmt.Errorf("%w: %s does not open %s", ErrWrongKey, e.given(k.file), KeyFile))
		}
		var text []byte
		if err == nil {
			text, err = io.ReadAll(io.LimitReader(r, maxKeyFile))
		}
		if err == nil {
			k.identity, err = age.ParseX25519Identity(strings.TrimSpace(string(text)))
		}
		if err != nil {
			return aboutKeyFile(k.file, fmt.Errorf("%w: %w", ErrDamagedKey, err))
		}
		k.recipient, k.names = k.identity.Recipient(), namesKey(k.identity)
		return nil
	}()
	return k.locked
}

// byPassphrase says whether a key.age is opened by a passphrase.
func byPassphrase(file []byte) bool { return bytes.HasPrefix(file, []byte(ageIntro+"-> scrypt ")) }

func (e *encrypted) identities(file []byte) ([]age.Identity, error) {
	switch {
	case byPassphrase(file) && e.keys.Passphrase != "":
		id, err := age.NewScryptIdentity(e.keys.Passphrase)
		return []age.Identity{id}, err
	case byPassphrase(file) || e.keys.Identity == "":
		return nil, Lacks(file)
	}
	data, err := os.ReadFile(e.keys.Identity)
	if err != nil {
		return nil, aboutKeyFile(file, fmt.Errorf("%w: the file that backup.identity, or DECREE_BACKUP_IDENTITY, names cannot be read: %w", ErrNoIdentity, err))
	}
	list, err := age.ParseIdentities(bytes.NewReader(data))
	if err != nil {
		return nil, aboutKeyFile(file, fmt.Errorf("%w: the file that backup.identity, or DECREE_BACKUP_IDENTITY, names has no age identity: %s: %w", ErrNoIdentity, e.keys.Identity, err))
	}
	return list, nil
}

// given is what key.age was to be opened with.
func (e *encrypted) given(file []byte) string {
	if byPassphrase(file) {
		return "the passphrase in DECREE_BACKUP_PASSPHRASE"
	}
	return "the identity in " + e.keys.Identity
}

// scryptWork is the work of a passphrase, as a power of two; 0: age's own.
var scryptWork = 0

// parseRecipients reads what backup.encrypt says.
func parseRecipients(k Keys) ([]age.Recipient, error) {
	if k.Recipients == "" {
		return nil, nil
	}
	if k.Recipients == ByPassphrase {
		if k.Passphrase == "" {
			return nil, nil // needed only for the first backup
		}
		r, err := age.NewScryptRecipient(k.Passphrase)
		if err == nil && scryptWork > 0 {
			r.SetWorkFactor(scryptWork)
		}
		return []age.Recipient{r}, err
	}
	fields := strings.Fields(k.Recipients)
	for _, f := range fields {
		if strings.HasPrefix(strings.ToUpper(f), "AGE-SECRET-KEY-") {
			return nil, errors.New("backup.encrypt: this is an identity, which opens backups and must be kept secret; what belongs here is its recipient, age1..., as 'age-keygen -y' prints it")
		}
	}
	list, err := age.ParseRecipients(strings.NewReader(strings.Join(fields, "\n")))
	if err != nil {
		return nil, fmt.Errorf("backup.encrypt: must be age recipients (age1...) with spaces between them, or %q: %w", ByPassphrase, err)
	}
	return list, nil
}

// namesKey is the key of the names of packs.
func namesKey(identity *age.X25519Identity) []byte {
	key, err := hkdf.Key(sha256.New, []byte(identity.String()), nil, "decree names of packs", 64)
	if err != nil {
		panic(err) // only for lengths that are too large
	}
	return key
}
