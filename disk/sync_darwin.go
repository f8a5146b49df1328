package disk

import "golang.org/x/sys/unix"

// syncFD asks for F_FULLFSYNC, as os.File.Sync does: fsync(2) here leaves what it
// wrote in the device's own cache. File systems without it answer with an error.
func syncFD(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0); err == nil || err == unix.EINTR {
		return err
	}
	return unix.Fsync(fd)
}

func startSync(int) {}

func syncsAll(int) bool { return false }

func syncAll(int) error { return unix.ENOTSUP }
