//go:build unix

package queue

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestWrittenAfterTheSame: a message that an isolated routine writes after another one of the same name and text has begun beside it is
// done too, whether that waited when the routine began or came meanwhile.
func TestWrittenAfterTheSame(t *testing.T) {
	needsLayers(t)
	for how, waits := range map[string]bool{"came": false, "waited": true} {
		t.Run(how, func(t *testing.T) {
			more := map[string]string{".decree/inbox/b.md": "mid\n"}
			mid := "echo tidy >.decree/inbox/tidy.md"
			if waits {
				more[".decree/inbox/tidy.md"], mid = "tidy\n", "true"
			}
			b := newBench(t, isolatedFiles(told+"case $text in\ngo) read x <\"$RAN.go\"; echo tidy >.decree/inbox/tidy.md ;;\nmid) "+mid+" ;;\nesac\n", more))
			b.known()
			pipe := filepath.Join(b.base, "ran.go")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			b.jobs = 2
			let := false
			require.NoError(t, b.with(disk.OS, func(q *Queue) error {
				return q.Work(context.Background(), WorkOptions{Ended: func(res *Result) {
					if res.Name == "tidy.md" && !let {
						let = true
						b.settle()
						go func() { _ = os.WriteFile(pipe, []byte("\n"), 0o600) }()
					}
				}})
			}))
			require.ElementsMatch(t, []string{"go", "mid", "tidy", "tidy"}, b.ran(), strings.Join(b.said, "\n"))
			require.Empty(t, b.inbox())
			require.NotContains(t, strings.Join(b.said, "\n"), "is not queued beside it")
		})
	}
}
