//go:build !linux

package disk

import "errors"

// Watch would tell which names of a directory have changed; this system does not.
type Watch struct{}

// NewWatch is not supported here.
func NewWatch(Dir) (*Watch, error) { return nil, errors.ErrUnsupported }

// Changed knows nothing.
func (*Watch) Changed(func(name string)) (all bool) { return false }

// Close ends the watch.
func (*Watch) Close() {}
