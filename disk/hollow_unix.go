//go:build linux || darwin

package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

// nextData is where the next data from at on begins; more is false where there is none.
func nextData(f File, at int64) (from int64, more, ok bool) {
	from, err := f.Seek(at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return 0, false, true
	}
	return from, err == nil, err == nil
}

// nextHole is where the data at a place end.
func nextHole(f File, at int64) (until int64, ok bool) {
	until, err := f.Seek(at, unix.SEEK_HOLE)
	return until, err == nil
}
