package store

import (
	"errors"
	"fmt"
	"syscall"
)

// MissingError says that the store has no object of this hash.
type MissingError struct {
	Hash  Hash
	Chunk Hash // the part that is missing; zero when it is the object itself
	// Forgotten: it was taken out on purpose.
	Forgotten bool
}

func (e *MissingError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("object %s: its content was forgotten", e.Hash)
	}
	if e.Chunk.IsZero() {
		return fmt.Sprintf("object %s: not in the store", e.Hash)
	}
	return fmt.Sprintf("object %s: its chunk %s is not in the store", e.Hash, e.Chunk)
}

// DamagedError says that an object or a place in a pack is not what was written.
type DamagedError struct {
	Hash   Hash   // zero: it is not known which objects were there
	Pack   string // file name; empty when the parts are sound and only the whole is wrong
	Offset int64  // of the block in the pack
	Err    error
}

func (e *DamagedError) Error() string {
	what := "block"
	if !e.Hash.IsZero() {
		what = "object " + e.Hash.String()
	}
	if e.Pack == "" {
		return fmt.Sprintf("%s: damaged: %v", what, e.Err)
	}
	return fmt.Sprintf("%s: damaged in %s at %d: %v", what, e.Pack, e.Offset, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// VersionError refuses a file written by a newer decree.
type VersionError struct{ File, Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: written by a newer decree (%q)", e.File, e.Version)
}

// What can be wrong with a block or an object. A DamagedError wraps one of them or the disk's error.
var (
	errMagic    = errors.New("no block starts here")
	errShort    = errors.New("cut short")
	errHeader   = errors.New("header does not match its checksum")
	errBounds   = errors.New("impossible length in its header")
	errPayload  = errors.New("payload does not match its checksum")
	errUnread   = errors.New("payload cannot be read")
	errRawSize  = errors.New("payload does not decompress to the size in its header")
	errHash     = errors.New("content does not match its hash")
	errList     = errors.New("malformed list of chunks")
	errEntry    = errors.New("not the object that the index has there")
	errIdentity = errors.New("not the pack that the index knows")
)

// unreadable says that the disk has bytes and cannot read them: what rots below a file system that
// has checksums, or on a disk that notices itself, is this error, and no other bytes.
func unreadable(err error) bool { return errors.Is(err, syscall.EIO) }

// errWriterOpen refuses a second writer, or compaction beside one.
var errWriterOpen = errors.New("the store has an open writer")

// errClosed answers calls on a closed writer or reader.
var errClosed = errors.New("closed")
