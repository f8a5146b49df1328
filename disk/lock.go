package disk

import (
	"errors"
	"time"
)

// LockWithin takes the lock of d as TryLock does. As long as somebody else has it, it tries again after each pause, for most at
// the most; then the error is ErrLocked.
func LockWithin(d Dir, pause, most time.Duration) (unlock func() error, err error) {
	for begin := time.Now(); ; time.Sleep(pause) {
		unlock, err = d.TryLock()
		if !errors.Is(err, ErrLocked) || time.Since(begin) >= most {
			return unlock, err
		}
	}
}
