package layer

import (
	"errors"
	"math"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// clockWatch looks at the clock that stamps files each time that it is set, so that one that is set back and then forward again is
// seen. It is safe for concurrent use.
type clockWatch struct {
	timer *os.File     // fails to be read when the clock is set
	least atomic.Int64 // of ahead, each time that it was
}

// watchClock begins to watch, until stop; nil where the system cannot tell.
func watchClock() *clockWatch {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &clockWatch{timer: os.NewFile(uintptr(fd), "timerfd")}
	w.least.Store(math.MaxInt64)
	if armClock(fd) != nil {
		_ = w.timer.Close()
		return nil
	}
	go w.watch()
	return w
}

// armClock has the timer be cancelled when the clock is set; it never comes to its end.
func armClock(fd int) error {
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &unix.ItimerSpec{Value: unix.NsecToTimespec(math.MaxInt64)}, nil)
}

func (w *clockWatch) watch() {
	raw, err := w.timer.SyscallConn()
	var count [8]byte
	for err == nil {
		if _, err = w.timer.Read(count[:]); errors.Is(err, unix.ECANCELED) {
			var armed error
			err = raw.Control(func(fd uintptr) { armed = armClock(int(fd)) }) // first, lest the next setting is missed
			err = errors.Join(err, armed)
			w.look()
		}
	}
}

// look notes how far the clock is ahead.
func (w *clockWatch) look() {
	for now := ahead(); ; {
		least := w.least.Load()
		if now >= least || w.least.CompareAndSwap(least, now) {
			return
		}
	}
}

// leastAhead is the least that the clock was ahead when it was set; as much as can be: it was not.
func (w *clockWatch) leastAhead() int64 {
	if w == nil {
		return math.MaxInt64
	}
	return w.least.Load()
}

func (w *clockWatch) stop() {
	if w != nil {
		_ = w.timer.Close()
	}
}
