package patch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// edits returns the number of added and removed lines of the diff of two texts.
func edits(t testing.TB, a, b string) int {
	t.Helper()
	c, err := compare(context.Background(), []byte(a), []byte(b))
	require.NoError(t, err)
	n := 0
	for _, e := range c.edits {
		n += e.a1 - e.a0 + e.b1 - e.b0
	}
	return n
}

// shortest returns the least number of added and removed lines, by dynamic programming.
func shortest(a, b string) int {
	x, y := slices.Collect(strings.Lines(a)), slices.Collect(strings.Lines(b))
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			up := row[j+1]
			if x[i] == y[j] {
				row[j+1] = diagonal
			} else {
				row[j+1] = min(up, row[j]) + 1
			}
			diagonal = up
		}
	}
	return row[len(y)]
}

// Where DiffLines is to be trusted, and where the Myers search sees the end, the result is
// a minimal one.
func TestMinimal(t *testing.T) {
	rnd := rand.New(rand.NewPCG(31, 32))
	for range 3000 {
		a, b := randomText(rnd, 30, 1+rnd.IntN(8)), randomText(rnd, 30, 1+rnd.IntN(8))
		require.Equal(t, shortest(a, b), edits(t, a, b), "%q to %q", a, b)
	}
	for range 60 {
		words := 1 + rnd.IntN(4)
		a, b := randomText(rnd, 600, words), randomText(rnd, 600, words)
		// No line is unique in these, so no anchor costs anything.
		require.Equal(t, shortest(a, b), edits(t, a, b))
	}
}

// At the number of edits where DiffLines gives up, and on both sides of it, the result
// stays minimal: its answer is told from a complete one.
func TestMinimalAroundTheLimit(t *testing.T) {
	for n := 40; n <= 110; n++ {
		var a, b strings.Builder
		for i := range n * 5 {
			fmt.Fprintf(&a, "line %d\n", i)
			if i%5 == 2 {
				fmt.Fprintf(&b, "changed %d\n", i)
				continue
			}
			fmt.Fprintf(&b, "line %d\n", i)
		}
		require.Equal(t, 2*n, edits(t, a.String(), b.String()), "%d changed lines", n)
		// The same without a unique line: every one stands twice.
		require.Equal(t, 2*n, edits(t, a.String()+"mid\n"+a.String(), b.String()+"mid\n"+a.String()))
	}
}

// The other answers of DiffLines: more edits than trusted, and less than complete.
func TestDiffLinesTrusted(t *testing.T) {
	lines := func(n int, mark string, every int) []string {
		var all []string
		for i := range n {
			if every > 0 && i%every == 0 {
				all = append(all, mark+fmt.Sprint(i))
				continue
			}
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	_, ok := diffLines(lines(400, "a", 10), lines(400, "b", 10))
	assert.True(t, ok, "80 edits")
	_, ok = diffLines(lines(600, "a", 10), lines(600, "b", 10))
	assert.False(t, ok, "120 edits")
	_, ok = diffLines(lines(600, "", 0), lines(300, "", 0))
	assert.False(t, ok, "300 edits")
}

func TestIncreasing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(41, 42))
	for range 500 {
		n := 1 + rnd.IntN(12)
		var anchors []anchor
		for i, b := range rnd.Perm(n) {
			anchors = append(anchors, anchor{int32(i), int32(b)})
		}
		got := increasing(anchors)
		best := 0
		for set := range 1 << n {
			last, size := int32(-1), 0
			for i, an := range anchors {
				if set>>i&1 == 0 {
					continue
				}
				if an.b <= last {
					size = -1
					break
				}
				last = an.b
				size++
			}
			best = max(best, size)
		}
		require.Len(t, got, best)
		for i := 1; i < len(got); i++ {
			require.Less(t, got[i-1].a, got[i].a)
			require.Less(t, got[i-1].b, got[i].b)
		}
	}
	assert.Empty(t, increasing(nil))
}

// Texts that make one or another part of the search work hard: all apply and reverse.
func TestHardTexts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(51, 52))
	n := 20000
	if testing.Short() {
		n = 3000
	}
	line := func(i int) string { return fmt.Sprintf("%d\n", i) }
	build := func(f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	numbers := build(line)
	vocabulary := func(words int) string { return build(func(int) string { return line(rnd.IntN(words)) }) }
	shuffled := rnd.Perm(n)
	period := build(func(i int) string { return line(i % 3) })
	for name, pair := range map[string][2]string{
		"unique, shuffled":      {numbers, build(func(i int) string { return line(shuffled[i]) })},
		"unique, reversed":      {numbers, build(func(i int) string { return line(n - i) })},
		"halves exchanged":      {numbers, build(func(i int) string { return line((i + n/2) % n) })},
		"nothing in common":     {numbers, build(func(i int) string { return line(n + i) })},
		"every second changed":  {numbers, build(func(i int) string { return line(i + i%2*n) })},
		"two words":             {vocabulary(2), vocabulary(2)},
		"fifty words":           {vocabulary(50), vocabulary(50)},
		"a thousand words":      {vocabulary(1000), vocabulary(1000)},
		"period 3, shifted":     {period, "x\n" + period[2:] + "0\n"},
		"period 3, scattered":   {period, string(changeLines([]byte(period), 50))},
		"period 3 to period 4":  {period, build(func(i int) string { return line(i % 4) })},
		"blank lines":           {strings.Repeat("\n", n), strings.Repeat("\n", n/2) + "x\n" + strings.Repeat("\n", n)},
		"blank to blank":        {strings.Repeat("\n", n), strings.Repeat("\n", n+7)},
		"one side short":        {numbers, "7\nx\n5\n"},
		"blocks inserted":       {period, period[:900] + vocabulary(9) + period[900:5000] + vocabulary(9) + "y\n" + period[5000:]},
		"longer and longer":     {build(func(i int) string { return strings.Repeat("a", i%100) + "\n" }), build(func(i int) string { return strings.Repeat("a", i*7%100) + "\n" })},
		"carriage returns only": {strings.ReplaceAll(numbers, "\n", "\r"), strings.ReplaceAll(numbers, "\n", "\r\r")},
	} {
		t.Run(name, func(t *testing.T) {
			checkPair(t, pair[0], pair[1])
			checkPair(t, pair[1], strings.TrimSuffix(pair[0], "\n"))
		})
	}
}

// Lines of 10 MB, which are read, written and compared like others.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("0123456789", 1<<20)
	checkPair(t, "a\n"+long+"\nb\n", "a\n"+long+"x\nb\n")
	checkPair(t, long, long+"\n")
	checkPair(t, long+"\n"+long, long+"\nx\n"+long)
}

// Every place where one text can begin or end like the other.
func TestCommonEnds(t *testing.T) {
	texts := []string{"", "\n", "a", "a\n", "a\na", "a\na\n", "\n\n", "b\na\n", "ab\na\n", "a\nb\na", "a\nba\n", "a\r\n", "\ra\n"}
	pads := []string{"", "1\n2\n3\n4\n5\n", strings.Repeat("long line\n", 1000)}
	for _, head := range pads {
		for _, tail := range pads {
			for _, a := range texts {
				for _, b := range texts {
					if tail == "" || strings.HasSuffix(a, "\n") == strings.HasSuffix(b, "\n") {
						checkPair(t, head+a+tail, head+b+tail)
					}
				}
			}
		}
	}
}

// A comparison ends soon after its context does.
func TestCompareCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := compare(ctx, []byte("a\n"), []byte("b\n"))
	require.ErrorIs(t, err, context.Canceled)
}

// Texts without unique lines stay near what diff -d finds.
func TestWordsNearMinimal(t *testing.T) {
	if _, err := exec.LookPath("diff"); err != nil {
		t.Skip("diff is not installed")
	}
	old, _ := words(20000)
	for name, new := range map[string][]byte{
		"scattered": changeLines(old, 100),
		"dense":     changeLines(old, 5),
		"moved":     append(bytes.Clone(old[70000:]), old[:70000]...),
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(root, "old"), old, 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(root, "new"), new, 0o644))
			cmd := exec.CommandContext(context.Background(), "diff", "-d", "-U3", "old", "new")
			cmd.Dir = root
			rival, _ := cmd.Output() // its status is 1 when there are differences
			_, rivalChanged := measure(t, rival)
			_, changed := measure(t, write(t, Limits{}, modify("f", string(old), string(new))))
			t.Logf("%d lines, diff -d %d", changed, rivalChanged)
			require.LessOrEqual(t, float64(changed), 1.1*float64(rivalChanged))
		})
	}
}

// Beyond maxRegion the contents go to the store, and nothing is allocated a line.
func TestTooManyLines(t *testing.T) {
	n := maxRegion/4 + 1
	old, new := strings.Repeat("a\nb\n", n), "x\n"+strings.Repeat("b\na\n", n)
	_, err := compare(context.Background(), []byte(old), []byte(new))
	require.ErrorIs(t, err, errTooManyLines)
	s := read(t, write(t, Limits{}, modify("f", old, new)))[0]
	require.True(t, s.Stored)
	require.Empty(t, edits(t, old+"end\n", old+"end\n"))
}
