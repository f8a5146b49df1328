//go:build unix

package queue

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// person does what a person's command does.
func (b *bench) person(act func(q *Queue) error) error { return b.with(disk.OS, act) }

// forgetHolder removes the note of who has the lock: this process, which goes on after its death.
func (b *bench) forgetHolder() {
	notes, err := filepath.Glob(filepath.Join(b.base, "store/*/lock.json"))
	require.NoError(b.t, err)
	for _, note := range notes {
		require.NoError(b.t, os.Remove(note))
	}
}

// TestDecidedBeforeAPersonsCommand ends the process at each step after a routine has worked, and lets a person cancel the
// message, or edit it. Whenever decree died, one of the two counts: what the run did, with the message done or dead, or what
// the person wanted.
func TestDecidedBeforeAPersonsCommand(t *testing.T) {
	stride := 19
	if os.Getenv("DECREE_LONG") != "" {
		stride = 1
	}
	for _, c := range []struct {
		act, routine string
		isolated     bool
	}{{"cancel", "true", false}, {"edit", "true", false}, {"cancel", "false", false}, {"edit", "false", false}, {"cancel", "true", true}, {"edit", "true", true}, {"edit", "false", true}} {
		t.Run(fmt.Sprintf("%s/%s/isolated=%v", c.act, c.routine, c.isolated), func(t *testing.T) {
			if c.isolated {
				needsLayers(t)
			}
			outcomes := map[string]int{}
			for n, fired := 0, true; fired; n += stride {
				fired = decidedBefore(t, c.act, c.routine, c.isolated, n, outcomes)
			}
			t.Log(outcomes)
			require.Positive(t, outcomes["the person's"])
			require.True(t, outcomes["the run's"] > 0 || c.routine == "false")
		})
	}
}

func decidedBefore(t *testing.T, act, routine string, isolated bool, n int, outcomes map[string]int) (fired bool) {
	b := newBench(t, map[string]string{
		".decree/config.yml": fmt.Sprintf("max_attempts: 1\nisolated: {queue: %v}\n", isolated),
		".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>log.txt; " +
			"[ $text != old ] || { echo follow >$DECREE_OUTBOX/x; " + routine + "; }\n",
		".decree/inbox/a.md": waitingText,
	})
	defer os.RemoveAll(b.base)
	steps := 0
	_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Write && len(b.ran()) > 0 && path.Base(st.Path) != "routine.log" {
			steps++
		}
		return disktest.Action{Die: st.Write && steps == n+1}
	}), func(q *Queue) error { _, err := q.Next(context.Background(), 0, Pick{}); return err })
	fired = steps > n
	b.forgetHolder()
	err := b.person(func(q *Queue) error {
		if _, err := q.End(context.Background(), 0, "a.md", act == "edit"); err != nil {
			return err
		}
		if act == "cancel" {
			_, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted")
			return err
		}
		return Edit(q.o.Recorder, "h", "", "a.md", []byte(waitingText), []byte(strings.Replace(waitingText, "old", "new", 1)))
	})
	b.process()
	where := fmt.Sprintf("%s %s: dead at step %d: the person's command: %v", act, routine, n, err)
	require.Empty(t, b.inbox(), where)
	dead := slices.DeleteFunc(b.dead(), func(name string) bool { return !isMessage(name) })
	log := b.read("log.txt")
	switch {
	case err != nil && routine == "true":
		outcomes["the run's"]++
		require.Equal(t, "old\nfollow\n", log, where)
		require.Len(t, b.done(), 2, where)
		require.Empty(t, dead, where)
	case err != nil || act == "cancel":
		outcomes[map[bool]string{true: "the person's", false: "the run's"}[err == nil]]++
		require.Empty(t, log, where)
		require.Empty(t, b.done(), where)
		require.Len(t, dead, 1, where)
	default:
		outcomes["the person's"]++
		require.Equal(t, "new\n", log, where)
		require.Len(t, b.done(), 1, where)
		require.Empty(t, dead, where)
	}
	return fired
}

// TestDoneWhileAPersonEdits: the process of an edit has looked at the history before the work of its message's run was published, by
// a decree that then died: the edit is refused, as that of one who looks only then.
func TestDoneWhileAPersonEdits(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("tail -n1 \"$message_file\" | tee -a \"$RAN\" >log.txt\n", map[string]string{".decree/inbox/a.md": waitingText}))
	b.settle()
	until := func(part string) {
		require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			return disktest.Action{Die: st.Write && len(b.ran()) > 0 && strings.Contains(st.Path, part)}
		}), func(q *Queue) error { _, err := b.all(q); return err }))
		b.forgetHolder()
	}
	until("/txn")
	require.NoError(t, b.person(func(q *Queue) error {
		seen, err := q.o.Recorder.History().Get("2020010101010100-0")
		require.NoError(t, err)
		require.Equal(t, history.DraftWaiting, seen.Draft.State)
		until(takenDirs[0])
		require.Equal(t, "old\n", b.read("log.txt"))
		err = Edit(q.o.Recorder, "h", "", "a.md", []byte(waitingText), []byte(strings.Replace(waitingText, "old", "new", 1)))
		require.ErrorContains(t, err, "a is done: record 2020010101010100-0")
		return nil
	}))
	b.process()
	require.Equal(t, []string{"old"}, b.ran())
}
