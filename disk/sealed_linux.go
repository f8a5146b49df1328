package disk

import (
	"golang.org/x/sys/unix"
)

// flagWords are the attributes of chattr(1) that keep also root from changing what has them.
var flagWords = []struct {
	flag uint64
	word string
}{
	{unix.STATX_ATTR_IMMUTABLE, "immutable"},
	{unix.STATX_ATTR_APPEND, "append-only"},
}

// Sealed names the attribute that keeps everybody from changing what is at path: "immutable"
// or "append-only". "" where there is none, or the system does not tell.
func Sealed(path string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st) != nil {
		return ""
	}
	for _, f := range flagWords {
		if st.Attributes&f.flag != 0 {
			return f.word
		}
	}
	return ""
}

// Unseal takes these attributes from name in d. It says whether there was one and it is gone.
func Unseal(d Dir, name string) bool {
	o, ok := d.(*osDir)
	if !ok {
		return false
	}
	fd, err := unix.Openat(o.f, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	// The flags of the ioctl that mean these attributes are the same bits.
	const sealed = unix.STATX_ATTR_IMMUTABLE | unix.STATX_ATTR_APPEND
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&sealed != 0 && unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags&^sealed)) == nil
}
