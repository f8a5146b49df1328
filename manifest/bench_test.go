package manifest

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"decree/tree"
)

// wide returns a tree of n files, 20 a directory.
func wide(n int) []tree.Item {
	var files, dirs []tree.Item
	for i := range n {
		d := tree.Path(fmt.Sprintf("src/module%03d/package%05d", i/2000, i/20))
		if i%2000 == 0 {
			dirs = append(dirs, dir(tree.Path(fmt.Sprintf("src/module%03d", i/2000)), 0o755))
		}
		if i%20 == 0 {
			dirs = append(dirs, dir(d, 0o755))
		}
		files = append(files, tree.Item{Path: d.Join(fmt.Sprintf("file_%06d.go", i)), Entry: tree.Entry{SHA256: tree.Sum([]byte(d)), Size: int64(i), Mode: 0o644}})
	}
	return append(files, dirs...)
}

func sizes(b *testing.B, run func(b *testing.B, items []tree.Item)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			items := wide(n)
			b.ReportAllocs()
			run(b, items)
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	sizes(b, func(b *testing.B, items []tree.Item) {
		b.SetBytes(int64(len(encode(b, false, items...))))
		for b.Loop() {
			e := NewEncoder(io.Discard, false)
			for i := range items {
				if err := e.Item(items[i]); err != nil {
					b.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	sizes(b, func(b *testing.B, items []tree.Item) {
		text := []byte(encode(b, false, items...))
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			drain(b, NewDecoder(bytes.NewReader(text)).All())
		}
	})
}

func BenchmarkDecodeTree(b *testing.B) {
	sizes(b, func(b *testing.B, items []tree.Item) {
		tree, err := AppendTree(nil, Of(items...))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(tree)))
		for b.Loop() {
			drain(b, DecodeTree(tree))
		}
	})
}

func BenchmarkAppendTree(b *testing.B) {
	sizes(b, func(b *testing.B, items []tree.Item) {
		var tree []byte
		for b.Loop() {
			tree, _ = AppendTree(tree[:0], Of(items...))
		}
		b.SetBytes(int64(len(tree)))
	})
}

func BenchmarkCompare(b *testing.B) {
	sizes(b, func(b *testing.B, items []tree.Item) {
		for _, percent := range []int{0, 1, 10} {
			b.Run(fmt.Sprintf("changed=%d%%", percent), func(b *testing.B) {
				now := slices.Clone(items)
				for i := range now {
					if i%100 < percent {
						now[i].Entry.Mode ^= 0o100
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Compare(Of(items...), Of(now...)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func drain(b *testing.B, s tree.Seq) {
	for _, err := range s {
		if err != nil {
			b.Fatal(err)
		}
	}
}
