//go:build unix

package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestExamples executes every example of every command's help, those of a command one
// after the other, in a tree that has what they speak of.
func TestExamples(t *testing.T) {
	ends := map[string]int{ // where it is not 0
		"decree discard try":                              4,
		"decree restore last":                             4, // nobody can be asked
		"decree revert -p last":                           4,
		"decree publish try -p":                           4,
		"decree forget .env && echo .env >>.decreeignore": 4,
	}
	scene, err := os.ReadFile(filepath.Join("..", "testdata", "examples.sh"))
	require.NoError(t, err)
	dir := t.TempDir()
	s := &session{}
	verbs := append(s.verbs(), verb{name: "decree", examples: programExamples})
	for _, v := range verbs {
		if v.hidden || len(v.examples) == 0 {
			continue
		}
		var b strings.Builder
		fmt.Fprint(&b, "exec sh -e ../scene.sh\nexec sh -e ../again.sh\n")
		for i, e := range v.examples {
			if strings.HasPrefix(e.line, "nohup") {
				continue // the one before does the same in the foreground
			}
			if strings.HasPrefix(e.line, "decree ui") && !strings.Contains(e.line, "--plain") {
				continue // needs a terminal: see TestScreen
			}
			if serves(e.line) {
				fmt.Fprintf(&b, "exec bash ../serving.sh ../%d.sh\n", i)
			} else if end, ok := ends[e.line]; ok {
				fmt.Fprintf(&b, "code %d bash -o pipefail ../%d.sh\n", end, i)
			} else {
				fmt.Fprintf(&b, "exec bash -o pipefail ../%d.sh\n", i)
			}
			fmt.Fprint(&b, "exec sh -e ../again.sh\n")
		}
		fmt.Fprintf(&b, "-- scene.sh --\n%s-- again.sh --\n%s-- serving.sh --\n%s", scene, again, serving)
		for i, e := range v.examples {
			fmt.Fprintf(&b, "-- %d.sh --\nPATH=$PWD/../bin:$PATH\n%s\n", i, strings.ReplaceAll(e.line, "/tmp/", "../tmp/"))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, v.name+".txtar"), []byte(b.String()), 0o600))
	}
	params := scriptParams()
	params.Dir, params.UpdateScripts = dir, false
	testscript.Run(t, params)
}

// again makes what an example may have used up: a label, the message that ends a daemon,
// a draft.
const again = `
decree label good >/dev/null 2>&1 || decree -q label good last~3
decree -q send "Do it."
decree publish try --dry-run >/dev/null 2>&1 || decree -q run --isolated --copy --name try -- sh -c 'mkdir -p src; date +%N >src/tried'
`

// serves says whether a line goes on until somebody ends it.
func serves(line string) bool { return strings.HasPrefix(line, "decree serve") }

// serving ends what serves, once it has said where.
const serving = `
rm -f ../address # that of the example before
bash -c 'exec $(tail -n 1 "$1")' - "$1" >../address &
until grep -qs token= ../address; do kill -0 $!; done
kill -TERM $!
wait $!
`
