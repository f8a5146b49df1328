//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestTakenAwayInItsLastAttempt: a message that somebody takes out of the inbox while it makes its last attempt holds nobody up: what comes
// after it waits for the end of one that began later, however little the first message was to wait for the lock.
func TestTakenAwayInItsLastAttempt(t *testing.T) {
	needsLayers(t)
	for name, wait := range map[string]time.Duration{"any wait": -1, "no wait": 0} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, isolatedFiles(live+atWork+"[ $text != 1 ] || [ $DECREE_ATTEMPT = 2 ] || { live 'echo theirs >f'; echo ours >f; exit; }\n"+
				"[ $text = 3 ] || works\necho $text >of-$text\n", map[string]string{
				".decree/config.yml": "isolated: {queue: true}\nmax_attempts: 2\n",
				".decree/inbox/a.md": "1\n",
				".decree/inbox/b.md": "2\n",
				".decree/inbox/c.md": "---\nisolated: false\n---\n3\n",
				"f":                  "",
				"of-1":               "",
				"of-2":               "",
			}))
			b.answers()
			b.known()
			b.jobs = 2
			await, let := b.meet()
			done := make(chan error)
			go func() {
				done <- b.with(disk.OS, func(q *Queue) error { return q.Work(t.Context(), WorkOptions{Wait: wait}) })
			}()
			at := []string{await(), await()}
			slices.Sort(at)
			require.Equal(t, []string{"1", "2"}, at)
			require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/inbox/a.md")))
			let()
			let()
			require.NoError(t, <-done)
			require.Equal(t, []string{"b.md", "c.md"}, b.done(), strings.Join(b.said, "\n"))
			require.Empty(t, b.read("of-1"))
		})
	}
}
