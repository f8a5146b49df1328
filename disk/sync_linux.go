package disk

import "golang.org/x/sys/unix"

func syncFD(fd int) error { return unix.Fsync(fd) }

// startSync hands the file's dirty pages to the device. sync_file_range(2) neither
// waits for them nor writes the inode: by itself it makes nothing durable.
func startSync(fd int) { _ = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) }
