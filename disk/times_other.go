//go:build unix && !linux && !darwin

package disk

import "errors"

// fileSystem is not known here to be wrong about change times.
func fileSystem(int) FileSystem { return FileSystem{ChangeTimes: true} }

// remembersFacts: no way is known here to have a file system ask anew.
func remembersFacts(int) bool { return false }

func askAnew(int, string) (Info, error) { return Info{}, errors.ErrUnsupported }
