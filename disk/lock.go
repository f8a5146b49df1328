package disk

import (
	"context"
	"errors"
	"math"
	"time"
)

// NoLimit has LockWithin try until the lock is free, or its context ends.
const NoLimit time.Duration = math.MaxInt64

// LockWithin takes the lock of d as TryLock does. As long as somebody else has it, it tries again after each pause, for at most
// the time limit; then the error is ErrLocked. When ctx ends before, the error is ctx's.
func LockWithin(ctx context.Context, d Dir, pause, limit time.Duration) (unlock func() error, err error) {
	for begin := time.Now(); ; {
		unlock, err = d.TryLock()
		if !errors.Is(err, ErrLocked) || time.Since(begin) >= limit {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}
