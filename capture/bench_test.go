package capture

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"decree/manifest"
)

func sortItems(items []manifest.Item) {
	slices.SortFunc(items, func(a, b manifest.Item) int { return strings.Compare(a.Path, b.Path) })
}

func TestRealTree(t *testing.T) {
	dir := os.Getenv("CAPTURE_TREE")
	if dir == "" {
		t.Skip()
	}
	s := newSite(t)
	s.dir = dir
	s.req.Root = open(t, dir)
	s.req.Writer = sumOnly{}
	step := func(name string, change ...func(*Request)) *Result {
		begin := time.Now()
		r := s.capture(change...)
		took := time.Since(begin)
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
		t.Log(name, took, time.Since(begin)-took, r.Files, r.Dirs, r.Bytes, r.Read, r.Tree.String()[:8], len(r.Changes))
		return r
	}
	step("cold")
	for range 6 {
		step("warm").Close()
	}
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		for range 3 {
			step("workers", func(r *Request) { r.Workers = n })
		}
	}
	for range 3 {
		step("portable", func(r *Request) { r.Portable = true })
	}
}
