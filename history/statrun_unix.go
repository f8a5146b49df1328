//go:build unix

package history

import (
	"errors"
	"io/fs"

	"decree/disk"

	"golang.org/x/sys/unix"
)

// statRun is stat of <id>/run.json below runs. One call a record, instead of
// three through a handle of its directory, keeps the list of ten thousand fast;
// what it says is only compared, never followed.
func statRun(runs disk.Dir, id string) (disk.Info, error) {
	fd, ok := disk.FD(runs)
	if !ok {
		return statRunByHandle(runs, id)
	}
	var st unix.Stat_t
	err := unix.Fstatat(fd, id+"/"+runJSON, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EINTR) {
		return statRunByHandle(runs, id)
	}
	if err != nil {
		return disk.Info{}, &fs.PathError{Op: "stat", Path: id + "/" + runJSON, Err: err}
	}
	kind := disk.Special
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		kind = disk.Regular
	}
	return disk.Info{Kind: kind, Size: st.Size, Mtime: st.Mtim.Nano()}, nil
}
