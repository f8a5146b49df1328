//go:build !linux && !darwin

package disk

// Extent does not tell here.
func Extent(File, int64, int64) (until int64, hole, ok bool) { return 0, false, false }
