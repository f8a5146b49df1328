package disk

import (
	"strconv"
	"time"
)

// Ticks. The kernel stamps files with a clock that advances up to 100 times a second. A
// file system that keeps no finer times than that may keep every other second only (FAT);
// two of its ticks count, since it may round up or down.
const (
	FineTick   = 20 * time.Millisecond
	CoarseTick = 2 * 2 * time.Second
	coarseUnit = 10 * time.Millisecond
)

// TickOf is how much later a file may be stamped with the time of one just made, which
// has this mtime.
func TickOf(mtime int64) time.Duration {
	if mtime%int64(coarseUnit) == 0 {
		return CoarseTick
	}
	return FineTick
}

// Stamp reads the clock that stamps the files of d: it makes a file there, and removes it.
func Stamp(d Dir) (Info, error) {
	name := "clock-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := d.Create(name, 0o600)
	if err != nil {
		return Info{}, err
	}
	in, err := f.Stat()
	f.Close()
	if e := d.Remove(name); err == nil {
		err = e
	}
	return in, err
}
