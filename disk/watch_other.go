//go:build !linux

package disk

import "errors"

// Watch would tell which names of a directory have changed; this system does not.
type Watch struct{}

// Watched says which changes of its entries a Watch would tell of.
type Watched uint32

const (
	Names Watched = iota
	Entries
)

// NewWatch is not supported here.
func NewWatch(Dir, Watched) (*Watch, error) { return nil, errors.ErrUnsupported }

// Changed knows nothing.
func (*Watch) Changed(func(name string)) (all bool) { return false }

// Wait has nothing to wait for.
func (*Watch) Wait(func()) {}

// Close ends the watch.
func (*Watch) Close() {}
