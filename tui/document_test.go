package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/patch"
	"decree/tree"
)

// diffOf writes a changes.diff of so many created files of so many lines, some of which look like the
// heads of a diff.
func diffOf(t testing.TB, files, lines int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := patch.NewWriter(&out, patch.Limits{InlineText: 1 << 30, InlineBinary: 1 << 20})
	for f := range files {
		var b strings.Builder
		for i := range lines {
			b.WriteString([]string{"# decree: {}", "@@ -1 +1 @@", "--- a/x", fmt.Sprint("line ", i), "\x1b]0;x\a"}[i%5] + "\n")
		}
		text := patch.Bytes(b.String())
		e := tree.Entry{Type: tree.Regular, Mode: 0o644, Size: int64(len(text)), SHA256: tree.Sum(text)}
		require.NoError(t, w.Write(t.Context(), patch.Change{Path: tree.Path(fmt.Sprintf("f%04d", f)), New: &e, NewContent: text}))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

// stream hides that its reader can be moved.
type stream struct{ io.Reader }

func (stream) Close() error { return nil }

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// TestRowsAreTheSameHoweverTheyAreReached: at any place, in files and in streams, the rows are
// those that a reading from the beginning finds.
func TestRowsAreTheSameHoweverTheyAreReached(t *testing.T) {
	data := diffOf(t, 7, 1500)
	for name, open := range map[string]func() (io.ReadCloser, error){
		"file":   func() (io.ReadCloser, error) { return file{bytes.NewReader(data)}, nil },
		"stream": func() (io.ReadCloser, error) { return stream{bytes.NewReader(data)}, nil },
	} {
		d := newDocument(open)
		require.NoError(t, d.index(context.Background(), func() {}))
		rows, sections, whole, err := d.state()
		require.NoError(t, err)
		require.True(t, whole, name)
		require.Equal(t, 7, sections)
		require.Equal(t, 7*1502, rows)
		require.Equal(t, tree.Sum(data), d.sum)
		all, err := d.read(0, rows)
		require.NoError(t, err)
		for i, l := range all {
			require.Equal(t, i/1502, l.sec)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			from, n := rng.IntN(rows), 1+rng.IntN(80)
			got, err := d.lines(from, n)
			require.NoError(t, err)
			require.Equal(t, all[from:min(from+n, rows)], got)
		}
		require.Equal(t, 3, d.sectionAt(3*1502+5))
		d.close()
	}
}

// TestADiffIsNotHeld: what is known of a diff of many lines is a small part of it.
func TestADiffIsNotHeld(t *testing.T) {
	data := diffOf(t, 1, 200_000)
	d := newDocument(func() (io.ReadCloser, error) { return file{bytes.NewReader(data)}, nil })
	require.NoError(t, d.index(context.Background(), func() {}))
	require.Less(t, len(d.places), 200_000/apart+2)
	_, err := d.lines(150_000, 50)
	require.NoError(t, err)
	require.LessOrEqual(t, len(d.held), 2*windowRows)
}

func TestMarks(t *testing.T) {
	k, doc := marks{}, newDocument(nil)
	k.toggle(doc, "a", 2, 3)
	require.Equal(t, "[-]", k.sign("a"))
	k.toggle(doc, "a", 1, 3)
	k.toggle(doc, "a", 3, 3)
	require.Equal(t, "[x]", k.sign("a"), "all hunks are the whole")
	k.toggle(doc, "a", 2, 3)
	require.Equal(t, []int{1, 3}, k.requested()[0].Hunks)
	k.toggle(doc, "a", whole, 3)
	require.Empty(t, k)
	k.toggle(doc, "b", 1, 1)
	require.Empty(t, k.requested()[0].Hunks, "the only hunk is the whole")
}

// TestADirectoryIsMarkedWithAllBelowIt: a plan takes all that is below a marked directory, so no box below it is empty.
func TestADirectoryIsMarkedWithAllBelowIt(t *testing.T) {
	doc := newDocument(nil)
	for _, path := range []tree.Path{"new", "new/a", "new/b", "new/in", "new/in/c", "newer"} {
		doc.sections = append(doc.sections, section{path: path, hunks: 2})
	}
	doc.dirs["new"], doc.dirs["new/in"] = true, true
	v := &diffView{marks: marks{}, doc: doc}
	boxes := func() (out string) {
		for _, sec := range doc.sections {
			out += v.marks.sign(sec.path)
		}
		return out
	}
	v.mark(inFiles) // the directory
	require.Equal(t, "[x][x][x][x][x][ ]", boxes())
	v.file = 2
	v.mark(inFiles)
	require.Equal(t, "[ ][x][ ][x][x][ ]", boxes(), "a directory of which a file is left out is not marked")
	require.Equal(t, "new/a, new/in, new/in/c", v.marks.words())
	v.file = 0
	v.mark(inFiles)
	v.marks.toggle(doc, "new/in/c", 1, 2)
	require.Equal(t, "[ ][x][x][ ][-][ ]", boxes(), "nor one of which a hunk is left out")
	v.mark(inFiles)
	v.file = 4
	v.markDirectory()
	require.Equal(t, "[ ][x][x][ ][ ][ ]", boxes())

	v.marks = marks{}
	v.file = 3
	v.markDirectory()
	require.Equal(t, "[ ][ ][ ][x][x][ ]", boxes(), "on its own row a directory is what is meant, not the one above")
	v.markDirectory()
	require.Empty(t, v.marks)

	v.file = 0
	v.mark(inFiles)
	doc.sections = append(doc.sections, section{path: "new/late"})
	require.Equal(t, "[x][x][x][x][x][ ][x]", boxes(), "what is read later is marked, too")
	v.marks.toggle(doc, "new/late", whole, 0)
	require.Equal(t, "[ ][x][x][x][x][ ][ ]", boxes())
	v.file = 0
	v.mark(inFiles)
	v.mark(inFiles)
	require.Empty(t, v.marks)
}

// TestCleanLetsNothingThrough: no byte that a terminal obeys is left of a line.
func TestCleanLetsNothingThrough(t *testing.T) {
	for _, text := range []string{"\x1b[2J", "a\tb\x9b", "\u202etxt", "\u009b31m", "\xff\xfe", "a\rb", "x\x00y", "\u2066"} {
		for _, r := range clean(text) {
			require.False(t, r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069, "%q", text)
		}
	}
	require.Equal(t, "a   b", clean("a\tb"))
}
