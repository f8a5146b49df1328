package disk

import "io"

// hollowRatio is how many times the data in it a hollow file is.
const hollowRatio = 1000

// Hollow says whether a file of size bytes has so little data that nearly all of it is
// holes, which take no room on the disk and read as zeros. False where the system does
// not tell. The file is read from its beginning afterwards.
func Hollow(f File, size int64) bool {
	defer func() { _, _ = f.Seek(0, io.SeekStart) }()
	var data int64
	for at := int64(0); at < size; {
		until, hole, ok := Extent(f, at, 1)
		if !ok {
			return false
		}
		if !hole {
			if data += until - at; data >= size/hollowRatio {
				return false
			}
		}
		at = until
	}
	return true
}
