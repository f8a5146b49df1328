//go:build unix

package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// bigFile keeps every publish from being made, since the tree with it cannot be captured.
func bigFile(more map[string]string) map[string]string {
	files := isolatedFiles("tail -n1 \"$message_file\" >>\"$RAN\"; tail -n1 \"$message_file\" >>log\n", map[string]string{
		".decree/config.yml": "isolated: {queue: true}\ncapture: {max_file: 100}\n", "d/big": strings.Repeat("x", 200)})
	maps.Copy(files, more)
	return files
}

// growsOnce has d/big, of bigFile, grow when the first routine begins.
func (b *bench) growsOnce() {
	grown := false
	b.more = func(o *Options) {
		tell := o.Tell
		o.Tell = func(e Event) {
			if e.Started && !grown {
				grown = true
				require.NoError(b.t, os.WriteFile(filepath.Join(b.root, "d/big"), []byte(strings.Repeat("x", 200)), 0o600))
			}
			tell(e)
		}
	}
}

// unpublishedOnce has the work of a.md wait since d/big, of bigFile, has grown, and then takes that away.
func (b *bench) unpublishedOnce() {
	b.t.Helper()
	b.put(map[string]string{"d/big": ""})
	b.settle()
	b.growsOnce()
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) error { _, err := q.Next(b.t.Context(), 0, Pick{}); return err }))
	require.Contains(b.t, b.unpublished()["a.md"], "d/big")
	require.NoError(b.t, os.Remove(filepath.Join(b.root, "d/big")))
}

// unpublished is what the state says of messages whose work waits.
func (b *bench) unpublished() (why map[string]string) {
	b.t.Helper()
	require.NoError(b.t, b.person(func(q *Queue) (err error) {
		why, err = WhyStuck(q.o.Recorder.Reader)
		return err
	}))
	return why
}

// TestPublishWaitsForAPerson: what a person has to put right before anything can be published is no fault of the work: it costs no
// attempt, the message keeps its place, others are done meanwhile that are not of its chain, and the work is published then.
func TestPublishWaitsForAPerson(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(map[string]string{".decree/inbox/a.md": "---\nchain: 2020010101010100\nseq: 0\n---\ngo\n", ".decree/inbox/b.md": "---\nchain: 2020010101010100\nseq: 1\n---\nnext\n",
		".decree/inbox/c.md": "---\nroutine: other\n---\nplace\n", ".decree/routines/other.sh": "echo other >>\"$RAN\"\n",
		".decree/config.yml": "isolated: {queue: true}\ncapture: {max_file: 100}\n"}))
	b.put(map[string]string{"d/big": ""})
	b.settle()
	b.growsOnce()
	for n := range 2 {
		b.said = nil
		require.NoError(t, b.with(disk.OS, func(q *Queue) error { _, err := q.Next(t.Context(), 0, Pick{}); return err }))
		require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), "a.md waits: it has succeeded, and its work is not in the tree yet: "), "%d: %v", n, b.said)
		require.Contains(t, b.unpublished()["a.md"], "d/big")
		require.Contains(t, b.inbox(), "a.md")
		require.Contains(t, b.inbox(), "b.md", "it is of the same chain")
	}
	err := b.with(disk.OS, func(q *Queue) error { _, err := q.Next(t.Context(), 0, Pick{Name: "a.md"}); return err })
	require.ErrorContains(t, err, "message a.md has succeeded, and its work is not in the tree yet", "who asks for it is told")
	require.Contains(t, project.HintOf(err), "move such a file away")
	require.NoError(t, os.Remove(filepath.Join(b.root, "d/big")))
	b.process()
	require.Equal(t, []string{"go", "next"}, slices.DeleteFunc(b.ran(), func(line string) bool { return line == "other" }))
	require.Equal(t, []string{"a.md", "b.md", "c.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Equal(t, "go\nnext\n", b.read("log"))
	require.Empty(t, b.unpublished())
}

// TestPublishWaitsForAWriter: a file that the work changes, and that another program has open for writing, costs no attempt either.
func TestPublishWaitsForAWriter(t *testing.T) {
	needsLayers(t)
	if runtime.GOOS != "linux" {
		t.Skip("who has a file open is known on Linux alone")
	}
	b := newBench(t, isolatedFiles(echoRoutine+"echo work >>log\n", map[string]string{"log": "", ".decree/config.yml": "isolated: {queue: true}\nmax_attempts: 1\n", ".decree/inbox/b.md": "---\nroutine: other\n---\nother\n",
		".decree/routines/other.sh": "echo other >>\"$RAN\"\n"}))
	b.settle()
	require.NoError(t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Checkpoint(t.Context(), recorder.CheckpointOptions{})
		return err
	}))
	writer := exec.Command("sh", "-c", "exec 7>>log; echo; read end")
	writer.Dir = b.root
	end, err := writer.StdinPipe()
	require.NoError(t, err)
	began, err := writer.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, writer.Start())
	_, err = began.Read(make([]byte, 1))
	require.NoError(t, err)
	b.process()
	require.Equal(t, []string{"a.md"}, b.inbox(), strings.Join(b.said, "\n"))
	require.Equal(t, []string{"b.md"}, b.done())
	require.Contains(t, b.unpublished()["a.md"], "log is still open by pid ")
	require.NoError(t, end.Close())
	_ = writer.Wait()
	b.process()
	require.Equal(t, []string{"a.md", "b.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Equal(t, "work\n", b.read("log"))
}

// TestForgottenWorkIsDoneAnew: a person forgets what the work that waits holds. It cannot be published any more, and holds
// nobody: the message has its next attempt.
func TestForgottenWorkIsDoneAnew(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(map[string]string{".decree/inbox/a.md": "go\n", ".decree/inbox/b.md": "next\n"}))
	b.unpublishedOnce()
	require.NoError(t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Forget(t.Context(), recorder.ForgetOptions{Paths: []tree.Path{"log"}, Yes: true})
		return err
	}))
	b.process()
	require.Equal(t, []string{"a.md", "b.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Equal(t, []string{"go", "go", "next"}, slices.Sorted(slices.Values(b.ran())))
	require.Equal(t, "go\nnext\n", b.read("log"))
}

// TestPublishedInPart: a person publishes a part of the work that waits. The message is done when the rest is in the tree, too.
func TestPublishedInPart(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(map[string]string{".decree/inbox/a.md": "go\n", ".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"; echo 1 >log; echo 2 >more\n"}))
	b.unpublishedOnce()
	b.publishes("log")
	require.Empty(t, b.read("more"))
	b.process()
	require.Equal(t, []string{"a.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Equal(t, "2\n", b.read("more"))
	require.Equal(t, []string{"go"}, b.ran())
}

// publishes has a person publish the only draft, or paths of it.
func (b *bench) publishes(paths ...tree.Path) (draft string) {
	b.t.Helper()
	require.NoError(b.t, b.person(func(q *Queue) error {
		drafts, err := q.o.Recorder.History().Drafts()
		require.NoError(b.t, err)
		require.Len(b.t, drafts, 1)
		draft = drafts[0].ID
		_, err = q.o.Recorder.Publish(b.t.Context(), recorder.PublishOptions{Ref: draft, Paths: paths, Yes: true})
		return err
	}))
	return draft
}

// TestPublishedInPartAndTakenBack: a person publishes the work that waits, in part or as a whole, and takes some of that back. What was
// never in the tree as a whole is published; what was stays as the person left it. The message is done once.
func TestPublishedInPartAndTakenBack(t *testing.T) {
	needsLayers(t)
	for name, c := range map[string]struct {
		publish    [][]tree.Path
		back       int
		log, other string
	}{
		"a part":                      {[][]tree.Path{{"log"}}, 1, "1\n", "2\n"},
		"the second part of two":      {[][]tree.Path{{"log"}, {"more"}}, 1, "1\n", ""},
		"both parts":                  {[][]tree.Path{{"log"}, {"more"}}, 2, "", ""},
		"all of it":                   {[][]tree.Path{nil}, 1, "", ""},
		"the rest, after a part":      {[][]tree.Path{{"log"}, nil}, 1, "1\n", ""},
		"a part, of what is in place": {[][]tree.Path{{"log"}}, 0, "1\n", "2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, bigFile(map[string]string{".decree/inbox/a.md": "go\n", ".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"; echo 1 >log; echo 2 >more\n"}))
			b.unpublishedOnce()
			for _, paths := range c.publish {
				b.publishes(paths...)
			}
			require.NoError(t, b.person(func(q *Queue) error {
				if c.back == 0 {
					return nil
				}
				_, err := q.o.Recorder.Undo(t.Context(), recorder.UndoOptions{N: c.back, Yes: true})
				return err
			}))
			b.process()
			require.Equal(t, []string{"a.md"}, b.done(), strings.Join(b.said, "\n"))
			require.Equal(t, []string{c.log, c.other}, []string{b.read("log"), b.read("more")})
			require.Equal(t, c.log+c.other == "", strings.Contains(strings.Join(b.said, "\n"), "somebody has taken it back since"))
			require.Equal(t, []string{"go"}, b.ran())
		})
	}
}

// TestPublishedByAPerson: a person publishes the work that waits, of which the commits stay in the draft. The message is done: it is neither
// cancelled nor edited any more, does not pass for one whose work is not in the tree, and is not done again where the draft is discarded.
func TestPublishedByAPerson(t *testing.T) {
	needsLayers(t)
	for name, act := range map[string]func(q *Queue, draft string) error{
		"nothing": func(*Queue, string) error { return nil },
		"cancel": func(q *Queue, _ string) error {
			_, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted")
			require.ErrorContains(t, err, "a is done: record")
			return nil
		},
		"edit": func(q *Queue, _ string) error {
			require.ErrorContains(t, Edit(q.o.Recorder, "h", "", "a.md", []byte("go\n"), []byte("else\n")), "a is done: record")
			return nil
		},
		"end": func(q *Queue, _ string) error {
			res, err := q.End(t.Context(), 0, "a.md", false)
			require.Equal(t, Done, res.Outcome)
			return err
		},
		"discard": func(q *Queue, draft string) error {
			_, err := q.o.Recorder.Discard(t.Context(), recorder.DiscardOptions{Refs: []string{draft}, Yes: true})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, bigFile(map[string]string{".decree/inbox/a.md": "go\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/objects/.keep": "", ".git/refs/.keep": "",
				".decree/routines/develop.sh": "tail -n1 \"$message_file\" >>\"$RAN\"; echo 1 >>log; echo 2 >.git/refs/.keep\n"}))
			b.unpublishedOnce()
			draft := b.publishes()
			require.Equal(t, "1\n", b.read("log"))
			require.Empty(t, b.unpublished())
			require.NoError(t, b.person(func(q *Queue) error {
				rec, err := q.o.Recorder.History().Get(draft)
				require.Equal(t, history.DraftPartly, rec.Draft.State)
				return errors.Join(err, act(q, draft))
			}))
			b.process()
			require.Equal(t, []string{"a.md"}, b.done(), strings.Join(b.said, "\n"))
			require.Empty(t, b.dead())
			require.Equal(t, "1\n", b.read("log"))
			require.Equal(t, []string{"go"}, b.ran())
		})
	}
}

// TestDaemonGoesOnBesideUnpublishedWork: a daemon notices what comes while the work of a message waits, says so once, fills no audit with
// its tries, and publishes the work once the cause is gone; a message that is cancelled waits no longer.
func TestDaemonGoesOnBesideUnpublishedWork(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(map[string]string{".decree/inbox/b.md": "gone\n"}))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	until := func(what func() bool) {
		for ctx.Err() == nil && !what() {
		}
	}
	ready := make(chan int, 1)
	var audit []string
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		done := make(chan error, 1)
		go func() { done <- q.Serve(ctx, ServeOptions{Interval: 1e7, Ready: func(n int) { ready <- n }}) }()
		require.Equal(t, 2, <-ready)
		b.message("later.md", "---\nisolated: false\nroutine: other\n---\nlater\n")
		until(func() bool { return len(b.dead()) == 2 })
		until(func() bool { // while the daemon has the lock, the message counts as being done by it
			return nil == b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "b.md", "not wanted"); return err })
		})
		require.NoError(t, os.Remove(filepath.Join(b.root, "d/big")))
		until(func() bool { return len(b.done()) > 0 && len(b.inbox()) == 0 })
		end()
		err := <-done
		_, aerr := q.o.Recorder.History().ReadAudit(func(op *history.Operation) error {
			audit = append(audit, op.Op+" "+op.Outcome)
			return nil
		})
		return errors.Join(err, aerr)
	}))
	require.Equal(t, []string{"go", "gone"}, b.ran())
	require.Equal(t, []string{"a.md"}, b.done())
	require.Equal(t, []string{"b.error.txt", "b.md", "later.error.txt", "later.md"}, b.dead())
	require.Equal(t, "go\n", b.read("log"))
	require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), "a.md waits: it has succeeded"), strings.Join(b.said, "\n"))
	require.NotContains(t, strings.Join(audit, "\n"), "max_file")
	require.Contains(t, strings.Join(audit, "\n"), "done")
}

// TestLimitCountsUnpublished: a message whose work cannot be published yet is one of those that may begin.
func TestLimitCountsUnpublished(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(map[string]string{".decree/inbox/b.md": "second\n", ".decree/inbox/c.md": "third\n"}))
	var ended []*Result
	for n := range 2 {
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			return q.Work(t.Context(), WorkOptions{Limit: 1, Ended: func(res *Result) { ended = append(ended, res) }})
		}))
		require.Equal(t, []string{"go", "second", "third"}[:n+1], b.ran(), strings.Join(b.said, "\n"))
	}
	require.Empty(t, ended, "none has")
	require.Len(t, b.unpublished(), 2)
}

// TestUnpublishedUnderAnotherName: a message whose work waits is the same one under another name, and a text that comes under its name is
// another one; taken away it waits no longer.
func TestUnpublishedUnderAnotherName(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(nil))
	at := func(name string) string { return filepath.Join(b.root, ".decree/inbox", name) }
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		look := func() {
			for _, known := range q.stuck {
				known.retryAt = time.Now().Add(time.Hour)
			}
			_, err := q.Next(t.Context(), 0, Pick{})
			require.NoError(t, err)
		}
		look()
		require.False(t, q.anything(0))
		require.NoError(t, os.Rename(at("a.md"), at("z.md")))
		look()
		for _, known := range q.stuck {
			require.Greater(t, time.Until(known.retryAt), time.Minute, "it was tried before its time")
		}
		require.False(t, q.anything(0))
		require.NoError(t, os.WriteFile(at("a.md"), []byte("another\n"), 0o600))
		require.True(t, q.anything(0))
		require.NoError(t, os.Remove(at("a.md")))
		require.NoError(t, os.WriteFile(at("z.md"), []byte("another\n"), 0o600))
		require.True(t, q.anything(0))
		require.NoError(t, os.Remove(at("z.md")))
		look()
		require.Zero(t, q.Stuck())
		return nil
	}))
	require.Equal(t, []string{"go"}, b.ran())
}

// TestUnpublishedIsTriedAgain: a message whose draft somebody has discarded while its work waited is done again, and nothing says meanwhile that it has
// succeeded.
func TestUnpublishedIsTriedAgain(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(nil))
	var rec *recorder.Recorder
	var why []map[string]string
	b.more = func(o *Options) {
		tell := o.Tell
		o.Tell = func(e Event) {
			if e.Started {
				waiting, err := WhyStuck(rec.Reader)
				require.NoError(t, err)
				why = append(why, waiting)
			}
			tell(e)
		}
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		rec = q.o.Recorder
		_, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		for id, known := range q.stuck {
			_, err = q.o.Recorder.Discard(t.Context(), recorder.DiscardOptions{Refs: []string{id}, Yes: true})
			require.NoError(t, err)
			known.retryAt = time.Time{}
		}
		require.NoError(t, os.Remove(filepath.Join(b.root, "d/big")))
		_, err = q.Next(t.Context(), 0, Pick{})
		return err
	}))
	require.Equal(t, []string{"a.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Equal(t, []string{"go", "go"}, b.ran())
	require.Equal(t, []map[string]string{{}, {}}, why)
}

// TestBusyDraftWaits: the work of a message in whose draft somebody works is published when that has ended.
func TestBusyDraftWaits(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(nil))
	b.process()
	require.NoError(t, os.Remove(filepath.Join(b.root, "d/big")))
	layers, err := filepath.Glob(filepath.Join(b.base, "store/*/layers/2*"))
	require.NoError(t, err)
	require.Len(t, layers, 1)
	f, err := os.Open(layers[0])
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	b.process()
	require.Contains(t, b.unpublished()["a.md"], "another process works in draft")
	require.NoError(t, f.Close())
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Equal(t, "go\n", b.read("log"))
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

// TestEarlierDraftWithCommits: a draft of an earlier attempt whose layer alone has commits stays when its message is done, and is named.
func TestEarlierDraftWithCommits(t *testing.T) {
	needsLayers(t)
	b := newBench(t, isolatedFiles(live+renames+"[ $(wc -l <\"$RAN\") = 2 ] || { git -c user.name=n -c user.email=e commit -q --allow-empty -m early; live 'echo theirs >log'; }\n", map[string]string{"log": ""}))
	git := exec.Command("git", "init", "-q", "-b", "main", b.root)
	require.NoError(t, git.Run())
	b.answers()
	b.settle()
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Contains(t, strings.Join(b.said, "\n"), "a.md: the draft of an earlier attempt stays: ")
	require.Contains(t, strings.Join(b.said, "\n"), "refs/heads/main")
	layers, err := filepath.Glob(filepath.Join(b.base, "store/*/layers/2*"))
	require.NoError(t, err)
	require.NotEmpty(t, layers)
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
	require.NoError(t, project.ReplaceFile(dir, stateFile, make([]byte, maxState+1), project.PrivateFile, false))
	_, err = readState(dir)
	var damaged *project.Error
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, project.Integrity, damaged.Kind)
	require.NotEmpty(t, damaged.Advice)
}

// TestNewBesideAFullInbox: what a routine in a layer puts into a full inbox is new though an older message of its name is done,
// and not where that was begun during the run.
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
		j.u.Beside = []begunBeside{{Name: "todo.md", ID: "2020010101010100-0"}}
		isNew, err := j.isNew(d, from, "todo.md", 0)
		require.False(t, isNew, "it was in the inbox, and was done meanwhile")
		return err
	}))
}
