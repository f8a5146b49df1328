//go:build unix

package capture

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"decree/manifest"
)

func sortItems(items []manifest.Item) {
	slices.SortFunc(items, func(a, b manifest.Item) int { return strings.Compare(a.Path, b.Path) })
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

func eachSize(b *testing.B, run func(b *testing.B, s *site)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			s := benchSite(b, n)
			b.ReportAllocs()
			run(b, s)
		})
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

// BenchmarkCold captures without a cache.
func BenchmarkCold(b *testing.B) {
	eachSize(b, func(b *testing.B, s *site) {
		for b.Loop() {
			s.bench(b, false)
		}
	})
}

// BenchmarkWarm captures an unchanged tree.
func BenchmarkWarm(b *testing.B) {
	for _, portable := range []bool{false, true} {
		b.Run(fmt.Sprintf("portable=%v", portable), func(b *testing.B) {
			eachSize(b, func(b *testing.B, s *site) {
				s.req.Portable = portable
				s.bench(b, true)
				for b.Loop() {
					s.bench(b, true)
				}
			})
		})
	}
}

// BenchmarkChanged captures after some files were changed, with the manifest.
func BenchmarkChanged(b *testing.B) {
	for _, percent := range []int{1, 10} {
		b.Run(fmt.Sprintf("changed=%d%%", percent), func(b *testing.B) {
			eachSize(b, func(b *testing.B, s *site) {
				s.bench(b, true)
				r := s.capture()
				all, err := manifest.Collect(r.Entries())
				if err != nil {
					b.Fatal(err)
				}
				round := 0
				for b.Loop() {
					b.StopTimer()
					round++
					for i, it := range all[:r.Files] {
						if i%100 < percent {
							if err := os.WriteFile(s.path(it.Path), fmt.Appendf(nil, "// %d\n", round), 0o644); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.StartTimer()
					s.bench(b, true, func(q *Request) { q.Manifest = func() (io.Writer, error) { return io.Discard, nil } })
				}
			})
		})
	}
}

// BenchmarkWalk looks at names and facts alone, without a cache.
func BenchmarkWalk(b *testing.B) {
	eachSize(b, func(b *testing.B, s *site) {
		req := s.req
		req.Writer, req.CacheDir = nil, nil
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
	})
}
