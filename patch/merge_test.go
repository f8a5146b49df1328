package patch

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mergeOf(t *testing.T, base, ours, theirs string) *Merged {
	t.Helper()
	m, err := Merge(context.Background(), []byte(base), []byte(ours), []byte(theirs), Sides{"now", "before"})
	require.NoError(t, err)
	return m
}

func TestMerge(t *testing.T) {
	tests := []struct{ name, base, ours, theirs, want string }{
		{"nothing", "a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n"},
		{"ours alone", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n"},
		{"theirs alone", "a\nb\n", "a\nb\n", "A\nb\n", "A\nb\n"},
		{"apart", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"},
		{"the same", "a\nb\n", "a\nx\n", "a\nx\n", "a\nx\n"},
		{"both empty it", "a\n", "", "", ""},
		{"from nothing", "", "", "a\n", "a\n"},
		{"inserted apart", "a\nb\n", "x\na\nb\n", "a\nb\ny\n", "x\na\nb\ny\n"},
		{"no newline", "a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"},
		{"a newline comes", "a\nb\nc", "A\nb\nc", "a\nb\nc\n", "A\nb\nc\n"},
		{"CR stays", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"},
		{"one of several the same", "a\nb\nc\nd\ne\n", "A\nb\nc\nd\nE\n", "A\nb\nC\nd\ne\n", "A\nb\nC\nd\nE\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mergeOf(t, tt.base, tt.ours, tt.theirs)
			require.Zero(t, m.Conflicts)
			require.Equal(t, tt.want, string(m.Data))
		})
	}
}

func TestMergeConflicts(t *testing.T) {
	const mid = "<<<<<<< now\n"
	tests := []struct{ name, base, ours, theirs, want string }{
		{"one line", "a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n", "a\n" + mid + "x\n=======\ny\n>>>>>>> before\nc\n"},
		{"neighbours", "a\nb\n", "A\nb\n", "a\nB\n", mid + "A\nb\n=======\na\nB\n>>>>>>> before\n"},
		{"deleted and changed", "a\nb\nc\n", "a\nc\n", "a\nB\nc\n", "a\n" + mid + "=======\nB\n>>>>>>> before\nc\n"},
		{"inserted at one place", "a\nb\n", "a\nx\nb\n", "a\ny\nb\n", "a\n" + mid + "x\n=======\ny\n>>>>>>> before\nb\n"},
		{"without a newline", "a", "b", "c", mid + "b\n=======\nc\n>>>>>>> before\n"},
		{"chained", "1\n2\n3\n4\n5\n", "x\n3\n4\n5\n", "1\ny\n4\n5\n", mid + "x\n3\n=======\n1\ny\n>>>>>>> before\n4\n5\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mergeOf(t, tt.base, tt.ours, tt.theirs)
			require.Equal(t, 1, m.Conflicts)
			require.Equal(t, tt.want, string(m.Data))
		})
	}
}

// edited is text with some lines changed, taken out, doubled and put in.
func edited(rng *rand.Rand, lines []string, words int) []string {
	var out []string
	word := func() string { return "w" + strconv.Itoa(rng.IntN(words)) + "\n" }
	often := 2 + rng.IntN(20)
	for _, l := range lines {
		switch rng.IntN(often * 4) {
		case 0:
			out = append(out, word())
		case 1:
		case 2:
			out = append(out, l, word())
		case 3:
			out = append(out, l, l)
		default:
			out = append(out, l)
		}
	}
	return out
}

// triple is a base and two edits of it, of lines that are mostly one of a kind or
// mostly not.
func triple(rng *rand.Rand) (base, ours, theirs string) {
	words := []int{4, 12, 1000}[rng.IntN(3)]
	var lines []string
	for range rng.IntN(40) {
		lines = append(lines, "w"+strconv.Itoa(rng.IntN(words))+"\n")
	}
	text := func(l []string) string {
		s := strings.Join(l, "")
		if rng.IntN(8) == 0 {
			s = strings.TrimSuffix(s, "\n")
		}
		return s
	}
	return text(lines), text(edited(rng, lines, words)), text(edited(rng, lines, words))
}

// TestMergeIsWhatOthersMake compares with git merge-file and diff3: a merge that is
// clean here is clean there with the same bytes, for at least one of the two; they
// differ among themselves where lines are repeated.
func TestMergeIsWhatOthersMake(t *testing.T) {
	for _, tool := range []string{"git", "diff3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	tries := 500
	if os.Getenv("DECREE_LONG") != "" {
		tries = 5000
	}
	rng := rand.New(rand.NewPCG(31, 32))
	dir := t.TempDir()
	count := map[string]int{}
	for try := range tries {
		base, ours, theirs := triple(rng)
		for name, text := range map[string]string{"base": base, "ours": ours, "theirs": theirs} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		m := mergeOf(t, base, ours, theirs)
		git, gitClean := peer(t, dir, "git", "merge-file", "-p", "-q", "ours", "base", "theirs")
		diff3, diff3Clean := peer(t, dir, "diff3", "-m", "ours", "base", "theirs")
		if m.Conflicts > 0 {
			count["conflict"]++
			if gitClean && diff3Clean && git == diff3 {
				count["conflict here alone"]++
			}
			continue
		}
		count["clean"]++
		right := gitClean && git == string(m.Data) || diff3Clean && diff3 == string(m.Data)
		if !right {
			count["clean here alone"]++
			t.Logf("try %d:\n%q\n%q\n%q\nhere %q\ngit %v %q\ndiff3 %v %q", try, base, ours, theirs, m.Data, gitClean, git, diff3Clean, diff3)
		}
		back := mergeOf(t, base, theirs, ours)
		require.Zero(t, back.Conflicts)
		require.Equal(t, string(m.Data), string(back.Data), "the sides are alike")
	}
	t.Log(count)
	require.Zero(t, count["clean here alone"])
	require.Greater(t, count["clean"], tries/5)
	require.Greater(t, count["conflict"], tries/5)
	require.Less(t, count["conflict here alone"], tries/10)
}

// peer runs one of the others; an exit status of 1 or more means conflicts.
func peer(t *testing.T, dir, name string, args ...string) (string, bool) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), err == nil
}
