package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCode holds that no text can leave the code that it stands in.
func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"make":            "`make`",
		"a `b` c":         "``a `b` c``",
		"``":              "``` `` ```",
		"":                "`  `",
		"@ann #1 <b>\x1b": "`@ann #1 <b>\\033`",
		"two\nlines":      "`two\\012lines`",
		"\u202e":          "`\\342\\200\\256`",
	} {
		require.Equal(t, want, code(text))
	}
	require.Equal(t, 4, longestRun("a```b````c`"))
	require.Zero(t, longestRun("none"))
}
