//go:build !linux && !darwin

package disk

// ChangeTimes is not known here to be wrong of any file system.
func ChangeTimes(int) bool { return true }
