package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/view"
)

func TestCount(t *testing.T) {
	assert.Equal(t, "1 file", count(1, "file"))
	assert.Equal(t, "0 files", count(0, "file"))
	assert.Equal(t, "1,234 directories", count(1234, "directory"))
	assert.Equal(t, "2 processes", count(2, "process"))
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ms", 12 * time.Millisecond: "12 ms", 1234 * time.Millisecond: "1.2 s",
		200 * time.Second: "3m 20s", 3*time.Hour + 5*time.Minute: "3h 05m",
	} {
		assert.Equal(t, want, span(d))
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	s := &session{env: Env{Now: func() time.Time { return now }, Location: time.FixedZone("", 3600)}}
	assert.Equal(t, "3 minutes ago", s.ago(now.Add(-3*time.Minute)))
	assert.Equal(t, "now", s.ago(now))
	assert.Equal(t, "1 hour from now", s.ago(now.Add(time.Hour+time.Second)))
	assert.Equal(t, "", s.ago(time.Time{}))
	assert.Equal(t, "2026-11-21 08:00:00 +01:00", s.clock(now))
}

func TestClip(t *testing.T) {
	assert.Equal(t, "käse", clip("käse", 4))
	assert.Equal(t, "kä…", clip("käse", 3))
}

func TestList(t *testing.T) {
	assert.Equal(t, "", list(nil))
	assert.Equal(t, "a", list([]string{"a"}))
	assert.Equal(t, "a and b", list([]string{"a", "b"}))
	assert.Equal(t, "a, b and c", list([]string{"a", "b", "c"}))
}

func TestWrap(t *testing.T) {
	assert.Equal(t, "  aa bb\n  cc\n\n  dd\n   as it is\n", wrap("aa bb cc\n\ndd\n as it is", 7, "  "))
	for _, l := range strings.Split(wrap(strings.Repeat("word ", 100), 40, "    "), "\n") {
		assert.LessOrEqual(t, len(l), 40)
	}
}

func TestQuoteWord(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "a/b.c-d_e": "a/b.c-d_e", "": "''", "two words": "'two words'",
		"it's": `'it'\''s'`, "a\nb": `$'a\012b'`, "käse": "käse", "$HOME": "'$HOME'",
	} {
		assert.Equal(t, want, quoteWord(in))
	}
	assert.Equal(t, "sh -c 'a | b'", commandLine([]string{"sh", "-c", "a | b"}))
}

// TestOneLine holds that nothing a terminal would obey gets through.
func TestOneLine(t *testing.T) {
	assert.Equal(t, `up\302\233A, back\342\200\256wards, odd\233 byte`, oneLine("up\u009bA, back\u202ewards, odd\x9b byte"))
	assert.Equal(t, `a\012hint: b\033[31m\177`, oneLine("a\nhint: b\x1b[31m\x7f"))
	assert.Equal(t, `\302\233x`, oneLine("\u009bx"))
	assert.Equal(t, "käse", oneLine("käse"))
}

func TestChangeWords(t *testing.T) {
	assert.Equal(t, "2 created, 1 deleted; +12 -3 lines", changeWords(2, 0, 1, 12, 3))
	assert.Equal(t, "no file changed", changeWords(0, 0, 0, 0, 0))
}

// TestOnePlaceQuotes keeps paths from being printed past escape.go.
func TestOnePlaceQuotes(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		if name != "escape.go" && name != "words_test.go" {
			assert.NotContains(t, string(data), "tree.Quote(", "%s: shownPath is for people, manifestPath for JSON", name)
		}
	}
}

func TestEscapedJSON(t *testing.T) {
	assert.Equal(t, `{"a":"k\u202e\u009bä\u007f"}`, string(view.Escape([]byte("{\"a\":\"k\u202e\u009bä\x7f\"}"))))
	plain := []byte("{\n  \"a\": \"ä\"\n}\n")
	assert.Equal(t, string(plain), string(view.Escape(plain)))
}

func TestConfigHelpNamesEveryKey(t *testing.T) {
	help := configHelp()
	for _, k := range project.Keys() {
		assert.Contains(t, help, "\n"+k.Name+" (")
	}
	for _, line := range strings.Split(help, "\n") {
		if !strings.HasPrefix(line, "retention (") {
			assert.LessOrEqual(t, len(line), 80, line)
		}
	}
}
