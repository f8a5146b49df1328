//go:build unix

package queue

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestRetryBesideAFailingAttempt: a rejected follow-up, which has no id yet, that a person takes back from dead while an
// attempt of its chain works, with the command or by hand, waits and is done, whatever becomes of the attempt.
func TestRetryBesideAFailingAttempt(t *testing.T) {
	const rejected = "2020010101010100-1.md"
	for how, back := range map[string]func(b *bench) error{
		"retried": func(b *bench) error {
			return b.person(func(q *Queue) error {
				return q.o.Recorder.Hold(context.Background(), 0, false, func() error { _, err := Retry(q.project(), rejected); return err })
			})
		},
		"moved": func(b *bench) error {
			at := filepath.Join(b.root, ".decree/inbox")
			return os.Rename(filepath.Join(at, "dead", rejected), filepath.Join(at, rejected))
		},
	} {
		const fails = "echo never >.decree/inbox/$chain-2.md; exit 1"
		for what, end := range map[string]string{"fails": fails, "fails once": `[ "$DECREE_ATTEMPT" = 2 ] || { ` + fails + "; }", "succeeds": "exit 0", "dies": fails} {
			t.Run(how+" "+what, func(t *testing.T) {
				b := newBench(t, map[string]string{
					".decree/config.yml":                              "max_attempts: 2\n",
					".decree/inbox/2020010101010100-0.md":             "first\n",
					".decree/inbox/dead/" + rejected:                  "---\ndepth: 1\n---\nsecond\n",
					".decree/inbox/dead/2020010101010100-1.error.txt": "the chain was full\n",
					".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"
[ "$seq" = 0 ] || exit 0
[ -e "$RAN.once" ] || { : >"$RAN.once"; echo >"$RAN.started"; read line <"$RAN.on"; }
: >"$RAN.over"
` + end + "\n",
				})
				ran := filepath.Join(b.base, "ran")
				for _, pipe := range []string{".started", ".on"} {
					require.NoError(t, syscall.Mkfifo(ran+pipe, 0o600))
				}
				go func() {
					_, _ = os.ReadFile(ran + ".started")
					require.NoError(t, back(b))
					_ = os.WriteFile(ran+".on", []byte("\n"), 0o600)
				}()
				_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
					_, over := os.Stat(ran + ".over")
					return disktest.Action{Die: what == "dies" && st.Write && over == nil}
				}), func(q *Queue) error { _, err := b.all(q); return err })
				b.forgetHolder()
				b.process()
				require.Contains(t, b.ran(), "second")
				require.NotContains(t, b.ran(), "never")
				require.Contains(t, b.done(), rejected)
				require.Empty(t, b.inbox())
			})
		}
	}
}
