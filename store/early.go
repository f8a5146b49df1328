package store

import "decree/disk"

// early flushes a large pack while it grows, so that the flush at the end, which
// everybody waits for, has little left to do. Small captures never come to it.
type early struct {
	running chan error // nil: none is
	upTo    int64      // bytes of the pack that a flush was begun for
	step    int64      // how far the pack grows between two
}

const earlyStep = 32 << 20

// start begins a flush of f, which has the given length, if one is due and none
// is running. The error is that of the one before: an error of a flush is
// reported only once, so it must not be passed over.
func (e *early) start(f disk.File, length int64) error {
	if length-e.upTo < e.step {
		return nil
	}
	if e.running != nil {
		select {
		case err := <-e.running:
			e.running = nil
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	e.upTo = length
	done := make(chan error, 1)
	e.running = done
	go func() { done <- f.Sync() }()
	return nil
}

// wait returns when no flush is running.
func (e *early) wait() error {
	if e.running == nil {
		return nil
	}
	err := <-e.running
	e.running = nil
	return err
}
