//go:build linux || darwin

package disk

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"
)

// Extent says whether a hole of at least least bytes begins at the offset at, which lies in
// the file, and where it ends, or where the data that begins there does; a smaller hole
// counts as data. Not ok: the system does not tell. It moves the file's position.
func Extent(f File, at, least int64) (until int64, hole, ok bool) {
	data, err := f.Seek(at, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // no more data
		return math.MaxInt64, true, true
	}
	if err != nil {
		return 0, false, false
	}
	if data-at >= least {
		return data, true, true
	}
	until, err = f.Seek(data, unix.SEEK_HOLE)
	return max(until, at+least), false, err == nil
}
