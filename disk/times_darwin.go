package disk

import (
	"errors"

	"golang.org/x/sys/unix"
)

func fileSystem(fd int) FileSystem {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return FileSystem{ChangeTimes: true}
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	return FileSystem{ChangeTimes: name != "msdos" && name != "exfat", Spent: st.Bavail*uint64(st.Bsize) < Scant}
}

// remembersFacts: no way is known here to have a file system ask anew.
func remembersFacts(int) bool { return false }

func askAnew(int, string) (Info, error) { return Info{}, errors.ErrUnsupported }
