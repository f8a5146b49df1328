package patch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// logText returns a log of about size bytes.
func logText(size int) []byte {
	rnd := rand.New(rand.NewPCG(3, 5))
	var b bytes.Buffer
	b.Grow(size + 200)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "2026-11-21T07:%02d:%02d.%06d INFO request id=%d path=/api/v1/items/%d status=200 took=%dus\n",
			n/60%60, n%60, n%1e6, rnd.IntN(1e6), rnd.IntN(1000), rnd.IntN(1e5))
	}
	return b.Bytes()
}

// changeLines changes, removes or adds to one line in every n.
func changeLines(data []byte, n int) []byte {
	rnd := rand.New(rand.NewPCG(8, 9))
	var b bytes.Buffer
	b.Grow(len(data) + len(data)/50)
	for line := range bytes.Lines(data) {
		switch {
		case rnd.IntN(n) > 0:
			b.Write(line)
		case rnd.IntN(4) == 0:
		case rnd.IntN(3) == 0:
			b.Write(line)
			b.WriteString("added\n")
		default:
			b.WriteString("changed ")
			b.Write(line)
		}
	}
	return b.Bytes()
}

// words returns n lines of a vocabulary of 50 words, and the same lines shuffled.
func words(n int) (lines, shuffled []byte) {
	rnd := rand.New(rand.NewPCG(21, 22))
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("word%d\n", rnd.IntN(50))
	}
	lines = []byte(strings.Join(all, ""))
	rnd.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return lines, []byte(strings.Join(all, ""))
}

func benchWrite(b *testing.B, old, new []byte) {
	c := modify("f", string(old), string(new))
	b.SetBytes(int64(len(old) + len(new)))
	b.ReportAllocs()
	var size int64
	for b.Loop() {
		out := &counter{}
		w := NewWriter(out, Limits{})
		require.NoError(b, w.Write(context.Background(), c))
		require.NoError(b, w.Close())
		size = out.n
	}
	b.ReportMetric(float64(size), "diff-bytes")
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func BenchmarkWriteLog(b *testing.B) {
	for _, size := range []int{1 << 20, 50 << 20} {
		old := logText(size)
		for _, n := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("size=%dMB/changed=1in%d", size>>20, n), func(b *testing.B) {
				benchWrite(b, old, changeLines(old, n))
			})
		}
	}
}

func BenchmarkWriteWords(b *testing.B) {
	for _, n := range []int{1e4, 1e5, 1e6} {
		b.Run(fmt.Sprintf("lines=%d/shuffled", n), func(b *testing.B) {
			old, new := words(n)
			benchWrite(b, old, new)
		})
		b.Run(fmt.Sprintf("lines=%d/changed=1%%", n), func(b *testing.B) {
			old, _ := words(n)
			benchWrite(b, old, changeLines(old, 100))
		})
	}
}

func BenchmarkWriteCreated(b *testing.B) {
	data := logText(50 << 20)
	c := Change{Path: "f", New: file(string(data), 0o644), NewContent: Bytes(data)}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		w := NewWriter(io.Discard, Limits{})
		require.NoError(b, w.Write(context.Background(), c))
		require.NoError(b, w.Close())
	}
}

func BenchmarkReader(b *testing.B) {
	old := logText(50 << 20)
	diff := write(b, Limits{}, modify("f", string(old), string(changeLines(old, 10))))
	b.SetBytes(int64(len(diff)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := NewReader(bytes.NewReader(diff)).Next()
		require.NoError(b, err)
	}
}

func BenchmarkForward(b *testing.B) {
	old := logText(50 << 20)
	s := read(b, write(b, Limits{}, modify("f", string(old), string(changeLines(old, 100)))))[0]
	b.SetBytes(int64(len(old)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := s.Forward(old)
		require.NoError(b, err)
	}
}

// small are the changes of percent of n files of 60 to 110 lines, a line each.
func small(n, percent int) (all []Change, size int64) {
	for i := range n {
		if i%100 >= percent {
			continue
		}
		old := text(60 + i%50)
		all = append(all, modify(tree.Path(fmt.Sprintf("dir%03d/file%05d", i/100, i)), old, strings.Replace(old, "line 30\n", "changed\n", 1)))
		size += 2 * int64(len(old))
	}
	return all, size
}

func eachShare(b *testing.B, run func(b *testing.B, all []Change, size int64)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		for _, percent := range []int{1, 10} {
			b.Run(fmt.Sprintf("files=%d/changed=%d%%", n, percent), func(b *testing.B) {
				all, size := small(n, percent)
				b.ReportAllocs()
				run(b, all, size)
			})
		}
	}
}

// BenchmarkDiff compares the contents of the changed files and writes changes.diff.
func BenchmarkDiff(b *testing.B) {
	eachShare(b, func(b *testing.B, all []Change, size int64) {
		b.SetBytes(size)
		for b.Loop() {
			w := NewWriter(io.Discard, Limits{})
			for _, c := range all {
				require.NoError(b, w.Write(context.Background(), c))
			}
			require.NoError(b, w.Close())
		}
	})
}

// BenchmarkParse reads it.
func BenchmarkParse(b *testing.B) {
	eachShare(b, func(b *testing.B, all []Change, _ int64) {
		diff := write(b, Limits{}, all...)
		b.SetBytes(int64(len(diff)))
		for b.Loop() {
			r := NewReader(bytes.NewReader(diff))
			for {
				_, err := r.Next()
				if err == io.EOF {
					break
				}
				require.NoError(b, err)
			}
		}
	})
}
