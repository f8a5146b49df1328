package layer

import (
	"math"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// ahead is how far the clock that stamps files is ahead of the one that counts from the boot
// and that nobody can set, in nanoseconds. A variable for tests.
var ahead = func() int64 { return aheadOf(clock(unix.CLOCK_REALTIME), clock(unix.CLOCK_BOOTTIME)) }

// aheadOf reads wall between two readings of boot, and all again where time has passed between
// these: this process had to wait there, which would look as if the clock had been set back.
func aheadOf(wall, boot func() int64) (out int64) {
	const tries, soon = 100, int64(disk.FineTick) / 4
	for n, least := 0, int64(math.MaxInt64); n < tries && least > soon; n++ {
		before, now, after := boot(), wall(), boot()
		if passed := after - before; passed < least {
			least, out = passed, now-after
		}
	}
	return out
}

func clock(id int32) func() int64 {
	return func() int64 {
		var t unix.Timespec
		if unix.ClockGettime(id, &t) != nil {
			return 0
		}
		return t.Nano()
	}
}
