//go:build unix

package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/recorder"
)

// meet makes the pipes with which routines and tests wait for each other: "started" and "go".
func (b *bench) meet() (await func() string, let func()) {
	for _, name := range []string{"started", "go"} {
		require.NoError(b.t, syscall.Mkfifo(filepath.Join(b.base, name), 0o600))
	}
	open := func(name string) *os.File {
		f, err := os.OpenFile(filepath.Join(b.base, name), os.O_RDWR, 0)
		require.NoError(b.t, err)
		b.t.Cleanup(func() { f.Close() })
		return f
	}
	started, gone := open("started"), open("go")
	return func() string {
			var line []byte
			for one := make([]byte, 1); ; line = append(line, one...) {
				_, err := started.Read(one)
				require.NoError(b.t, err)
				if one[0] == '\n' {
					return string(line)
				}
			}
		}, func() {
			_, err := gone.WriteString("\n")
			require.NoError(b.t, err)
		}
}

// known has the tree be recorded, so that what others publish in its directories is told from
// what somebody edits there.
func (b *bench) known() {
	b.settle()
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) error {
		_, err := q.o.Recorder.Checkpoint(b.t.Context(), recorder.CheckpointOptions{})
		return err
	}))
	b.settle()
}

// atWork has a routine say its message's text and wait for leave.
const atWork = "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; base=${RAN%/*}\n" +
	"works() { echo \"$text\" >$base/started; read line <$base/go; }\n"

// TestJobs: isolated messages are done beside each other, but never two of a chain; what they
// did is published by one after the other; a message in place is done alone.
func TestJobs(t *testing.T) {
	needsLayers(t)
	files := isolatedFiles(atWork+`case $text in
1|2|3|[xy]*) works ;;
alone) ls $base/store/*/leases >>"$RAN" ;;
esac
[ $text != 1 ] || { echo x1 >"$DECREE_OUTBOX/a"; echo y1 >"$DECREE_OUTBOX/b"; }
echo $text >of-$text
`, map[string]string{".decree/inbox/a.md": "1\n", ".decree/inbox/b.md": "2\n", ".decree/inbox/c.md": "3\n",
		".decree/inbox/d.md": "---\nisolated: false\n---\nalone\n", ".decree/inbox/e.md": "late\n"})
	texts := []string{"1", "2", "3", "x1", "y1", "alone", "late"}
	for _, text := range texts {
		files["of-"+text] = ""
	}
	b := newBench(t, files)
	b.known()
	b.jobs = 3
	await, let := b.meet()
	var res []*Result
	done := make(chan error)
	go func() {
		var err error
		res, err = b.work(disk.OS)
		done <- err
	}()
	at := []string{await(), await(), await()}
	slices.Sort(at)
	require.Equal(t, []string{"1", "2", "3"}, at)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		doing, err := UnderWay(&q.project().Site, "h")
		require.Len(t, doing, 3)
		for _, m := range doing {
			require.Equal(t, os.Getpid(), m.Holder.PID)
		}
		require.ErrorContains(t, refuseUnderWay(q.project(), "h", "b.md"), "b.md is being done by process")
		holders, gerr := filepath.Glob(filepath.Join(q.project().StorePath, "leases", "*", "holder.json"))
		require.NoError(t, gerr)
		require.Len(t, holders, 3)
		for _, holder := range holders { // as while a lease is taken, or given back
			require.NoError(t, os.Rename(holder, holder+".away"))
			defer os.Rename(holder+".away", holder)
		}
		for _, m := range doing {
			require.ErrorContains(t, refuseUnderWay(q.project(), "h", m.Name), m.Name+" is being done")
		}
		return err
	}))
	for range 3 {
		let()
	}
	require.Equal(t, "x1", await(), "the first follow-up is begun, and what is in place waits behind it")
	let()
	require.Equal(t, "y1", await())
	let()
	require.NoError(t, <-done)
	require.Len(t, res, 7)
	require.Empty(t, b.inbox())
	require.Empty(t, b.dead())
	ran := b.ran()
	alone := slices.Index(ran, "alone")
	require.NotContains(t, ran[:alone], "late")
	require.Equal(t, []string{"alone", res[5].Record.ID, "late"}, ran[alone:alone+3], "no other has a lease while it works")
	for _, text := range texts {
		require.Equal(t, text+"\n", b.read("of-"+text))
	}
}

// TestJobsShareFiles: however many messages change the same file at once, the tree has the work
// of each that is done once, and of no other; where nobody else edits none is dead.
func TestJobsShareFiles(t *testing.T) {
	needsLayers(t)
	files := isolatedFiles(`text=$(tail -n1 "$message_file"); echo "$text" >>log; mkdir -p "d$((text % 3))"; echo $text >"d$((text % 3))/$text"
echo "$text" >>"$RAN"
`, map[string]string{"log": "", ".decree/inbox/a.md": "0\n"})
	const most = 10
	for n := range most {
		files[fmt.Sprintf(".decree/inbox/m%02d.md", n)] = fmt.Sprintf("%d\n", n+1)
	}
	b := newBench(t, files)
	b.known()
	b.jobs = 4
	res, err := b.work(disk.OS)
	require.NoError(t, err)
	require.Len(t, res, most+1)
	require.Empty(t, b.dead(), strings.Join(b.said, "\n"))
	lines := strings.Fields(b.read("log"))
	slices.Sort(lines)
	var want []string
	for n := range most + 1 {
		want = append(want, fmt.Sprint(n))
		require.Equal(t, fmt.Sprintln(n), b.read(fmt.Sprintf("d%d/%d", n%3, n)))
	}
	slices.Sort(want)
	require.Equal(t, want, lines)
	require.GreaterOrEqual(t, len(b.ran()), len(want))
}
