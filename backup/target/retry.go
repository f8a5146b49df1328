package target

import (
	"context"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/time/rate"
)

// What a remote target may answer when the same question a moment later has another answer is asked again
// after a pause: pauses double from firstPause to lastPause, and some of each is left to chance.
const tries = 8

var (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// retry calls once until it succeeds, or its error is none that passes.
func retry(ctx context.Context, passes func(error) bool, once func() error) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := once()
		if err == nil || try == tries || ctx.Err() != nil || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		}
		pause = min(2*pause, lastPause)
	}
}

// line is a way to a remote target that carries so many bytes a second, each way.
type line struct{ up, down *rate.Limiter }

// burst is how many bytes may pass at once.
const burst = 64 << 10

// newLine is a line of that bandwidth; 0: without a limit.
func newLine(bandwidth int64) line {
	if bandwidth <= 0 {
		return line{}
	}
	limit := rate.Limit(bandwidth)
	return line{rate.NewLimiter(limit, burst), rate.NewLimiter(limit, burst)}
}

// slow waits until n more bytes may pass.
func slow(ctx context.Context, l *rate.Limiter, n int) error {
	for l != nil && n > 0 {
		part := min(n, burst)
		if err := l.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// slowed is a body that passes no faster than it may.
type slowed struct {
	io.ReadCloser
	ctx context.Context
	l   *rate.Limiter
}

func (s *slowed) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b[:min(len(b), burst)])
	if serr := slow(s.ctx, s.l, n); err == nil {
		err = serr
	}
	return n, err
}
