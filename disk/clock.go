package disk

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
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
func Stamp(d Dir) (in Info, err error) {
	err = withProbe(d, func(_ string, made Info) error { in = made; return nil })
	return in, err
}

// KeepsTimes says whether the files of d have change times of their own. Where that must be tried it sets
// back the time of a file's last write: a change time that goes back with it is none.
func KeepsTimes(d Dir) (keeps bool, err error) {
	fs := d.FileSystem()
	if !fs.TryTimes {
		return fs.ChangeTimes, nil
	}
	err = withProbe(d, func(name string, made Info) error {
		back := made.Mtime - int64(time.Hour)
		if err := d.SetMtime(name, made, back); err != nil {
			return err
		}
		in, err := d.Stat(name)
		keeps = err == nil && in.Mtime < made.Mtime && in.Ctime >= made.Ctime && in.Ctime > back+int64(CoarseTick)
		return err
	})
	return keeps, err
}

// IsProbe says whether a file called so is one that withProbe makes; a death leaves it behind, empty.
func IsProbe(name string) bool { return strings.HasPrefix(name, probePrefix) }

const probePrefix = "clock-"

// withProbe makes a file in d, has do look at it, and removes it. Whoever tidies up in d may have removed it meanwhile.
func withProbe(d Dir, do func(name string, made Info) error) error {
	name := probePrefix + strconv.FormatInt(time.Now().UnixNano(), 36)
	f, err := d.Create(name, 0o600)
	if err != nil {
		return err
	}
	in, err := f.Stat()
	f.Close()
	if err == nil {
		err = do(name, in)
	}
	if e := d.Remove(name); err == nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}
