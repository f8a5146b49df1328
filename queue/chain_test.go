//go:build unix

package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/message"
)

// TestSentAtAnyMoment: a message is sent at each step of another's run, with the chain
// that this one has, and decree dies there, or goes on and dies at none. It is nobody's
// follow-up: it is done once, whatever became of the other.
func TestSentAtAnyMoment(t *testing.T) {
	stride := disktest.Stride(9)
	for _, dies := range []bool{false, true} {
		for _, exit := range []int{0, 3} {
			sent := 0
			for n, fired := 0, true; fired; n += stride {
				b := newBench(t, map[string]string{
					".decree/config.yml": "max_attempts: 1\n",
					".decree/routines/develop.sh": fmt.Sprintf(`tail -n1 "$message_file" >>"$RAN"
[ "$message_id" = "$(cat "$RAN.sent" 2>/dev/null)" ] || exit %d
`, exit),
					".decree/inbox/a.md": "first\n",
				})
				steps := 0
				fired = false
				_ = b.with(disk.OS, func(*Queue) error { return nil }) // the project is made
				_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
					if !st.Write || fired && !dies || len(b.done())+len(b.dead()) > 0 {
						return disktest.Action{}
					}
					if steps++; steps == n+1 {
						fired = true
						chain := chainNow(b)
						if chain != "" {
							sent++
							text := fmt.Sprintf("---\nid: %s-0\nchain: %s\nseq: 0\ntype: task\n---\nsent\n", chain, chain)
							require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox/x.md"), []byte(text), 0o644))
						}
					}
					return disktest.Action{Die: dies && fired}
				}), func(q *Queue) error { _, err := b.all(q); return err })
				b.process()
				if fired && b.read(".decree/inbox/done/x.md")+b.read(".decree/inbox/dead/x.md") == "" {
					require.NotContains(t, b.ran(), "sent")
					matches, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*/outbox/*"))
					require.NoError(t, err)
					require.Empty(t, matches, "step %d: dies %v, exit %d", n, dies, exit)
				}
				require.Empty(t, b.inbox())
				os.RemoveAll(b.base)
			}
			require.Positive(t, sent)
		}
	}
}

// chainNow is the chain that stands in the message of the bench, "" for none yet.
func chainNow(b *bench) string {
	m, err := message.Parse("a.md", []byte(b.read(".decree/inbox/a.md")))
	if err != nil {
		return ""
	}
	return m.Chain
}

// TestChainsAreGivenOnce: in one second, to messages that wait, are done, are dead
// without a record, or have odd names; and again where one was given back.
func TestChainsAreGivenOnce(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/inbox/dead/2026112107020000-0.md": "rejected\n",
		".decree/inbox/done/2026112107020001-0.md": "done by an older decree\n",
		".decree/inbox/2026112107020002-0.md":      "waits\n",
	})
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		at := time.Date(2026, 11, 21, 7, 2, 0, 0, time.UTC)
		given := map[string]bool{}
		for range keptChains + 200 {
			b.clk = at.Add(-time.Second)
			chain, err := NewChain(q.o.Recorder)
			require.NoError(t, err)
			require.False(t, given[chain], chain)
			given[chain] = true
		}
		require.True(t, given["2026112107020003"])
		require.False(t, given["2026112107020002"])
		b.clk = at.Add(9 * time.Second)
		chain, err := NewChain(q.o.Recorder)
		require.NoError(t, err)
		ReturnChain(q.project(), chain)
		b.clk = at.Add(9 * time.Second)
		again, err := NewChain(q.o.Recorder)
		require.NoError(t, err)
		require.Equal(t, chain, again)
		dir, err := q.project().Store.OpenDir(chainsDir)
		require.NoError(t, err)
		defer dir.Close()
		list, err := dir.List()
		require.LessOrEqual(t, len(list), keptChains+1)
		return err
	}))
}

// TestClockWrongByMillennia: a daemon whose clock stands where no time can be written
// down fires its jobs, and goes on when the clock is right.
func TestClockWrongByMillennia(t *testing.T) {
	b := newBench(t, nil)
	b.job("a.md", "* * * * *", "")
	right := b.clk
	for i, years := range []int{0, 10000, 0, -2026, 0} {
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			b.clk = right.AddDate(years, 0, i)
			c := newCron(q, func(string) {})
			if err := q.prepare(t.Context()); err != nil {
				return err
			}
			return c.tick()
		}))
		require.Len(t, b.inbox(), i+1, "%d years", years)
	}
	for _, name := range b.inbox() {
		_, _, ok := history.ParseID(name[:len(name)-len(suffix)])
		require.True(t, ok, name)
	}
}

// TestPutBackDuringTheRun: a message of the running chain that a person takes back from
// dead meanwhile does not go with the run that fails.
func TestPutBackDuringTheRun(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":                       "max_attempts: 1\n",
		".decree/inbox/dead/2020010101010100-1.md": "---\nid: 2020010101010100-1\nchain: 2020010101010100\nseq: 1\ntype: task\n---\nsecond\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"
[ "$seq" != 0 ] || { mv .decree/inbox/dead/$chain-1.md .decree/inbox/; echo mine >.decree/inbox/$chain-2.md; exit 1; }
`,
		".decree/inbox/2020010101010100-0.md": "first\n",
	})
	b.process()
	require.Equal(t, []string{"first", "second"}, b.ran())
}
