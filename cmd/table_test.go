package cmd

import (
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "größer": 6, "日本": 4, "e\u0301": 1, "👩‍👧": 2, red + "ab" + reset: 2} {
		require.Equal(t, want, width(text), text)
	}
	require.Equal(t, "日本…", clip("日本語です", 6))
	require.Equal(t, "日…", clip("日本語です", 4))
	require.Equal(t, "日  ", padded("日", 4))
	require.Equal(t, "src/…ry/file.go", clipPath("src/main/directory/file.go", 15))
	require.Equal(t, "日…本語.txt", clipPath("日本語日本語日本語.txt", 11))
	require.Equal(t, "short", clipPath("short", 12))
}

func TestWideCharactersLineUp(t *testing.T) {
	var got strings.Builder
	cells := table{gap: 1}
	cells.add("日本", "| 1")
	cells.add("a", "| 2")
	cells.add("and more of them")
	require.NoError(t, cells.write(&got))
	require.Equal(t, "日本 | 1\na    | 2\nand more of them\n", got.String())
}

// What tabwriter makes of the same cells, but for the blanks at the ends.
func TestTableIsTabwriters(t *testing.T) {
	rows := [][]string{
		{"ID", "WHEN", "WHAT", "CHANGES"},
		{"2026112107015900-0", "now", "größer, été", "1 path +1 -1"},
		{"2026112107015900-10", "3 minutes ago", "", ""},
		{"", "", "a last cell that is long", "none"},
	}
	var cells table
	var want, got strings.Builder
	tw := tabwriter.NewWriter(&want, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		cells.add(r...)
		_, err := tw.Write([]byte(strings.Join(r, "\t") + "\n"))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Flush())
	require.NoError(t, cells.write(&got))
	var trimmed []string
	for line := range strings.Lines(want.String()) {
		trimmed = append(trimmed, strings.TrimRight(line, " \n"))
	}
	require.Equal(t, strings.Join(trimmed, "\n")+"\n", got.String())
}

// On a terminal a line that does not fit ends with an ellipsis, wide characters counted.
func TestTableFits(t *testing.T) {
	var out strings.Builder
	cells := table{most: 12}
	cells.add("keep", "the newest record")
	cells.add("keep", "short")
	cells.add("日本", "日本日本")
	require.NoError(t, cells.write(&out))
	require.Equal(t, "keep  the n…\nkeep  short\n日本  日本…\n", out.String())
}

// Paths give way first, in their middle, and every line is as narrow as the terminal.
func TestTableShortensPaths(t *testing.T) {
	for columns := 40; columns < 100; columns++ {
		var out strings.Builder
		cells := table{most: columns, paths: []int{1}}
		cells.add("created", "src/main/java/com/example/service/CustomerService.java", "| 12 ++++")
		cells.add("deleted", "文書/設計資料/日本語のとても長いファイル名です.txt", "| 1 -")
		cells.add("mode", "a", "| mode 644 -> 755")
		require.NoError(t, cells.write(&out))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		bar := -1
		for _, line := range lines {
			require.LessOrEqual(t, width(line), columns, line)
			at := width(line[:strings.LastIndex(line, "| ")])
			require.True(t, bar < 0 || bar == at, out.String())
			bar = at
		}
		require.Contains(t, lines[0], "ice.java")
		require.Contains(t, lines[1], ".txt")
	}
}

// Where cells are to be copied a table that does not fit is not aligned, but whole.
func TestTableRagged(t *testing.T) {
	var out strings.Builder
	cells := table{most: 20, ragged: true}
	cells.add("a/long/path/to/a/file", "edited since")
	cells.add("b", "missing")
	require.NoError(t, cells.write(&out))
	require.Equal(t, "a/long/path/to/a/file  edited since\nb  missing\n", out.String())
}
