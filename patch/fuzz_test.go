package patch

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/jsonread"
	"decree/tree"
)

// What the reader takes, it gives back byte for byte, and applying it never panics; what
// applies also reverses.
func FuzzReader(f *testing.F) {
	names, _ := filepath.Glob("../testdata/diff/*.txtar")
	for _, name := range names {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		for _, a := range parseArchive(string(data)) {
			if a.name == "diff" && len(a.data) < 4000 {
				f.Add([]byte(a.data), []byte("a\nb\n"))
			}
		}
	}
	f.Add([]byte(first+modLine+modHead+modHunk+goneSec2("g")+modeSec), []byte("a\nb\n"))
	f.Add([]byte(first+binLine+binHead+"# < AGE=\n# > AGI=\n"), []byte("\x00a"))
	f.Fuzz(func(t *testing.T, diff, content []byte) {
		r := NewReader(bytes.NewReader(diff))
		for {
			s, err := r.Next()
			if err != nil {
				return
			}
			require.NoError(t, s.Path.Check())
			require.Equal(t, string(diff[s.Offset:s.Offset+s.Size]), string(s.Raw))
			_, body := cutLine(s.Raw)
			_, formatted := cutLine(format(s))
			require.Equal(t, string(body), string(formatted), "all but the facts has one spelling")
			checkContents(t, s, content)
		}
	})
}

// checkContents applies a section to a content that may or may not fit.
func checkContents(t *testing.T, s *Section, content []byte) {
	added, removed := lineCounts(s)
	require.False(t, len(s.Hunks) > 0 && added+removed == 0)
	got, err := s.Forward(content)
	if err != nil || s.Old == nil || s.New == nil {
		return
	}
	back, err := s.Reverse(got)
	require.NoError(t, err)
	require.Equal(t, string(content), string(back))
}

// Any two contents make a diff that applies, reverses and parses.
func FuzzRoundTrip(f *testing.F) {
	for _, pair := range [][2]string{
		{"", "a"}, {"a\n", "a"}, {"a\nb\nc\n", "a\nx\nc\n"}, {"-- a\n", "++ a\n"}, {"\x00", "\n"}, {"\r\n\n", "\n\r"}, {"\xff\n", "\xfe\n"},
		{"@@ -1 +1 @@\n", "\\ No newline at end of file\n"}, {"a\nb\nc\na\nb\nc\n", "a\nb\nc\nx\na\ny\nb\nc\n"},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]), "f")
	}
	f.Add([]byte("x\n"), []byte("y\n"), "caf\xe9 \"\n")
	f.Fuzz(func(t *testing.T, a, b []byte, name string) {
		path := tree.Path(name)
		if path.Check() != nil || bytes.Equal(a, b) {
			return
		}
		c := modify(path, string(a), string(b))
		all := read(t, write(t, Limits{}, c))
		require.Len(t, all, 1)
		require.Equal(t, path, all[0].Path)
		checkBothWays(t, all[0], node{c.Old, string(a)}, node{c.New, string(b)})
		for _, one := range []Change{{Path: path, New: c.New, NewContent: c.NewContent}, {Path: path, Old: c.Old, OldContent: c.OldContent}} {
			s := read(t, write(t, Limits{}, one))[0]
			checkBothWays(t, s, node{one.Old, string(a)}, node{one.New, string(b)})
		}
	})
}

// Names survive both spellings, and no two paths share one.
func FuzzQuote(f *testing.F) {
	for _, p := range fileNames {
		f.Add(string(p))
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw, err := tree.Unquote(tree.Quote(s))
		require.NoError(t, err)
		require.Equal(t, s, raw)
		if raw, err := tree.Unquote(s); err == nil {
			require.Equal(t, s, tree.Quote(raw))
		}
		require.NoError(t, jsonread.Object(append(tree.AppendJSONString([]byte(`{"a":`), tree.Quote(s)), '}'), func(_ string, v *jsonread.Value) error {
			require.Equal(t, tree.Quote(s), v.Text())
			return nil
		}))
	})
}
