//go:build unix

package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
)

// BenchmarkMessage is one message whose routine does nothing, while many others wait,
// beside 50 files. cpu-ns/op is the time of the processors, the routine's included.
func BenchmarkMessage(b *testing.B) {
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			const more = 50
			y := newBench(b, map[string]string{".decree/routines/develop.sh": ":\n"})
			for i := range 50 {
				require.NoError(b, os.WriteFile(filepath.Join(y.root, fmt.Sprint(i)), fmt.Appendf(nil, "file %d\n", i), 0o644))
			}
			sent, done := 0, 0
			send := func(n int) {
				for range n {
					name := filepath.Join(y.root, ".decree/inbox", fmt.Sprintf("m%07d.md", sent))
					require.NoError(b, os.WriteFile(name, fmt.Appendf(nil, "do nothing the %dth time\n", sent), 0o644))
					sent++
				}
			}
			require.NoError(b, y.with(disk.OS, func(q *Queue) error {
				one := func() {
					res, err := q.Next(context.Background(), 0, Pick{})
					require.NoError(b, err)
					require.Equal(b, Done, res.Outcome)
					done++
				}
				send(waiting + more)
				one() // it looks at all of them
				var sum time.Duration
				for b.Loop() {
					if sent-done < waiting {
						b.StopTimer()
						send(more)
						one()
						b.StartTimer()
					}
					began := processor(b)
					one()
					sum += processor(b) - began
				}
				b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N), "cpu-ns/op")
				return nil
			}))
		})
	}
}

// processor is the processors' time that this process and its children have taken.
func processor(b *testing.B) (all time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		require.NoError(b, unix.Getrusage(who, &r))
		all += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return all
}
