//go:build unix

package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
	"decree/plan"
	"decree/recorder"
)

// TestPublishWaitsForAPerson: what a person has to put right before anything can be published is no fault of the work: it costs no
// attempt, and the work is published then.
func TestPublishWaitsForAPerson(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(renames, map[string]string{".decree/config.yml": "isolated: {queue: true}\ncapture: {max_file: 100}\n", "d/big": strings.Repeat("x", 200)}))
	for range 2 {
		err := b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err })
		require.ErrorContains(t, err, "message a.md has succeeded, and its work is not in the tree yet")
		require.Equal(t, []string{"a.md"}, b.inbox())
	}
	require.NoError(t, os.Remove(filepath.Join(b.root, "d/big")))
	b.process()
	require.Equal(t, []string{"go"}, b.ran())
	require.Equal(t, []string{"a.md"}, b.done())
	require.Equal(t, "did\n", b.read("log"))
}

// TestEarlierDraftIsLookedAt: a draft of an earlier attempt that somebody looks at when its message ends is left.
func TestEarlierDraftIsLookedAt(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+renames+"[ $(wc -l <\"$RAN\") = 2 ] || live 'echo theirs >log'\n", map[string]string{"log": ""}))
	b.answers()
	b.settle()
	var unlock []func() error
	require.NoError(t, b.with(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		layers, _ := filepath.Glob(filepath.Join(b.base, "store/*/layers/2*"))
		if len(b.ran()) == 2 && len(layers) == 2 && unlock == nil {
			f, err := os.Open(layers[0])
			require.NoError(t, err)
			require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			unlock = append(unlock, f.Close)
		}
		return disktest.Action{}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	require.Len(t, unlock, 1)
	require.NoError(t, unlock[0]())
	require.Equal(t, []string{"a.md"}, b.done())
	require.Contains(t, strings.Join(b.said, "\n"), "a.md: the draft of an earlier attempt is not discarded: another process works in draft")
}

// TestManyConflicts: however many paths kept however many attempts from being published, the state can be read again.
func TestManyConflicts(t *testing.T) {
	conflict := &recorder.ConflictError{Verb: "publish", Subject: "what it began with"}
	for n := range 40_000 {
		conflict.Items = append(conflict.Items, plan.Item{Reason: strings.Repeat("r", 100) + fmt.Sprint(n)})
	}
	words := conflictInWords(conflict)
	require.Contains(t, words, "- and 39950 more")
	require.Less(t, len(words), 10_000)
	dir, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	s := &state{Version: stateVersion, UnderWay: []*underWay{{Name: "a.md", Reasons: []string{"first\n" + strings.Repeat("x", maxState)}}}}
	require.NoError(t, s.write(dir))
	s, err = readState(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"first"}, s.UnderWay[0].Reasons)
}

// TestNewBesideAFullInbox: what a routine in a layer puts into a full inbox is new though an older message of its name is done,
// and not where that came there during the run.
func TestNewBesideAFullInbox(t *testing.T) {
	b := newBench(t, map[string]string{".decree/inbox/done/todo.md": "old\n", ".decree/inbox/waits.md": "waits\n", "from/todo.md": "new\n", "from/waits.md": "touched\n"})
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		j := q.job(q.o.Recorder, nil)
		j.u = &underWay{Name: "a.md", Chain: "1", Partly: true}
		d, err := j.open()
		require.NoError(t, err)
		defer d.close()
		from, err := disk.OpenPath(q.project().Dir, "from")
		require.NoError(t, err)
		defer from.Close()
		later := time.Now().Add(time.Hour).UnixNano()
		for name, want := range map[string]bool{"todo.md": true, "waits.md": false} {
			isNew, err := j.isNew(d, from, name, later)
			require.NoError(t, err)
			require.Equal(t, want, isNew, name)
		}
		isNew, err := j.isNew(d, from, "todo.md", 0)
		require.False(t, isNew, "it was in the inbox, and was done meanwhile")
		return err
	}))
}
