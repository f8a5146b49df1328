//go:build unix

package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCleanBeside: `git clean -xfd` beside an isolated message removes its file and its record's copy. It is given up, as one
// whose file alone was deleted, and its text is in its record, where that is said.
func TestCleanBeside(t *testing.T) {
	needsLayers(t)
	for name, gone := range map[string]string{"all": ".decree/inbox .decree/runs", "file": ".decree/inbox/a.md"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, isolatedFiles(live+`live 'rm -rf `+gone+`'; echo said; echo work >f
`, nil))
			b.answers()
			b.settle()
			require.Empty(t, b.process())
			require.Contains(t, strings.Join(b.said, "\n"), "its text is in .decree/runs/2026112107020100-0/message.md")
			require.Contains(t, b.read(".decree/runs/2026112107020100-0/message.md"), "---\ngo\n")
			require.Equal(t, "said\n", b.read(".decree/runs/2026112107020100-0/routine.log"))
			require.Empty(t, b.read("f"))
		})
	}
}
