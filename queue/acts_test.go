//go:build unix

package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/recorder"
)

// wipingRoutine deletes the whole inbox when it is let, and ends when it is let.
const wipingRoutine = `text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"
[ "$text" = wipe ] || exit 0
echo >"$RAN.started"; read line <"$RAN.wipe"
rm -rf .decree/inbox
echo >"$RAN.wiped"; read line <"$RAN.end"
echo ended >>"$RAN.over"
`

// aPersonsActs are what a person does to messages, and what the texts are then of those that
// are done: told that it is done, and told that it is not.
var aPersonsActs = map[string]struct {
	act           func(r *recorder.Recorder) error
	done, refused string
	dead          string // the text of a message that is dead in the end
}{
	"send":       {func(r *recorder.Recorder) error { return r.Project().Drop("s.md", []byte("sent\n")) }, "cancelled old other sent", "cancelled old other", "dead"},
	"send again": {func(r *recorder.Recorder) error { return r.Project().Drop("o.md", []byte("sent\n")) }, "cancelled old other sent", "cancelled old other", "dead"},
	"cancel": {func(r *recorder.Recorder) error {
		_, err := Cancel(r, "h", "c.md", "not wanted")
		return err
	}, "old other", "cancelled old other", "cancelled"},
	"edit": {func(r *recorder.Recorder) error {
		return Edit(r, "h", "", "e.md", []byte("old\n"), []byte("new\n"))
	}, "cancelled new other", "cancelled old other", "dead"},
	"edit dead": {func(r *recorder.Recorder) error {
		return Edit(r, "h", "dead", "r.md", []byte("dead\n"), []byte("later\n"))
	}, "cancelled old other", "cancelled old other", "later"},
	"retry": {func(r *recorder.Recorder) error {
		return r.Hold(context.Background(), 0, false, func() error {
			_, err := Retry(r.Project(), "r.md")
			return err
		})
	}, "cancelled dead old other", "cancelled old other", ""},
}

// TestActsBesideARoutineThatWipesTheInbox halts a person's command before each of its steps
// until a routine has deleted the whole inbox, which then succeeds, fails, or dies with decree.
// What the person was told holds: a message is done once, with the text that it has, and a
// cancelled one never.
func TestActsBesideARoutineThatWipesTheInbox(t *testing.T) {
	stride := disktest.Stride(31)
	for what := range aPersonsActs {
		for _, end := range []string{"succeeds", "fails", "dies"} {
			t.Run(what+" "+end, func(t *testing.T) {
				kept := 0
				actBesideAWipe(t, what, end, -1, &kept)
				for m, halted := 0, true; halted; m += stride {
					halted = actBesideAWipe(t, what, end, m, &kept)
				}
				require.Positive(t, kept)
			})
		}
	}
}

// actBesideAWipe halts the command before its step m; -1: it begins after the wipe.
func actBesideAWipe(t *testing.T, what, end string, m int, kept *int) (halted bool) {
	script := wipingRoutine
	if end == "fails" {
		script += "exit 3\n"
	}
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": script, ".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "wipe\n", ".decree/inbox/c.md": "cancelled\n",
		".decree/inbox/e.md": "old\n", ".decree/inbox/o.md": "other\n", ".decree/inbox/dead/r.md": "dead\n", ".decree/inbox/dead/r.error.txt": "reason\n",
	})
	defer os.RemoveAll(b.base)
	ran := filepath.Join(b.base, "ran")
	for _, pipe := range []string{".started", ".wipe", ".wiped", ".end"} {
		require.NoError(t, syscall.Mkfifo(ran+pipe, 0o600))
	}
	halt, on, ended, told := make(chan bool), make(chan struct{}), make(chan error, 1), make(chan error, 1)
	steps, began := 0, false
	person, err := b.open(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		if began {
			if steps == m {
				halt <- true
				<-on
			}
			steps++
		}
		return disktest.Action{}
	}))
	require.NoError(t, err)
	defer person.Close()
	act := func() {
		began = true
		err := aPersonsActs[what].act(person)
		began = false
		close(halt)
		ended <- err
	}
	go func() {
		_, _ = os.ReadFile(ran + ".started")
		if m >= 0 {
			go act()
			halted = <-halt
		}
		_ = os.WriteFile(ran+".wipe", []byte("\n"), 0o600)
		_, _ = os.ReadFile(ran + ".wiped")
		if m < 0 {
			go act()
		} else if halted {
			close(on)
		}
		told <- <-ended
		_ = os.WriteFile(ran+".end", []byte("\n"), 0o600)
	}()
	after := 0
	died := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if _, over := os.Stat(ran + ".over"); end == "dies" && st.Write && over == nil && filepath.Base(st.Path) != "routine.log" {
			after++
		}
		return disktest.Action{Die: after > 7*(m+1)%40}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.Equal(t, end == "dies", died != nil, "%v", died)
	err = <-told
	b.process()
	where := fmt.Sprintf("step %d: %v (%v)\n%s", m, err, died, strings.Join(b.said, "\n"))
	c := aPersonsActs[what]
	wanted := c.done
	if err == nil {
		*kept++
	} else {
		wanted = c.refused
		require.True(t, errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) || errors.Is(err, ErrEdited) || strings.Contains(err.Error(), "no such"), where)
	}
	require.Empty(t, b.inbox(), where)
	var others []string
	for _, text := range b.ran() {
		if text != "wipe" {
			others = append(others, text)
		}
	}
	require.ElementsMatch(t, strings.Fields(wanted), others, where)
	if c.dead != "" && err == nil {
		name := map[string]string{"cancelled": "c.md"}[c.dead]
		if name == "" {
			name = "r.md"
		}
		require.Equal(t, c.dead+"\n", b.read(".decree/inbox/dead/"+name), where)
	}
	return halted
}
