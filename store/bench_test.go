package store

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources returns n contents of the sizes that source trees have, about 10 KB each.
func sources(n int) (list [][]byte, total int64) {
	for i := range n {
		size := 200 + (i*7919)%9000
		if i%20 == 0 {
			size *= 8
		}
		list = append(list, prose(uint64(i), size))
		total += int64(size)
	}
	return list, total
}

func BenchmarkPut(b *testing.B) {
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("files=10000/workers=%d", workers), func(b *testing.B) {
			list, total := sources(10000)
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				putAll(b, list, workers)
			}
		})
	}
}

// putAll puts list into a new store.
func putAll(b *testing.B, list [][]byte, workers int) {
	s := openStore(b, openDir(b), Options{})
	w := openWriter(b, s)
	var wg sync.WaitGroup
	for g := range workers {
		wg.Go(func() {
			var r bytes.Reader
			for i := g; i < len(list); i += workers {
				r.Reset(list[i])
				if _, _, err := w.PutFile(&r, int64(len(list[i]))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(b, w.Flush())
	require.NoError(b, w.Close())
}

// BenchmarkPack hashes, compresses and packs n files of about 1 KB by two workers.
func BenchmarkPack(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			var list [][]byte
			total := int64(0)
			for i := range n {
				list = append(list, prose(uint64(i), 200+(i*7919)%1800))
				total += int64(len(list[i]))
			}
			b.SetBytes(total)
			b.ReportAllocs()
			for b.Loop() {
				putAll(b, list, 2)
			}
		})
	}
}

// BenchmarkPutBig puts one large content, and beside it does what must be done to
// it at the least: read, SHA-256 and zstd, by two workers.
func BenchmarkPutBig(b *testing.B) {
	const size = 192 << 20
	for name, data := range map[string][]byte{"text": prose(1, size), "noise": noise(1, size)} {
		b.Run("size=192MiB/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				s := openStore(b, openDir(b), Options{})
				w := openWriter(b, s)
				_, _, err := w.Put(bytes.NewReader(data), size)
				require.NoError(b, err)
				b.StopTimer() // the limit has no disk
				require.NoError(b, w.Flush())
				require.NoError(b, w.Close())
				b.StartTimer()
			}
		})
		b.Run("limit/"+name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				var next atomic.Int64
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						c, buf := newCoder(normalChunk), make([]byte, normalChunk)
						for at := next.Add(normalChunk); at <= size; at = next.Add(normalChunk) {
							copy(buf, data[at-normalChunk:at])
							sum(buf)
							c.out = c.enc.EncodeAll(buf, c.out[:0])
						}
					})
				}
				wg.Wait()
			}
		})
	}
}

// BenchmarkCutChunk is the share of the chunking in a large Put.
func BenchmarkCutChunk(b *testing.B) {
	data := noise(1, 32<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for rest := data; len(rest) > 0; {
			rest = rest[cutChunk(rest):]
		}
	}
}

func BenchmarkGet(b *testing.B) {
	list, total := sources(10000)
	s := openStore(b, openDir(b), Options{})
	w := openWriter(b, s)
	for _, c := range list {
		_, err := w.PutBytes(c)
		require.NoError(b, err)
	}
	require.NoError(b, w.Flush())
	for name, step := range map[string]int{"in order": 1, "scattered": 3571} {
		b.Run("files=10000/"+name, func(b *testing.B) {
			b.SetBytes(total / int64(len(list)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + step) % len(list)
				r, _, err := s.Open(sum(list[i]))
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, r)
				r.Close()
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 100000} {
		d := openDir(b)
		s := openStore(b, d, Options{})
		w := openWriter(b, s)
		var hashes []Hash
		for i := range n {
			h, err := w.PutBytes(fmt.Appendf(nil, "object %d", i))
			require.NoError(b, err)
			hashes = append(hashes, h)
		}
		require.NoError(b, w.Flush())
		require.NoError(b, w.Close())
		b.Run(fmt.Sprintf("objects=%d", n), func(b *testing.B) {
			for b.Loop() {
				s, err := Open(d, Options{})
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
		b.Run(fmt.Sprintf("objects=%d/writer", n), func(b *testing.B) {
			s := openStore(b, d, Options{})
			for b.Loop() {
				w, err := s.Writer(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				w.Close()
			}
		})
		b.Run(fmt.Sprintf("objects=%d/has", n), func(b *testing.B) {
			s := openStore(b, d, Options{})
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % len(hashes)
				if !s.Has(hashes[i]) {
					b.Fatal("missing")
				}
			}
		})
	}
}

// BenchmarkLoadLog opens a store whose index log is as long as it gets.
// BenchmarkOpenPacks opens a store of the same objects in ever more packs, to
// read and to write.
func BenchmarkOpenPacks(b *testing.B) {
	for _, packs := range []int{1, 100, 1000} {
		d := openDir(b)
		o := Options{PackSize: 1 << 20}
		if packs > 1 {
			o.PackSize = 1 // each block its own
		}
		w := openWriter(b, openStore(b, d, o))
		for i := range packs {
			for k := range 2000 / packs {
				_, err := w.PutBytes(fmt.Appendf(nil, "object %d", i*2000+k))
				require.NoError(b, err)
			}
			require.NoError(b, w.Flush())
		}
		require.NoError(b, w.Close())
		list, err := os.ReadDir(d.Path() + "/packs")
		require.NoError(b, err)
		b.Run(fmt.Sprintf("packs=%d", len(list)), func(b *testing.B) {
			for b.Loop() {
				s, err := Open(d, o)
				require.NoError(b, err)
				w, err := s.Writer(b.Context())
				require.NoError(b, err)
				w.Close()
				s.Close()
			}
		})
		b.Run(fmt.Sprintf("packs=%d/read", len(list)), func(b *testing.B) {
			for b.Loop() {
				s, err := Open(d, o)
				require.NoError(b, err)
				s.Close()
			}
		})
	}
}

func BenchmarkLoadLog(b *testing.B) {
	_, d := memDir(b)
	s := openStore(b, d, Options{})
	w := openWriter(b, s)
	for i := range 4000 {
		_, err := w.PutBytes(fmt.Appendf(nil, "object %d", i))
		require.NoError(b, err)
	}
	require.NoError(b, w.Flush())
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(d, Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
