package disk

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

func (d *osDir) Origin() (o Origin, err error) {
	o.Born, err = born(d.f, "", unix.AT_EMPTY_PATH)
	if err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) { // EPERM: a container's filter
		return o, &fs.PathError{Op: "statx", Path: d.path, Err: err}
	}
	var sfs unix.Statfs_t
	if err := unix.Fstatfs(d.f, &sfs); err != nil {
		return o, &fs.PathError{Op: "statfs", Path: d.path, Err: err}
	}
	self, err := d.Self()
	if id := uint64(uint32(sfs.Fsid.Val[0])) | uint64(uint32(sfs.Fsid.Val[1]))<<32; id != deviceNumber(self.Dev) {
		o.FS = id
	}
	return o, err
}

func (d *osDir) Born(name string) int64 {
	if CheckName(name) != nil {
		return 0
	}
	at, _ := born(d.f, name, unix.AT_SYMLINK_NOFOLLOW) // 0 with an error
	return at
}

// born is the time of birth of what is at name in dir, in ns since 1970; 0 where the file system keeps none.
func born(dir int, name string, flags int) (int64, error) {
	var st unix.Statx_t
	if err := unix.Statx(dir, name, flags, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0, err
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec), nil
}

// deviceNumber is what file systems without an id of their own (xfs, vfat) give as
// one; the device may have another number after the next boot.
func deviceNumber(dev uint64) uint64 {
	major, minor := uint64(unix.Major(dev)), uint64(unix.Minor(dev))
	return minor&0xff | major<<8 | (minor&^0xff)<<12
}
