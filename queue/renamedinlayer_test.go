//go:build unix

package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRenamedInALayer: a waiting message that an isolated routine renames, or its own, is done once, under the name that it has in the
// inbox, and that is said; a copy is a message of its own.
func TestRenamedInALayer(t *testing.T) {
	needsLayers(t)
	const sent = "---\nid: 2026112108000000-0\nchain: \"2026112108000000\"\nseq: 0\ntype: task\n---\nother\n"
	for name, c := range map[string]struct {
		does, b string
		ran     []string
		told    bool
	}{
		"sent":                      {"mv b.md a0.md", sent, []string{"go", "other"}, true},
		"sent, and changed":         {"mv b.md a0.md; echo more >>a0.md", sent, []string{"go", "other"}, true},
		"written by hand":           {"mv b.md a0.md", "other\n", []string{"go", "other"}, true},
		"its own":                   {"mv a.md z.md", "other\n", []string{"go", "other"}, true},
		"in an inbox made anew":     {"cp b.md ../c.md; rm -rf ../inbox; mkdir ../inbox; mv ../c.md ../inbox/c.md", sent, []string{"go", "other"}, true},
		"copied":                    {"cp b.md c.md", "other\n", []string{"go", "other", "other"}, false},
		"deleted, another one sent": {"rm b.md; echo more >c.md", "other\n", []string{"go", "other", "more"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, isolatedFiles("text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>log\n"+
				"[ \"$text\" = go ] || exit 0\ncd .decree/inbox\n"+c.does+"\n", map[string]string{".decree/inbox/b.md": c.b}))
			b.settle()
			b.process()
			require.Equal(t, c.ran, b.ran(), strings.Join(b.said, "\n"))
			require.Equal(t, c.ran, strings.Fields(b.read("log")))
			require.Empty(t, b.inbox())
			require.Equal(t, c.told, strings.Contains(strings.Join(b.said, "\n"), "renamed in its layer"), strings.Join(b.said, "\n"))
		})
	}
}
