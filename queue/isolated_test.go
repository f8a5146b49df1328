//go:build unix

package queue

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/recorder"
)

// needsLayers skips a test where no run can be isolated.
func needsLayers(t *testing.T) {
	t.Helper()
	b := newBench(t, isolatedFiles("true\n", nil))
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.Work(t.Context(), WorkOptions{}) }))
	if why := b.unpublished()["a.md"]; why != "" {
		t.Skip(why)
	}
}

// isolatedFiles are those of a bench with isolated messages, all by one routine.
func isolatedFiles(routine string, more map[string]string) map[string]string {
	files := map[string]string{
		".decree/config.yml": "isolated: {queue: true}\n", ".decree/routines/develop.sh": routine, ".decree/inbox/a.md": "go\n",
	}
	for name, text := range more {
		files[name] = text
	}
	return files
}

// settle returns when what changes from now on is later than the tree by more than any
// clock's tick.
func (b *bench) settle() {
	for begin := time.Now(); time.Since(begin) < 3*disk.FineTick; {
		_, err := os.Lstat(b.root) // time has to pass, and nothing else
		require.NoError(b.t, err)
	}
}

// live begins a routine's script: its function has a command line executed in the root by a
// process that sees no layer, and takes its output as lines to RAN.
const live = "live() { echo \"$1\" >\"$RAN.ask\"; read answer <\"$RAN.answer\"; }\n"

// answers does what routines ask of live.
func (b *bench) answers() {
	ask, answer := filepath.Join(b.base, "ran.ask"), filepath.Join(b.base, "ran.answer")
	require.NoError(b.t, syscall.Mkfifo(ask, 0o600))
	require.NoError(b.t, syscall.Mkfifo(answer, 0o600))
	in, err := os.OpenFile(ask, os.O_RDWR, 0)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { in.Close() })
	out, err := os.OpenFile(answer, os.O_RDWR, 0)
	require.NoError(b.t, err)
	go func() {
		defer out.Close()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			c := exec.Command("sh", "-c", lines.Text())
			c.Dir, c.Env = b.root, append(os.Environ(), "RAN="+filepath.Join(b.base, "ran"))
			_ = c.Run()
			_, _ = out.WriteString("\n")
		}
	}()
}

// TestIsolated: nothing of a message's run is in the tree before it is published; then come
// what its routine left in its outbox and what it put into the inbox. What it deletes of
// .decree is gone with the layer.
func TestIsolated(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+`text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"; echo "$text" >>log
[ "$text" = go ] || exit 0
live 'ls >>"$RAN"'
echo "$DECREE_ISOLATED" >isolated
echo sent >"$DECREE_OUTBOX/x"
printf -- '---\nchain: %s\n---\nin its chain\n' "$chain" >.decree/inbox/y.md
echo "own" >.decree/inbox/own.md
echo "more" >>.decree/inbox/b.md
live 'ls .decree/inbox >>"$RAN"'
mkdir kept && mv .decree/inbox kept/ && rm -r kept .decree/routines .decree/config.yml
mkdir -p .decree/inbox && echo "own" >.decree/inbox/own.md && printf -- '---\nchain: %s\n---\nin its chain\n' "$chain" >.decree/inbox/y.md
`, map[string]string{".decree/inbox/b.md": "beside\n", "f": "f\n"}))
	b.answers()
	b.settle()
	res := b.process()
	require.Equal(t, []string{"go", "f", "a.md", "b.md", "dead", "done", "sent", "in its chain", "beside", "own"}, b.ran())
	require.Equal(t, "go\nsent\nin its chain\nbeside\nown\n", b.read("log"))
	require.Equal(t, "1\n", b.read("isolated"))
	require.Empty(t, b.inbox())
	require.Len(t, b.done(), 5)
	require.Contains(t, b.done(), "own.md")
	require.Equal(t, "beside\n", lastLine(b.read(".decree/inbox/done/b.md")))
	require.NotNil(t, res[0].Published)
	require.Equal(t, history.Publish, res[0].Published.Reason)
	require.Equal(t, history.DraftPublished, b.record(res[0].Record.ID).Draft.State)
	layers, err := filepath.Glob(filepath.Join(b.base, "store/*/layers/2*"))
	require.NoError(t, err)
	require.Empty(t, layers)
}

func lastLine(text string) string {
	lines := strings.SplitAfter(text, "\n")
	return lines[max(0, len(lines)-2)]
}

func (b *bench) record(id string) (rec *history.Record) {
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) (err error) {
		rec, err = q.o.Recorder.History().Get(id)
		return err
	}))
	return rec
}

// runs are the records of the runs, the oldest first.
func (b *bench) runs() (ids []string) {
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) error {
		list, err := q.o.Recorder.History().List(history.ListOptions{})
		for _, rec := range list.Records {
			if rec.Reason == history.Run {
				ids = append([]string{rec.ID}, ids...)
			}
		}
		return err
	}))
	return ids
}

// TestIsolatedConflict: work that cannot be published is a failed attempt. The next one begins
// with the tree as it is then, and is told why.
func TestIsolatedConflict(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+`cat f >>"$RAN"; echo "$DECREE_ATTEMPT of $DECREE_ATTEMPTS" >>"$RAN"
cat ${DECREE_FAILURE_CONTEXT:-/dev/null} >>context 
[ $DECREE_ATTEMPT = 1 ] && [ $seq = 0 ] && live 'echo theirs >f'
echo ours >>f; echo no >"$DECREE_OUTBOX/n$DECREE_ATTEMPT"
[ $seq = 0 ] || rm "$DECREE_OUTBOX"/*
`, map[string]string{"f": "f\n"}))
	b.answers()
	b.settle()
	res := b.process()
	require.Equal(t, "f", b.ran()[0])
	require.Equal(t, []string{"1 of 3", "theirs", "2 of 3"}, b.ran()[1:4])
	require.Equal(t, Done, res[0].Outcome)
	first := b.runs()[0]
	require.Contains(t, b.read("context"), "Attempt 1, record "+first+": the work of attempt 1 of 3 could not be published")
	require.Contains(t, b.read("context"), "- f: changed while the run worked")
	require.Contains(t, b.read("f"), "theirs\nours\n")
	require.Equal(t, history.DraftDiscarded, b.record(first).Draft.State, "of the attempt that was followed by another one")
	require.NotContains(t, strings.Join(b.said, "\n"), "was deleted")
}

// TestIsolatedConflictsToTheEnd: after the last attempt the message is dead, its draft waits,
// and the tree has nothing of it.
func TestIsolatedConflictsToTheEnd(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+`echo "$DECREE_ATTEMPT" >>"$RAN"; live "echo $DECREE_ATTEMPT >f"
echo ours >f; echo ours >g; echo no >"$DECREE_OUTBOX/n"; echo no >.decree/inbox/no.md
`, map[string]string{"f": "f\n"}))
	b.answers()
	b.settle()
	res := b.process()
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Equal(t, []string{"1", "2", "3"}, b.ran())
	require.Equal(t, map[string]string{"f": "3\n"}, b.tree())
	require.Empty(t, b.inbox(), "nothing of a failed message is taken over")
	reason := b.read(".decree/inbox/dead/a.error.txt")
	require.Contains(t, reason, "the work of attempt 3 of 3 could not be published: 1 path differs from what run "+res[0].Record.ID+" began with\n- f: ")
	require.Contains(t, reason, "decree publish "+res[0].Record.ID)
	require.True(t, b.record(res[0].Record.ID).Draft.Waits())
	for _, id := range b.runs()[:2] {
		require.False(t, b.record(id).Draft.Waits())
	}
}

// TestIsolatedFails: a failed attempt leaves nothing to put back.
func TestIsolatedFails(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(`echo "$DECREE_ATTEMPT" >>"$RAN"; rm f; touch g; exit 3`, map[string]string{"f": "f\n"}))
	before, err := os.Stat(filepath.Join(b.root, "f"))
	require.NoError(t, err)
	b.answers()
	b.settle()
	res := b.process()
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Equal(t, "exit status 3 in the last of 3 attempts", res[0].Reason)
	require.Equal(t, []string{"1", "2", "3"}, b.ran())
	after, err := os.Stat(filepath.Join(b.root, "f"))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.Equal(t, before.ModTime(), after.ModTime())
}

// TestIsolatedCancelled: a message that somebody takes out of the inbox while it is done is not
// published; its draft waits, and the next message comes.
func TestIsolatedCancelled(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+`tail -n1 "$message_file" >>"$RAN"; tail -n1 "$message_file" >>log
! grep -q go "$message_file" || live 'rm .decree/inbox/a.md'
`, map[string]string{".decree/inbox/b.md": "next\n"}))
	b.answers()
	b.settle()
	require.Equal(t, []string{"b.md done"}, names2(b.process()))
	require.Equal(t, []string{"go", "next"}, b.ran())
	require.Equal(t, "next\n", b.read("log"))
	require.Contains(t, strings.Join(b.said, "\n"), "a.md was deleted from the inbox, and is not done again")
	require.Empty(t, b.dead())
}

// TestIsolatedOnADiskThatWasFull: that the files of a record could not be written when its run
// ended keeps its work from the tree no longer than the store has it.
func TestIsolatedOnADiskThatWasFull(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles("echo did >>log\n", nil))
	b.settle()
	full := 0
	err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if !st.Write || st.Op != "WriteAt" || filepath.Base(st.Path) != "records.jsonl" {
			return disktest.Action{}
		}
		if full++; full > 1 {
			return disktest.Action{}
		}
		return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.ENOSPC}}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.NoError(t, err)
	require.Positive(t, full)
	require.Contains(t, strings.Join(b.said, "\n"), "could not be written to .decree/runs")
	require.Equal(t, "did\n", b.read("log"))
	require.Equal(t, []string{"a.md"}, b.done())
}

// TestDeletedBeside has another run delete the file of an isolated message, and what the record
// of its run has of it, and write the file again, as a run does when it ends: it is done once.
func TestDeletedBeside(t *testing.T) {
	needsLayers(t)
	for _, beside := range []string{
		"cp .decree/inbox/a.md $RAN.copy; rm -r .decree/inbox; mkdir .decree/inbox; mv $RAN.copy .decree/inbox/a.md",
		"cp .decree/inbox/a.md $RAN.copy; rm -r .decree/inbox .decree/runs; mkdir .decree/inbox; mv $RAN.copy .decree/inbox/a.md",
	} {
		b := newBench(t, isolatedFiles(live+"tail -n1 \"$message_file\" >>\"$RAN\"; echo x >>log; live '"+beside+"'\n", nil))
		b.answers()
		require.Len(t, b.process(), 1, beside)
		require.Empty(t, b.process())
		require.Equal(t, []string{"go"}, b.ran(), beside)
		require.Equal(t, "x\n", b.read("log"))
		require.Empty(t, b.inbox())
		require.Equal(t, []string{"a.md"}, b.done())
		require.Equal(t, "go\n", lastLine(b.read(".decree/inbox/done/a.md")))
	}
}

// TestTouchedBeside has the routine of an isolated message touch or write anew a message that
// came after it had begun, which its layer sees: that is done once, wherever it is by then. What
// the routine writes there itself is a message of its own.
func TestTouchedBeside(t *testing.T) {
	needsLayers(t)
	const completed = `---\nid: 1-0\nchain: \"1\"\nseq: 0\ntype: task\n---\nb\n`
	for name, c := range map[string]struct {
		came, routine, ended string
		want                 []string
	}{
		"waits":               {`echo b >.decree/inbox/b.md`, `touch b.md`, ``, []string{"go", "b"}},
		"waits, anew":         {`echo b >.decree/inbox/b.md`, `cat b.md >x && mv x b.md`, ``, []string{"go", "b"}},
		"done":                {`echo b >.decree/inbox/b.md`, `touch b.md`, `mv .decree/inbox/b.md .decree/inbox/done/`, []string{"go"}},
		"done, anew":          {`echo b >.decree/inbox/b.md`, `cat b.md >x && mv x b.md`, `mv .decree/inbox/b.md .decree/inbox/done/`, []string{"go"}},
		"done beside another": {`echo b >.decree/inbox/b.md; echo x >.decree/inbox/done/b.md`, `touch b.md`, `mv .decree/inbox/b.md .decree/inbox/done/b.2.md`, []string{"go"}},
		"dead":                {`echo b >.decree/inbox/b.md`, `touch b.md`, `mv .decree/inbox/b.md .decree/inbox/dead/`, []string{"go"}},
		"completed":           {`echo b >.decree/inbox/b.md`, `touch b.md`, `printf -- '` + completed + `' >.decree/inbox/done/b.md; rm .decree/inbox/b.md`, []string{"go"}},
		"edited":              {`printf -- '` + completed + `' >.decree/inbox/b.md`, `touch b.md`, `echo c >>.decree/inbox/b.md`, []string{"go", "c"}},
		"its own of the name": {`echo b >.decree/inbox/b.md`, `echo mine >b.md`, ``, []string{"go", "b", "mine"}},
		"its own, done often": {`true`, `echo old >old.md`, ``, []string{"go", "old"}},
		"put back from done":  {`true`, `cp done/old.md old.md`, ``, []string{"go", "old"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, isolatedFiles(live+`text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"; [ "$text" = go ] || exit 0
live "`+c.came+`"
(cd .decree/inbox; `+c.routine+`)
live "`+c.ended+`"
`, map[string]string{".decree/inbox/done/old.md": "old\n"}))
			b.answers()
			b.settle()
			b.process()
			require.Equal(t, c.want, b.ran())
			require.Empty(t, b.inbox())
		})
	}
}

// TestPublishTakenBackAndPruned: what somebody has taken back before the queue saw that it was
// published is not published again, though the record of the publish could be pruned.
func TestPublishTakenBackAndPruned(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(echoRoutine+"echo made >made\n", nil))
	died := false
	_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Write && strings.Contains(st.Path, takenDirs[0])
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.True(t, died)
	require.FileExists(t, filepath.Join(b.root, "made"))
	ctx := context.Background()
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		r := q.o.Recorder
		_, err := r.Revert(ctx, recorder.MoveOptions{Refs: []string{"last"}, Yes: true})
		require.NoError(t, err)
		for range 2 {
			_, err = r.Checkpoint(ctx, recorder.CheckpointOptions{Reason: string(history.Publish)})
			require.NoError(t, err)
		}
		_, err = r.Prune(ctx, recorder.PruneOptions{Last: map[string]int{"run": 0, "publish": 0, "revert": 0}})
		return err
	}))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.NoFileExists(t, filepath.Join(b.root, "made"))
	require.Len(t, b.ran(), 1)
}

// TestIsolatedOnCoarseTimes: messages that change one file one right after the other all end well where no time
// tells the work of the one before from an edit beside the next.
func TestIsolatedOnCoarseTimes(t *testing.T) {
	needsLayers(t)
	now := time.Now().Truncate(time.Second).UnixNano()
	for name, d := range map[string]disk.Disk{
		"a second that does not end": disktest.Stamped(disk.OS, func(int64) int64 { return now }),
		"no change times":            disktest.Stamped(disk.OS, nil),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, isolatedFiles("echo done >>log\n", map[string]string{".decree/inbox/b.md": "go\n", ".decree/inbox/c.md": "go\n", "log": ""}))
			require.NoError(t, b.with(d, func(q *Queue) error { _, err := b.all(q); return err }))
			require.Equal(t, "done\ndone\ndone\n", b.read("log"))
			require.Len(t, b.done(), 3)
		})
	}
}

// TestIsolatedSpec: a spec says of its message whether that is isolated, as a message does of itself.
func TestIsolatedSpec(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "echo $spec_file >>made\n",
		"specs/1.spec.md":             "---\nisolated: true\n---\none\n", "specs/2.spec.md": "two\n",
	})
	b.settle()
	res := b.process()
	require.Len(t, res, 2)
	require.NotEmpty(t, res[0].Record.Isolated)
	require.Empty(t, res[1].Record.Isolated)
	require.Equal(t, "specs/1.spec.md\nspecs/2.spec.md\n", b.read("made"))
}
