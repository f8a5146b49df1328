package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/patch"
	"decree/tree"
)

// planDiff is what a plan would change of now.
func planDiff(t *testing.T, p *Plan, now texts) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := patch.NewWriter(&b, patch.Limits{})
	for _, s := range p.Steps {
		c := patch.Change{Path: s.Path, Old: s.From, New: s.To}
		if s.From != nil && s.From.Type == tree.Regular {
			c.OldContent = patch.Bytes(now[s.Path])
		}
		if s.To != nil && s.To.Type == tree.Regular {
			c.NewContent = patch.Bytes(bytesOf(t, s.Content))
		}
		require.NoError(t, w.Write(context.Background(), c))
	}
	require.NoError(t, w.Close())
	return &b
}

func bytesOf(t *testing.T, c Content) []byte {
	t.Helper()
	r, err := c()
	require.NoError(t, err)
	data, err := io.ReadAll(r)
	require.NoError(t, err)
	return data
}

// chosen plans a source onto now and chooses by answers, which are used up.
func chosen(t *testing.T, old, new texts, answers string) (*Plan, []string) {
	t.Helper()
	src := source(t, "r", old, new)
	p := turn(t, old, Options{Direction: Forth}, src)
	var asked []string
	err := p.Choose(Choice{Diff: planDiff(t, p, old), Read: old.Read, Ask: func(piece *Piece) (Answer, error) {
		require.NotEmpty(t, answers, "asked about %s", piece.Path)
		name := string(piece.Path)
		if piece.Hunk > 0 {
			name = fmt.Sprintf("%s %d/%d", name, piece.Hunk, piece.Hunks)
		}
		asked = append(asked, name)
		a := Answer(answers[0])
		answers = answers[1:]
		return a, nil
	}}, []*Source{src})
	require.NoError(t, err)
	assert.Empty(t, answers)
	return p, asked
}

// after is a tree as a plan leaves it.
func after(t *testing.T, now texts, p *Plan) texts {
	t.Helper()
	out := texts{}
	for path, text := range now {
		out[path] = text
	}
	for _, s := range p.Steps {
		delete(out, s.Path)
		delete(out, s.Path+"/")
		switch {
		case s.To == nil:
		case s.To.Type == tree.Dir:
			out[s.Path+"/"] = ""
		default:
			data := bytesOf(t, s.Content)
			assert.Equal(t, s.To.SHA256, tree.Sum(data))
			out[s.Path] = string(data)
		}
	}
	return out
}

// TestChoosePaths chooses whole paths: directories come with what is made in them, and go
// with all that is in them.
func TestChoosePaths(t *testing.T) {
	old := texts{"a": "a\n", "gone/": "", "gone/x": "x\n", "gone/y": "y\n", "empty/": "", "kind/": "", "kind/k": "k\n", "turn": "t\n"}
	new := texts{"a": "b\n", "made/": "", "made/in/": "", "made/in/n": "n\n", "hollow/": "", "kind": "file\n", "turn/": "", "turn/t": "in\n"}
	everything := []string{"a 1/1", "empty", "gone/x", "gone/y", "hollow", "kind", "made/in/n", "turn", "turn/t"}
	for _, c := range []struct {
		answers string
		asked   []string
		want    texts
	}{
		{"yyyyyyyyy", everything, new},
		{"aaaaaaaaa", everything, new},
		{"q", everything[:1], old},
		{"nnnnnnnnn", []string{"a 1/1", "empty", "gone/x", "gone/y", "hollow", "kind", "kind/k", "made/in/n", "turn"}, old},
		{"nnynnnnyn", []string{"a 1/1", "empty", "gone/x", "gone/y", "hollow", "kind", "kind/k", "made/in/n", "turn"},
			texts{"a": "a\n", "gone/": "", "gone/y": "y\n", "empty/": "", "kind/": "", "kind/k": "k\n", "turn": "t\n", "made/": "", "made/in/": "", "made/in/n": "n\n"}},
		{"yyyyyyq", everything[:7],
			texts{"a": "b\n", "hollow/": "", "kind": "file\n", "turn": "t\n"}},
	} {
		p, asked := chosen(t, old, new, c.answers)
		assert.Equal(t, c.asked, asked, c.answers)
		assert.Equal(t, c.want, after(t, old, p), c.answers)
		if whole := assert.ObjectsAreEqual(new, c.want); whole {
			assert.Empty(t, p.Passed)
			assert.Equal(t, []string{"r"}, p.Touched)
			assert.Empty(t, p.Standing)
		} else {
			assert.NotEmpty(t, p.Passed)
			assert.Empty(t, p.Touched)
			assert.Equal(t, "r", p.Standing[0].ID)
		}
	}
}

func lineCount(text string) int {
	return len(strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n"))
}

// TestChooseHunks chooses hunks of one file, by seed: what is left out stays as it was, and
// merging the rest with the result gives the whole.
func TestChooseHunks(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		lines := make([]string, 20+rnd.IntN(100))
		for i := range lines {
			lines[i] = fmt.Sprintf("%d\n", rnd.IntN(30))
		}
		if rnd.IntN(4) == 0 {
			lines[len(lines)-1] = "no newline"
		}
		old := strings.Join(lines, "")
		for range 1 + rnd.IntN(6) {
			i := rnd.IntN(len(lines))
			lines[i] = []string{"", "new\n", lines[i] + "more\n", "one\ntwo\n"}[rnd.IntN(4)]
		}
		now, new := texts{"f": old}, texts{"f": strings.Join(lines, "")}
		if now["f"] == new["f"] {
			continue
		}
		src := source(t, "r", now, new)
		p := turn(t, now, Options{Direction: Forth}, src)
		var took []bool
		var hunks []*patch.Section
		require.NoError(t, p.Choose(Choice{Diff: planDiff(t, p, now), Read: now.Read, Ask: func(piece *Piece) (Answer, error) {
			took = append(took, rnd.IntN(2) == 0)
			hunks = append(hunks, piece.Sections[0])
			if took[len(took)-1] {
				return Yes, nil
			}
			return No, nil
		}}, []*Source{src}))
		got := after(t, now, p)["f"]
		some, lost := 0, 0
		for i, h := range hunks {
			if took[i] {
				for _, hunk := range h.Hunks {
					some += hunk.NewLines - hunk.OldLines
				}
				lost++
			}
		}
		assert.Equal(t, lineCount(old)+some, lineCount(got), "seed %d", seed)
		assert.Equal(t, lost == 0, got == old, "seed %d", seed)
		assert.Equal(t, lost == len(hunks), got == new["f"], "seed %d", seed)
		m, err := patch.Merge(context.Background(), []byte(old), []byte(got), []byte(new["f"]), patch.Sides{})
		require.NoError(t, err)
		assert.Zero(t, m.Conflicts, "seed %d", seed)
		assert.Equal(t, new["f"], string(m.Data), "seed %d", seed)
		// The rest of work that was begun goes on from there, and ends as the whole.
		rest := turn(t, texts{"f": got}, Options{Direction: Forth, Begun: func(_ tree.Path, e *tree.Entry) bool { return e.Same(*file(got)) }}, src)
		assert.Empty(t, rest.Conflicts(), "seed %d", seed)
		assert.Equal(t, new["f"], after(t, texts{"f": got}, rest)["f"], "seed %d", seed)
		if got != old && got != new["f"] {
			assert.Len(t, turn(t, texts{"f": got}, Options{Direction: Forth}, src).Conflicts(), 1)
		}
	}
}

// TestChooseMode: a mode is a piece beside the hunks.
func TestChooseMode(t *testing.T) {
	from, to := file("a\n"), file("b\n")
	to.Mode = 0o755
	for answers, want := range map[string]*tree.Entry{
		"ny": {SHA256: to.SHA256, Size: 2, Mode: 0o644}, "yn": {SHA256: from.SHA256, Size: 2, Mode: 0o755}, "a": to, "yy": to, "nn": nil, "d": nil,
	} {
		var b bytes.Buffer
		w := patch.NewWriter(&b, patch.Limits{})
		require.NoError(t, w.Write(context.Background(), patch.Change{Path: "f", Old: from, New: to, OldContent: patch.Bytes("a\n"), NewContent: patch.Bytes("b\n")}))
		require.NoError(t, w.Close())
		src, err := ReadSource("r", bytes.NewReader(b.Bytes()), int64(b.Len()), nil)
		require.NoError(t, err)
		now := texts{"f": "a\n"}
		p := turn(t, now, Options{Direction: Forth}, src)
		i := 0
		require.NoError(t, p.Choose(Choice{Diff: bytes.NewReader(b.Bytes()), Read: now.Read, Ask: func(*Piece) (Answer, error) { i++; return Answer(answers[i-1]), nil }}, []*Source{src}))
		if want == nil {
			assert.True(t, p.Empty(), answers)
			assert.Equal(t, Passed, p.Items[0].Verdict)
			continue
		}
		require.Len(t, p.Steps, 1, answers)
		assert.Equal(t, want, p.Steps[0].To, answers)
		assert.Equal(t, want == to, len(p.Passed) == 0, answers)
		assert.Equal(t, 1, p.Modified)
	}
}

// TestChooseError: the error of who is asked is that of the whole.
func TestChooseError(t *testing.T) {
	now := texts{"a": "a\n"}
	src := source(t, "r", now, texts{"a": "b\n"})
	p := turn(t, now, Options{Direction: Forth}, src)
	stop := errors.New("enough")
	assert.ErrorIs(t, p.Choose(Choice{Diff: planDiff(t, p, now), Read: now.Read, Ask: func(*Piece) (Answer, error) { return No, stop }}, nil), stop)
}

// TestQuitReadsNoMore: of what nobody wants any more the diff is not even made.
func TestQuitReadsNoMore(t *testing.T) {
	now, new := texts{}, texts{}
	for i := range 100 {
		now[tree.Path(fmt.Sprintf("f%03d", i))], new[tree.Path(fmt.Sprintf("f%03d", i))] = "a\n", "b\n"
	}
	src := source(t, "r", now, new)
	p := turn(t, now, Options{Direction: Forth}, src)
	diff := planDiff(t, p, now)
	all, left := diff.Len(), errors.New("read on")
	answers := "yq"
	require.NoError(t, p.Choose(Choice{Diff: io.MultiReader(io.LimitReader(diff, int64(all/2)), failing{left}), Read: now.Read, Ask: func(*Piece) (Answer, error) {
		a := Answer(answers[0])
		answers = answers[1:]
		return a, nil
	}}, []*Source{src}))
	assert.Len(t, p.Steps, 1)
	assert.Len(t, p.Passed, 99)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
