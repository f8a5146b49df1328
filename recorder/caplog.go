package recorder

import (
	"bytes"
	"fmt"
	"io"

	"decree/disk"
)

// cappedLog writes what a command prints to a file that never grows above max
// bytes. The first half of the file is the first output. Above max the second half
// is written round and round, so that it holds the newest output, and a line marks
// where it goes on with older: that is what a death leaves. finish puts it in order.
//
// It is not safe for concurrent use.
type cappedLog struct {
	f    disk.File
	max  int64 // 0: no cap
	size int64 // of all that came
}

// leastLog is log.max, or the least at which a cut log says anything.
func leastLog(max int64) int64 {
	const least = 4 << 10
	if max > 0 && max < least {
		return least
	}
	return max
}

// seam marks the place in a log whose run died where its newest output ends.
const seam = "\n[decree: the newest output ends here; what follows is older]\n"

// head is where the second half begins.
func (l *cappedLog) head() int64 { return l.max / 2 }

// position is the offset in the file at which the next byte goes, and how many can
// follow it there.
func (l *cappedLog) position() (at, room int64) {
	if l.max == 0 || l.size < l.max {
		return l.size, l.max - l.size
	}
	round := l.max - l.head()
	at = l.head() + (l.size-l.head())%round
	return at, l.max - at
}

func (l *cappedLog) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		at, room := l.position()
		part := b[done:]
		if l.max > 0 && int64(len(part)) > room {
			part = part[:room]
		}
		n, err := l.f.WriteAt(part, at)
		done, l.size = done+n, l.size+int64(n)
		if err != nil {
			return done, err
		}
	}
	if at, room := l.position(); l.max > 0 && l.size > l.max && room >= int64(len(seam)) {
		if _, err := l.f.WriteAt([]byte(seam), at); err != nil {
			return done, err
		}
	}
	return done, nil
}

// finish puts the second half in order, behind a line that says how much is left
// out. capped says whether anything is. It holds the half in memory meanwhile.
func (l *cappedLog) finish() (capped bool, err error) {
	if l.max == 0 || l.size <= l.max {
		return false, nil
	}
	half := make([]byte, l.max-l.head())
	if _, err := l.f.ReadAt(half, l.head()); err != nil && err != io.EOF {
		return true, err
	}
	at, _ := l.position()
	cut := at - l.head()
	newest := append(half[cut:len(half):len(half)], half[:cut]...)
	// The seam stands over the oldest of it.
	text := func(left int64) string {
		return fmt.Sprintf("\n[decree: of %d bytes of output %d are left out here; log.max in .decree/config.yml]\n", l.size, left)
	}
	drop := int64(len(seam) + len(text(l.size)))
	newest = newest[min(drop, int64(len(newest))):]
	if i := bytes.IndexByte(newest[:min(len(newest), 4096)], '\n'); i >= 0 {
		newest = newest[i+1:] // begin with a whole line
	}
	out := append([]byte(text(l.size-l.head()-int64(len(newest)))), newest...)
	if _, err := l.f.WriteAt(out, l.head()); err != nil {
		return true, err
	}
	return true, l.f.Truncate(l.head() + int64(len(out)))
}
