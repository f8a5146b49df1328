//go:build unix

package queue

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestFollowUpsAfterADeath ends the process at each step after the work of a message with follow-ups of its own is in the
// tree, while one of its siblings waits: they come before that one, in their order, as without a death.
func TestFollowUpsAfterADeath(t *testing.T) {
	for _, isolated := range []bool{false, true} {
		t.Run(fmt.Sprintf("isolated=%v", isolated), func(t *testing.T) {
			if isolated {
				needsLayers(t)
			}
			stride := disktest.Stride(11)
			for n, fired := 0, true; fired; n += stride {
				fired = followUpsAfterADeath(t, isolated, n)
			}
		})
	}
}

func followUpsAfterADeath(t *testing.T, isolated bool, n int) (fired bool) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>log.txt
case $text in
root) echo left >"$DECREE_OUTBOX/1"; echo right >"$DECREE_OUTBOX/2" ;;
left) for n in 1 2 3; do echo below$n >"$DECREE_OUTBOX/$n"; done ;;
esac
`,
		".decree/config.yml": fmt.Sprintf("isolated: {queue: %v}\n", isolated), ".decree/inbox/a.md": "root\n",
	})
	defer os.RemoveAll(b.base)
	steps := 0
	_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write && b.read("log.txt") == "root\nleft\n" {
			steps++
		}
		return disktest.Action{Die: st.Write && steps > n}
	}), func(q *Queue) error {
		for range 2 {
			if _, err := q.Next(context.Background(), 0, Pick{}); err != nil {
				return err
			}
		}
		return nil
	})
	b.forgetHolder()
	b.process()
	require.Equal(t, "root\nleft\nbelow1\nbelow2\nbelow3\nright\n", b.read("log.txt"), "step %d", n)
	require.Empty(t, b.inbox())
	return steps > n
}
