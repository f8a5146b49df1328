package worktree

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// mostRun is how many neighbours one worker takes at a time, if there are
// enough for all: neighbours share their directory.
const mostRun = 8

func (t *Tree) workers() int {
	if t.opt.Workers > 0 {
		return t.opt.Workers
	}
	return min(max(runtime.GOMAXPROCS(0), 2), 8)
}

// each calls do for 0 to n-1 on several goroutines and returns the error of the
// lowest number that failed; after an error nothing new is begun.
func each(ctx context.Context, workers, n int, do func(i int) error) error {
	run := min(mostRun, max(1, n/workers))
	var (
		next   atomic.Int64
		failed atomic.Bool
		mu     sync.Mutex
		at     = n
		first  error
		wg     sync.WaitGroup
	)
	fail := func(i int, err error) {
		failed.Store(true)
		mu.Lock()
		defer mu.Unlock()
		if i < at {
			at, first = i, err
		}
	}
	work := func() {
		for !failed.Load() {
			lo := int(next.Add(int64(run))) - run
			for i := lo; i < min(lo+run, n) && !failed.Load(); i++ {
				if err := ctx.Err(); err != nil {
					fail(i, err)
				} else if err := do(i); err != nil {
					fail(i, err)
				}
			}
			if lo+run >= n {
				return
			}
		}
	}
	for range min(workers, (n+run-1)/run) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	return first
}
