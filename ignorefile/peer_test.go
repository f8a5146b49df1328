package ignorefile_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	gitignore "github.com/sabhiram/go-gitignore"
	"github.com/stretchr/testify/require"
)

// TestMatchAsPeer compares with sabhiram/go-gitignore on the rules it has right:
// plain names, "*.ext", directories and anchored names, in one file in the root
// and without negations. It asks about files only, whose ignored parents decide.
func TestMatchAsPeer(t *testing.T) {
	decided := 0
	for seed := range 300 {
		r := rand.New(rand.NewPCG(3, uint64(seed)))
		names := strings.Fields("a b c ab main.go x.o y.o .env build out-1 a_b lib.so.1")
		var rules []string
		for range 1 + r.IntN(5) {
			name := pick(r, names)
			rules = append(rules, pick(r, []string{name, "*." + pick(r, []string{"o", "go", "so.1"}), name + "/", "/" + name, "/" + name + "/", "# " + name, ""}))
		}
		peer := gitignore.CompileIgnoreLines(rules...)
		files := tree{"": {strings.Join(rules, "\n"), ""}}
		for range 60 {
			var parts []string
			for range 1 + r.IntN(4) {
				parts = append(parts, pick(r, names))
			}
			path := strings.Join(parts, "/")
			v, _, err := files.explain(path, false)
			require.NoError(t, err)
			require.Equal(t, peer.MatchesPath(path), v.Ignored, "%q on %q", rules, path)
			if v.Ignored {
				decided++
			}
		}
	}
	require.Greater(t, decided, 1000, "rules that match nothing test nothing")
}
