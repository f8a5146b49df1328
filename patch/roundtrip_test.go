package patch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// file returns the entry of a regular file.
func file(data string, mode uint32) *tree.Entry {
	return &tree.Entry{SHA256: tree.Sum([]byte(data)), Size: int64(len(data)), Mode: mode}
}

// link returns the entry of a symlink.
func link(target string) *tree.Entry {
	return &tree.Entry{SHA256: tree.Sum([]byte(target)), Size: int64(len(target)), Mode: 0o777, Type: tree.Symlink, Target: target}
}

// dir returns the entry of a directory.
func dir(mode uint32) *tree.Entry { return &tree.Entry{Mode: mode, Type: tree.Dir} }

// modify returns the change of a file's content.
func modify(path tree.Path, old, new string) Change {
	return Change{
		Path: path, Old: file(old, 0o644), New: file(new, 0o644),
		OldContent: Bytes(old), NewContent: Bytes(new),
	}
}

// write returns the diff of changes.
func write(t testing.TB, lim Limits, changes ...Change) []byte {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, lim)
	for _, c := range changes {
		require.NoError(t, w.Write(context.Background(), c))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// read parses a diff that must be well-formed.
func read(t testing.TB, diff []byte) []*Section {
	t.Helper()
	r := NewReader(bytes.NewReader(diff))
	var all []*Section
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, s)
	}
}

// checkPair writes the diff of two texts and requires that it gives both back.
func checkPair(t testing.TB, old, new string) []byte {
	t.Helper()
	diff := write(t, Limits{}, modify("f", old, new))
	if old == new {
		require.Empty(t, diff)
		return nil
	}
	all := read(t, diff)
	require.Len(t, all, 1)
	got, err := all[0].Forward([]byte(old))
	require.NoError(t, err)
	require.True(t, string(got) == new, "forward of %q to %q gives %q", old, new, got)
	got, err = all[0].Reverse([]byte(new))
	require.NoError(t, err)
	require.True(t, string(got) == old, "reverse of %q to %q gives %q", new, old, got)
	checkContext(t, all[0], bytes.Count([]byte(old+"\n"), []byte("\n")))
	return diff
}

// checkContext requires that every hunk has three lines of context wherever the file goes
// on, which patch and git take as a claim about its ends, and that no two hunks touch.
func checkContext(t testing.TB, s *Section, most int) {
	t.Helper()
	end := 0
	for i := range s.Hunks {
		h := &s.Hunks[i]
		var kinds []byte
		for l := range h.Lines() {
			kinds = append(kinds, l.Kind)
		}
		lead := len(kinds) - len(bytes.TrimLeft(kinds, " "))
		follow := len(kinds) - len(bytes.TrimRight(kinds, " "))
		require.Equal(t, min(3, h.oldFrom()+lead), lead, "lines before the change of hunk %d", i+1)
		require.LessOrEqual(t, follow, 3)
		if i > 0 {
			require.Greater(t, h.oldFrom(), end, "hunk %d touches the one before it", i+1)
		}
		end = h.oldFrom() + h.OldLines
		if follow < 3 {
			require.Equal(t, len(s.Hunks)-1, i)
			require.GreaterOrEqual(t, end, most-1, "lines behind the change of the last hunk")
		}
	}
}

// randomText returns up to n lines of a small vocabulary, with and without a last '\n'.
func randomText(rnd *rand.Rand, n, words int) string {
	var b []byte
	for range rnd.IntN(n + 1) {
		b = append(b, "abcdefghijklmnopqrstuvwxyz"[rnd.IntN(words)])
		b = append(b, '\n')
	}
	if len(b) > 0 && rnd.IntN(4) == 0 {
		b = b[:len(b)-1]
	}
	return string(b)
}

// Every diff of random texts applies and reverses.
func TestPropertyRandomTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		words := 1 + rnd.IntN(6)
		checkPair(t, randomText(rnd, 12, words), randomText(rnd, 12, words))
	}
	for range 300 {
		words := 2 + rnd.IntN(25)
		checkPair(t, randomText(rnd, 800, words), randomText(rnd, 800, words))
	}
	for range 10 {
		words := 2 + rnd.IntN(25)
		checkPair(t, randomText(rnd, 9000, words), randomText(rnd, 9000, words))
	}
}
