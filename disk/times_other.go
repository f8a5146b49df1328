//go:build unix && !linux && !darwin

package disk

// fileSystem is not known here to be wrong about change times.
func fileSystem(int) FileSystem { return FileSystem{ChangeTimes: true} }
