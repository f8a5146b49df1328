// Package target is where the bytes of backups lie: a directory, or something remote
// that can do the little that [Target] asks for. It knows nothing of generations: names,
// bytes, one conditional replacement.
//
// The promise of every target: what Commit and Swap acknowledged is durable and is read
// back as it was written; a name has a whole content or none; and of two who replace the same
// content at once, one gets [ErrConflict]. Nothing that others put into the same place
// is followed, changed or removed.
//
// Names are relative, with '/' between their components (CheckName).
package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Version tells one content of a name from another: whatever the target itself has, such as an
// ETag. It means something to this target alone. "" is that of a name that is not there.
type Version string

// Object is one name of a listing.
type Object struct {
	Name string
	Size int64
}

// Target keeps contents under names. It is safe for concurrent use.
//
// Errors: fs.ErrNotExist, of one name, is that nothing has it; fs.ErrExist that something has
// a name that must be new; ErrConflict that another writer was faster; ErrGone that the place
// as a whole cannot be reached, after all tries that make sense.
type Target interface {
	// String is the target as its user writes it, without secrets.
	String() string
	// List calls each for all names that begin with prefix, in byte order. What is not
	// committed is in no list. An error of each ends it.
	List(ctx context.Context, prefix string, each func(Object) error) error
	// Top are the names of the directories at the top, in byte order, without a look into them: some may be nobody's of ours.
	Top(ctx context.Context) ([]string, error)
	// Open reads a content from offset on, at most length bytes, or to its end where length
	// is negative. size is that of the whole.
	Open(ctx context.Context, name string, offset, length int64) (r io.ReadCloser, size int64, err error)
	// Create begins a new content, which will have a name beside near, in the same directory.
	Create(ctx context.Context, near string) (Upload, error)
	// Read returns a small content and its version: no bytes and "" where there is none.
	// One above limit is an error. With ErrDamaged the version is that of what is there.
	Read(ctx context.Context, name string, limit int64) ([]byte, Version, error)
	// Swap replaces a small content, if it is still of the version was ("": there is none),
	// and returns the new one. Otherwise it is ErrConflict, unless the content there is data
	// already, as after an answer that was lost.
	Swap(ctx context.Context, name string, data []byte, was Version) (Version, error)
	// Delete removes a name. A missing one is no error.
	Delete(ctx context.Context, name string) error
	// Tidy removes what uploads that ended without Commit and Abort have left below prefix.
	Tidy(ctx context.Context, prefix string) error
	Close() error
}

// Upload is a content on its way. It belongs to one goroutine.
type Upload interface {
	io.Writer
	// Commit makes all that was written durable under name, which must be new: fs.ErrExist.
	Commit(ctx context.Context, name string) error
	// Abort drops it. After Commit it does nothing.
	Abort() error
}

// Locker is a target of which one writer at a time can be made sure beforehand.
type Locker interface {
	// Lock takes prefix for this process; ErrLocked where another one has it. A death
	// gives it back.
	Lock(ctx context.Context, prefix string) (unlock func() error, err error)
}

// Shelf is a target that can keep directories of plain files which are exchanged as a whole.
// What it keeps there need not be durable: it is for people, and a reader compares it by hash.
type Shelf interface {
	// Clear removes a directory with all below it. A missing one is no error.
	Clear(ctx context.Context, dir string) error
	// Write makes a file, and the directories that it lies in.
	Write(ctx context.Context, name string, r io.Reader) error
	// Link makes name the same file as old: errors.ErrUnsupported where that cannot be.
	Link(ctx context.Context, old, name string) error
	// Exchange gives the directory dir the name of another, which then has that of dir, if
	// there was one.
	Exchange(ctx context.Context, dir, name string) error
}

// Placed is a target that lies in this machine's file system.
type Placed interface {
	// Place is the directory's path, and its identity.
	Place() (path string, dev, ino uint64, err error)
}

// The categories of errors.
var (
	// ErrConflict: another writer was faster.
	ErrConflict = errors.New("somebody else has written it meanwhile")
	// ErrGone: the place is not there or cannot be reached.
	ErrGone = errors.New("the target cannot be reached")
	// ErrNoBucket: of a place that is reached, the part that its owner has to make is not there.
	ErrNoBucket = errors.New("there is no bucket")
	// ErrTooLarge: a content that is to be small is not.
	ErrTooLarge = errors.New("it is too large")
	// ErrLocked: another process has the place.
	ErrLocked = errors.New("another process is writing there")
)

// readSmall reads what Open gave, whole; more than limit bytes are an error.
func readSmall(r io.Reader, size int64, name string, limit int64) ([]byte, error) {
	if size > limit {
		return nil, tooLarge(name, limit)
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit { // it has grown meanwhile
		err = tooLarge(name, limit)
	}
	return data, err
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func tooLarge(name string, limit int64) error {
	return fmt.Errorf("%s: %w, larger than %d bytes", name, ErrTooLarge, limit)
}

// nameError refuses a name.
type nameError struct{ Name, Reason string }

func (e *nameError) Error() string { return fmt.Sprintf("%q: %s", e.Name, e.Reason) }

// CheckName refuses what no target takes as a name: an absolute one, one with an empty
// component, ".", ".." or a NUL, and one that a target may use for what is not committed.
func CheckName(name string) error {
	if !fs.ValidPath(strings.ToValidUTF8(name, "_")) || name == "." || strings.ContainsRune(name, 0) {
		return &nameError{name, "not a clean relative name"}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, Unfinished) {
			return &nameError{name, "the names of unfinished uploads begin like this"}
		}
	}
	return nil
}

// Unfinished begins the names that a target gives to what is not committed, where that has a name.
const Unfinished = ".decree-upload-"
