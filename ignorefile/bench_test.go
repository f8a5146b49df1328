package ignorefile_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gitignore "github.com/sabhiram/go-gitignore"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/ignorefile"
)

// templates returns the Go, Node and Python template sets as one file.
func templates(t testing.TB) []byte {
	t.Helper()
	var all []byte
	for _, name := range []string{"go", "node", "python"} {
		data, err := os.ReadFile(filepath.Join("..", "testdata", "ignore", name+".gitignore"))
		require.NoError(t, err)
		all = append(all, data...)
	}
	return all
}

const templateRules = 67

// pathList returns n different paths of a tree with Go, Node and Python parts,
// about one in five ignored by the templates, directly or by a parent.
func pathList(n int) []string {
	r := rand.New(rand.NewPCG(4, 4))
	words := strings.Fields("server client index handler parser token store walk cache model view utils config schema types build coverage render event queue session report lib eggs logs dist")
	tops := strings.Fields("cmd internal pkg src web/app web/components services/api python/tool scripts docs tests node_modules/react vendor/golang.org third_party/python")
	exts := strings.Fields(".go .go .go _test.go .ts .ts .tsx .js .js .json .py .py .py .md .txt .css .html .yaml .svg .pyc .log .so .out .test .map")
	paths := make([]string, n)
	for i := range paths {
		path := pick(r, tops)
		for range r.IntN(4) {
			path += "/" + pick(r, words)
		}
		paths[i] = fmt.Sprintf("%s/%s%d%s", path, pick(r, words), i, pick(r, exts))
	}
	return paths
}

// TestTemplates holds the benchmark's input to what it claims, and the verdicts
// on it to git's.
func TestTemplates(t *testing.T) {
	content := templates(t)
	f, err := ignorefile.Parse(".gitignore", content)
	require.NoError(t, err)
	require.Equal(t, templateRules, f.Len())

	requireGit(t)
	c := gitCase{dirs: []string{""}, rules: tree{"": {string(content), ""}}, files: pathList(2000)}
	c.files = append(c.files, strings.Fields("report.1.2.3.4.json .env .env.local .env.example web/.yarn/x .yarn/x a.pyc A$py.class npm-debug.log.1 x.egg-info docs/_build build/Release/x go.work")...)
	made := map[string]bool{}
	for _, path := range c.files {
		for i := range len(path) {
			if path[i] == '/' && !made[path[:i]] {
				made[path[:i]] = true
				c.dirs = append(c.dirs, path[:i])
			}
		}
	}
	_, decided := compareWithGit(t, []gitCase{c})
	assert.Greater(t, decided, 200)
}

func TestMatchDoesNotAllocate(t *testing.T) {
	rules := rootRules(t, string(templates(t))+"**/a/**/*b*/c\n").Enter("web")
	paths := pathList(500)
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		for _, path := range paths {
			rules.Match(path, false)
			rules.Match(path, true)
		}
	}))
}

// BenchmarkMatch asks about 100,000 paths under the 67 rules; ns/path and
// allocations a list are what to look at.
func BenchmarkMatch(b *testing.B) {
	content := templates(b)
	paths := pathList(100_000)
	perPath := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(paths)), "ns/path")
	}
	b.Run("engine=ignorefile", func(b *testing.B) {
		rules := rootRules(b, string(content))
		b.ReportAllocs()
		for b.Loop() {
			for _, path := range paths {
				rules.Match(path, false)
			}
		}
		perPath(b)
	})
	b.Run("engine=ignorefile/nested=3", func(b *testing.B) {
		rules := rootRules(b, string(content))
		for _, dir := range []string{"a", "a/b"} {
			f, err := ignorefile.Parse(dir, []byte("*.tmp\n/gen/\n!keep.tmp\n"))
			require.NoError(b, err)
			rules = rules.Enter(dir, f)
		}
		below := make([]string, len(paths))
		for i, path := range paths {
			below[i] = "a/b/" + path
		}
		b.ReportAllocs()
		for b.Loop() {
			for _, path := range below {
				rules.Match(path, false)
			}
		}
		perPath(b)
	})
	b.Run("engine=sabhiram", func(b *testing.B) {
		peer := gitignore.CompileIgnoreLines(strings.Split(string(content), "\n")...)
		b.ReportAllocs()
		for b.Loop() {
			for _, path := range paths {
				peer.MatchesPath(path)
			}
		}
		perPath(b)
	})
}

func BenchmarkParse(b *testing.B) {
	content := templates(b)
	b.Run("rules=67", func(b *testing.B) {
		b.SetBytes(int64(len(content)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ignorefile.Parse("x", content); err != nil {
				b.Fatal(err)
			}
		}
	})
	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "name%d\n*.e%d\n/a/b%d\n", i, i, i)
	}
	b.Run("rules=300000", func(b *testing.B) {
		b.SetBytes(int64(many.Len()))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ignorefile.Parse("x", []byte(many.String())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
