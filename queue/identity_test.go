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
	"decree/disk/disktest"
	"decree/project"
	"decree/tree"
)

// onceRoutine notes the last line of its message, and the first time does $DO.
func onceRoutine(do string) string {
	return `tail -n1 "$message_file" >>"$RAN"
[ -e "$RAN.once" ] && exit 0
: >"$RAN.once"
` + do + "\n"
}

// TestAnotherFileOfItsName: what comes under the name of the message under way is a
// message of its own if it says something else. Whatever became of the file, one with the same
// bytes, which hold decree's own id of the message, is that message: a routine that touches
// what lies in the inbox each time would be done for ever.
func TestAnotherFileOfItsName(t *testing.T) {
	for name, c := range map[string]struct {
		do   string
		want []string
	}{
		"deleted and sent again":           {`rm .decree/inbox/a.md; echo new >.decree/inbox/a.md`, []string{"old", "new"}},
		"sent again with the same text":    {`rm .decree/inbox/a.md; echo old >.decree/inbox/a.md`, []string{"old", "old"}},
		"queued again in place":            {`echo old >.decree/inbox/a.md`, []string{"old", "old"}},
		"queued again by a rename":         {`echo old >x; mv x .decree/inbox/a.md`, []string{"old", "old"}},
		"queued again beside":              {`cp "$message_file" .decree/inbox/again.md`, []string{"old", "old"}},
		"edited in place":                  {`echo more >>.decree/inbox/a.md`, []string{"old", "more"}},
		"another mode":                     {`chmod 600 .decree/inbox/a.md`, []string{"old"}},
		"another link":                     {`ln .decree/inbox/a.md .decree/inbox/a.bak`, []string{"old"}},
		"touched":                          {`touch .decree/inbox/*.md`, []string{"old"}},
		"a copy in its place":              {`cat .decree/inbox/a.md >x; mv x .decree/inbox/a.md`, []string{"old"}},
		"the same written in place":        {`cat "$message_file" >.decree/inbox/a.md`, []string{"old"}},
		"a copy of the directory":          {`cp -a .decree x; rm -r .decree; mv x .decree`, []string{"old"}},
		"a copy of the inbox, with a time": {`cp -r .decree/inbox x; rm -r .decree/inbox; mv x .decree/inbox; touch .decree/inbox/*.md`, []string{"old"}},
		"deleted":                          {`rm .decree/inbox/a.md`, []string{"old"}},
		"all deleted":                      {`rm -rf .decree`, []string{"old"}},
	} {
		for _, end := range []string{"exit 0", "exit 1", "kill -TERM $$"} {
			t.Run(name+" "+end, func(t *testing.T) {
				b := newBench(t, map[string]string{
					".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "old\n",
					".decree/routines/develop.sh": onceRoutine(c.do + "; " + end),
				})
				b.process()
				require.Equal(t, c.want, b.ran())
				ended := len(b.done())
				for _, name := range b.dead() {
					if strings.HasSuffix(name, suffix) {
						ended++
					}
				}
				require.Equal(t, len(c.want), ended)
				require.NotContains(t, b.inbox(), "a.md")
			})
		}
	}
}

// TestARoutineThatEditsItsMessage each time it is done, as with all files of the tree, is not done for ever: the text that it makes
// for the second time is dead.
func TestARoutineThatEditsItsMessage(t *testing.T) {
	for _, end := range []string{"exit 0", "exit 1"} {
		t.Run(end, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n",
				".decree/routines/develop.sh": `grep -v : "$message_file" | grep . | tr "\n" " " >>"$RAN"; echo >>"$RAN"; for m in .decree/inbox/*.md; do echo and >>$m; done; ` + end + "\n",
			})
			b.process()
			ran := strings.Join(b.ran(), "; ")
			require.Equal(t, 2, strings.Count(ran, "one"), ran)
			require.Equal(t, 2, strings.Count(ran, "two"), ran)
			require.Empty(t, b.inbox())
			said := strings.Join(b.said, "\n")
			for _, name := range []string{"a", "b"} {
				require.Contains(t, said, name+".md was edited while it was done, and is done as it is now")
				require.Contains(t, said, name+".md was changed while it was done, for the second time, and is not done again; that text is in dead: decree inbox retry "+name)
			}
			reasons := 0
			for _, name := range b.dead() {
				if strings.HasSuffix(name, ".error.txt") && strings.Contains(b.read(".decree/inbox/dead/"+name), "is not done again") {
					reasons++
				}
			}
			require.Equal(t, 2, reasons, b.dead())
		})
	}
}

// TestDiesAfterTheConfigWasDeleted: where decree dies in a routine that has deleted .decree, the process that writes config.yml again goes by it.
func TestDiesAfterTheConfigWasDeleted(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml": "default_routine: work\n", ".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n",
		".decree/routines/work.sh": `text=$(tail -n1 "$message_file"); [ -e "$RAN" ] || rm -rf .decree; echo $text >>"$RAN"` + "\n",
	})
	b.killedOnceItRan()
	require.NoFileExists(t, filepath.Join(b.root, ".decree/config.yml"))
	require.Equal(t, []string{"a.md done", "b.md done"}, names2(b.process()))
	require.Equal(t, []string{"one", "one", "two"}, b.ran())
}

// TestDiesAfterAnEditInPlace ends the process at each step with the inbox or the queue's state after a message was edited while it was done: one edit is never taken for two.
func TestDiesAfterAnEditInPlace(t *testing.T) {
	for n, fired := 0, true; fired; n++ {
		b := newBench(t, map[string]string{
			".decree/inbox/a.md":          "first\n",
			".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); [ $text = edited ] || echo edited >>.decree/inbox/a.md; echo $text >>"$RAN"` + "\n",
		})
		steps := 0
		_ = b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if !st.Write || len(b.ran()) != 1 || !strings.Contains(st.Path, "inbox") && !strings.Contains(st.Path, stateFile) {
				return disktest.Action{}
			}
			steps++
			return disktest.Action{Die: steps == n+1}
		}), func(q *Queue) error { _, err := b.all(q); return err })
		fired = steps > n
		b.process()
		require.Empty(t, b.dead(), "step %d: %s", n, strings.Join(b.said, "\n"))
		require.Equal(t, "edited", b.ran()[len(b.ran())-1], "step %d", n)
		require.Empty(t, b.inbox())
		os.RemoveAll(b.base)
	}
}

// TestSavedAsItCame: an editor that writes its buffer over a message which is being done makes another one of it, and that is said.
func TestSavedAsItCame(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"; [ -e "$RAN.again" ] || echo "do it" >.decree/inbox/a.md; touch "$RAN.again"` + "\n",
		".decree/inbox/a.md":          "do it\n",
	})
	b.process()
	require.Equal(t, []string{"do it", "do it"}, b.ran())
	require.Contains(t, strings.Join(b.said, "\n"), "a.md was saved once more as it came while it was done, and so is done once more; 'decree inbox cancel' ends that")
}

// TestRoutineChangedWhileItWorks: bash may have gone on in the new text, and decree says so.
func TestRoutineChangedWhileItWorks(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/inbox/a.md":          "do it\n",
		".decree/inbox/b.md":          "do it\n",
		".decree/routines/develop.sh": "[ -e \"$RAN\" ] && exit 0\necho once >\"$RAN\"\n" + `echo "# a comment" >>"$0"` + "\n",
	})
	b.process()
	const said = "routine develop was changed while bash read it"
	require.Equal(t, 1, strings.Count(strings.Join(b.said, "\n"), said), b.said)
}

// TestRoutineThatAsksHowItIsRead: a routine is a script that bash was given, and not one that another script has read.
func TestRoutineThatAsksHowItIsRead(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/inbox/a.md":          "do it\n",
		".decree/routines/develop.sh": `(return 0 2>/dev/null) || [ "${BASH_SOURCE[0]}" != "$0" ] || echo "$0" >>"$RAN"` + "\n",
	})
	b.process()
	require.Equal(t, []string{".decree/routines/develop.sh"}, b.ran())
}

// TestTouchedWhileARouterThinks: a router that touches the messages has them done.
func TestTouchedWhileARouterThinks(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          `router: 'touch .decree/inbox/*.md; echo >>"$RAN.asked"; [ $(wc -l <"$RAN.asked") -lt 5 ] || rm .decree/inbox/a.md; echo develop'` + "\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n",
		".decree/inbox/a.md":          "first\n",
	})
	b.process()
	require.Equal(t, []string{"first"}, b.ran())
}

// TestChangedWhileARouterThinks: the text that was saved meanwhile is the one that
// is done.
func TestChangedWhileARouterThinks(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          `router: '[ -e "$RAN.once" ] || echo better >.decree/inbox/a.md; : >"$RAN.once"; echo develop'` + "\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n",
		".decree/inbox/a.md":          "first\n",
	})
	b.process()
	require.Equal(t, []string{"better"}, b.ran())
}

// TestNamesInState: bytes that are not UTF-8 survive the state, and a death.
func TestNamesInState(t *testing.T) {
	s := &state{Version: stateVersion, UnderWay: []*underWay{{Name: "caf\xe9.md", Before: []string{"\xff", `"q"`}, Spec: "a\xfe"}}, Stack: []string{"\n"}, Unmarked: []doneSpec{{Spec: "\xfd"}, {Spec: "\xfd", SHA256: tree.Hash{1}}}}
	b := newBench(t, nil)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		require.NoError(t, s.write(q.project().Store))
		got, err := readState(q.project().Store)
		require.Equal(t, s, got)
		return err
	}))
}

// TestStateOfEarlier: what earlier forms of the state know of specs that are done is kept.
func TestStateOfEarlier(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		text := fmt.Sprintf(`{"version":2,"unmarked":["a"],"unmarked_away":{"b":%q}}`, tree.Hash{1})
		require.NoError(t, project.ReplaceFile(q.project().Store, stateFile, []byte(text), project.PrivateFile, false))
		got, err := readState(q.project().Store)
		require.NoError(t, err)
		require.Equal(t, []doneSpec{{Spec: "a"}, {Spec: "b", SHA256: tree.Hash{1}}}, got.Unmarked)
		return err
	}))
}

// TestSpecsOfAnyName: whatever their names, specs are done once.
func TestSpecsOfAnyName(t *testing.T) {
	files := map[string]string{".decree/routines/develop.sh": "echo done >>\"$RAN\"\n"}
	names := []string{" a.spec.md", "- a.spec.md", "* a.spec.md", "a.spec.md", `"q".spec.md`, `back\slash.spec.md`, "- - a.spec.md", "caf\u00e9.spec.md", "a\u0085b.spec.md", "it's.spec.md"}
	for _, name := range names {
		files["specs/"+name] = "do it\n"
	}
	b := newBench(t, files)
	for range 2 {
		b.process()
		require.Len(t, b.ran(), len(names))
	}
	b.put(map[string]string{"specs/listed.spec.md": "", "specs/also.spec.md": "", "specs/processed-spec.md": "\ufeff" + b.read("specs/processed-spec.md") + "- listed.spec.md\n  * also.spec.md \r\n"})
	require.Empty(t, b.process(), "a person's list")
}

// TestSpecEditedWhileItIsDone: nobody has done the new text, and that is said.
func TestSpecEditedWhileItIsDone(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `echo ran >>"$RAN"; case $spec_file in *1*) echo better >specs/1.spec.md;; esac` + "\n",
		"specs/1.spec.md":             "good\n", "specs/2.spec.md": "good\n",
	})
	b.process()
	require.Empty(t, b.process())
	said := strings.Join(b.said, "\n")
	require.Contains(t, said, "specs/1.spec.md was edited while it was done, and counts as processed; to have it done as it is now, take its line out of specs/processed-spec.md while no message is done in place")
	require.NotContains(t, said, "specs/2.spec.md was edited")
}

// TestSpecsOfARoutineThatCleansUp: a routine that takes the list back to what it was, as git does with the tree, has no spec done again.
func TestSpecsOfARoutineThatCleansUp(t *testing.T) {
	for what, undo := range map[string]string{"deletes": "rm specs/processed-spec.md", "brings an older one": "echo old.spec.md >specs/processed-spec.md"} {
		for _, isolated := range []string{"", "isolated:\n  queue: true\n"} {
			t.Run(what+isolated, func(t *testing.T) {
				b := newBench(t, map[string]string{
					".decree/config.yml": "max_attempts: 1\n" + isolated, "specs/processed-spec.md": "old.spec.md\n", "specs/1.spec.md": "one\n", "specs/2.spec.md": "two\n", "specs/3.spec.md": "three\n",
					".decree/routines/develop.sh": "echo ${spec_file##*/} >>\"$RAN\"\n" + undo + "\n",
				})
				for range 3 { // an isolated run that changes what was written within the clock's tick before it is refused
					b.settle()
					require.NoError(t, b.with(disk.OS, func(q *Queue) error {
						_, err := q.Next(t.Context(), 0, Pick{Specs: true})
						return err
					}))
				}
				require.Empty(t, b.dead())
				require.Empty(t, b.process())
				require.Equal(t, []string{"1.spec.md", "2.spec.md", "3.spec.md"}, b.ran())
				require.Contains(t, strings.Join(b.said, "\n"), "took these out of specs/processed-spec.md, and they are marked as processed again: ")
			})
		}
	}
}

// TestSpecsOfAnIgnoredList: a list that is in no record is known from before the run too, also where the run failed, or its decree died.
func TestSpecsOfAnIgnoredList(t *testing.T) {
	for _, end := range []string{"succeeds", "fails", "dies"} {
		t.Run(end, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/config.yml": "max_attempts: 2\n", ".gitignore": "processed-spec.md\n", "specs/processed-spec.md": "old.spec.md\n",
				"specs/1.spec.md": "one\n", "specs/2.spec.md": "two\n", "specs/old.spec.md": "old\n",
				".decree/routines/develop.sh": "echo ${spec_file##*/} >>\"$RAN\"\ncase $spec_file in *2*) rm -f specs/processed-spec.md;; esac\n[ " + end + " != fails ] || case $spec_file in *2*) exit 1;; esac\n",
			})
			died := false
			err := b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				died = died || end == "dies" && len(b.ran()) == 2 && filepath.Base(st.Path) == "records.jsonl"
				return disktest.Action{Die: died}
			}), func(q *Queue) error { _, err := b.all(q); return err })
			require.Equal(t, died, err != nil, err)
			b.process()
			require.NotContains(t, b.ran(), "old.spec.md")
			require.Equal(t, 1, strings.Count(strings.Join(b.ran(), "\n"), "1.spec.md"))
			require.Equal(t, end == "dies", died)
			require.Contains(t, b.read("specs/processed-spec.md"), "old.spec.md\n1.spec.md\n")
			require.Contains(t, strings.Join(b.said, "\n"), "took these out of specs/processed-spec.md, and they are marked as processed again: ")
		})
	}
}

// TestSpecTakenOutOfTheList: who takes a spec out of the midst of the list while another message works has it done again.
func TestSpecTakenOutOfTheList(t *testing.T) {
	b := newBench(t, map[string]string{
		"specs/processed-spec.md": "1.spec.md\n2.spec.md\n", "specs/1.spec.md": "one\n", "specs/2.spec.md": "two\n", ".decree/inbox/a.md": "do it\n",
		".decree/routines/develop.sh": "echo ${spec_file##*/} >>\"$RAN\"\n[ \"$spec_file\" ] || echo 2.spec.md >specs/processed-spec.md\n",
	})
	b.process()
	require.Equal(t, []string{"1.spec.md"}, b.ran())
	require.Equal(t, "2.spec.md\n1.spec.md\n", b.read("specs/processed-spec.md"))
}

// TestExit125: a routine's own exit status is its failure, and the next message begins.
func TestExit125(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 1\n",
		".decree/routines/develop.sh": "touch made; grep -q good \"$message_file\" || exit 125\n",
		".decree/inbox/a.md":          "bad\n", ".decree/inbox/b.md": "good\n",
	})
	require.Equal(t, []string{"a.md dead", "b.md done"}, names2(b.process()))
}

// TestRetryIsAdvisedWithTheNameItGot.
func TestRetryIsAdvisedWithTheNameItGot(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh":  "exit 1\n",
		".decree/inbox/dead/a b.md":    "old\n",
		".decree/inbox/a b.md":         "bad\n",
		".decree/inbox/dead/c.md":      "old\n",
		".decree/inbox/c.md":           "---\nseq: x\n---\n",
		".decree/inbox/dead/\xff.md":   "old\n",
		".decree/inbox/dead/-rf.md":    "old\n",
		".decree/inbox/dead/plain.txt": "",
	})
	b.process()
	require.Contains(t, b.read(".decree/inbox/dead/a b.2.error.txt"), "decree inbox retry 'a b.2'\n")
	require.Contains(t, b.read(".decree/inbox/dead/c.2.error.txt"), "decree inbox retry c.2\n")
}

// TestInterruptedKeepsItsPlace: a message that a signal has ended is the next one,
// also if it was a follow-up.
func TestInterruptedKeepsItsPlace(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `text=$(tail -n1 "$message_file")
[ "$text" = root ] && echo child >".decree/inbox/$chain-1.md"
case $text in first|child) [ -e "$RAN.$text" ] || { : >"$RAN.$text"; echo >"$RAN.working"; sleep 60; } ;; esac
exit 0
`,
		".decree/inbox/a.md": "first\n", ".decree/inbox/b.md": "root\n", ".decree/inbox/c.md": "last\n",
	})
	working := filepath.Join(b.base, "ran.working")
	require.NoError(t, syscall.Mkfifo(working, 0o600))
	signals := make(chan os.Signal)
	b.more = func(o *Options) { o.Signals = signals }
	go func() {
		for range 2 {
			_, _ = os.ReadFile(working)
			signals <- syscall.SIGTERM
		}
	}()
	var order []string
	for range 3 { // processes
		require.NoError(t, b.with(disk.OS, func(q *Queue) error {
			for {
				res, err := q.Next(t.Context(), 0, Pick{})
				if err != nil || res == nil {
					return err
				}
				order = append(order, fmt.Sprintf("%s %s", res.Name[:1], res.Outcome))
				if res.Outcome == Interrupted {
					return nil
				}
			}
		}))
	}
	require.Equal(t, []string{"a interrupted", "a done", "b done", "2 interrupted", "2 done", "c done"}, order)
}

// TestInterruptedAndDeleted: a message that a signal has ended, and that a person then deletes, is cancelled.
func TestInterruptedAndDeleted(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"
[ -p "$RAN.working" ] || exit 0
echo >"$RAN.working"; exec sleep 60
`,
		".decree/inbox/a.md": "first\n", ".decree/inbox/b.md": "second\n",
	})
	working := filepath.Join(b.base, "ran.working")
	require.NoError(t, syscall.Mkfifo(working, 0o600))
	signals := make(chan os.Signal)
	b.more = func(o *Options) { o.Signals = signals }
	go func() {
		_, _ = os.ReadFile(working)
		signals <- syscall.SIGTERM
	}()
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		res, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Interrupted, res.Outcome)
		return nil
	}))
	require.NoError(t, os.Remove(working))
	require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/inbox/a.md")))
	require.Equal(t, []string{"b.md done"}, names2(b.process()))
	require.Equal(t, []string{"first", "second"}, b.ran())
}

// TestChangedWhileInterrupted: what a person saves in a message's file, or deletes, while it is done holds also where a signal
// ends the run: its old text does not come back. In place a deletion cannot be told from one that the routine made.
func TestChangedWhileInterrupted(t *testing.T) {
	for _, c := range []struct {
		name              string
		isolated, deleted bool
		ran               []string
	}{
		{"edited in place", false, false, []string{"first", "better", "second"}},
		{"edited", true, false, []string{"first", "better", "second"}},
		{"deleted", true, true, []string{"first", "second"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.isolated {
				needsLayers(t)
			}
			b := newBench(t, map[string]string{
				".decree/config.yml": fmt.Sprintf("isolated: {queue: %v}\n", c.isolated),
				".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"
[ -p "$RAN.working" ] || exit 0
echo >"$RAN.working"; exec sleep 60
`,
				".decree/inbox/a.md": "first\n", ".decree/inbox/b.md": "second\n",
			})
			working, message := filepath.Join(b.base, "ran.working"), filepath.Join(b.root, ".decree/inbox/a.md")
			require.NoError(t, syscall.Mkfifo(working, 0o600))
			signals := make(chan os.Signal)
			b.more = func(o *Options) { o.Signals = signals }
			go func() {
				_, _ = os.ReadFile(working)
				_ = os.Remove(message)
				if !c.deleted {
					_ = os.WriteFile(message, []byte("better\n"), 0o600)
				}
				signals <- syscall.SIGTERM
			}()
			require.NoError(t, b.with(disk.OS, func(q *Queue) error {
				res, err := q.Next(t.Context(), 0, Pick{})
				require.NoError(t, err)
				require.Equal(t, Interrupted, res.Outcome)
				require.Equal(t, c.deleted, res.Place == "")
				return nil
			}))
			require.NoError(t, os.Remove(working))
			b.settle()
			b.process()
			require.Equal(t, c.ran, b.ran(), strings.Join(b.said, "\n"))
			require.Empty(t, b.inbox())
		})
	}
}

// TestInterruptedAfterItDeletedAll: a message that a signal has ended waits again, also
// if its routine had deleted it.
func TestInterruptedAfterItDeletedAll(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `[ -e "$RAN" ] && exit 0
touch "$RAN"; rm -rf .decree; echo >"$RAN.working"; sleep 60
`,
		".decree/inbox/a.md": "first\n", ".decree/inbox/b.md": "second\n",
	})
	working := filepath.Join(b.base, "ran.working")
	require.NoError(t, syscall.Mkfifo(working, 0o600))
	signals := make(chan os.Signal)
	b.more = func(o *Options) { o.Signals = signals }
	go func() {
		_, _ = os.ReadFile(working)
		signals <- syscall.SIGHUP
	}()
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		res, err := q.Next(t.Context(), 0, Pick{})
		require.NoError(t, err)
		require.Equal(t, Interrupted, res.Outcome)
		return nil
	}))
	require.Contains(t, b.read(".decree/inbox/a.md"), "first\n")
	require.Equal(t, []string{"a.md done", "b.md done"}, names2(b.process()))
}

// TestDeadMessagesComeBackWithTheInbox: a command that deletes the inbox takes no dead
// message along, also if there is a directory for them again when it ends, or still.
func TestDeadMessagesComeBackWithTheInbox(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "rm -rf .decree/inbox; mkdir -p .decree/inbox/dead\n",
		".decree/inbox/a.md":          "one\n", ".decree/inbox/dead/d.md": "two\n", ".decree/inbox/dead/e.md": "three\n",
	})
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Equal(t, []string{"d.md", "e.md"}, b.dead())
}

// TestLongestNamesComeBack: what a command has deleted is written again, or kept beside,
// also if its name can hardly be longer.
func TestLongestNamesComeBack(t *testing.T) {
	long := strings.Repeat("n", 252)
	files := func(routine string) map[string]string {
		return map[string]string{
			".decree/routines/develop.sh": routine, ".decree/routines/other.sh": "exit\n",
			".decree/inbox/a.md": "one\n", ".decree/inbox/" + long + ".md": "two\n",
			".decree/" + long + "a.b": "three\n", ".decree/" + long + "b.b": "four\n", ".decree/other": "",
		}
	}
	b := newBench(t, files("rm -rf .decree/inbox .decree/n*\n"))
	require.Equal(t, []string{"a.md done", long + ".md done"}, names2(b.process()))
	require.Equal(t, "four\n", b.read(".decree/"+long+"b.b"))

	b = newBench(t, files(`tail -n1 "$message_file" >>"$RAN"; echo said`+"\n"))
	require.Error(t, b.with(b.diesAfterTheRoutine(), func(q *Queue) error { _, err := b.all(q); return err }))
	for _, name := range []string{"inbox/" + long + ".md", long + "a.b", long + "b.b"} {
		require.NoError(t, os.Remove(filepath.Join(b.root, ".decree", name)))
	}
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	kept, err := filepath.Glob(filepath.Join(b.root, ".decree/n*.deleted"))
	require.NoError(t, err)
	require.Len(t, kept, 2)
}

// diesAfterTheRoutine is a disk whose process ends with the first rename after a
// routine has written a line.
func (b *bench) diesAfterTheRoutine() disk.Disk {
	died := false
	return disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Op == "Rename" && len(b.ran()) > 0
		return disktest.Action{Die: died}
	})
}

// TestDeletedAfterADeath: what a person deletes or moves when decree has died does
// not come back into the queue: neither the message that was under way nor one that waited.
// They are found where those are that failed, and can be queued again.
func TestDeletedAfterADeath(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"; echo said; echo work >work.txt` + "\n",
		".decree/routines/old.sh":     "exit\n", ".decree/routines/other.sh": "exit\n",
		".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n", ".decree/inbox/c.md": "three\n",
		".decree/inbox/dead/d.md": "four\n", ".decree/inbox/dead/e.md": "five\n",
	})
	require.Error(t, b.with(b.diesAfterTheRoutine(), func(q *Queue) error { _, err := b.all(q); return err }))
	require.Equal(t, []string{"one"}, b.ran())
	inbox := filepath.Join(b.root, ".decree/inbox")
	require.NoError(t, os.Remove(filepath.Join(inbox, "a.md")))
	require.NoError(t, os.Remove(filepath.Join(inbox, "b.md")))
	require.NoError(t, os.Rename(filepath.Join(inbox, "dead/d.md"), filepath.Join(inbox, "d.md")))
	require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/routines/old.sh")))
	require.ElementsMatch(t, []string{"c.md done", "d.md done"}, names2(b.process()))
	require.ElementsMatch(t, []string{"one", "three", "four"}, b.ran())
	require.Equal(t, []string{"a.error.txt", "a.md", "b.error.txt", "b.md", "e.md"}, b.dead(), "nobody knows who deleted them")
	require.Contains(t, b.read(".decree/inbox/dead/b.error.txt"), "by its command or by somebody later")
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { _, err := Retry(q.project(), "b.md"); return err }))
	require.Equal(t, []string{"b.md done"}, names2(b.process()))
	require.NoFileExists(t, filepath.Join(b.root, ".decree/routines/old.sh"))
	require.Equal(t, "exit\n", b.read(".decree/routines/old.sh.deleted"), "nobody knows who deleted it")
	require.Contains(t, strings.Join(b.said, "\n"), "by its command or by somebody later: .decree/inbox/dead/a.md, .decree/inbox/dead/b.md")
}

// TestDeletedByTheRoutine: what a routine deletes of .decree is written again, file
// by file, whether it ends or its decree dies.
func TestDeletedByTheRoutine(t *testing.T) {
	for _, dies := range []bool{false, true} {
		for name, deletes := range map[string]string{
			"inbox": "rm -rf .decree/inbox", "inbox made again": "rm -rf .decree/inbox; mkdir .decree/inbox",
			"routines": "rm -rf .decree/routines", "a routine": "rm .decree/routines/develop.sh",
			"config": "rm .decree/config.yml", "a message": "rm .decree/inbox/b.md", "all": "rm -rf .decree",
			"cron": "rm -rf .decree/cron", "odd": "rm -rf .decree/routines/*",
		} {
			t.Run(name+map[bool]string{true: ", and dies"}[dies], func(t *testing.T) {
				files := map[string]string{
					".decree/routines/develop.sh": onceRoutine(deletes + "; echo said"), ".decree/routines/sub/x.sh": "x\n",
					".decree/routines/caf\xe9.sh": "odd\n", ".decree/config.yml": "max_depth: 5\n", ".decree/cron/j.md": "job\n",
					".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n",
				}
				b := newBench(t, files)
				if dies {
					require.Error(t, b.with(b.diesAfterTheRoutine(), func(q *Queue) error { _, err := b.all(q); return err }))
				}
				b.process()
				require.Equal(t, "two", b.ran()[len(b.ran())-1])
				for _, name := range []string{".decree/routines/develop.sh", ".decree/routines/sub/x.sh", ".decree/routines/caf\xe9.sh", ".decree/config.yml", ".decree/cron/j.md"} {
					require.Equal(t, files[name], b.read(name))
				}
				require.Len(t, b.list(".decree/routines"), 2)
				require.Empty(t, b.inbox())
				require.Contains(t, b.done(), "b.md")
			})
		}
	}
}

// TestNoMistakeIsMadeOfKinds: a routine that puts a file where its directory was
// costs the next message its routine, and not the queue.
func TestNoMistakeIsMadeOfKinds(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": "rm -rf .decree/cron; echo >.decree/cron\n",
		".decree/cron/j.md":           "job\n", ".decree/inbox/a.md": "one\n",
	})
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		_, err := b.all(q)
		require.NotEqual(t, project.Integrity, project.KindOf(err))
		return err
	}))
}

// TestTheFirstOfAChainFollowsNone: a message that is named and written as the first
// of a chain came at the same moment as the one that runs; it is nobody's follow-up.
func TestTheFirstOfAChainFollowsNone(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml": "max_attempts: 1\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"
case $(tail -n1 "$message_file") in one) printf -- '---\nchain: 2026112107015977\nseq: 0\n---\ntwo\n' >.decree/inbox/$chain-0.md; exit 3 ;; esac
`,
		".decree/inbox/a.md": "one\n",
	})
	b.process()
	require.Equal(t, []string{"one", "two"}, b.ran())
	require.Len(t, b.done(), 1)
	require.Empty(t, b.inbox())
}

// TestRouterThatWritesIntoTheMessages: each look at its answer finds another message, so each is put aside with that reason;
// what names its routine is done.
func TestRouterThatWritesIntoTheMessages(t *testing.T) {
	for name, router := range map[string]string{
		"appends": `for m in .decree/inbox/[ab].md; do echo routed >>"$m"; done; echo develop`,
		"renames": `for m in .decree/inbox/[ab].md; do cp "$m" .decree/x; echo routed >>.decree/x; mv .decree/x "$m"; done; echo develop`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/config.yml":          "router: '" + router + "'\n",
				".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n",
				".decree/inbox/a.md":          "first\n", ".decree/inbox/b.md": "second\n",
				".decree/inbox/d.md": "---\nroutine: develop\n---\nthird\n",
			})
			res := b.process()
			require.Len(t, res, 3)
			require.Equal(t, []string{"a.md dead", "b.md dead", "d.md done"}, names2(res))
			require.Contains(t, res[0].Reason, "the config's router must not write into the messages that wait")
			require.Equal(t, []string{"third"}, b.ran())
			require.Empty(t, b.inbox())
		})
	}
}

// TestRouterThatRenamesTheMessages: it is bounded as one that writes into them, whether their text stays the same or not; what names
// its routine is done.
func TestRouterThatRenamesTheMessages(t *testing.T) {
	for name, also := range map[string]string{"renames alone": ":", "writes, too": `echo routed >>"$to"`} {
		t.Run(name, func(t *testing.T) {
			router := `echo >>"$RAN.asked"; [ $(wc -l <"$RAN.asked") -lt 99 ] || rm -f .decree/inbox/[ab].md
from=.decree/inbox/a.md; to=.decree/inbox/b.md; [ -e $from ] || { from=$to; to=.decree/inbox/a.md; }; mv $from $to; ` + also + `; echo develop`
			b := newBench(t, map[string]string{
				".decree/config.yml":          "router: '" + strings.ReplaceAll(router, "\n", "; ") + "'\n",
				".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n",
				".decree/inbox/a.md":          "first\n",
				".decree/inbox/d.md":          "---\nroutine: develop\n---\nthird\n",
			})
			res := b.process()
			require.Len(t, res, 2)
			dead := res[slices.IndexFunc(res, func(r *Result) bool { return r.Outcome == Dead })]
			require.Contains(t, dead.Reason, "the config's router must not write into the messages that wait, nor rename them")
			require.Equal(t, []string{"third"}, b.ran())
			require.Empty(t, b.inbox())
		})
	}
}
