package target

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
)

// An encrypted target is around any other. Each project's directory there has a key of its own (projectkey.go);
// everything in it but the marker and key.age is an age file to this key, so that key.age, age itself and an
// identity are enough to read them without decree. Names stay as they are, but for those of packs, which
// are hashes of what they hold (sealedname.go). There is no current/: nobody could read it.

// Sealed is a target whose contents may need a key to be read.
type Sealed interface {
	// Readable is nil where all contents of a project's directory can be read, else it says why not
	// and what to do: ErrNoIdentity, ErrWrongKey, ErrNoKey.
	Readable(ctx context.Context, project string) error
	// Spoiled is what is wrong with the key.age of a project's directory, which others need, although this machine reads by a copy of
	// its own; what it writes next puts that back. nil: nothing is.
	Spoiled(ctx context.Context, project string) error
}

// What an age file to one X25519 recipient looks like: a header that is always as long, 16 bytes, and then
// chunks of 64 KiB with 16 bytes more each. One without content has one chunk.
const (
	ageIntro   = "age-encryption.org/v1\n"
	headLength = 168 + 16
	chunkSize  = 64 << 10
	chunkExtra = 16
)

// IsEncrypted says whether what begins so was encrypted.
func IsEncrypted(data []byte) bool { return bytes.HasPrefix(data, []byte(ageIntro)) }

func sealedSize(plain int64) int64 {
	chunks := max(1, (plain+chunkSize-1)/chunkSize)
	return headLength + plain + chunks*chunkExtra
}

func plainSize(sealed int64) int64 {
	body := sealed - headLength
	chunks := (body + chunkSize + chunkExtra - 1) / (chunkSize + chunkExtra)
	return max(0, body-chunks*chunkExtra)
}

type encrypted struct {
	inner      Target
	keys       Keys
	recipients []age.Recipient

	mu       sync.Mutex // of projects and of what is in them
	projects map[string]*projectKey

	filesMu sync.Mutex
	files   map[string][]byte // by their shares: the keys of the files that this process has written
	heads   map[string]*head
}

// Encrypted is a target around another one, which it closes. What is in directories that are not
// encrypted it leaves as it is.
func Encrypted(inner Target, keys Keys) (Target, error) {
	recipients, err := parseRecipients(keys)
	if err != nil {
		return nil, err
	}
	if keys.Memory == nil {
		keys.Memory = &fleeting{}
	}
	e := &encrypted{inner: inner, keys: keys, recipients: recipients, projects: map[string]*projectKey{}, files: map[string][]byte{}, heads: map[string]*head{}}
	locker, locks := inner.(Locker)
	placed, lies := inner.(Placed)
	shelf, shows := inner.(Shelf)
	switch shows = shows && keys.Recipients == ""; {
	case locks && lies && shows:
		return struct {
			*encrypted
			Locker
			Placed
			Shelf
		}{e, locker, placed, plainShelf{e, shelf}}, nil
	case shows:
		return struct {
			*encrypted
			Shelf
		}{e, plainShelf{e, shelf}}, nil
	case locks && lies:
		return struct {
			*encrypted
			Locker
			Placed
		}{e, locker, placed}, nil
	}
	return e, nil
}

// plainShelf keeps plain files out of directories that are encrypted.
type plainShelf struct {
	e *encrypted
	Shelf
}

func (s plainShelf) Write(ctx context.Context, name string, r io.Reader) error {
	k, err := s.e.keyOf(ctx, name, false)
	if err == nil && k != nil {
		err = fmt.Errorf("%s: the backups there are encrypted: set backup.encrypt to those who may read them", s.e)
	}
	if err != nil {
		return err
	}
	return s.Shelf.Write(ctx, name, r)
}

// fleeting is a memory that ends with the process.
type fleeting struct {
	mu   sync.Mutex
	data []byte
}

func (f *fleeting) Load() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data, nil
}

func (f *fleeting) Change(change func([]byte) ([]byte, error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := change(f.data)
	if err == nil && now != nil {
		f.data = now
	}
	return err
}

func (e *encrypted) String() string { return e.inner.String() }
func (e *encrypted) Close() error   { return e.inner.Close() }

// keyOf is the key that a content is encrypted with; nil for what is not.
func (e *encrypted) keyOf(ctx context.Context, name string, write bool) (*projectKey, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	project, rest, _ := strings.Cut(name, "/")
	if rest == markerFile || rest == KeyFile || rest == "" {
		return nil, nil
	}
	return e.key(ctx, project, write)
}

// Readable says whether there is an identity that opens the project's key.
func (e *encrypted) Readable(ctx context.Context, project string) error {
	k, err := e.key(ctx, project, false)
	if err != nil || k == nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unlock(k)
}

// Spoiled says what is wrong with key.age.
func (e *encrypted) Spoiled(ctx context.Context, project string) error {
	k, err := e.key(ctx, project, false)
	if err != nil || k == nil {
		return nil //nolint:nilerr // Readable says that
	}
	return k.spoiled
}

// Top gives them as they are: the projects' names are not encrypted.
func (e *encrypted) Top(ctx context.Context) ([]string, error) { return e.inner.Top(ctx) }

// List gives names and sizes as they were before they were encrypted.
func (e *encrypted) List(ctx context.Context, prefix string, each func(Object) error) error {
	dir := prefix[:strings.LastIndexByte(prefix, '/')+1]
	if path.Base(dir) != packsDir {
		dir = prefix
	}
	var list []Object
	err := e.inner.List(ctx, dir, func(o Object) error {
		if project, rest, _ := strings.Cut(o.Name, "/"); rest == KeyFile && project != "" {
			return nil // it is no content of the caller's
		}
		k, err := e.keyOf(ctx, o.Name, false)
		if err != nil && !errors.Is(err, ErrNoKey) && !errors.Is(err, ErrWrongKey) {
			return err
		}
		if err == nil && k != nil {
			o.Size = plainSize(o.Size)
			if k.names != nil {
				o.Name = k.openName(o.Name)
			}
		}
		if strings.HasPrefix(o.Name, prefix) {
			list = append(list, o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range list {
		if err := each(o); err != nil {
			return err
		}
	}
	return nil
}

// named is the key of a content and the name that the target has for it.
func (e *encrypted) named(ctx context.Context, name string, write bool) (*projectKey, string, error) {
	k, err := e.keyOf(ctx, name, write)
	if err != nil || k == nil {
		return nil, name, err
	}
	if k.names == nil {
		return nil, "", k.locked
	}
	return k, k.sealName(name), nil
}

// Open reads and decrypts. What has been changed or cut off is found at the chunk of 64 KiB that it is in.
func (e *encrypted) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, int64, error) {
	k, sealed, err := e.named(ctx, name, false)
	if err != nil {
		return nil, 0, err
	}
	if k == nil {
		return e.inner.Open(ctx, name, offset, length)
	}
	if offset > 0 || length >= 0 {
		return e.openRange(ctx, k, sealed, offset, length)
	}
	r, size, err := e.inner.Open(ctx, sealed, 0, -1)
	if err != nil {
		return nil, 0, err
	}
	plain, err := e.decrypt(k, r)
	if err != nil {
		r.Close()
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	return &limited{plain, r}, plainSize(size), nil
}

// decrypt reads an age file.
func (e *encrypted) decrypt(k *projectKey, r io.Reader) (io.Reader, error) {
	from := &noting{r: r}
	start := make([]byte, headLength)
	if _, err := io.ReadFull(from, start); err != nil {
		return nil, notOurs(fmt.Errorf("not a whole encrypted file: %w", err), from.err)
	}
	identity, err := e.identityFor(k, start)
	if err != nil {
		return nil, err
	}
	plain, err := age.Decrypt(io.MultiReader(bytes.NewReader(start), from), identity)
	if err != nil {
		return nil, notOurs(err, from.err)
	}
	return &decrypting{plain, func() error { return from.err }}, nil
}

// ErrDamaged: an encrypted content is not what was written there.
var ErrDamaged = errors.New("it is not what was written there")

// noting is a reader that keeps its error.
type noting struct {
	r   io.Reader
	err error
}

func (n *noting) Read(b []byte) (int, error) {
	got, err := n.r.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // a reader's end is never wrapped
		n.err = err
	}
	return got, err
}

// decrypting is what age makes of an encrypted content. below is the error of reading that.
type decrypting struct {
	io.Reader
	below func() error
}

func (d *decrypting) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // a reader's end is never wrapped
		err = notOurs(err, d.below())
	}
	return n, err
}

// notOurs is an error of age's: ErrDamaged, unless reading what it was to decrypt has failed.
func notOurs(err, below error) error {
	if below != nil {
		return err
	}
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return fmt.Errorf("%w, or was encrypted with another key than that of %s", ErrDamaged, KeyFile)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// identityFor is what opens the file that begins with start: its own key, if this machine has it, or
// else that of the project.
func (e *encrypted) identityFor(k *projectKey, start []byte) (age.Identity, error) {
	const intro = ageIntro + "-> X25519 "
	if !bytes.HasPrefix(start, []byte(intro)) {
		return nil, fmt.Errorf("%w, or was not encrypted by decree", ErrDamaged)
	}
	share, _, _ := strings.Cut(string(start[len(intro):]), "\n")
	key, err := e.fileKey(k, share)
	if err != nil {
		return nil, err
	}
	if key != nil {
		return age.NewInjectedFileKeyIdentity(key), nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.unlock(k); err != nil {
		return nil, err
	}
	return k.identity, nil
}

// fileKey is a file's own key; nil where it is not known.
func (e *encrypted) fileKey(k *projectKey, share string) ([]byte, error) {
	e.filesMu.Lock()
	defer e.filesMu.Unlock()
	if key := e.files[share]; key != nil {
		return key, nil
	}
	m, err := e.load()
	if err != nil {
		return nil, err
	}
	if r := m.of(k.file); r != nil {
		for _, list := range r.Files {
			for _, f := range list {
				e.files[f.Share] = f.Key
			}
		}
	}
	return e.files[share], nil
}

// sealing is an age file that is being written.
type sealing struct {
	io.WriteCloser
	fileKey
}

// tapped is a recipient that keeps the key of the file.
type tapped struct {
	age.Recipient
	to *fileKey
}

func (t tapped) Wrap(key []byte) ([]*age.Stanza, error) {
	stanzas, err := t.Recipient.Wrap(key)
	if err == nil {
		t.to.Share, t.to.Key = stanzas[0].Args[0], bytes.Clone(key)
	}
	return stanzas, err
}

func (e *encrypted) seal(k *projectKey, w io.Writer) (*sealing, error) {
	s := &sealing{}
	var err error
	s.WriteCloser, err = age.Encrypt(w, tapped{k.recipient, &s.fileKey})
	return s, err
}

// keep remembers the key of a file that is about to get its name. This machine reads some of them again
// without an identity: manifest.json, proofs.jsonl and the indexes of packs always, the others until a
// manifest.json has them.
func (e *encrypted) keep(k *projectKey, name string, f fileKey) error {
	e.filesMu.Lock()
	e.files[f.Share] = f.Key
	e.filesMu.Unlock()
	return e.changeFiles(k, func(files map[string][]fileKey) bool {
		files[name] = append(files[name], f)
		return true
	})
}

// changeFiles changes which keys of files this machine remembers beside a project's key; false of change is that nothing has changed. With
// an identity there may be nothing that it remembers.
func (e *encrypted) changeFiles(k *projectKey, change func(files map[string][]fileKey) bool) error {
	e.filesMu.Lock()
	defer e.filesMu.Unlock()
	return e.change(func(m *knownKeys) bool {
		r := m.of(k.file)
		return r != nil && change(r.Files)
	})
}

// settle forgets what is no longer needed, once name has been acknowledged with the key of that share: the keys before it. One after
// it is of who replaces name now, or was refused.
func (e *encrypted) settle(k *projectKey, name, share string) error {
	return e.changeFiles(k, func(files map[string][]fileKey) bool {
		if n := slices.IndexFunc(files[name], func(f fileKey) bool { return f.Share == share }); n > 0 {
			files[name] = files[name][n:]
		}
		if path.Base(name) == manifestFile {
			maps.DeleteFunc(files, func(other string, _ []fileKey) bool {
				return !slices.Contains([]string{".idx", ".json", ".jsonl"}, path.Ext(other))
			})
		}
		return true
	})
}

// Read reads and decrypts.
func (e *encrypted) Read(ctx context.Context, name string, limit int64) ([]byte, Version, error) {
	k, sealed, err := e.named(ctx, name, false)
	if err != nil {
		return nil, "", err
	}
	if k == nil {
		return e.inner.Read(ctx, name, limit)
	}
	data, version, err := e.inner.Read(ctx, sealed, sealedSize(limit))
	if err != nil || data == nil {
		return nil, version, err
	}
	r, err := e.decrypt(k, bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, version, err // whose name its caller knows
	}
	return data, version, nil
}

// Swap encrypts and replaces. The same content is never encrypted to the same bytes, so whether it is
// there already is looked at here.
func (e *encrypted) Swap(ctx context.Context, name string, data []byte, was Version) (Version, error) {
	k, sealed, err := e.named(ctx, name, true)
	if err != nil {
		return "", err
	}
	if k == nil {
		return e.inner.Swap(ctx, name, data, was)
	}
	var out bytes.Buffer
	w, err := e.seal(k, &out)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = e.keep(k, name, w.fileKey)
	}
	if err != nil {
		return "", err
	}
	version, err := e.inner.Swap(ctx, sealed, out.Bytes(), was)
	e.forgetHead(sealed)
	if errors.Is(err, ErrConflict) {
		if there, now, rerr := e.Read(ctx, name, int64(len(data))); rerr == nil && now != "" && bytes.Equal(there, data) {
			return now, nil
		}
	}
	if err == nil {
		_ = e.settle(k, name, w.Share) // what is remembered for too long does no harm
	}
	return version, err
}

// Create begins an encrypted content.
func (e *encrypted) Create(ctx context.Context, near string) (Upload, error) {
	k, sealed, err := e.named(ctx, near, true)
	if err != nil {
		return nil, err
	}
	to, err := e.inner.Create(ctx, sealed)
	if err != nil || k == nil {
		return to, err
	}
	w, err := e.seal(k, to)
	if err != nil {
		return nil, errors.Join(err, to.Abort())
	}
	return &sealedUpload{w, e, k, to}, nil
}

type sealedUpload struct {
	*sealing
	e  *encrypted
	k  *projectKey
	to Upload
}

func (u *sealedUpload) Commit(ctx context.Context, name string) error {
	err := CheckName(name)
	if err == nil {
		err = u.sealing.Close()
	}
	if err == nil {
		err = u.e.keep(u.k, name, u.fileKey)
	}
	if err != nil {
		return errors.Join(err, u.to.Abort())
	}
	return u.to.Commit(ctx, u.k.sealName(name))
}

func (u *sealedUpload) Abort() error { return u.to.Abort() }

// Delete removes a name, and the key that this machine remembers of it.
func (e *encrypted) Delete(ctx context.Context, name string) error {
	k, sealed, err := e.named(ctx, name, false)
	if err != nil {
		return err
	}
	if err := e.inner.Delete(ctx, sealed); err != nil || k == nil {
		return err
	}
	e.forgetHead(sealed)
	return e.changeFiles(k, func(files map[string][]fileKey) bool {
		had := files[name] != nil
		delete(files, name)
		return had
	})
}

func (e *encrypted) Tidy(ctx context.Context, prefix string) error { return e.inner.Tidy(ctx, prefix) }
