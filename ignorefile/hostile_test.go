package ignorefile

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steps returns the work of matching path with all globs of the rules.
func steps(t *testing.T, rules, path string) (total, bound int) {
	t.Helper()
	f, err := Parse("hostile", []byte(rules))
	require.NoError(t, err)
	base := path[strings.LastIndexByte(path, '/')+1:]
	for _, set := range []struct {
		globs []glob
		s     string
	}{{f.baseGlobs, base}, {f.pathGlobs, path}} {
		for _, g := range set.globs {
			_, n := f.run(f.prog[g.begin:g.end], set.s)
			total += n
			bound += 2 * (int(g.end-g.begin) + 1) * (len(set.s) + 1)
		}
	}
	return total, bound
}

// TestHostileRules holds the matcher to its bound: twice the product of the
// lengths. A matcher that tries all ways would need more than 2^30 times that.
func TestHostileRules(t *testing.T) {
	deep := strings.Repeat("aaaa/", 60) + "b"
	for name, c := range map[string]struct {
		rules, path string
		want        bool
	}{
		"1 MiB of stars":       {strings.Repeat("*", MaxLine), deep, true},
		"1 MiB of stars, c":    {strings.Repeat("*", MaxLine-1) + "c", deep, false},
		"1 MiB of *a":          {strings.Repeat("*a", MaxLine/2), strings.Repeat("a", 4000), false},
		"1 MiB of **/":         {strings.Repeat("**/", MaxLine/3) + "x", deep, false},
		"1 MiB of **/, alone":  {strings.Repeat("**/", MaxLine/3), deep, true},
		"1 MiB of **/a":        {strings.Repeat("**/a/", MaxLine/5), deep, false},
		"1 MiB of ?":           {strings.Repeat("?", MaxLine), deep, false},
		"1 MiB of sets":        {strings.Repeat("[a-z]", MaxLine/5), deep, false},
		"1 MiB of brackets":    {strings.Repeat("[", MaxLine), deep, false},
		"1 MiB of [:":          {strings.Repeat("[:", MaxLine/2), deep, false},
		"1 MiB of backslashes": {strings.Repeat(`\`, MaxLine), deep, false},
		"30 times **/*a*/":     {strings.Repeat("**/*a*/", 30) + "b", deep, true},
		"30 times **/*a*/, c":  {strings.Repeat("**/*a*/", 30) + "c", deep, false},
		"60 times **/*a*/, c?": {strings.Repeat("**/*a*/", 60) + "c?", deep, false},
		"*a*a*a...c":           {strings.Repeat("*a", 200) + "*c*", strings.Repeat("a", 255), false},
		"**/*a*a*a.../*":       {"**/" + strings.Repeat("*a", 100) + "*c/*", strings.Repeat(strings.Repeat("a", 255)+"/", 16) + "b", false},
	} {
		f, err := Parse("hostile", []byte(c.rules))
		require.NoError(t, err, name)
		got := (*Rules)(nil).Enter("", f).Match(c.path, true)
		assert.Equal(t, c.want, got.Ignored, name)
		total, bound := steps(t, c.rules, c.path)
		assert.LessOrEqual(t, total, bound, name)
		// The stars and the slashes behind them count once however many
		// there are, so a long rule is no more work than a short one.
		assert.Less(t, total, 1<<22, name)
	}
}

// TestManyRules is a file of a million rules: each path costs a few look-ups,
// whatever their number, and the keys are told apart.
func TestManyRules(t *testing.T) {
	var b strings.Builder
	for i := range 300_000 {
		n := strconv.Itoa(i)
		b.WriteString("n" + n + "\n*.e" + n + "\n/p/" + n + "\n")
	}
	f, err := Parse("many", []byte(b.String()))
	require.NoError(t, err)
	require.Equal(t, 900_000, f.Len())
	rules := (*Rules)(nil).Enter("", f)
	for i := 0; i < 300_000; i += 9973 {
		n := strconv.Itoa(i)
		for j, path := range []string{"a/n" + n, "a/b.e" + n, "p/" + n} {
			v := rules.Match(path, false)
			require.NotNil(t, v.Rule, path)
			assert.Equal(t, 3*i+j+1, v.Rule.Line(), path)
		}
		assert.Nil(t, rules.Match("q/"+n, false).Rule, "q/%s", n)
	}
}

// TestRepeatedRuleIsStoredOnce keeps a file of one line many times small.
func TestRepeatedRuleIsStoredOnce(t *testing.T) {
	for _, line := range []string{"a\n", "*a\n", "/a\n", "a*\n", "!a/*b\n", "[ab]\n"} {
		f, err := Parse("x", []byte(strings.Repeat(line, 1<<16)))
		require.NoError(t, err)
		require.Equal(t, 1, f.Len(), "%q", line)
		assert.Equal(t, 1<<16, f.rules[0].Line(), "the last one decides")
		assert.LessOrEqual(t, len(f.prog), 8, "%q", line)
	}
}
