package page_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/page"
	"decree/patch"
	"decree/tree"
)

// seen is what a scanner finds, in the words of the strict reader.
func seen(t *testing.T, diff []byte) (out []string) {
	t.Helper()
	s := page.NewScanner(bytes.NewReader(diff))
	for {
		l, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		switch l.Kind {
		case page.SectionLine:
			out = append(out, fmt.Sprint(l.Index, l.Section.Op, l.Section.Path))
		case page.HunkLine:
			out = append(out, fmt.Sprint(l.Number, l.Hunk.Header()))
		default:
			out = append(out, fmt.Sprint(l.Old, l.New, string(l.Kind), string(l.Text), l.NoEnd))
		}
	}
}

func TestScannerFindsWhatTheStrictReaderFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(40) {
			b.WriteString([]string{"--- a/x\n", "+++ b\n", "@@ -1 +1 @@\n", "# decree: {}\n", "\\ No newline\n", "\n", "line\n", " \t\r\n"}[random.IntN(8)])
		}
		if random.IntN(3) == 0 {
			b.WriteString("no newline")
		}
		return b.String()
	}
	for range 200 {
		var changes []patch.Change
		for i := range random.IntN(4) {
			if c := change(fmt.Sprintf("file%d", i), text(), text()); c.Old != nil || c.New != nil {
				changes = append(changes, c)
			}
		}
		diff := diffOf(t, changes...)
		var want []string
		index := 0
		require.NoError(t, patch.EachSection(bytes.NewReader(diff), nil, func(sec *patch.Section) error {
			want = append(want, fmt.Sprint(index, sec.Op, sec.Path))
			index++
			for n, h := range sec.Hunks {
				want = append(want, fmt.Sprint(n+1, h.Header()))
				old, new := h.OldStart, h.NewStart
				for l := range h.Lines() {
					o, n := old, new
					if l.Kind == '+' {
						o = 0
					} else {
						old++
					}
					if l.Kind == '-' {
						n = 0
					} else {
						new++
					}
					text, ended := strings.CutSuffix(string(l.Text), "\n")
					want = append(want, fmt.Sprint(o, n, string(l.Kind), text, !ended))
				}
			}
			return nil
		}))
		require.Equal(t, want, seen(t, diff))
	}
}

func TestScannerRefusesWhatIsNoDiff(t *testing.T) {
	for _, text := range []string{"hello\n", "# decree changes 1\nhello\n", "# decree changes 1\n# decree: {\n", "# decree changes 1\n" + `# decree: {"path":"a","op":"modify"}` + "\n"} {
		_, _, err := page.Diff(io.Discard, strings.NewReader(text), page.DiffOptions{})
		require.ErrorAs(t, err, new(*patch.SyntaxError), text)
	}
	_, n, err := page.Diff(io.Discard, strings.NewReader(""), page.DiffOptions{})
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestHostile holds that nothing of the tree becomes an element, an attribute or a control.
func TestHostile(t *testing.T) {
	bad := "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&amp;\x1b[31m\u202e\u009b\x7f\xff"
	diff := diffOf(t, change("a/"+bad, "old "+bad+"\nsame\n", "new "+bad+"\nsame\n"), change("z\".py", bad+"\n", ""))
	for _, o := range []page.DiffOptions{{}, {Split: true, Marks: true}, {Plain: 1, Link: func(p tree.Path) string { return "/f/" + url.PathEscape(string(p)) }}} {
		out := drawn(t, diff, o)
		require.NotContains(t, out, "<script")
		require.NotContains(t, out, "<img")
		require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u202e]", out)
		require.Contains(t, out, `<span class="esc">\033</span>[31m<span class="esc">\342\200\256\302\233\177\377</span>`)
		for _, attribute := range regexp.MustCompile(`(?:value|href)="([^"]*)"`).FindAllStringSubmatch(out, -1) {
			require.NotContains(t, attribute[1], "<")
		}
	}
}

func TestPagesOfADiffAreTheWhole(t *testing.T) {
	var old, new strings.Builder
	for i := range 400 {
		fmt.Fprintln(&old, "line", i)
		if i%7 != 0 {
			fmt.Fprintln(&new, "line", i)
		}
	}
	diff := diffOf(t, change("a", old.String(), new.String()), change("b", "", old.String()), change("c", "x\n", "y\n"))
	rows := func(html string) []string {
		return regexp.MustCompile(`<tr(?: class="[adm]")?><td>[^\n]*`).FindAllString(html, -1)
	}
	for _, split := range []bool{false, true} {
		whole := rows(drawn(t, diff, page.DiffOptions{Split: split}))
		var parts []string
		begin, pages := page.Place{}, 0
		for {
			var b strings.Builder
			next, _, err := page.Diff(&b, bytes.NewReader(diff), page.DiffOptions{Split: split, Begin: begin, Rows: 97})
			require.NoError(t, err)
			parts = append(parts, rows(b.String())...)
			pages++
			if next == nil {
				break
			}
			require.Equal(t, *next, page.ParsePlace(next.String()))
			begin = *next
		}
		require.Greater(t, pages, 5)
		if !split { // side by side a pair may be parted by the end of a page
			require.Equal(t, whole, parts)
		}
	}
}

func TestPartsOfADiff(t *testing.T) {
	diff := diffOf(t, change("a/x", "", "1\n"), change("b", "1\n", "2\n"), change("c", "", "3\n4\n"))
	plain := drawn(t, diff, page.DiffOptions{Plain: 3})
	require.Contains(t, plain, "<summary>The lines that follow, as plain text</summary><pre>\n@@ -0,0 +1,2 @@\n+3\n+4\n</pre>")
	require.Equal(t, 2, strings.Count(plain, "<table"))
	files, total, err := page.Files(bytes.NewReader(diff), 1, 1)
	require.NoError(t, err)
	require.Equal(t, 3, total.All())
	require.Equal(t, "3 files", total.String())
	require.Equal(t, []page.File{{Path: "b", Op: patch.OpModify, Word: "modified", Added: 1, Removed: 1, Index: 1}}, files)
}

// Directories are no files: what a page counts is what the record counts.
func TestDirectoriesAreCountedApart(t *testing.T) {
	dir := patch.Change{Path: "d", New: &tree.Entry{Type: tree.Dir, Mode: 0o755}}
	for want, changes := range map[string][]patch.Change{
		"1 directory":            {dir},
		"1 file and 1 directory": {dir, change("d/x", "", "1\n")},
		"2 files":                {change("a", "", "1\n"), change("d/x", "", "1\n")},
	} {
		list, total, err := page.Files(bytes.NewReader(diffOf(t, changes...)), 0, 0)
		require.NoError(t, err)
		require.Equal(t, want, total.String())
		require.Len(t, list, total.All())
	}
}

func TestMarks(t *testing.T) {
	diff := diffOf(t, change("a \"q\"", "1\n", "2\n"))
	values := regexp.MustCompile(`name="mark" data-(\w+) value="([^"]*)"`).FindAllStringSubmatch(drawn(t, diff, page.DiffOptions{Marks: true}), -1)
	require.Equal(t, [][]string{{values[0][0], "file", "0:a+%22q%22"}, {values[1][0], "hunk", "1:a+%22q%22"}}, values)
	for _, p := range []tree.Path{"a", "a:b", "\x01\xff", "\"", "ü"} {
		got, hunk, err := page.ParseMark(page.Mark(p, 7))
		require.NoError(t, err)
		require.Equal(t, p, got)
		require.Equal(t, 7, hunk)
	}
	for _, bad := range []string{"", "1", "x:a", "-1:a", "1:", `1:%x`} {
		_, _, err := page.ParseMark(bad)
		require.Error(t, err, bad)
	}
}

// watching keeps the largest heap that was in use while something wrote.
type watching struct {
	n, most uint64
}

func (w *watching) Write(p []byte) (int, error) {
	if w.n++; w.n%64 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.most = max(w.most, m.HeapAlloc)
	}
	return len(p), nil
}

// TestLargeDiffInLittleMemory holds that one section of 64 MB is not held, whatever its lines are.
func TestLargeDiffInLittleMemory(t *testing.T) {
	lines := map[string]string{"short": "+var x = \"some text\"\n", "long": "+" + strings.Repeat("x", 8<<20) + "\n"}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			head := string(diffOf(t, change("a.go", "", "x\n")))
			head = head[:strings.Index(head, "@@")]
			n := (64 << 20) / len(line)
			first := strings.NewReader(head + fmt.Sprintf("@@ -0,0 +1,%d @@\n", n))
			body := &repeated{line: line, n: n}
			w := &watching{}
			_, _, err := page.Diff(w, io.MultiReader(first, body), page.DiffOptions{Plain: 20000})
			require.NoError(t, err)
			require.Less(t, w.most, uint64(60<<20))
		})
	}
}

// repeated is a line n times.
type repeated struct {
	line string
	n    int
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.n == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.line[r.at:])
	if r.at += n; r.at == len(r.line) {
		r.at, r.n = 0, r.n-1
	}
	return n, nil
}
