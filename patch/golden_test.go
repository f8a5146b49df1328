package patch

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

var update = flag.Bool("update", false, "write the golden diffs anew")

// A golden case is a txtar archive with the files old, new (one may lack) and diff. Its
// comment says what the case is about; lines "key: value" in it are
//
//	path: the path, quoted as in the manifest; "file" if not given
//	old, new: mode of that side, or "symlink", whose target is the first line
//	cut: the sides ("old new") whose last newline is to be taken away
//	escaped: yes, if \x00 and the like in old and new stand for bytes
//	inline_binary, inline_text: limits in bytes
type golden struct {
	archive  []archived // the comment first, with no name
	fields   map[string]string
	old, new nodes
	path     tree.Path
}

func readGolden(t *testing.T, name string) *golden {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	g := &golden{archive: parseArchive(string(data)), fields: map[string]string{}, old: nodes{}, new: nodes{}}
	for l := range strings.Lines(g.archive[0].data) {
		if key, value, ok := strings.Cut(strings.TrimSuffix(l, "\n"), ": "); ok {
			g.fields[key] = value
		}
	}
	g.path = "file"
	if p := g.fields["path"]; p != "" {
		p, err = tree.Unquote(p)
		require.NoError(t, err)
		g.path = tree.Path(p)
	}
	for _, f := range g.archive {
		switch f.name {
		case "old":
			g.old[g.path] = g.node(t, f)
		case "new":
			g.new[g.path] = g.node(t, f)
		}
	}
	return g
}

func (g *golden) node(t *testing.T, f archived) node {
	data := f.data
	if g.fields["escaped"] == "yes" {
		var b strings.Builder
		for l := range strings.Lines(data) {
			s, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(l, "\n"), `"`, `\"`) + `"`)
			require.NoError(t, err)
			b.WriteString(s + "\n")
		}
		data = b.String()
	}
	if strings.Contains(g.fields["cut"], f.name) {
		data = strings.TrimSuffix(data, "\n")
	}
	switch mode := g.fields[f.name]; mode {
	case "symlink":
		return node{link(strings.TrimSuffix(data, "\n")), ""}
	case "":
		return regular(data, 0o644)
	default:
		m, ok := tree.ParseMode(mode)
		require.True(t, ok, mode)
		return regular(data, m)
	}
}

func (g *golden) limit(t *testing.T, key string) int64 {
	s := g.fields[key]
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	require.NoError(t, err)
	return n
}

// Each case's diff is the golden one, applies and reverses, with the tools too.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("../testdata/diff/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			g := readGolden(t, name)
			lim := Limits{InlineBinary: g.limit(t, "inline_binary"), InlineText: g.limit(t, "inline_text")}
			diff := write(t, lim, changes(g.old, g.new)...)
			g.check(t, name, diff)
			stored := false
			binary := false
			for _, s := range read(t, diff) {
				binary, stored = binary || s.Binary, stored || s.Stored
				checkBothWays(t, s, g.old[s.Path], g.new[s.Path])
			}
			if !binary && !stored && len(diff) > 0 {
				o, n := g.old[g.path].entry, g.new[g.path].entry
				checkTools(t, g.old, g.new, o != nil && n != nil && o.Type != n.Type)
			}
		})
	}
}

// check compares the diff with the archive's, or puts it there.
func (g *golden) check(t *testing.T, name string, diff []byte) {
	at := slices.IndexFunc(g.archive, func(f archived) bool { return f.name == "diff" })
	if at < 0 {
		at = len(g.archive)
		g.archive = append(g.archive, archived{name: "diff"})
	}
	if *update {
		g.archive[at].data = string(diff)
		require.NoError(t, os.WriteFile(name, formatArchive(g.archive), 0o644))
		return
	}
	require.Equal(t, g.archive[at].data, string(diff))
}

// archived is one file of a txtar archive.
type archived struct{ name, data string }

func parseArchive(data string) []archived {
	files := []archived{{}}
	for l := range strings.Lines(data) {
		name, ok := strings.CutPrefix(l, "-- ")
		if name, end := strings.CutSuffix(name, " --\n"); ok && end && strings.TrimSpace(name) == name {
			files = append(files, archived{name: name})
			continue
		}
		files[len(files)-1].data += l
	}
	return files
}

func formatArchive(files []archived) []byte {
	var b []byte
	for i, f := range files {
		if i > 0 {
			b = append(b, "-- "+f.name+" --\n"...)
		}
		b = append(b, f.data...)
	}
	return b
}

// checkBothWays requires that a section leads from one node to the other and back.
func checkBothWays(t *testing.T, s *Section, o, n node) {
	t.Helper()
	bytesOf := func(x node, e *tree.Entry) []byte {
		switch {
		case e == nil:
			return nil
		case e.Type == tree.Symlink:
			return []byte(e.Target)
		}
		return []byte(x.data)
	}
	oldData, newData := bytesOf(o, s.Old), bytesOf(n, s.New)
	got, err := s.Forward(oldData)
	if s.Stored && s.New != nil {
		require.ErrorIs(t, err, ErrStored)
	} else {
		require.NoError(t, err)
		require.Equal(t, string(newData), string(got))
	}
	got, err = s.Reverse(newData)
	if s.Stored && s.Old != nil {
		require.ErrorIs(t, err, ErrStored)
	} else {
		require.NoError(t, err)
		require.Equal(t, string(oldData), string(got))
	}
}
