//go:build unix

package queue

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

const deadText = "---\nid: 2020010101010100-0\nchain: 2020010101010100\nseq: 0\ntype: task\n---\nold\n"

// TestEditBesideRetry: a dead message that is queued again in the moment in which its edited text is to take
// its place is not written again, and who edits it is told.
func TestEditBesideRetry(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n",
		".decree/inbox/dead/a.md": deadText, ".decree/inbox/dead/a.error.txt": "why\n"})
	armed := false
	person, err := b.open(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if armed && st.Op == "TryLock" {
			armed = false
			at := filepath.Join(b.root, ".decree/inbox")
			require.NoError(t, os.Rename(filepath.Join(at, "dead/a.md"), filepath.Join(at, "a.md")))
		}
		return disktest.Action{}
	}))
	require.NoError(t, err)
	defer person.Close()
	armed = true
	err = Edit(person, "h", deadName, "a.md", []byte(deadText), []byte(strings.Replace(deadText, "old", "new", 1)))
	require.ErrorIs(t, err, ErrEdited)
	require.False(t, armed)
	require.Equal(t, []string{"a.error.txt"}, b.dead())
	b.process()
	require.Equal(t, []string{"old"}, b.ran())
}

// TestEditDies ends the process of an edit at each of its steps. The message is there once, and who does what
// is advised for a dead one has it done once.
func TestEditDies(t *testing.T) {
	edited := []byte(strings.Replace(deadText, "old", "new", 1))
	for n, died := 0, true; died; n += disktest.Stride(3) {
		died = false
		b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n", ".decree/inbox/a.md": deadText})
		begun, steps := false, 0
		person, err := b.open(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
			if begun {
				steps++
			}
			died = died || steps > n
			return disktest.Action{Die: steps > n}
		}))
		require.NoError(t, err)
		begun = true
		err = Edit(person, "h", "", "a.md", []byte(deadText), edited)
		begun = false
		require.Equal(t, died, err != nil, "step %d: %v", n, err)
		_ = person.Close()
		b.process()
		for _, name := range b.dead() {
			if isMessage(name) {
				require.NoError(t, b.with(disk.OS, func(q *Queue) error {
					return q.o.Recorder.Hold(context.Background(), 0, false, func() error { _, err := Retry(q.project(), name); return err })
				}))
			}
		}
		b.process()
		require.Len(t, b.ran(), 1, fmt.Sprintf("step %d", n))
		require.Equal(t, []string{"a.md"}, b.done(), "step %d", n)
		_ = os.RemoveAll(b.base)
	}
}

// TestMovedOutOfDeadBesideAnEdit moves a message out of dead by hand at each step of an edit of it, there or in the inbox,
// whose new text lies in dead for an instant: it is done once.
func TestMovedOutOfDeadBesideAnEdit(t *testing.T) {
	edited := []byte(strings.Replace(deadText, "old", "new", 1))
	for _, where := range []string{"", deadName} {
		moved := 0
		for n, reached := 0, true; reached; n += disktest.Stride(3) {
			b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n",
				filepath.Join(".decree/inbox", where, "a.md"): deadText})
			at := filepath.Join(b.root, ".decree/inbox")
			begun, steps := false, 0
			person, err := b.open(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
				if steps++; begun && steps == n+1 {
					if _, err := os.Stat(filepath.Join(at, "a.md")); err != nil && os.Rename(filepath.Join(at, "dead/a.md"), filepath.Join(at, "a.md")) == nil {
						moved++
					}
				}
				return disktest.Action{}
			}))
			require.NoError(t, err)
			begun, steps = true, 0
			err = Edit(person, "h", where, "a.md", []byte(deadText), edited)
			begun, reached = false, steps > n
			_ = person.Close()
			what := fmt.Sprintf("%q, step %d: %v\n%s", where, n, err, strings.Join(b.said, "\n"))
			for _, name := range b.dead() {
				require.False(t, isMessage(name) && len(b.inbox()) > 0, what)
			}
			b.process()
			if where == "" || len(b.done()) > 0 {
				require.Len(t, b.ran(), 1, what)
				require.True(t, err == nil || b.ran()[0] == "old", what)
				require.True(t, err != nil || b.ran()[0] == "new", what)
			}
			_ = os.RemoveAll(b.base)
		}
		require.Greater(t, moved, 3)
	}
}
