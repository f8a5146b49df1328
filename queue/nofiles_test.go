//go:build unix

package queue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoFilesInTheOutbox: a link and a directory that a routine leaves in its outbox are no follow-ups, and are named.
func TestNoFilesInTheOutbox(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `cat "$message_file" >>"$RAN"; grep -q one "$message_file" || exit 0
cd "$DECREE_OUTBOX"; mkdir tasks; echo two >tasks/two.md; ln -s tasks/two.md two.md; echo three >three.md` + "\n",
		".decree/inbox/a.md": "one\n",
	})
	require.Len(t, b.process(), 2)
	require.Contains(t, strings.Join(b.said, "\n"), "a.md: not sent, as a link or directory in the outbox is no message: tasks, two.md; it stays in .decree/runs/")
}
