package ignorefile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseMatch compares Match with the reference, in the root and below.
func FuzzParseMatch(f *testing.F) {
	for _, s := range []struct {
		content, path string
		isDir         bool
	}{
		{"foo\n*.o\n!keep.o\n/top/\na/b\n", "a/keep.o", false},
		{"\xef\xbb\xbf# x\r\n\\#y \\ \r\n", "#y  ", false},
		{"**/a/**/b/**\n***\nx**y\n**\\/z\n", "a/c/b/d", true},
		{"[!a-c\\]]*[[:digit:]x]?\n[[:a]\n[]-z]\n", "de7f", false},
		{"[\n[a\n\\\na\\/\n//a\na//b\n!\n/\n", "a", true},
		{"*a*b*c\n/*/*a*/**/*b\n", "xa/aab/c/b", false},
		{"a\x00b\n!a\n\xff\n", "\xff", false},
		{strings.Repeat("**/*a*/", 10) + "b", strings.Repeat("aa/", 20) + "b", false},
	} {
		f.Add([]byte(s.content), s.path, s.isDir)
	}
	f.Fuzz(func(t *testing.T, data []byte, path string, isDir bool) {
		if len(data) > 2000 || len(path) > 300 || path == "" || emptyComponent(path) {
			t.Skip("the reference is slow, and real paths have no empty component")
		}
		file, err := Parse("fuzz", data)
		require.NoError(t, err)
		var none *Rules
		line, ignored := reference(string(data), path, isDir)
		for _, c := range []struct{ dir, path string }{{"", path}, {"d/e", "d/e/" + path}} {
			v := none.Enter(c.dir, file).Match(c.path, isDir)
			require.Equal(t, ignored, v.Ignored, "%q on %q", data, c.path)
			if line == 0 {
				require.Nil(t, v.Rule, "%q on %q", data, c.path)
				continue
			}
			require.NotNil(t, v.Rule, "%q on %q", data, c.path)
			require.Equal(t, line, v.Rule.Line(), "%q on %q", data, c.path)
		}
	})
}
