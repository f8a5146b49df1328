//go:build unix

package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writesWhole has a routine write a follow-up that says all of itself, under a name of its chain or another one.
const writesWhole = "echo $seq >>\"$RAN\"; n=$((seq+1))\n" +
	`printf -- "---\nid: $chain-$n\nchain: \"$chain\"\nseq: $n\ntype: task\nroutine: develop\n---\ngo on\n" >.decree/inbox/`

// TestWholeFollowUpOfAFailedRun: a follow-up that a run wrote and then failed is not done, whatever its front matter says.
func TestWholeFollowUpOfAFailedRun(t *testing.T) {
	for _, name := range []string{"$chain-$n.md", "next.md"} {
		for _, isolated := range []string{"true", "false"} {
			if isolated == "true" {
				needsLayers(t)
			}
			b := newBench(t, isolatedFiles(writesWhole+name+"\nexit 3\n", map[string]string{".decree/config.yml": "max_attempts: 1\nisolated: {queue: " + isolated + "}\n"}))
			b.process()
			require.Equal(t, []string{"0"}, b.ran(), strings.Join(b.said, "\n"))
			require.Empty(t, b.inbox())
		}
	}
}

// TestWholeFollowUpsHaveDepth: follow-ups that say all of themselves are counted like others.
func TestWholeFollowUpsHaveDepth(t *testing.T) {
	for _, name := range []string{"$chain-$n.md", "next$n.md"} {
		b := newBench(t, isolatedFiles(writesWhole+name+"\n", map[string]string{".decree/config.yml": "max_depth: 3\nmax_chain: 6\n"}))
		b.process()
		require.Equal(t, []string{"0", "1", "2"}, b.ran(), strings.Join(b.said, "\n"))
		require.Empty(t, b.inbox())
		require.Len(t, b.dead(), 2, "the message and its reason")
	}
}
