package tui

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/patch"
	"decree/timeline"
	"decree/tree"
)

// drawn is a row of the timeline as it stands on a screen, without colours.
func drawn(r timeline.Row, columns int) string {
	m := &model{styles: newStyles(true)}
	m.whenColumns = len(shortWhen(r.When))
	return strings.TrimRight(ansi.Strip(m.rowLine(entry{row: &r}, false, columns)), " ")
}

// TestLabelsLeaveTheTitle: what a row is about and how much it changed are read before its labels, which have what room
// is left.
func TestLabelsLeaveTheTitle(t *testing.T) {
	r := timeline.Row{Kind: timeline.Record, Badge: "Run", When: "today 14:02", What: "make generate in all of the directories", Modified: 1200, Added: 5, Removed: 3,
		Tone: timeline.Good, Labels: []string{"before-the-merge", "second"}, Record: &history.Record{Reason: history.Run}}
	for columns, want := range map[int]string{
		30:  "  14:02   Run     make gener…",
		40:  "  14:02   Run     make generate … 1,200",
		60:  "  14:02   Run     make generate in all of the … 1,200 +5 -3",
		78:  "  14:02   Run     make generate in all of th… [before-the…] 1,200 files +5 -3",
		120: "  14:02   Run     make generate in all of the directories [before-the-merge, second]                  1,200 files +5 -3",
	} {
		require.Equal(t, want, drawn(r, columns))
	}
	r.Tone, r.Status, r.Labels = timeline.Bad, "failed, put back", nil
	require.Equal(t, "  14:02   Run     make generat…  failed, p… 1,200 +5 -3", drawn(r, 56), "what became of it is read where its title is cut")
}

// TestMarksAreCounted: how much is marked is said as it is.
func TestMarksAreCounted(t *testing.T) {
	data := diffOf(t, 3, 4)
	v := &diffView{marks: marks{}, doc: newDocument(func() (io.ReadCloser, error) { return file{bytes.NewReader(data)}, nil })}
	require.NoError(t, v.doc.index(t.Context(), func() {}))
	require.Equal(t, "mark", v.markWord(inFiles))
	v.mark(inFiles)
	require.Equal(t, 0, v.file, "the cursor stays where it is")
	require.Equal(t, "unmark", v.markWord(inFiles))
	v.marks["f0002"] = map[int]bool{2: true}
	require.Equal(t, "2 of 3 files marked, of 1 some hunks", v.markedWords())
	v.mark(inFiles)
	require.Equal(t, "1 of 3 files marked, of 1 some hunks", v.markedWords())
}

// TestRoomIsShared: what a session holds has all the room that there is, and nobody more than others that need it.
func TestRoomIsShared(t *testing.T) {
	lines := func(counts ...int) (out [][]string) {
		for _, n := range counts {
			out = append(out, make([]string, n))
		}
		return out
	}
	require.Equal(t, 6, shared(lines(2, 9, 9), 15))
	require.Equal(t, 9, shared(lines(2, 9, 9), 20))
	require.Equal(t, 1, shared(lines(5, 5, 5), 3))
}

// TestHelpIsReadAtAnySize: each key stands in the help with all that it does, however narrow the screen is.
func TestHelpIsReadAtAnySize(t *testing.T) {
	for _, columns := range []int{40, 60, 200} {
		m := &model{styles: newStyles(true), width: columns, height: 16, help: true}
		var seen []string
		for end := ""; m.help; m.helpKey("pgdown") {
			lines := m.helpLines(columns, 13)
			for _, l := range lines {
				require.LessOrEqual(t, ansi.StringWidth(l), columns)
			}
			seen = append(seen, lines...)
			if end == lines[len(lines)-1] {
				break
			}
			end = lines[len(lines)-1]
		}
		text := strings.Join(strings.Fields(ansi.Strip(strings.Join(seen, " "))), " ")
		for _, h := range helpKeys {
			require.Contains(t, text, h.keys)
			require.Contains(t, text, h.does[strings.LastIndexByte(h.does, ' '):])
		}
	}
}

func TestFactsAreWrapped(t *testing.T) {
	require.Equal(t, []string{"a · b", "ccc", "d"}, joined([]string{"a", "b", "ccc", "d"}, " · ", 5))
}

// TestCandidatesAreToldApart: at 100 columns, of which the timeline has 50, each candidate has its name and its verdict.
func TestCandidatesAreToldApart(t *testing.T) {
	m := &model{styles: newStyles(true), whenColumns: len("07:01")}
	row := func(name, judged string) string {
		r := timeline.Row{Kind: timeline.Record, Badge: "Run", When: "today 07:01", Name: name, What: "sh -c 'make generate' in all of the directories", Created: 2, Added: 2,
			Judged: judged, Status: "succeeded, a draft", Tone: timeline.Waiting}
		return strings.TrimRight(ansi.Strip(m.rowLine(entry{&r, 1, true}, false, 50)), " ")
	}
	require.Equal(t, "  07:01     Run     fix.1  judged good  … 2 +2 -0", row("fix.1", "good"))
	require.Equal(t, "  07:01     Run     fix.2  judged bad  s… 2 +2 -0", row("fix.2", "bad"))
	require.Equal(t, "  07:01     Run     fix.3  succeeded, a … 2 +2 -0", row("fix.3", ""))
}

// TestLongLinesScroll: what is scrolled out of sight leaves the sign of its line and its colours.
func TestLongLinesScroll(t *testing.T) {
	painted := "\x1b[1m+\x1b[m" + "\x1b[31m0123456789abcdefghij\x1b[m"
	require.Equal(t, painted, scrolledAside(painted, '+', 0))
	require.Equal(t, "+…56789abcdefghij", ansi.Strip(scrolledAside(painted, '+', 5)))
	require.Equal(t, "…456789abcdefghij", ansi.Strip(scrolledAside(painted, '@', 5)))
	v := diffView{}
	v.moveAside(asideOf("<"))
	require.Zero(t, v.left)
	v.moveAside(asideOf(">"))
	require.Equal(t, aside, v.left)
}

// TestOutsideHasNoBoxes: what was changed outside of any record has no box and no key that needs one.
func TestOutsideHasNoBoxes(t *testing.T) {
	data := diffOf(t, 3, 700)
	row := timeline.Row{Kind: timeline.Outside, ID: "1", Badge: "Outside", Record: &history.Record{}}
	m := &model{styles: newStyles(true), width: 60, height: 20, focus: inFiles}
	m.list.rows = []timeline.Row{row}
	open := func(noMarks bool) {
		m.record.diffView = diffView{marks: marks{}, noMarks: noMarks, doc: newDocument(func() (io.ReadCloser, error) { return file{bytes.NewReader(data)}, nil })}
		require.NoError(t, m.record.doc.index(t.Context(), func() {}))
	}
	shown := func() string { return ansi.Strip(strings.Join(m.recordLines(0, 60, 18), "\n") + "\n" + m.keyLine()) }
	open(false)
	require.Contains(t, shown(), "[ ] A f0000")
	open(!actable(&row))
	text := shown()
	require.Contains(t, text, "A f0000")
	require.NotContains(t, text, "[ ]")
	require.NotContains(t, text, "mark")
	for _, key := range []string{"space", "*", "d"} {
		m.toast = ""
		m.actKey(key)
		require.Equal(t, outsideMarks, m.toast)
		require.Empty(t, m.record.marks)
	}
}

// TestWhatIsSaidIsReadAt60Columns: what is said at the bottom takes the lines that it needs, and of a long path the end
// is read.
func TestWhatIsSaidIsReadAt60Columns(t *testing.T) {
	m := &model{styles: newStyles(true), width: 60, height: 20}
	m.say("%s", outsideMarks)
	said := m.saidLines()
	require.Equal(t, outsideMarks, strings.Join(strings.Fields(ansi.Strip(strings.Join(said, " "))), " "))
	m.say("%s", strings.Repeat("word ", 200))
	said = append(said, m.saidLines()...)
	require.Len(t, m.saidLines(), mostSaid)
	for _, line := range said {
		require.Equal(t, 60, ansi.StringWidth(line))
	}
	m.say("")
	require.Empty(t, m.saidLines())

	require.Equal(t, "…s/component/button_test.go", endOf("a/very/deep/directory/of/packages/component/button_test.go", 27))
	require.Equal(t, "a/b.go", endOf("a/b.go", 27))
}

// TestALongLineSaysWhatIsLeftOut: where a line has more than is shown, that is said, and how much.
func TestALongLineSaysWhatIsLeftOut(t *testing.T) {
	for n, want := range map[int]string{
		longestRow - 1:    "",
		longestRow:        " … and 1 B of this line that are not shown",
		longestRow + 2047: " … and 2.0 KiB of this line that are not shown",
	} {
		text := patch.Bytes(strings.Repeat("x", n) + "\nshort\n")
		e := tree.Entry{Type: tree.Regular, Mode: 0o644, Size: int64(len(text)), SHA256: tree.Sum(text)}
		var out bytes.Buffer
		w := patch.NewWriter(&out, patch.Limits{InlineText: 1 << 20, InlineBinary: 1 << 20})
		require.NoError(t, w.Write(t.Context(), patch.Change{Path: "long", New: &e, NewContent: text}))
		require.NoError(t, w.Close())
		d := newDocument(func() (io.ReadCloser, error) { return file{bytes.NewReader(out.Bytes())}, nil })
		require.NoError(t, d.index(t.Context(), func() {}))
		lines, err := d.lines(2, 2)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("x", min(n, longestRow-1))+want, lines[0].text)
		require.Equal(t, "short", lines[1].text)
	}
}
