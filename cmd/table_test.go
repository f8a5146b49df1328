package cmd

import (
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
)

// What tabwriter makes of the same cells, but for the blanks at the ends.
func TestTableIsTabwriters(t *testing.T) {
	rows := [][]string{
		{"ID", "WHEN", "WHAT", "CHANGES"},
		{"2026112107015900-0", "now", "größer, été, 日本", "1 path +1 -1"},
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
