//go:build unix

package queue

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

const echoRoutine = `echo "$message_id" >>"$RAN"
`

// TestDepthFirst: follow-ups come before what waits longer, the first one first,
// and each one's own before its siblings.
func TestDepthFirst(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"
case $text in
root) echo left >"$DECREE_OUTBOX/step 2"; echo right >"$DECREE_OUTBOX/step 10.md"; echo person >.decree/inbox/a0.md ;;
left) printf -- '---\nchain: %s\n---\nbelow\n' "$chain" >.decree/inbox/x.md ;;
esac
`,
		".decree/inbox/a.md": "root\n", ".decree/inbox/b.md": "other\n",
	})
	b.process()
	require.Equal(t, []string{"root", "left", "below", "right", "other", "person"}, b.ran())
	require.Empty(t, b.inbox())
	require.Contains(t, b.done(), "a0.md", "somebody else's file keeps its name")
	require.Len(t, b.done(), 6)
}

// TestMaxDepth: a chain that goes on for ever ends in dead.
func TestMaxDepth(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_depth: 3\n",
		".decree/routines/develop.sh": `echo $seq >>"$RAN"; echo more >.decree/inbox/$chain-$((seq+1)).md` + "\n",
		".decree/inbox/a.md":          "go\n",
	})
	res := b.process()
	require.Equal(t, []string{"0", "1", "2"}, b.ran())
	require.Equal(t, Dead, res[3].Outcome)
	require.Contains(t, res[3].Reason, "depth")
	require.Len(t, b.dead(), 2)
}

// TestMaxChain: a chain that grows in width ends too.
func TestMaxChain(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_chain: 3\n",
		".decree/routines/develop.sh": `echo $seq >>"$RAN"; [ $seq != 0 ] || for n in 1 2 3 4; do echo more >"$DECREE_OUTBOX/$n"; done` + "\n",
		".decree/inbox/a.md":          "go\n",
	})
	res := b.process()
	require.Equal(t, []string{"0", "1", "2"}, b.ran())
	require.Len(t, res, 5)
	require.Contains(t, res[4].Reason, "the chain is full")
}

// TestAttemptsShareNoFollowUps: what a failed attempt sent, by its outbox or by hand, is no follow-up
// of the one that succeeds, though that may see its changes, and stays with the record. A message
// of no chain stays in the inbox like a person's.
func TestAttemptsShareNoFollowUps(t *testing.T) {
	const routine = `text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"; [ "$text" = go ] || exit 0
n=$DECREE_ATTEMPT
echo sent-$n >"$DECREE_OUTBOX/n.md"; echo only-$n >"$DECREE_OUTBOX/$n.md"
echo named-$n >.decree/inbox/$chain-7.md
printf -- '---\nchain: %s\n---\nchained-%s\n' "$chain" $n >.decree/inbox/b$n.md
echo mine-$n >>.decree/inbox/mine.md
[ $n = GOOD ]
`
	for _, good := range []string{"2", "3"} {
		for _, isolated := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/isolated=%v", good, isolated), func(t *testing.T) {
				if isolated {
					needsLayers(t)
				}
				b := newBench(t, map[string]string{
					".decree/routines/develop.sh": strings.ReplaceAll(routine, "GOOD", good),
					".decree/config.yml":          fmt.Sprintf("max_attempts: 3\nisolated: {queue: %v}\n", isolated),
					".decree/inbox/a.md":          "go\n",
				})
				res := b.process()
				want := append(slices.Repeat([]string{"go"}, res[0].Record.Attempts), "sent-"+good, "only-"+good, "named-"+good, "chained-"+good, "mine-"+good)
				require.ElementsMatch(t, want, b.ran())
				require.Empty(t, b.inbox())
				kept := ".decree/runs/" + res[0].Record.ID + "/outbox.1/"
				require.Equal(t, "sent-1\n", b.read(kept+"n.md"))
				require.Equal(t, "only-1\n", b.read(kept+"1.md"))
			})
		}
	}
}

// TestDepthAcrossADeath: a follow-up is joined once, wherever decree dies, and its
// depth is one more.
func TestDepthAcrossADeath(t *testing.T) {
	for n, fired := 0, true; fired; n += disktest.Stride(7) {
		b := newBench(t, map[string]string{
			".decree/routines/develop.sh": `tail -n1 "$message_file" >>log.txt
[ $seq = 0 ] && { echo one >"$DECREE_OUTBOX/b"; printf -- '---\nchain: %s\n---\ntwo\n' $chain >.decree/inbox/c.md; echo three >.decree/inbox/$chain-7.md; }
exit 0
`,
			".decree/inbox/a.md": "go\n",
		})
		steps := 0
		fired = false
		_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Write && b.read("log.txt") == "go\n" {
				steps++
				fired = fired || steps == n+1
			}
			return disktest.Action{Die: st.Write && fired}
		}), func(q *Queue) error { _, err := q.Next(context.Background(), 0, Pick{}); return err })
		b.process()
		require.Equal(t, "go\none\ntwo\nthree\n", b.read("log.txt"), "step %d", n)
		require.Empty(t, b.inbox())
		require.Len(t, b.done(), 4)
		for _, name := range b.done() {
			require.Equal(t, name != "a.md", strings.Contains(b.read(".decree/inbox/done/"+name), "\ndepth: 1\n"), name)
		}
		os.RemoveAll(b.base)
	}
}

// TestNothingIsOverwritten: names that are in done and dead already.
func TestNothingIsOverwritten(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh":    "grep -q good \"$message_file\"\n",
		".decree/config.yml":             "max_attempts: 1\n",
		".decree/inbox/done/a.md":        "old\n",
		".decree/inbox/dead/b.md":        "old\n",
		".decree/inbox/dead/c.error.txt": "old\n",
		".decree/inbox/a.md":             "good\n",
		".decree/inbox/b.md":             "bad\n",
		".decree/inbox/c.md":             "bad\n",
	})
	b.process()
	require.Equal(t, []string{"a.2.md", "a.md"}, b.done())
	require.Equal(t, []string{"b.2.error.txt", "b.2.md", "b.md", "c.2.error.txt", "c.2.md", "c.error.txt"}, b.dead())
	for _, old := range []string{"done/a.md", "dead/b.md", "dead/c.error.txt"} {
		require.Equal(t, "old\n", b.read(".decree/inbox/"+old))
	}
}

// TestTheNextManifestHasNothingOfAFailedOne.
func TestTheNextManifestHasNothingOfAFailedOne(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `ls >>"$RAN"; echo --- >>"$RAN"; touch "made-$DECREE_ATTEMPT"; grep -q good "$message_file"` + "\n",
		".decree/inbox/a.md":          "bad\n",
		".decree/inbox/b.md":          "good\n",
		"kept":                        "",
	})
	res := b.process()
	require.Equal(t, []string{"a.md dead", "b.md done"}, names2(res))
	require.Equal(t, "kept --- kept made-1 --- kept --- kept ---", strings.Join(b.ran(), " "), "the last attempt, and the next message, start clean")
	rec := res[0].Record
	require.Equal(t, history.StatusReverted, rec.Status)
	for _, file := range []string{"attempts/1/changes.diff", "attempts/2/changes.diff", "attempts/3/routine.log", "failure-context.md", "message.md"} {
		require.FileExists(t, filepath.Join(b.root, ".decree", "runs", rec.ID, file))
	}
	require.Equal(t, map[string]string{"kept": "", "made-1": ""}, b.tree())
}

// TestARoutineThatDeletesAllOfDecree: the message, those that wait and the routine
// itself are there again.
func TestARoutineThatDeletesAllOfDecree(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "rm -rf .decree\n" + echoRoutine,
		".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n",
	})
	require.Equal(t, []string{"a.md done", "b.md done"}, names2(b.process()))
	require.Equal(t, []string{"b.md"}, b.done(), "done is made anew; the messages themselves are in their records")
	require.Len(t, b.ran(), 2)
}

// TestDiedBeforeItWasMoved: the run had succeeded, so the message is not done again. The
// state is as an earlier decree wrote it, which knew one message under way.
func TestDiedBeforeItWasMoved(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n"})
	rec := b.process()[0].Record
	moved := filepath.Join(b.root, ".decree/inbox/a.md")
	require.NoError(t, os.Rename(filepath.Join(b.root, ".decree/inbox/done/a.md"), moved))
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		inbox, err := disk.OpenPath(q.project().Dir, ".decree/inbox")
		require.NoError(t, err)
		defer inbox.Close()
		st, err := inbox.Stat("a.md")
		require.NoError(t, err)
		old := fmt.Sprintf(`{"version":1,"name":"a.md","ino":%d,"id":%q,"chain":%q,"seq":0,"record":%q,"attempt":1,"spent":0,"last":"1","stack":["x.md"]}`,
			st.Ino, rec.ID, rec.Chain, rec.ID)
		require.NoError(t, os.WriteFile(filepath.Join(q.project().StorePath, stateFile), []byte(old), 0o600))
		s, err := readState(q.project().Store)
		require.NoError(t, err)
		require.Equal(t, []string{"x.md"}, s.Stack)
		require.Equal(t, rec.ID, s.UnderWay[0].Record)
		return nil
	}))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Equal(t, []string{"a.md"}, b.done())
	require.Len(t, b.ran(), 1)
}

// TestPrunedBeforeItWasMoved: the run had succeeded, and its record is not pruned while the
// message counts as under way, with what it left in its outbox.
func TestPrunedBeforeItWasMoved(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine + `case "$message_id" in *-0) echo next >"$DECREE_OUTBOX/next.md";; esac` + "\n", ".decree/inbox/a.md": "one\n"})
	died := false
	_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Write && strings.Contains(st.Path, takenDirs[0])
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.True(t, died)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		for range 2 {
			_, err := q.o.Recorder.Checkpoint(context.Background(), recorder.CheckpointOptions{})
			require.NoError(t, err)
		}
		_, err := q.o.Recorder.Prune(context.Background(), recorder.PruneOptions{Last: map[string]int{"run": 0, "manual": 0}})
		return err
	}))
	require.Len(t, b.process(), 2, "the message, and its follow-up")
	require.Len(t, b.ran(), 2)
	require.Len(t, b.done(), 2)
}

// TestDiedBeforeItsRecordBegan: the id that was noted for its record is another record's by
// now, which says nothing of the message: it is done.
func TestDiedBeforeItsRecordBegan(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n"})
	died := false
	_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || strings.Contains(st.Path, "/open/") && st.Write
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err })
	require.True(t, died)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		s, err := readState(q.project().Store)
		require.NoError(t, err)
		rec, err := q.o.Recorder.Checkpoint(context.Background(), recorder.CheckpointOptions{})
		require.NoError(t, err)
		s.UnderWay[0].Record = rec.ID
		return s.write(q.project().Store)
	}))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Len(t, b.ran(), 1)
}

// TestAFileThatIsBeingWritten waits until it is closed.
func TestAFileThatIsBeingWritten(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n"})
	f, err := os.Create(filepath.Join(b.root, ".decree/inbox/a.md"))
	require.NoError(t, err)
	_, err = f.WriteString("half")
	require.NoError(t, err)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		res, err := b.all(q)
		require.Empty(t, res)
		require.Equal(t, []string{"a.md"}, q.Writing())
		return err
	}))
	_, err = f.WriteString(" and whole\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	b.process()
	require.Equal(t, []string{"half and whole"}, b.ran())
}

// TestOtherChainsStay: what a person sends during a run is no follow-up of it,
// and outlives its failure.
func TestOtherChainsStay(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml": "max_attempts: 1\n",
		".decree/routines/develop.sh": `echo "$chain" >>"$RAN"
if grep -q first "$message_file"; then
	printf -- '---\nchain: 2020010101010100\nseq: 0\n---\nsent\n' >.decree/inbox/sent.md
	echo mine >.decree/inbox/$chain-1.md
	echo whose >.decree/inbox/unnamed.md
	exit 1
fi
`,
		".decree/inbox/a.md": "first\n",
	})
	res := b.process()
	require.Equal(t, "a.md dead", names2(res)[0])
	require.Equal(t, []string{"sent.md", "unnamed.md"}, b.done(), "under their own names")
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.FileExists(t, filepath.Join(b.root, ".decree/runs", res[0].Record.ID, "outbox", res[0].Record.Chain+"-1.md"))
}

// TestSecondDaemon says who is there.
func TestSecondDaemon(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		unlock, err := q.alone(ServeOptions{CommandLine: []string{"decree", "daemon"}})
		require.NoError(t, err)
		err = b.with(disk.OS, func(second *Queue) error { return second.Serve(context.Background(), ServeOptions{Interval: 1}) })
		require.Equal(t, project.Refused, project.KindOf(err))
		require.ErrorContains(t, err, "on h since")
		unlock()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return b.with(disk.OS, func(third *Queue) error { return third.Serve(ctx, ServeOptions{Interval: 1}) })
	}))
}

// TestServe does what is there, what comes while it works, and what comes later,
// with file events and without; it ends after the message under way.
func TestServe(t *testing.T) {
	for _, poll := range []bool{false, true} {
		b := newBench(t, map[string]string{".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n", ".decree/inbox/a.md": "first\n"})
		ctx, cancel := context.WithCancel(context.Background())
		b.more = func(o *Options) {
			o.Poll = poll
			o.Tell = func(e Event) {
				switch {
				case e.Result == nil:
				case e.Started && e.Result.Name == "a.md":
					b.message("b.md", "second\n")
				case !e.Started && e.Result.Name == "later.md":
					cancel()
				case e.Started && e.Result.Name == "last.md":
					cancel()
				}
			}
		}
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			return q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(int) { go b.message("later.md", "third\n") }})
		}))
		require.Equal(t, []string{"first", "second", "third"}, b.ran())

		ctx, cancel = context.WithCancel(context.Background())
		b.put(map[string]string{".decree/inbox/last.md": "fourth\n", ".decree/inbox/not.md": "fifth\n"})
		require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.Serve(ctx, ServeOptions{Interval: 1e7}) }))
		require.Equal(t, []string{"first", "second", "third", "fourth"}, b.ran())
		require.Equal(t, []string{"not.md"}, b.inbox())
		cancel()
	}
}

// TestFullDisk stops with an error, and the message is still there.
func TestFullDisk(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n"})
	full := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Write" || st.Op == "WriteAt" {
			return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: syscall.ENOSPC}}
		}
		return disktest.Action{}
	})
	err := b.with(full, func(q *Queue) error { return q.Serve(context.Background(), ServeOptions{Interval: 1e7}) })
	require.ErrorContains(t, err, "no space left")
	require.Equal(t, []string{"a.md"}, b.inbox())
	require.Empty(t, b.ran())
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
}

// TestDiedBeforeItsRecordHadADirectory: in the last attempt, so it is dead.
func TestDiedBeforeItsRecordHadADirectory(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml": "max_attempts: 1\n", ".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n",
	})
	fired := false
	require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		fired = fired || st.Op == "RenameNew" && strings.Contains(filepath.Base(st.Path), "-run-")
		return disktest.Action{Die: fired}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	require.True(t, fired)
	require.Equal(t, []string{"a.md dead"}, names2(b.process()))
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Empty(t, b.ran())
}

// TestDeletedMessageKeepsItsPlace: a message that a routine deletes is written again, and is
// done when its turn comes.
func TestDeletedMessageKeepsItsPlace(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"; ! grep -q one "$message_file" || rm .decree/inbox/b.md` + "\n",
		".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n", ".decree/inbox/c.md": "three\n",
	})
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { _, err := q.Next(context.Background(), 0, Pick{}); return err }))
	b.process()
	require.Equal(t, []string{"one", "two", "three"}, b.ran())
}
