//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// tamperings are what a routine makes of the queue's directories; $away is one outside
// of the root.
var tamperings = map[string]string{
	"a link for the inbox":        `rm -rf .decree/inbox; ln -s $away .decree/inbox`,
	"a file for the inbox":        `rm -rf .decree/inbox; echo mine >.decree/inbox`,
	"a pipe for the inbox":        `rm -rf .decree/inbox; mkfifo .decree/inbox`,
	"a link for done":             `rm -rf .decree/inbox/done; ln -s $away .decree/inbox/done`,
	"a file for done":             `rm -rf .decree/inbox/done; echo mine >.decree/inbox/done`,
	"a pipe for dead":             `rm -rf .decree/inbox/dead; mkfifo .decree/inbox/dead`,
	"a link for dead":             `rm -rf .decree/inbox/dead; ln -s $away .decree/inbox/dead`,
	"a link for the routines":     `rm -rf .decree/routines; ln -s $away .decree/routines`,
	"a pipe for the routines":     `rm -rf .decree/routines; mkfifo .decree/routines`,
	"a link for the outbox":       `rm -rf $DECREE_OUTBOX; ln -s $away $DECREE_OUTBOX`,
	"a file for the outbox":       `rm -rf $DECREE_OUTBOX; echo mine >$DECREE_OUTBOX`,
	"an outbox of earlier":        `for n in 1 2 3; do echo mine >$DECREE_RUN_DIR/outbox.$n; done`,
	"a directory for the config":  `rm -rf .decree/config.yml; mkdir .decree/config.yml`,
	"a pipe for the config":       `rm -rf .decree/config.yml; mkfifo .decree/config.yml`,
	"a pipe for the identity":     `rm -rf .decree/project.json; mkfifo .decree/project.json`,
	"rights taken from done":      `chmod 555 .decree/inbox/done`,
	"its own message is sealed":   `case $(tail -n1 "$message_file") in good) chmod 0 .decree/inbox/a.md;; *) chmod 0 .decree/inbox/b.md; esac`,
	"rights taken from the inbox": `chmod 0 .decree/inbox/done .decree/inbox/dead .decree/inbox .decree/routines`,
}

// TestRoutineThatTampers: whatever a routine makes of the queue's directories, its own
// message and the next ones are done or dead as their exit status says, those that wait
// are not lost, and nothing is written through a link.
func TestRoutineThatTampers(t *testing.T) {
	for name, script := range tamperings {
		t.Run(name, func(t *testing.T) {
			away := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(away, "kept"), nil, 0o600))
			b := newBench(t, map[string]string{
				".decree/config.yml":          "max_attempts: 2\n",
				".decree/routines/develop.sh": "away=" + away + "; tail -n1 \"$message_file\" >>\"$RAN\"\ngrep -q calm \"$message_file\" || { " + script + "; }\n! grep -q bad \"$message_file\"\n",
				".decree/inbox/a.md":          "good\n", ".decree/inbox/b.md": "bad\n", ".decree/inbox/c.md": "calm\n",
			})
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(b.root, ".decree/inbox"), 0o700) })
			require.Equal(t, []string{"a.md done", "b.md dead", "c.md done"}, names2(b.processAsUser()))
			require.Equal(t, []string{"good", "bad", "bad", "calm"}, b.ran())
			require.Equal(t, []string{"b.error.txt", "b.md"}, b.dead())
			require.Contains(t, b.done(), "c.md")
			require.Empty(t, b.inbox())
			require.Equal(t, "max_attempts: 2\n", b.read(".decree/config.yml"))
			list, err := os.ReadDir(away)
			require.NoError(t, err)
			require.Len(t, list, 1, "written through the link")
			require.Equal(t, strings.Contains(script, "rm -rf $DECREE_OUTBOX"), strings.Contains(strings.Join(b.said, "\n"), "what its routine has sent, if anything, cannot be read"), b.said)
			if strings.Contains(script, "ln -s") && !strings.Contains(script, "OUTBOX") {
				aside, err := os.ReadDir(filepath.Join(b.root, ".decree/aside"))
				require.NoError(t, err)
				require.NotEmpty(t, aside)
			}
		})
	}
}

// TestRightsTakenFromTheOutbox: what a routine sends is done, whatever rights it takes away.
func TestRightsTakenFromTheOutbox(t *testing.T) {
	for _, mode := range []string{"555 $DECREE_OUTBOX", "0 $DECREE_OUTBOX", "0 $DECREE_RUN_DIR"} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\ngrep -q first \"$message_file\" || exit 0\necho follow >\"$DECREE_OUTBOX/x.md\"\nchmod " + mode + "\n",
				".decree/inbox/a.md":          "first\n",
			})
			b.processAsUser()
			require.Equal(t, []string{"first", "follow"}, b.ran())
			require.Len(t, b.done(), 2)
		})
	}
}

// processAsUser is process without root's right to pass over modes.
func (b *bench) processAsUser() (out []*Result) {
	b.t.Helper()
	require.NoError(b.t, b.with(disktest.Inject(disk.OS, disktest.Rights), func(q *Queue) (err error) { out, err = b.all(q); return err }))
	return out
}
