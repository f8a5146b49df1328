package page

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// TestLexersAreWhole holds that each lexer can be made, and that those it hands over to are there.
func TestLexersAreWhole(t *testing.T) {
	list, err := lexerFiles.ReadDir("lexers")
	require.NoError(t, err)
	using := regexp.MustCompile(`using lexer="([^"]*)"`)
	for _, f := range list {
		data, err := lexerFiles.ReadFile("lexers/" + f.Name())
		require.NoError(t, err)
		for _, m := range using.FindAllSubmatch(data, -1) {
			require.NotNil(t, registry().Get(string(m[1])), "%s hands over to %s", f.Name(), m[1])
		}
	}
	for _, lexer := range registry().Lexers {
		it, err := lexer.Tokenise(nil, "if (x) { return \"1\"; } # <a b='c'>\n")
		require.NoError(t, err, lexer.Config().Name)
		require.NotEmpty(t, it.Tokens(), lexer.Config().Name)
	}
}

func TestTokens(t *testing.T) {
	c := &Colours{}
	got := c.Tokens("cmd/main.go", []string{"func main() {", "\treturn \"a\" // b", "", "var n int = 0x1f"})
	require.Equal(t, [][]Token{
		{{Keyword, "func "}, {Name, "main"}, {"", "() {"}},
		{{"", "\t"}, {Keyword, "return "}, {String, "\"a\" "}, {Comment, "// b"}},
		nil,
		{{Keyword, "var "}, {"", "n "}, {Type, "int "}, {"", "= "}, {Number, "0x1f"}},
	}, got)
	for _, name := range []tree.Path{"a.py", "Makefile", "x/Dockerfile", "a.html", "a.ts", "a.yml", "go.mod", "a.rs", "a.css", "a.sh", "a.json"} {
		lines := []string{"def f(x): # 1", "<b>", "\"é\" `", "\t}", ""}
		tokens := c.Tokens(name, lines)
		require.Len(t, tokens, len(lines), name)
		for i, l := range lines {
			require.True(t, spells(tokens[i], l), "%s: %v", name, tokens[i])
		}
	}
}

// TestColoursAreBounded holds what stays plain: unknown kinds, long lines, large blocks, bytes
// that are no text, and everything after too much time.
func TestColoursAreBounded(t *testing.T) {
	c := &Colours{}
	require.Nil(t, c.Tokens("notes.unknown", []string{"func"}))
	require.Nil(t, c.Tokens("a.go", []string{strings.Repeat("x", longestLine+1)}))
	require.Nil(t, c.Tokens("a.go", strings.Split(strings.Repeat("x\n", largestBlock), "\n")))
	require.Nil(t, c.Tokens("a.go", []string{"func \xff"}))
	require.NotNil(t, c.Tokens("a.go", []string{"func"}))
	c.spent = allTime + 1
	require.Nil(t, c.Tokens("a.go", []string{"func"}))
}

func TestWords(t *testing.T) {
	parts := func(line string, list []Range) (out []string) {
		for _, r := range list {
			out = append(out, line[r.From:r.To])
		}
		return out
	}
	for _, c := range []struct {
		old, new   string
		gone, new2 []string
	}{
		{"total := 0", "total, limit := 0", nil, []string{", limit"}},
		{"words.Tally(name)", "words.Count(name, limit)", []string{"Tally"}, []string{"Count", ", limit"}},
		{"a b c", "a b c", nil, nil},
		{"completely different", "nothing shared here", nil, nil},
		{"naïve", "naïv", nil, nil},
		{"", "x", nil, nil},
	} {
		gone, come := Words(c.old, c.new)
		require.Equal(t, c.gone, parts(c.old, gone), c.old)
		require.Equal(t, c.new2, parts(c.new, come), c.new)
	}
}

// variables are the colours of the stylesheet, for light and for dark.
func variables(t *testing.T) (light, dark map[string]string) {
	block := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(Style, -1)
	require.Len(t, block, 2)
	read := func(text string) map[string]string {
		out := map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	return read(block[0][1]), read(block[1][1])
}

// TestContrast holds that every text can be read on every ground that it stands on: 4.5, which
// is AA, in light and in dark.
func TestContrast(t *testing.T) {
	light, dark := variables(t)
	require.Equal(t, len(light), len(dark), "a colour is for one of them alone")
	grounds := []string{"ground", "sheet", "sunk", "hunk", "add", "del"}
	pairs := [][2]string{
		{"accent-text", "accent"}, {"run-text", "run"}, {"turn-text", "turn"}, {"restore-text", "restore"}, {"publish-text", "publish"},
		{"text", "restore"}, {"text", "run"}, {"text", "turn"}, {"text", "add-strong"}, {"text", "del-strong"},
	}
	for _, text := range []string{"text", "soft", "accent", "good", "bad", "wait", "red", "green", "yellow", "blue", "magenta", "cyan", "grey"} {
		for _, g := range grounds {
			pairs = append(pairs, [2]string{text, g})
		}
	}
	for _, text := range []string{"green", "yellow", "blue", "magenta", "cyan", "soft"} { // tokens in changed words
		pairs = append(pairs, [2]string{text, "add-strong"}, [2]string{text, "del-strong"})
	}
	for name, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, p := range pairs {
			require.NotEmpty(t, colours[p[0]], p[0])
			if c := contrast(colours[p[0]], colours[p[1]]); c < 4.5 {
				t.Errorf("%s: %s on %s: %.2f", name, p[0], p[1], c)
			}
		}
	}
}
