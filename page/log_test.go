package page_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/page"
)

func logged(t *testing.T, text string, o page.LogOptions) (out string, next int64) {
	t.Helper()
	var b strings.Builder
	next, err := page.Log(&b, strings.NewReader(text), o)
	require.NoError(t, err)
	return b.String(), next
}

func TestLog(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"plain & <b>\r\n", "plain &amp; &lt;b&gt;\n"},
		{"\x1b[31mred\x1b[0m not", `<span class="fg-r">red</span> not`},
		{"\x1b[1;32;44mx\x1b[22my\x1b[39;49mz", `<span class="fg-g bg-b bold">x</span><span class="fg-g bg-b">y</span>z`},
		{"\x1b[91mbright\x1b[m", `<span class="fg-r">bright</span>`},
		{"\x1b[38;5;208mo\x1b[38;2;0;0;250mb\x1b[38:2::0:200:0mg\x1b[90mx", `<span class="fg-y">o</span><span class="fg-b">b</span><span class="fg-g">g</span><span class="fg-x">x</span>`},
		{"\x1b[38;5;15mw\x1b[38;5;240mg", `w<span class="fg-x">g</span>`},
		{"\x1b[7;31mi", `<span class="inv bg-r">i</span>`},
		{"\x1b[8mhidden", "hidden"},
		{"\x1b[2J\x1b]0;title\x07\x1b[31\n", `<span class="esc">\033</span>[2J<span class="esc">\033</span>]0;title<span class="esc">\007</span><span class="esc">\033</span>[31` + "\n"},
		{"50%\r100%\u009b31m\u202e\xff", `50%<span class="esc">\015</span>100%<span class="esc">\302\233</span>31m<span class="esc">\342\200\256\377</span>`},
		{"\x1b[31mno end", `<span class="fg-r">no end</span>`},
		{"\x1b[999;;;38mx", "x"},
		{"", ""},
	} {
		got, next := logged(t, c.text, page.LogOptions{})
		require.Equal(t, c.want, got, "%q", c.text)
		require.Zero(t, next)
	}
}

// TestLogInParts holds that the parts of a log are the whole of it, and that a line longer than any
// buffer loses neither a sequence nor a character.
func TestLogInParts(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&text, "line", i)
	}
	whole, _ := logged(t, text.String(), page.LogOptions{})
	parts, begin, n := "", int64(0), 0
	for {
		part, next := logged(t, text.String(), page.LogOptions{Begin: begin, Bytes: 1000})
		parts += part
		n++
		if begin = next; next == 0 {
			break
		}
	}
	require.Equal(t, whole, parts)
	require.Greater(t, n, 8)
	beyond, next := logged(t, "short", page.LogOptions{Begin: 100})
	require.Empty(t, beyond)
	require.Zero(t, next)

	for shift := range 8 {
		long, want := strings.Repeat("x", shift), strings.Repeat("x", shift)
		long += strings.Repeat("é\x1b[31mrr\x1b[0m", 20000)
		want += strings.Repeat(`é<span class="fg-r">rr</span>`, 20000)
		got, _ := logged(t, long, page.LogOptions{})
		require.Equal(t, want, got)
	}
}

func TestLogErrors(t *testing.T) {
	_, err := page.Log(io.Discard, io.MultiReader(strings.NewReader("a\n"), broken{}), page.LogOptions{})
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func FuzzLog(f *testing.F) {
	f.Add("\x1b[1;31mred\x1b[0m\r\n\x1b[38;5;9m\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got, _ := logged(t, text, page.LogOptions{})
		require.NotContains(t, got, "<script")
		require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]", got)
		require.Equal(t, strings.Count(got, "<span"), strings.Count(got, "</span>"))
	})
}
