package patch

import (
	"bytes"
	"context"
	"decree/tree"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inPieces makes all texts large ones for a test, cut at every chance.
func inPieces(t testing.TB) {
	was := [...]int64{heldText, pieceText, mostText}
	lines := pieceLines
	heldText, pieceText, pieceLines, mostText = -1, 300, 20, 2000
	t.Cleanup(func() { heldText, pieceText, mostText, pieceLines = was[0], was[1], was[2], lines })
}

func sectionOf(t testing.TB, old, new []byte, lim Limits) *Section {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, lim)
	require.NoError(t, w.Write(context.Background(), Change{
		"f", &tree.Entry{SHA256: tree.Sum(old), Size: int64(len(old)), Mode: 0o644}, &tree.Entry{SHA256: tree.Sum(new), Size: int64(len(new)), Mode: 0o644},
		Bytes(old), Bytes(new), false,
	}))
	require.NoError(t, w.Close())
	stat := w.Stat()
	s, err := NewReader(&out).Next()
	require.NoError(t, err)
	added, removed := lineCounts(s)
	require.Equal(t, [2]int64{stat.AddedLines, stat.RemovedLines}, [2]int64{added, removed})
	return s
}

func requireLeads(t testing.TB, s *Section, old, new []byte) {
	t.Helper()
	got, err := s.Forward(old)
	require.NoError(t, err)
	require.True(t, bytes.Equal(new, got))
	got, err = s.Reverse(new)
	require.NoError(t, err)
	require.True(t, bytes.Equal(old, got))
}

// TestPieces compares texts in pieces and held whole: both diffs lead from one side to
// the other, and the first is hardly longer.
func TestPieces(t *testing.T) {
	rng, uncut := rand.New(rand.NewPCG(3, 1)), 0
	for try := range 300 {
		var lines []string
		for range rng.IntN(200) {
			if rng.IntN(4) == 0 {
				lines = append(lines, fmt.Sprintf("common %d\n", rng.IntN(5)))
			} else {
				lines = append(lines, fmt.Sprintf("line %d\n", rng.IntN(100000)))
			}
		}
		old := strings.Join(lines, "")
		for range 1 + rng.IntN(6) {
			at := rng.IntN(len(lines) + 1)
			end := min(len(lines), at+rng.IntN(4))
			var come []string
			for range rng.IntN(4) {
				come = append(come, fmt.Sprintf("new %d\n", rng.IntN(50)))
			}
			if rng.IntN(5) == 0 { // moved
				come = append(come, lines[rng.IntN(len(lines)+1):]...)
				come = come[:min(len(come), 9)]
			}
			lines = slices.Replace(lines, at, end, come...)
		}
		new := strings.Join(lines, "") + []string{"", "unended"}[rng.IntN(2)]
		if old == new || old == "" || new == "" {
			continue
		}
		whole := sectionOf(t, []byte(old), []byte(new), Limits{})
		t.Run(fmt.Sprint(try), func(t *testing.T) {
			inPieces(t)
			s := sectionOf(t, []byte(old), []byte(new), Limits{})
			if s.Stored { // there was no place to cut
				uncut++
				return
			}
			requireLeads(t, s, []byte(old), []byte(new))
			assert.LessOrEqual(t, s.Size, whole.Size*3/2+200)
		})
	}
	require.Less(t, uncut, 30)
}

// TestLargeTexts writes pairs that are larger than what is held.
func TestLargeTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("long texts")
	}
	base := logText(20 << 20)
	near := func(at int, text string) []byte { return slices.Concat(base[:at], []byte(text), base[at:]) }
	long := bytes.Repeat([]byte("no line ends here "), 1<<20)
	same := bytes.Repeat([]byte("\n"), 20<<20)
	for name, tt := range map[string]struct {
		old, new []byte
		lines    int64 // added and removed
	}{
		"a line more":             {base, near(len(base), "one more\n"), 1},
		"an unended line more":    {base, near(len(base), "one more"), 1},
		"an unended line goes on": {near(len(base), "one"), near(len(base), "one more\nand more\n"), 3},
		"at both ends":            {slices.Concat([]byte("x\n"), base), near(len(base), "x"), 2},
		"every hundredth line":    {base, changeLines(base, 100), -1},
		"the same lines over":     {same, append(slices.Clone(same), same[:5000]...), 5000},
		"two million lines less":  {same, same[2<<20:], 2 << 20},
		"most lines are new":      {base[:12<<20], bytes.ToUpper(base[:12<<20]), -1},
		"one line, no end":        {long, append(slices.Clone(long), 'x'), 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := sectionOf(t, tt.old, tt.new, Limits{})
			require.False(t, s.Stored)
			requireLeads(t, s, tt.old, tt.new)
			if added, removed := lineCounts(s); tt.lines >= 0 {
				assert.Equal(t, tt.lines, added+removed)
			}
		})
	}
	for name, tt := range map[string]struct{ old, new []byte }{
		"a text and no text":         {base, near(len(base), "\x00")},
		"no texts":                   {near(5, "\x00"), near(5, "\x00x")},
		"a NUL byte in the old only": {near(len(base)-4, "\x00"), base},
		"too long for a section":     {base, bytes.ToUpper(base)},
		"no place to cut":            {bytes.Repeat([]byte("a\nb\n"), 5<<20), bytes.Repeat([]byte("b\nb\na\n"), 5<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, sectionOf(t, tt.old, tt.new, Limits{InlineText: 30 << 20}).Stored)
		})
	}
}

// TestLargeTextsAreChecked gives contents that are not what their entries say.
func TestLargeTextsAreChecked(t *testing.T) {
	inPieces(t)
	base := logText(2 << 20)
	more := append(slices.Clone(base), "more\n"...)
	for name, spoil := range map[string]func(old, new *tree.Entry){
		"old sum":     func(old, _ *tree.Entry) { old.SHA256[0]++ },
		"new sum":     func(_, new *tree.Entry) { new.SHA256[0]++ },
		"old longer":  func(old, _ *tree.Entry) { old.Size-- },
		"new longer":  func(_, new *tree.Entry) { new.Size-- },
		"old shorter": func(old, _ *tree.Entry) { old.Size++ },
		"new shorter": func(_, new *tree.Entry) { new.Size += 9999 },
	} {
		old := tree.Entry{SHA256: tree.Sum(base), Size: int64(len(base)), Mode: 0o644}
		new := tree.Entry{SHA256: tree.Sum(more), Size: int64(len(more)), Mode: 0o644}
		spoil(&old, &new)
		w := NewWriter(&strings.Builder{}, Limits{})
		err := w.Write(context.Background(), Change{"f", &old, &new, Bytes(base), Bytes(more), false})
		assert.ErrorIs(t, err, errChanged, name)
	}
}
