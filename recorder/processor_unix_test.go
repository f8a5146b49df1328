//go:build unix

package recorder

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// processor measures the processors' time of the timed parts of a benchmark,
// which other work on the machine disturbs less than the clock's.
type processor struct {
	b     *testing.B
	since time.Duration
	sum   time.Duration
}

func (p *processor) now() time.Duration {
	var all time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if err := unix.Getrusage(who, &r); err != nil {
			p.b.Fatal(err)
		}
		all += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return all
}

// pause ends a timed part, resume begins one.
func (p *processor) pause()  { p.b.StopTimer(); p.sum += p.now() - p.since }
func (p *processor) resume() { p.since = p.now(); p.b.StartTimer() }

// report is called after the loop.
func (p *processor) report() {
	p.sum += p.now() - p.since
	p.b.ReportMetric(float64(p.sum.Nanoseconds())/float64(p.b.N), "cpu-ns/op")
}
