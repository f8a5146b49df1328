package layer

import "golang.org/x/sys/unix"

// ahead is how far the clock that stamps files is ahead of the one that counts from the boot
// and that nobody can set, in nanoseconds. A variable for tests.
var ahead = func() int64 {
	var wall, boot unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	return wall.Nano() - boot.Nano()
}
