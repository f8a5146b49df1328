//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestClockSetBackDuringARun: what a routine writes into the inbox is its follow-up also if the
// clock was set back after the run had begun, so that its files look older than the run; with
// the end of decree's process before the message is done, too.
func TestClockSetBackDuringARun(t *testing.T) {
	for _, end := range []string{"succeeds", "fails", "succeeds, dies", "fails, dies"} {
		t.Run(end, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/config.yml": "max_attempts: 1\n",
				".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"; [ "$seq" = 0 ] || exit 0
echo more >.decree/inbox/$chain-1.md
` + map[bool]string{true: "exit 3\n"}[strings.HasPrefix(end, "fails")],
				".decree/inbox/a.md": "go\n",
			})
			state := func() string {
				found, err := filepath.Glob(filepath.Join(b.base, "store", "*", stateFile))
				require.NoError(t, err)
				return strings.Join(found, "")
			}
			later := time.Now().Add(time.Hour)
			dead := false
			err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if file := state(); file != "" && len(b.ran()) == 0 {
					require.NoError(t, os.Chtimes(file, later, later))
				}
				dead = dead || strings.HasSuffix(end, "dies") && len(b.ran()) > 0 && filepath.Base(st.Path) == "audit.jsonl"
				return disktest.Action{Die: dead}
			}), func(q *Queue) error { _, err := b.all(q); return err })
			require.Equal(t, dead, err != nil, "%v", err)
			if dead {
				data, err := os.ReadFile(state())
				require.NoError(t, err)
				data = regexp.MustCompile(`"since":\d+`).ReplaceAll(data, []byte(`"since":9000000000000000000`))
				require.NoError(t, os.WriteFile(state(), data, 0o600))
			}
			b.process()
			if strings.HasPrefix(end, "fails") {
				require.Equal(t, []string{"go"}, b.ran(), "the follow-up of a failed run")
				return
			}
			require.Equal(t, []string{"go", "more"}, b.ran())
			var follower string
			for _, name := range b.done() {
				if name != "a.md" {
					follower = b.read(".decree/inbox/done/" + name)
				}
			}
			require.Contains(t, follower, "\ndepth: 1\n")
		})
	}
}

// TestDoneBesideWithTheClockSetBack: a message that came and was done while an isolated one worked is done once, also if
// the clock was set back after that one had begun, and its routine has touched the other in its layer.
func TestDoneBesideWithTheClockSetBack(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(atWork+`case $text in
long) works; touch .decree/inbox/b.md; works ;;
first) echo first >$base/started; read line <$base/first ;;
b) echo after >"$DECREE_OUTBOX/x" ;;
after) echo after >$base/started ;;
esac
`, map[string]string{".decree/inbox/a.md": "long\n", ".decree/inbox/c.md": "first\n"}))
	b.known()
	b.jobs = 2
	await, let := b.meet()
	first := filepath.Join(b.base, "first")
	require.NoError(t, syscall.Mkfifo(first, 0o600))
	done := make(chan error)
	go func() { _, err := b.work(disk.OS); done <- err }()
	require.ElementsMatch(t, []string{"long", "first"}, []string{await(), await()})
	require.NoError(t, os.WriteFile(filepath.Join(b.root, ".decree/inbox/b.md"), []byte("b\n"), 0o600))
	found, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*", messageFile))
	require.NoError(t, err)
	later := time.Now().Add(time.Hour)
	for _, file := range found {
		require.NoError(t, os.Chtimes(file, later, later))
	}
	let()
	require.Equal(t, "long", await())
	require.NoError(t, os.WriteFile(first, []byte("\n"), 0))
	require.Equal(t, "after", await())
	let()
	require.NoError(t, <-done)
	require.ElementsMatch(t, []string{"long", "first", "b", "after"}, b.ran(), strings.Join(b.said, "\n"))
	require.Empty(t, b.dead())
}
