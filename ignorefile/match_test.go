package ignorefile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/ignorefile"
)

// rootRules returns the rules of one file of that content in the root.
func rootRules(t testing.TB, content string) *ignorefile.Rules {
	t.Helper()
	f, err := ignorefile.Parse(".gitignore", []byte(content))
	require.NoError(t, err)
	var none *ignorefile.Rules
	return none.Enter("", f)
}

// matchCases give one rule file, one path and the reason. A path with a slash at
// the end is a directory.
var matchCases = []struct {
	rules string
	path  string
	want  bool
	why   string
}{
	{"foo", "foo", true, "a plain name"},
	{"foo", "a/b/foo", true, "a name without slash matches at any depth"},
	{"foo", "foo/", true, "a name matches directories too"},
	{"foo", "xfoo", false, "a name is not a suffix"},
	{"foo", "foox", false, "a name is not a prefix"},
	{"foo", "Foo", false, "case counts"},
	{"foo/", "foo", false, "a slash at the end: not a file"},
	{"foo/", "a/foo/", true, "a slash at the end is no anchor"},
	{"/foo", "foo", true, "anchored, in the root"},
	{"/foo", "a/foo", false, "anchored, not below"},
	{"/foo/", "foo/", true, "anchored directory"},
	{"a/foo", "a/foo", true, "a slash in the middle anchors"},
	{"a/foo", "b/a/foo", false, "a slash in the middle anchors"},
	{"a/foo", "a/foo/x", false, "a path says nothing of what lies below"},
	{"//foo", "foo", false, "only one slash in front is taken off"},
	{"a//foo", "a/foo", false, "no path has an empty component"},
	{"foo//", "foo/", false, "no path ends with a slash"},
	{"/", "a/", false, "a slash alone is no rule"},
	{"!", "!", false, "a negation of nothing"},

	{"# foo", "# foo", false, "a comment"},
	{" #foo", " #foo", true, "a comment begins at the line's beginning"},
	{`\#foo`, "#foo", true, "an escaped #"},
	{`\!foo`, "!foo", true, "an escaped !"},
	{"!!foo\n!foo", "!foo", false, "the first ! negates"},
	{"foo\n!foo", "foo", false, "a later negation wins"},
	{"!foo\nfoo", "foo", true, "a later rule wins over a negation"},
	{"foo\n!foo/", "foo", true, "the negation is for directories only"},
	{"foo\n!foo/", "foo/", false, "the negation is for directories only"},
	{"foo/\n!foo", "foo/", false, "a negation for everything covers directories"},
	{"*\n!*.go\n*_test.go", "a_test.go", true, "the last of three"},
	{"!x/\nfoo\n!foo\nfoo", "foo", true, "a repeated rule counts where it stands last"},

	{"foo ", "foo", true, "trailing spaces are dropped"},
	{"foo \t", "foo", false, "a tab is no space"},
	{`foo\ `, "foo ", true, "an escaped trailing space"},
	{`foo\  `, "foo ", true, "only the escaped space stays"},
	{`foo \ `, "foo  ", true, "a space before an escaped one stays"},
	{`foo\\ `, `foo\`, true, "the backslash is itself escaped, so the space goes"},
	{" foo", " foo", true, "spaces in front count"},
	{"   ", "   ", false, "a line of spaces is blank"},
	{"foo\r\nbar", "foo", true, "CR before LF goes"},
	{"foo\r", "foo", true, "CR at the end of the file goes"},
	{"foo \r\n", "foo", true, "CR goes before the spaces do"},
	{"foo\r\r\n", "foo\r", true, "only one CR goes"},
	{"fo\ro\n", "fo\ro", true, "a CR in the middle counts"},
	{"\r\n", "\r", false, "a line of CR alone is blank"},
	{"\xef\xbb\xbffoo", "foo", true, "a byte-order mark is skipped"},
	{"a\n\xef\xbb\xbffoo", "foo", false, "a byte-order mark belongs in front of the file"},
	{"fo\x00o", "fo", true, "a NUL byte ends the line"},
	{"\xff\n*.\xe9", "x.\xe9", true, "bytes that are no UTF-8"},
	{"?", "\xc3\xa9", false, "? is one byte, not one character"},
	{"??", "\xc3\xa9", true, "? is one byte, not one character"},

	{"*", ".a", true, "* takes names with a dot in front"},
	{"*.go", ".go", true, "* matches nothing at all"},
	{"*.go", "a/b.go", true, "a suffix at any depth"},
	{"*.go", "a.gox", false, "a suffix is at the end"},
	{"/*.go", "a/b.go", false, "* matches no slash"},
	{"a*b*c", "axbxbyc", true, "the star must go on after a first b"},
	{"a*b*c", "axbxby", false, "no c at the end"},
	{"a/*", "a/b", true, "one level"},
	{"a/*", "a/b/c", false, "one level only"},
	{"a/*/c", "a/b/c", true, "one level between"},
	{"a/*/c", "a/c", false, "one level, not none"},
	{"a?c", "abc", true, "? is one byte"},
	{"a?c", "ac", false, "? is one byte, not none"},
	{"a?c/x", "a/c/x", false, "? is no slash"},

	{"**/foo", "foo", true, "**/ may be nothing"},
	{"**/foo", "a/b/foo", true, "**/ may be much"},
	{"**/a/b", "a/b", true, "**/ before a path may be nothing"},
	{"**/a/b", "x/a/a/b", true, "**/ tries the second a too"},
	{"**/a/b", "xa/b", false, "**/ ends at a component"},
	{"a/**", "a/b/c", true, "/** is everything below"},
	{"a/**", "a/", false, "/** is not the directory itself"},
	{"a/**/b", "a/b", true, "/**/ may be nothing"},
	{"a/**/b", "a/x/y/b", true, "/**/ may be much"},
	{"a/**/b", "a/xb", false, "/**/ ends at a component"},
	{"a/**/*.c/d", "a/x/y.c/z.c/d", true, "/**/ and a star"},
	{"**", "a/b", true, "** alone"},
	{"***/b/c", "a/b/c", true, "three stars are two"},
	{"a**b", "axxb", true, "** in a name is *"},
	{"/a**b", "ax/xb", false, "** in a name is *"},
	{"x/**b", "x/y/b", false, "** before a literal is *"},
	{"a**/b", "axx/b", true, "** behind a literal is *"},
	{"a**/b", "a/b", true, "** behind a literal is *"},
	{"a**/b", "ax/x/b", false, "** behind a literal is *"},
	{`**\/b`, "x/y/b", true, "an escaped slash after ** ends a component"},
	{`**\/b`, "b", false, "but not of nothing"},
	{"/**/", "a/b/", true, "every directory"},

	{"[ab]", "b", true, "a set"},
	{"[ab]", "c", false, "a set"},
	{"[a-c]x", "bx", true, "a range"},
	{"[c-a]", "b", false, "a range the wrong way round has its first byte only"},
	{"[!a]", "b", true, "! negates a set"},
	{"[^a]", "a", false, "^ negates a set"},
	{"[]a]", "]", true, "] first is a member"},
	{"[!]a]", "b", true, "] first after ! is a member"},
	{"[a-]", "-", true, "- last is a member"},
	{"[-a]", "-", true, "- first is a member"},
	{`[\]]`, "]", true, "an escaped ]"},
	{`[a\-c]`, "b", false, "an escaped - makes no range"},
	{`[a-\c]`, "b", true, "the end of a range may be escaped"},
	{"[a-c-e]", "d", false, "a range's end begins no other"},
	{"[[:digit:]a]", "7", true, "a POSIX class"},
	{"[![:alpha:]]", "x", false, "a negated POSIX class"},
	{"[[:space:]]", "\v", false, "git's space has no vertical tab"},
	{"[[:foo:]]", "f", false, "a class that does not exist"},
	{"[[:]", ":", true, "[: without :] are members"},
	{"[[:a]", "[", true, "[: without :] are members"},
	{"[[:digit:]-z]", "-", true, "a class begins no range"},
	{"a[/]b", "a/b", false, "no set matches a slash"},
	{"a[!x]b", "a/b", false, "no set matches a slash"},

	{"[a", "[a", false, "a set that does not end"},
	{"[", "[", false, "a set that does not end"},
	{"[]", "[]", false, "a set that does not end"},
	{"*[", "[", false, "a set that does not end"},
	{`a\`, "a", false, "a backslash at the end"},
	{`a\`, `a\`, false, "a backslash at the end"},
	{`a\/`, `a/`, false, "a backslash before the slash at the end"},
	{`\a`, "a", true, "an escaped letter is itself"},
	{`\*`, "*", true, "an escaped star"},
	{`\*`, "x", false, "an escaped star"},
	{`a\/b`, "a/b", true, "an escaped slash is a slash"},
	{`\/a`, "a", false, "an escaped slash in front is none of the root"},
	{"a]", "a]", true, "] alone is itself"},
	{"a{b,c}", "ab", false, "braces are no alternatives"},
	{"(a)$", "(a)$", true, "nothing else is special"},
}

// TestMatchRule asks about the paths as such, without their parents.
func TestMatchRule(t *testing.T) {
	for _, c := range matchCases {
		path, isDir := strings.CutSuffix(c.path, "/")
		got := rootRules(t, c.rules).Match(path, isDir)
		assert.Equal(t, c.want, got.Ignored, "%q on %q: %s", c.rules, c.path, c.why)
	}
}

func TestVerdictNamesRule(t *testing.T) {
	f, err := ignorefile.Parse("src/.gitignore", []byte("# x\n\n*.o\r\n!/keep/ \n"))
	require.NoError(t, err)
	assert.Equal(t, 2, f.Len())
	rules := (*ignorefile.Rules)(nil).Enter("src", f)

	v := rules.Match("src/a/b.o", false)
	require.NotNil(t, v.Rule)
	assert.True(t, v.Ignored)
	assert.Equal(t, "src/.gitignore", v.Rule.Source())
	assert.Equal(t, 3, v.Rule.Line())
	assert.Equal(t, "*.o", v.Rule.Text(), "without the line ending")

	v = rules.Match("src/keep", true)
	require.NotNil(t, v.Rule, "a negation is named too")
	assert.False(t, v.Ignored)
	assert.Equal(t, 4, v.Rule.Line())
	assert.Equal(t, "!/keep/ ", v.Rule.Text(), "raw, with its spaces")

	assert.Equal(t, ignorefile.Verdict{}, rules.Match("src/main.go", false), "no rule matched")
}

func TestLenCountsWhatDecides(t *testing.T) {
	for content, want := range map[string]int{
		"":                     0,
		"\n\r\n  \n#x\n/\n!\n": 0,
		"[a\nb\\\na//b\n[/]\n": 0,
		"a\na\n!a\n":           1,
		"a/\na\n":              1,
		"a\na/\n":              2,
		"a*//b\n**//\n*/\\/":   0,
		"**/a\na\n**/**/a\n":   1,
		"*a?\n!*a?\n/*a?\n":    2,
		"a\n/a\n*a\n":          3,
	} {
		f, err := ignorefile.Parse("x", []byte(content))
		require.NoError(t, err)
		assert.Equal(t, want, f.Len(), "%q", content)
	}
}

func TestEnter(t *testing.T) {
	parse := func(source, content string) *ignorefile.File {
		f, err := ignorefile.Parse(source, []byte(content))
		require.NoError(t, err)
		return f
	}
	var none *ignorefile.Rules
	assert.Equal(t, ignorefile.Verdict{}, none.Match("a", false), "a nil *Rules has no rules")
	assert.Nil(t, none.Enter("", nil, parse("x", "# nothing\n")))

	root := none.Enter("", parse(".gitignore", "*.o\n/top\n!c.o\n"), parse(".decreeignore", "c.o\n!d.o\n"))
	assert.Same(t, root, root.Enter("a"), "no files, no new link")
	sub := root.Enter("a/b", parse("a/b/.gitignore", "!a.o\n/top\nx/y\n"))

	for _, c := range []struct {
		rules  *ignorefile.Rules
		path   string
		source string
		want   bool
		why    string
	}{
		{root, "a.o", ".gitignore", true, "the root's rule"},
		{root, "c.o", ".decreeignore", true, "the second file wins over the first"},
		{root, "d.o", ".decreeignore", false, "the second file takes back"},
		{sub, "a/b/a.o", "a/b/.gitignore", false, "the deeper file wins"},
		{sub, "a/b/e.o", ".gitignore", true, "else the upper one decides"},
		{sub, "a/b/d.o", ".decreeignore", false, "else the upper one decides"},
		{sub, "a/b/top", "a/b/.gitignore", true, "anchored where the file lies"},
		{sub, "a/b/c/top", "", false, "anchored in neither"},
		{sub, "a/b/x/y", "a/b/.gitignore", true, "a path from the file's directory"},
		{sub, "a/b", "", false, "the directory itself"},
	} {
		v := c.rules.Match(c.path, false)
		assert.Equal(t, c.want, v.Ignored, "%s: %s", c.path, c.why)
		if c.source == "" {
			assert.Nil(t, v.Rule, "%s: %s", c.path, c.why)
		} else if assert.NotNil(t, v.Rule, "%s: %s", c.path, c.why) {
			assert.Equal(t, c.source, v.Rule.Source(), "%s: %s", c.path, c.why)
		}
	}
}
