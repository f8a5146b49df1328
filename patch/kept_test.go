package patch

import (
	"bytes"
	"context"
	"decree/tree"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// kept says of each line of b which line of a it is, -1 for one that a lacks.
func kept(a, b []byte) ([]int, error) {
	out := make([]int, Lines(b))
	for i := range out {
		out[i] = -1
	}
	entry := func(data []byte) *tree.Entry { return &tree.Entry{SHA256: tree.Sum(data), Size: int64(len(data))} }
	err := Stays(context.Background(), Change{Old: entry(a), New: entry(b), OldContent: Bytes(a), NewContent: Bytes(b)}, func(old, new, n int) error {
		for i := range n {
			out[new+i] = old + i
		}
		return nil
	})
	return out, err
}

func TestKeptNamesTheLine(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want []int
	}{
		{"", "", []int{}},
		{"", "x\n", []int{-1}},
		{"a\nb\nc\n", "a\nb\nc\n", []int{0, 1, 2}},
		{"a\nb\nc\n", "a\nx\nc\nd\n", []int{0, -1, 2, -1}},
		{"a\nb", "a\nb\n", []int{0, -1}},
		{"a\nb\nc\n", "c", []int{-1}},
	} {
		got, err := kept([]byte(c.a), []byte(c.b))
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%q to %q", c.a, c.b)
	}
}

// TestKeptLinesAreEqualAndInOrder holds it for random texts, held whole and in pieces.
func TestKeptLinesAreEqualAndInOrder(t *testing.T) {
	keptLinesAreEqualAndInOrder(t)
	t.Run("in pieces", func(t *testing.T) {
		inPieces(t)
		mostText = 60 // some are not compared
		keptLinesAreEqualAndInOrder(t)
	})
}

func keptLinesAreEqualAndInOrder(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	text := func() []byte {
		var b bytes.Buffer
		for range rng.Intn(60) {
			b.WriteByte(byte('a' + rng.Intn(6)))
			b.WriteByte('\n')
		}
		return b.Bytes()
	}
	for range 2000 {
		a, b := text(), text()
		got, err := kept(a, b)
		require.NoError(t, err)
		require.Len(t, got, Lines(b))
		last := -1
		old, now := bytes.SplitAfter(a, []byte{'\n'}), bytes.SplitAfter(b, []byte{'\n'})
		for i, k := range got {
			if k < 0 {
				continue
			}
			require.Greater(t, k, last)
			require.Equal(t, old[k], now[i])
			last = k
		}
	}
}
