//go:build unix && !linux && !darwin

package disk

import "golang.org/x/sys/unix"

func syncFD(fd int) error { return unix.Fsync(fd) }

func startSync(int) {}

func syncsAll(int) bool { return false }

func syncAll(int) error { return unix.ENOTSUP }
