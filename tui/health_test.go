package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"decree/page"
)

// hostilePlots have what a terminal would obey in each of their texts.
func hostilePlots() []*page.Plot {
	evil := "\x1b]0;pwned\a\u202e" + strings.Repeat("long", 40)
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	space := &page.Plot{Title: "Space" + evil, Words: "What is kept. " + evil, Unit: page.Bytes, Line: true, Limit: 50 << 20,
		Ahead: []page.Point{{At: day.AddDate(0, 0, 60), Value: 50 << 20}}}
	for i := range 40 {
		space.Points = append(space.Points, page.Point{At: day.AddDate(0, 0, i), Value: float64(i << 20)})
	}
	return []*page.Plot{space,
		{Title: "Changes", Unit: page.Things, Noun: "file", Points: []page.Point{{Name: evil, Value: 1_000_000}, {Name: "a", Value: 0}, {Name: "b", Value: 1}}},
		{Title: "None", Words: "Nothing.", Unit: page.Things, Noun: "run"}}
}

// TestBarsKeepToTheirColumns: no line of the numbers is wider than the screen, and no byte of a name is obeyed.
func TestBarsKeepToTheirColumns(t *testing.T) {
	for _, columns := range []int{40, 60, 200} {
		m := &model{engine: &engine{Options: Options{Location: time.UTC}}, styles: newStyles(true), health: &healthPane{plots: hostilePlots()}}
		lines := m.healthLines(columns, 1000)
		for _, line := range lines {
			require.LessOrEqual(t, ansi.StringWidth(line), columns, "%q", line)
			for _, r := range ansi.Strip(line) {
				require.False(t, r < 0x20 || r == 0x7f || r == 0x202e, "%q", line)
			}
			require.NotContains(t, line, "\x1b]")
		}
		text := ansi.Strip(strings.Join(lines, "\n"))
		require.Contains(t, text, "Nothing to show yet.")
		require.Regexp(t, `(?m)^ 31 Dec 2026, e(xpected|…) +50 MiB  █+$`, text)
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	join := func(texts ...string) string { return strings.Join(texts, "") }
	b := barLines{columns: 30, loc: time.UTC, bar: "#", title: join, paint: join}
	require.Equal(t, []string{
		"make          10 files  ######",
		"go test ./.…   5 files  ###",
		"ls              1 file  #",
	}, b.bars(&page.Plot{Unit: page.Things, Noun: "file", Points: []page.Point{{Name: "make", Value: 10}, {Name: "go test ./...", Value: 5}, {Name: "ls", Value: 1}}}))
}

// TestNumbersScroll: whatever is pressed, the screen is full as long as there are lines for it.
func TestNumbersScroll(t *testing.T) {
	m := &model{engine: &engine{Options: Options{Location: time.UTC}}, styles: newStyles(true), width: 60, height: 16, health: &healthPane{plots: hostilePlots()}}
	first := m.healthLines(60, 5)
	for _, key := range []string{"k", "pgup", "g"} {
		m.keyInHealth(key)
		require.Equal(t, first, m.healthLines(60, 5), key)
	}
	all := m.healthLines(60, 1000)
	m.keyInHealth("G")
	m.keyInHealth("j")
	require.Equal(t, all[len(all)-5:], m.healthLines(60, 5))
	m.keyInHealth("k")
	require.Equal(t, all[len(all)-6:len(all)-1], m.healthLines(60, 5))
	m.keyInHealth("esc")
	require.Nil(t, m.health)
}
