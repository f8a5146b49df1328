//go:build unix

package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"testing"
	"time"

	"golang.org/x/sys/unix"

	"decree/manifest"
	"decree/tree"
)

func sortItems(items []tree.Item) {
	slices.SortFunc(items, func(a, b tree.Item) int { return a.Path.Compare(b.Path) })
}

// benchSite makes a tree of n small files, 20 a directory.
func benchSite(b *testing.B, n int) *site {
	s := newSite(b)
	for i := range n {
		dir := s.path(fmt.Sprintf("module%03d/package%05d", i/2000, i/20))
		if i%20 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file_%06d.go", i)), fmt.Appendf(nil, "package p%d\n", i), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s.req.Writer = sumOnly{}
	s.req.start = always
	return s
}

// eachSize runs a benchmark over trees of each size, one for all its percents.
func eachSize(b *testing.B, percents []int, run func(b *testing.B, s *site, percent int)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		var s *site
		for _, percent := range percents {
			b.Run(fmt.Sprintf("files=%d/changed=%d%%", n, percent), func(sub *testing.B) {
				if s == nil {
					s = benchSite(b, n)
				}
				sub.ReportAllocs()
				run(sub, s, percent)
			})
		}
	}
}

func (s *site) bench(b *testing.B, commit bool, change ...func(*Request)) {
	r := s.capture(change...)
	if commit {
		if err := r.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHash captures without a cache: every file is read and hashed.
func BenchmarkHash(b *testing.B) {
	eachSize(b, []int{100}, func(b *testing.B, s *site, _ int) {
		b.SetBytes(s.capture().Bytes)
		for b.Loop() {
			s.bench(b, false)
		}
	})
}

// BenchmarkMerge walks a tree of which percent were changed since the last
// capture, merges the walk with the cache, and writes the manifest.
func BenchmarkMerge(b *testing.B) {
	eachSize(b, []int{0, 1, 10}, func(b *testing.B, s *site, percent int) { s.merge(b, percent) })
}

func (s *site) merge(b *testing.B, percent int) {
	s.bench(b, true)
	r := s.capture()
	all, err := manifest.Collect(r.Entries())
	if err != nil {
		b.Fatal(err)
	}
	round := 0
	since, paused := processorTime(b), time.Duration(0)
	for b.Loop() {
		if percent > 0 {
			b.StopTimer()
			begin := processorTime(b)
			round++
			for i, it := range all[:r.Files] {
				if i%100 < percent {
					if err := os.WriteFile(s.path(string(it.Path)), fmt.Appendf(nil, "// %d\n", round), 0o644); err != nil {
						b.Fatal(err)
					}
				}
			}
			paused += processorTime(b) - begin
			b.StartTimer()
		}
		s.bench(b, true)
	}
	reportProcessor(b, processorTime(b)-since-paused)
}

// processorTime is what the process has used of the processors, which other work
// on the machine disturbs less than the clock.
func processorTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func reportProcessor(b *testing.B, d time.Duration) {
	b.ReportMetric(float64(d.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkWalk looks at names and facts alone, without a cache.
func BenchmarkWalk(b *testing.B) {
	eachSize(b, []int{0}, func(b *testing.B, s *site, _ int) {
		req := s.req
		req.Writer, req.CacheDir = nil, nil
		since := processorTime(b)
		for b.Loop() {
			w, err := newWalk(&req, memoryCache())
			if err != nil {
				b.Fatal(err)
			}
			w.facts = factsStat
			if err := w.run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		reportProcessor(b, processorTime(b)-since)
	})
}
