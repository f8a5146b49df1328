//go:build !linux && !darwin

package disk

func nextData(File, int64) (from int64, more, ok bool) { return 0, false, false }

func nextHole(File, int64) (until int64, ok bool) { return 0, false }
