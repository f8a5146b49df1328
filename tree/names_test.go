package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/jsonread"
)

func TestQuote(t *testing.T) {
	for raw, want := range map[string]string{
		"":               "",
		"plain":          "plain",
		"with space":     "with space",
		`back\slash`:     `back\slash`,
		`in"side`:        `in"side`,
		`"first`:         `"\"first"`,
		"caf\xe9":        `"caf\351"`,
		"café":           "café",
		"café\n":         `"caf\303\251\n"`,
		"\a\b\t\n\v\f\r": `"\a\b\t\n\v\f\r"`,
		"\x00\x1b\x7f":   `"\000\033\177"`,
		"\xff\"\\":       `"\377\"\\"`,
		"\u2028":         "\u2028",
	} {
		got := Quote(raw)
		assert.Equal(t, want, got)
		assert.True(t, utf8.ValidString(got))
		back, err := Unquote(want)
		require.NoError(t, err, want)
		assert.Equal(t, raw, back)
	}
}

// What Quote would not have written is refused: one path, one spelling.
func TestUnquoteRefuses(t *testing.T) {
	for _, s := range []string{
		`"`, `""`, `"a"`, `"\"a`, `"\n`, `"\n"x`, `"\x41\n"`, `"\12"`, `"\0123"`, `"\012"`, `"\400"`, `"\8\n"`, `"\`, `"\"`,
		`"a"b\n"`, "\"a\nb\"", "a\nb", "\xff", `"café\n"`, `"\101\n"`,
	} {
		got, err := Unquote(s)
		assert.Error(t, err, "%s gives %q", s, got)
	}
}

// The JSON is what encoding/json reads back, and escapes only what JSON requires.
func TestAppendJSONString(t *testing.T) {
	for _, s := range []string{"", "plain", `q"b\`, "<&>\u2028\u2029é\x7f", "\x00\x01\b\t\n\v\f\r\x1f"} {
		got := AppendJSONString([]byte("x"), s)
		var back string
		require.NoError(t, json.Unmarshal(got[1:], &back), "%s", got)
		assert.Equal(t, s, back)
		assert.NoError(t, jsonread.Object([]byte(`{"a":`+string(got[1:])+"}"), func(_ string, v *jsonread.Value) error {
			assert.Equal(t, s, v.Text())
			return nil
		}))
	}
	assert.Equal(t, "\"<&>\u2028\x7f\"", string(AppendJSONString(nil, "<&>\u2028\x7f")))
	assert.Equal(t, `"\u0000\b\u000b\u001f"`, string(AppendJSONString(nil, "\x00\b\v\x1f")))
}

func TestHash(t *testing.T) {
	h := Sum([]byte("abc"))
	const text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	assert.Equal(t, text, h.String())
	back, err := ParseHash(text)
	require.NoError(t, err)
	assert.Equal(t, h, back)
	data, err := json.Marshal(h)
	require.NoError(t, err)
	assert.Equal(t, `"`+text+`"`, string(data))
	var again Hash
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, h, again)
	assert.True(t, Hash{}.IsZero())
	assert.False(t, h.IsZero())
	for _, s := range []string{"", text[1:], text + "0", strings.ToUpper(text), "g" + text[1:]} {
		_, err := ParseHash(s)
		assert.Error(t, err)
		assert.Error(t, again.UnmarshalText([]byte(s)))
	}
	assert.Equal(t, h, again, "a text that is refused changes nothing")
}

func TestMode(t *testing.T) {
	for mode, s := range map[uint32]string{0: "0", 0o644: "644", 0o4755: "4755", 0o7: "7", 0o7777: "7777"} {
		assert.Equal(t, s, FormatMode(mode))
		got, ok := ParseMode(s)
		assert.True(t, ok)
		assert.Equal(t, mode, got)
	}
	for _, s := range []string{"", "00", "0644", "8", "10000", "-1", "6 4", "+644"} {
		_, ok := ParseMode(s)
		assert.False(t, ok, s)
	}
}

func TestCheck(t *testing.T) {
	for _, p := range []Path{
		"a", "a/b", "...", "a/..b", ".gitignore", ".github/x", "a/.gitx", ".decreeignore", "x.git", "a b", "\xff", "-", "~", "a\\..\\b",
		Path(strings.Repeat("a", MaxPath-1)),
	} {
		assert.NoError(t, p.Check(), p)
	}
	for p, reason := range map[Path]string{
		"": "empty path", "/": "absolute path", "/a": "absolute path", ".": "path not clean", "./a": "path not clean", "a/": "path not clean",
		"a//b": "path not clean", "a/.": "path not clean", "..": `".." in path`, "../a": `".." in path`, "a/../b": `".." in path`, "a/..": `".." in path`,
		"a\x00b": "NUL byte in path", ".git": "path in .git", "a/.git/b": "path in .git", ".decree": "path in .decree", "a/.decree": "path in .decree",
		Path(strings.Repeat("a", MaxPath)): "path too long",
	} {
		err := p.Check()
		var pathErr *PathError
		require.ErrorAs(t, err, &pathErr, p)
		assert.Equal(t, reason, pathErr.Reason, p)
		assert.Equal(t, p, pathErr.Path)
	}
}

func TestPathParts(t *testing.T) {
	for p, want := range map[Path][2]string{"": {"", ""}, "a": {"", "a"}, "a/b": {"a", "b"}, "a/b/c\xff": {"a/b", "c\xff"}} {
		assert.Equal(t, Path(want[0]), p.Parent(), p)
		assert.Equal(t, want[1], p.Name(), p)
		assert.Equal(t, p, p.Parent().Join(p.Name()))
	}
	assert.Equal(t, Path("a/b/c"), Path("a").Join("b/c"))
	assert.Equal(t, []string{"a", "b"}, slices.Collect(Path("a/b").Components()))
}

func TestWithin(t *testing.T) {
	p := Path("a/b")
	assert.True(t, p.Within())
	assert.True(t, p.Within(""))
	assert.True(t, p.Within("x", "a"))
	assert.True(t, p.Within("a/b"))
	assert.False(t, p.Within("b"))
	assert.False(t, Path("ab").Within("a"))
	assert.False(t, Path("a").Within("a/b"))
	assert.False(t, Path("a").Within("A"))
	assert.True(t, p.Below("a") && p.Below(""))
	assert.False(t, p.Below(p) || p.Below("a/b/c") || p.Below("a/") || Path("").Below(""))
}

func TestEntrySame(t *testing.T) {
	f := file("x")
	assert.True(t, f.Same(f))
	executable := f
	executable.Mode = 0o755
	for _, o := range []Entry{file("y"), executable, Link("x"), dir(0o644)} {
		assert.False(t, f.Same(o))
	}
	l := Link("x")
	o := l
	o.Mode = 0o755
	assert.True(t, l.Same(o), "a symlink's mode is not compared")
	assert.False(t, dir(0o755).Same(dir(0o700)))
}
