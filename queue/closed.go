package queue

import "time"

// leftAlone says whether a file of this mtime (ns) was left alone for a second. A
// time in the future says nothing, and counts as long ago.
func leftAlone(mtime int64, now time.Time) bool {
	age := now.UnixNano() - mtime
	return age < 0 || age >= int64(time.Second)
}
