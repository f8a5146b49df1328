package disk

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// Origin leaves the file system's id out: here it is made of the device's number.
func (d *osDir) Origin() (Origin, error) {
	var st unix.Stat_t
	if err := unix.Fstat(d.f, &st); err != nil {
		return Origin{}, &fs.PathError{Op: "stat", Path: d.path, Err: err}
	}
	return Origin{Born: st.Btim.Nano()}, nil
}

func (d *osDir) Born(name string) int64 {
	var st unix.Stat_t
	if CheckName(name) != nil || unix.Fstatat(d.f, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return 0
	}
	return st.Btim.Nano()
}
