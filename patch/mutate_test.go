package patch

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/tree"
)

// long reports whether the long forms of the tests are wanted.
func long() bool { return os.Getenv("DECREE_LONG") == "1" }

// goSources returns the paths of up to n Go sources of the toolchain, spread evenly.
func goSources(t testing.TB, n int) []string {
	t.Helper()
	var all []string
	root := filepath.Join(runtime.GOROOT(), "src") //nolint:staticcheck // the test runs where it was built
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(p, ".go") {
			all = append(all, p)
		}
		return err
	})
	if err != nil || len(all) < 2000 {
		t.Skipf("%d Go sources under %s", len(all), root)
	}
	n = min(n, len(all))
	picked := make([]string, n)
	for i := range picked {
		picked[i] = all[i*len(all)/n]
	}
	return picked
}

// mutate edits a text as people and their tools do: from one changed line to a renamed
// identifier, moved functions, and a file that is half rewritten.
func mutate(rnd *rand.Rand, data []byte, other [][]byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for range 1 + rnd.IntN([]int{3, 3, 10, 40, 200}[rnd.IntN(5)]) {
		lines = mutateOnce(rnd, lines, other)
	}
	if rnd.IntN(8) == 0 {
		lines = rename(rnd, lines)
	}
	return bytes.Join(lines, nil)
}

func mutateOnce(rnd *rand.Rand, lines [][]byte, other [][]byte) [][]byte {
	if len(lines) < 4 {
		return append(lines, []byte("new\n"))
	}
	at := rnd.IntN(len(lines))
	n := min(1+rnd.IntN([]int{1, 3, 30}[rnd.IntN(3)]), len(lines)-at)
	part := slices.Clone(lines[at : at+n])
	switch rnd.IntN(8) {
	case 0: // removed
		return slices.Delete(slices.Clone(lines), at, at+n)
	case 1: // copied
		return slices.Insert(slices.Clone(lines), rnd.IntN(len(lines)), part...)
	case 2: // moved
		lines = slices.Delete(slices.Clone(lines), at, at+n)
		return slices.Insert(lines, rnd.IntN(len(lines)+1), part...)
	case 3: // indented
		for i := range part {
			part[i] = append([]byte("\t"), part[i]...)
		}
		return slices.Replace(slices.Clone(lines), at, at+n, part...)
	case 4: // brought from elsewhere
		from := rnd.IntN(len(other))
		return slices.Insert(slices.Clone(lines), at, other[from:min(from+n, len(other))]...)
	case 5: // blank lines
		return slices.Insert(slices.Clone(lines), at, []byte("\n"))
	}
	for i := range part { // edited
		part[i] = append([]byte(fmt.Sprintf("%d ", rnd.IntN(1000))), part[i]...)
	}
	return slices.Replace(slices.Clone(lines), at, at+n, part...)
}

// rename changes a word wherever it stands.
func rename(rnd *rand.Rand, lines [][]byte) [][]byte {
	words := bytes.Fields(lines[rnd.IntN(len(lines))])
	if len(words) == 0 {
		return lines
	}
	word := words[rnd.IntN(len(words))]
	lines = slices.Clone(lines)
	for i, l := range lines {
		lines[i] = bytes.ReplaceAll(l, word, []byte("renamed"))
	}
	return lines
}

// measure counts the hunk lines of a diff, all and those that change something or begin a
// hunk. Headers are told from contents by the counts.
func measure(t testing.TB, diff []byte) (all, changed int) {
	t.Helper()
	oldLeft, newLeft := 0, 0
	for len(diff) > 0 {
		var line []byte
		line, diff = cutLine(diff)
		if oldLeft == 0 && newLeft == 0 {
			h, reason := parseHunkHeader(bytes.TrimSuffix(line, []byte("\n")))
			if reason == "" {
				oldLeft, newLeft = h.OldLines, h.NewLines
				all++
				changed++
			}
			continue
		}
		all++
		switch line[0] {
		case '-':
			oldLeft--
			changed++
		case '+':
			newLeft--
			changed++
		case ' ':
			oldLeft--
			newLeft--
		}
	}
	return all, changed
}

// The bar on a large set of edited sources: every diff applies and reverses with our own
// reader, git and patch, and all together have at most 1.03 times the lines of diff -d.
func TestSourcePairs(t *testing.T) {
	n := 2200
	if testing.Short() {
		n = 300
	}
	if long() {
		n = 20000 // all there are
	}
	rnd := rand.New(rand.NewPCG(7, 11))
	old, new := nodes{}, nodes{}
	var before []byte
	for i, p := range goSources(t, n) {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		if before == nil {
			before = data
		}
		name := tree.Path(fmt.Sprintf("p%05d.go", i))
		edited := mutate(rnd, data, bytes.SplitAfter(before, []byte("\n")))
		old[name], new[name] = regular(string(data), 0o644), regular(string(edited), 0o644)
		before = data
	}
	diff := write(t, Limits{}, changes(old, new)...)
	for _, s := range read(t, diff) {
		got, err := s.Forward([]byte(old[s.Path].data))
		require.NoError(t, err)
		require.True(t, string(got) == new[s.Path].data, s.Path)
		got, err = s.Reverse(got)
		require.NoError(t, err)
		require.True(t, string(got) == old[s.Path].data, s.Path)
	}
	t.Run("diff -d", func(t *testing.T) {
		if _, err := exec.LookPath("diff"); err != nil {
			t.Skip("diff is not installed")
		}
		root := t.TempDir()
		old.make(t, filepath.Join(root, "old"))
		new.make(t, filepath.Join(root, "new"))
		cmd := exec.CommandContext(context.Background(), "diff", "-d", "-U3", "-r", "old", "new")
		cmd.Dir = root
		rival, _ := cmd.Output() // its status is 1 when there are differences
		all, changed := measure(t, diff)
		rivalAll, rivalChanged := measure(t, rival)
		require.NotZero(t, rivalChanged)
		t.Logf("pairs %d: hunk lines %d, diff -d %d: %.4f; changed and hunk headers %d, diff -d %d: %.4f",
			len(old), all, rivalAll, float64(all)/float64(rivalAll), changed, rivalChanged, float64(changed)/float64(rivalChanged))
		require.LessOrEqual(t, float64(changed), 1.03*float64(rivalChanged))
		require.LessOrEqual(t, float64(all), 1.03*float64(rivalAll))
	})
	for _, tl := range tools {
		t.Run(tl.name, func(t *testing.T) {
			tl.need(t)
			root := t.TempDir()
			new.make(t, root)
			tl.run(t, tl.back, root, diff)
			require.Equal(t, old.want(), list(t, root))
		})
	}
}
