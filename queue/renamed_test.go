//go:build unix

package queue

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

const renames = `tail -n1 "$message_file" >>"$RAN"; echo did >>log; `

// TestRenamedWhileItIsDone: a message that somebody renames while its run goes is the same one: it is done once, and is then
// in done, or in dead, under its new name.
func TestRenamedWhileItIsDone(t *testing.T) {
	for name, routine := range map[string]string{
		"in place": renames + "mv .decree/inbox/a.md .decree/inbox/b.md\n",
		"fails":    renames + "mv .decree/inbox/a.md .decree/inbox/b.md; exit 1\n",
		"isolated": live + renames + "live 'mv .decree/inbox/a.md .decree/inbox/b.md'\n",
		"tries":    live + renames + "live 'mv .decree/inbox/a.md .decree/inbox/b.md'; exit 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := isolatedFiles(routine, map[string]string{".decree/config.yml": "max_attempts: 1\n"})
			isolated := strings.HasPrefix(routine, "live")
			if isolated {
				needsLayers(t)
				files[".decree/config.yml"] = "isolated: {queue: true}\nmax_attempts: 2\n"
			}
			b := newBench(t, files)
			if isolated {
				b.answers()
			}
			b.process()
			require.Empty(t, b.inbox())
			require.NotContains(t, strings.Join(b.said, "\n"), "deleted")
			switch name {
			case "fails":
				require.Equal(t, []string{"go"}, b.ran())
				require.Equal(t, []string{"b.error.txt", "b.md"}, b.dead())
			case "tries":
				require.Equal(t, []string{"go", "go"}, b.ran())
				require.Equal(t, []string{"b.error.txt", "b.md"}, b.dead())
			default:
				require.Equal(t, []string{"go"}, b.ran())
				require.Equal(t, []string{"b.md"}, b.done())
				require.Equal(t, "did\n", b.read("log"))
			}
		})
	}
}

// TestRenamedBeforeAPersonsCommand: a message that is being done, or whose run has succeeded and whose decree died, is known
// under its new name too by who wants to cancel or edit it.
func TestRenamedBeforeAPersonsCommand(t *testing.T) {
	refused := func(b *bench, why string) {
		require.NoError(b.t, b.person(func(q *Queue) error {
			doing, err := UnderWay(&q.project().Site, "h")
			require.NoError(b.t, err)
			for _, m := range doing {
				require.Equal(b.t, "b.md", m.Name)
			}
			_, err = Cancel(q.o.Recorder, "h", "b.md", "not wanted")
			require.ErrorContains(b.t, err, "b"+why)
			text := b.read(".decree/inbox/b.md")
			require.ErrorContains(b.t, Edit(q.o.Recorder, "h", "", "b.md", []byte(text), []byte(text+"more\n")), "b"+why)
			return nil
		}))
		require.Equal(b.t, []string{"b.md"}, b.inbox())
		require.Empty(b.t, b.dead())
	}
	rename := func(b *bench) {
		inbox := filepath.Join(b.root, ".decree/inbox")
		require.NoError(b.t, os.Rename(filepath.Join(inbox, "a.md"), filepath.Join(inbox, "b.md")))
	}
	b := newBench(t, map[string]string{".decree/inbox/a.md": "one\n", ".decree/routines/develop.sh": atWork + "works\n"})
	await, let := b.meet()
	ended := make(chan error)
	go func() { ended <- b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err }) }()
	require.Equal(t, "one", await())
	rename(b)
	refused(b, ".md is being done")
	let()
	require.NoError(t, <-ended)
	require.Equal(t, []string{"b.md"}, b.done())
	require.Empty(t, b.dead())

	b = newBench(t, map[string]string{".decree/inbox/a.md": "one\n", ".decree/routines/develop.sh": echoRoutine})
	require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		return disktest.Action{Die: st.Write && strings.Contains(st.Path, takenDirs[0])}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	b.forgetHolder()
	rename(b)
	refused(b, " is done")
	b.process()
	require.Equal(t, []string{"b.md"}, b.done())
	require.Len(t, b.ran(), 1)
}

// TestAnotherCameWhileItWasMoved: decree dies while a message whose run has ended is moved away, and another one of its name
// is written before the next start: each is done once.
func TestAnotherCameWhileItWasMoved(t *testing.T) {
	for _, exit := range []string{"0", "1"} {
		b := newBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "one\n",
			".decree/routines/develop.sh": `text=$(tail -n1 "$message_file"); echo "$text" >>"$RAN"; [ "$text" = two ] || exit ` + exit + "\n"})
		died := false
		require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			taken := filepath.Join(b.root, ".decree/inbox", takenDirs[0], "a.md")
			if _, err := os.Lstat(taken); err == nil {
				died = died || st.Write
			}
			return disktest.Action{Die: died}
		}), func(q *Queue) error { _, err := b.all(q); return err }))
		b.message("a.md", "two\n")
		b.process()
		require.Equal(t, []string{"one", "two"}, b.ran())
		require.Empty(t, b.inbox())
		require.Len(t, append(b.done(), b.dead()...), map[string]int{"0": 2, "1": 3}[exit])
	}
}

// TestLongNameInDead: decree dies after the move of a failed message to dead, where its long name has lost its end: it is
// found there, and has no copy.
func TestLongNameInDead(t *testing.T) {
	long := strings.Repeat("n", 250) + ".md"
	b := newBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/" + long: "one\n", ".decree/routines/develop.sh": echoRoutine + "exit 1\n"})
	died := false
	require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Write && len(b.dead()) == 2
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	b.process()
	require.Len(t, b.dead(), 2)
	require.Len(t, b.ran(), 1)
}

// TestRetriedAfterADeath: decree dies after the move of a failed message to dead, and a person has it tried again: it is, with
// all its attempts.
func TestRetriedAfterADeath(t *testing.T) {
	b := newBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "one\n", ".decree/routines/develop.sh": echoRoutine + "exit 1\n"})
	died := false
	require.Error(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		died = died || st.Write && len(b.dead()) == 2
		return disktest.Action{Die: died}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
	b.forgetHolder()
	require.NoError(t, b.person(func(q *Queue) error {
		if err := q.EndDead(t.Context(), 0, "a.md"); err != nil {
			return err
		}
		_, err := Retry(q.project(), "a.md")
		return err
	}))
	b.process()
	require.Len(t, b.ran(), 2)
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
}

// TestRenamedAtAnyMoment: a person renames a message, whose routine has ended, before each step in which decree gives a file of the
// inbox another name: it is done once, and goes under its new name where it still lay in the inbox.
func TestRenamedAtAnyMoment(t *testing.T) {
	for _, exit := range []string{"0", "1"} {
		renamed := 0
		for n, reached := 0, true; reached; n++ {
			b := newBench(t, map[string]string{".decree/config.yml": "max_attempts: 1\n", ".decree/inbox/a.md": "one\n", ".decree/routines/develop.sh": echoRoutine + "exit " + exit + "\n"})
			steps, moved := 0, false
			reached = false
			require.NoError(t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				naming := strings.HasPrefix(st.Op, "Rename") || st.Op == "Exchange"
				if !naming || !strings.Contains(st.Path, "/inbox") || len(b.ran()) == 0 {
					return disktest.Action{}
				}
				if steps++; steps == n+1 {
					inbox := filepath.Join(b.root, ".decree/inbox")
					reached, moved = true, os.Rename(filepath.Join(inbox, "a.md"), filepath.Join(inbox, "b.md")) == nil
				}
				return disktest.Action{}
			}), func(q *Queue) error { _, err := b.all(q); return err }))
			b.process()
			require.Len(t, b.ran(), 1, "renamed %v before step %d", moved, n)
			require.Empty(t, b.inbox())
			ended := append(b.done(), b.dead()...)
			if moved {
				renamed++
				require.Contains(t, ended, "b.md")
				require.NotContains(t, ended, "a.md")
			}
			os.RemoveAll(b.base)
		}
		require.NotZero(t, renamed)
	}
}
