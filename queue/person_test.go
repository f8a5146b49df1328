//go:build unix

package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
	"decree/recorder"
)

// TestAPersonBesideTheStart lets a person's command begin at each step that leads to a
// message's run, stop before each of its own steps until the message has ended, and go
// on. Whatever the order, the message is cancelled or done, and not both; an edited one
// is done once, with the text that the person was told of.
func TestAPersonBesideTheStart(t *testing.T) {
	stride := disktest.Stride(9)
	for what, act := range map[string]func(p *recorder.Recorder) error{
		"cancel": func(p *recorder.Recorder) error { _, err := Cancel(p, "h", "a.md", "not wanted"); return err },
		"edit": func(p *recorder.Recorder) error {
			return Edit(p, "h", "", "a.md", []byte(waitingText), []byte("---\nid: 2020010101010100-0\nchain: 2020010101010100\nseq: 0\ntype: task\nroutine: develop\n---\nnew\n"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			outcomes := map[string]int{}
			for m, stopped := 0, true; stopped; m++ {
				stopped = false
				for n, reached := m%stride, true; reached; n += stride {
					var halted bool
					reached, halted = besideTheStart(t, what, act, n, m, outcomes)
					stopped = stopped || halted
				}
			}
			t.Log(outcomes)
			require.Greater(t, outcomes["told done"], 3)
			require.Greater(t, outcomes["refused"], 3)
		})
	}
}

const waitingText = "---\nid: 2020010101010100-0\nchain: 2020010101010100\nseq: 0\ntype: task\nroutine: develop\n---\nold\n"

// besideTheStart begins act at the queue's step n with the message or what is noted of it, and halts it before its own step m. It
// says whether there were as many steps.
func besideTheStart(t *testing.T, what string, act func(*recorder.Recorder) error, n, m int, outcomes map[string]int) (reached, halted bool) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"\n", ".decree/inbox/a.md": map[string]string{"cancel": "old\n", "edit": waitingText}[what]})
	defer os.RemoveAll(b.base)
	began, halt, on, ended := false, make(chan bool), make(chan struct{}), make(chan error, 1)
	own := 0
	person, err := b.open(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
		if began {
			if own == m {
				halt <- true
				<-on
			}
			own++
		}
		return disktest.Action{}
	}))
	require.NoError(t, err)
	defer person.Close()
	steps := 0
	goOn := sync.OnceFunc(func() { close(on) })
	err = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if halted && st.Op == "TryLock" && filepath.Base(st.Path) == project.OwnLogs {
			goOn() // it has the lock that is waited for
		}
		if !strings.Contains(st.Path, "queue.json") && !strings.Contains(st.Path, "a.md") {
			return disktest.Action{}
		}
		if steps++; steps == n+1 && len(b.ran()) == 0 {
			reached, began = true, true
			go func() {
				err := act(person)
				close(halt)
				ended <- err
			}()
			halted = <-halt
		}
		return disktest.Action{}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.NoError(t, err)
	if !reached {
		return false, false
	}
	if halted {
		goOn()
		<-halt
	}
	err = <-ended
	b.process()
	where := fmt.Sprintf("%s: step %d of the queue, %d of the person: %v", what, n, m, err)
	require.Empty(t, b.inbox(), where)
	ran := strings.Join(b.ran(), " ")
	switch {
	case err != nil:
		outcomes["refused"]++
		require.Equal(t, "old", ran, where)
		require.Equal(t, []string{"a.md"}, b.done(), where)
		require.Empty(t, b.dead(), where)
	case what == "cancel":
		outcomes["told done"]++
		require.Empty(t, ran, where)
		require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead(), where)
		require.Empty(t, b.done(), where)
	default:
		outcomes["told done"]++
		require.Equal(t, "new", ran, where)
		require.Empty(t, b.dead(), where)
	}
	return true, halted
}
