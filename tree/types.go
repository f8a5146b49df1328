package tree

import (
	"errors"
	"fmt"
	"iter"
)

// ErrOrder says that paths do not come in the order they should, or come twice.
var ErrOrder = errors.New("paths out of order")

// Item is one path of a tree. Of a directory only Type and Mode are set.
type Item struct {
	Path  Path
	Entry Entry
}

// Seq is a tree in manifest order: all files and symlinks, then all directories but the
// root, each in byte order of the raw paths. An error ends it.
type Seq = iter.Seq2[Item, error]

// Change is what happened to one path: Old is nil if it did not exist, New if it no
// longer does. A path that changed its kind is one Change. A directory has Type Dir and
// only its mode.
type Change struct {
	Path     Path
	Old, New *Entry
}

// Source gives the bytes of objects. What it gives has the hash that was asked for. It
// may be asked by several goroutines at once.
type Source interface {
	Get(Hash) ([]byte, error)
}

// Sink keeps objects. Put returns the SHA-256 of b, which it does not keep a hold of.
type Sink interface {
	Put(b []byte) (Hash, error)
}

// DamagedError says that the object of a directory, or one that it was cut into, is
// missing or malformed. Err is the source's error, or what is wrong with the bytes.
type DamagedError struct {
	Path Path // of the directory; "" is the root
	Hash Hash // of the object
	Err  error
}

// Error returns "path: reason"; the root's path is ".".
func (e *DamagedError) Error() string {
	path := e.Path
	if path == "" {
		path = "."
	}
	return fmt.Sprintf("directory %s: object %s: %v", Quote(path), e.Hash, e.Err)
}

// Unwrap returns Err.
func (e *DamagedError) Unwrap() error { return e.Err }
