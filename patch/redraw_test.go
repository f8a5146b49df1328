package patch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// patched is old with hunks applied, each line of which must be where it says.
func patched(t testing.TB, hunks []Hunk, old string) string {
	t.Helper()
	lines := strings.SplitAfter(old, "\n")
	var out []byte
	at := 0
	for i := range hunks {
		h := &hunks[i]
		for ; at < h.oldFrom(); at++ {
			out = append(out, lines[at]...)
		}
		require.Equal(t, rangeFrom(h.NewStart, h.NewLines), bytes.Count(out, []byte("\n")), "the new side's start")
		olds, news := 0, 0
		for l := range h.Lines() {
			if l.Kind != '+' {
				require.Equal(t, lines[at], string(l.Text))
				at, olds = at+1, olds+1
			}
			if l.Kind != '-' {
				out, news = append(out, l.Text...), news+1
			}
		}
		require.Equal(t, []int{h.OldLines, h.NewLines}, []int{olds, news})
	}
	return string(out) + strings.Join(lines[at:], "")
}

// TestRedraw: with three lines of context the hunks are those of the diff, with any other
// number they lead to the same content.
func TestRedraw(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 600 {
		old := randomText(rnd, rnd.IntN(60), 1+rnd.IntN(20))
		text := randomText(rnd, rnd.IntN(60), 1+rnd.IntN(20))
		if rnd.IntN(3) > 0 { // few changes
			lines := strings.SplitAfter(old, "\n")
			for range 1 + rnd.IntN(4) {
				lines[rnd.IntN(len(lines))] = "changed\n"
			}
			text = strings.Join(lines, "")
		}
		if old == text || old == "" || text == "" {
			continue
		}
		s := read(t, write(t, Limits{}, modify("f", old, text)))[0]
		same := s.Redraw([]byte(old), 3, false)
		require.Len(t, same, len(s.Hunks))
		for i, h := range same {
			require.Equal(t, s.Hunks[i], h)
		}
		for n := range 9 {
			require.Equal(t, text, patched(t, s.Redraw([]byte(old), n, false), old), "%d lines", n)
		}
		require.Equal(t, s.Hunks, s.Redraw(nil, 5, false), "what does not fit stays")
	}
}

func TestRedrawLoosely(t *testing.T) {
	old := "a {\nb\n c\nd\ne\nf\ng\nh\ni\n"
	for text, want := range map[string]string{
		"a  {\n\tb\nc\nd\ne\nf\ng\nh\ni\n":     "",
		"a {\n b\nc\nd\nE\nf\ng\nh\ni\n":       "@@ -4,3 +4,3 @@\n d\n-e\n+E\n f\n",
		"a{\nx\n  b\nc\nd\ne\nf\ng\nh\ni\n":    "@@ -1,2 +1,3 @@\n a{\n+x\n   b\n",
		"a {\nb\nc\nd\ne\nf\ng\nh\ni":          "",
		"a {\nb\nd\ne\nf\ng\nh\ni\nlast \n":    "@@ -2,3 +2,2 @@\n b\n- c\n d\n@@ -9 +8,2 @@\n i\n+last \n",
		"  a {\nb\n c\nd\ne\nf\ng\n\n\th\ni\n": "@@ -7,2 +7,3 @@\n g\n+\n \th\n",
	} {
		s := read(t, write(t, Limits{}, modify("f", old, text)))[0]
		var b []byte
		for _, h := range s.Redraw([]byte(old), 1, true) {
			b = append(append(h.appendHeader(b), 0x0a), h.Body...)
		}
		require.Equal(t, want, string(b), "%q", text)
	}
}

// TestRedrawLooselyLarge: however many lines a change has, they are compared.
func TestRedrawLooselyLarge(t *testing.T) {
	var old, text strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&old, "line %d\n", i)
		fmt.Fprintf(&text, "\tline  %d\n", i)
	}
	s := read(t, write(t, Limits{}, modify("f", old.String(), text.String())))[0]
	require.Empty(t, s.Redraw([]byte(old.String()), 3, true))
}
