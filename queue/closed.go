package queue

import "time"

// emptyAge is how long a daemon leaves an empty message alone, as `touch` or an editor's "new file" makes one: its text may be about to come.
const emptyAge = 10 * time.Second

// leftAlone says whether a file of this mtime (ns) was left alone for so long. A
// time in the future says nothing, and counts as long ago.
func leftAlone(mtime int64, long time.Duration) bool {
	age := time.Now().UnixNano() - mtime
	return age < 0 || age >= int64(long)
}
