//go:build unix

package queue

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// killedOnceItRan has decree die at its first step that writes after a routine has worked.
func (b *bench) killedOnceItRan() {
	b.t.Helper()
	require.Error(b.t, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		return disktest.Action{Die: st.Write && len(b.ran()) > 0}
	}), func(q *Queue) error { _, err := b.all(q); return err }))
}

func (b *bench) recover() {
	b.t.Helper()
	require.NoError(b.t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Recover(context.Background(), true)
		return err
	}))
}

// TestGivenUpHoldsNobody: a message whose run cannot be taken back, since a person edited what it changed, holds the
// queue until it is given up, however that is done; then the edit stays, and the next message is done.
func TestGivenUpHoldsNobody(t *testing.T) {
	for name, giveUp := range map[string]func(b *bench) error{
		"cancelled": func(b *bench) error {
			return b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err })
		},
		"moved away": func(b *bench) error {
			return os.Rename(filepath.Join(b.root, ".decree/inbox/a.md"), filepath.Join(b.base, "a.md"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]string{
				".decree/config.yml":          "max_attempts: 1\n",
				".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>$text.txt\n",
				".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n", "one.txt": "was\n",
			})
			b.killedOnceItRan()
			b.recover()
			b.put(map[string]string{"one.txt": "mine\n"})
			for range 2 {
				err := b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err })
				require.ErrorContains(t, err, "1 path differs")
				require.Contains(t, err.(interface{ Hint() string }).Hint(), "'decree inbox cancel a'")
			}
			require.NoError(t, giveUp(b))
			require.Equal(t, []string{"b.md done"}, names2(b.process()))
			require.Equal(t, []string{"one", "two"}, b.ran())
			require.Equal(t, "mine\n", b.read("one.txt"))
			require.Empty(t, b.inbox())
			said := strings.Join(b.said, "\n")
			require.Contains(t, said, "what its run 2026112107020100-0 changed stays: 1 path differs from what run 2026112107020100-0 left: one.txt")
			require.Contains(t, said, "decree revert --merge 2026112107020100-0")
		})
	}
}

// TestRevertedInPart: a message whose run a person has taken back path by path, but for what was edited since, is done with: what is edited
// stays, and the next message is done.
func TestRevertedInPart(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 1\n",
		".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; for f in a b c; do echo \"$text\" >$text-$f; done\n",
		".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n",
	})
	b.killedOnceItRan()
	b.recover()
	b.put(map[string]string{"one-a": "edited\n"})
	all := func() error { return b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err }) }
	require.ErrorContains(t, all(), "1 path differs")
	require.NoError(t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Revert(t.Context(), recorder.MoveOptions{Refs: []string{"last"}, Paths: []tree.Path{"one-b"}, Yes: true})
		return err
	}))
	require.NoError(t, all())
	require.Equal(t, []string{"one", "two"}, b.ran())
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Equal(t, "edited\n", b.read("one-a"))
	require.NoFileExists(t, filepath.Join(b.root, "one-b"))
	require.NoFileExists(t, filepath.Join(b.root, "one-c"))
	require.Contains(t, strings.Join(b.said, "\n"), "what was edited since run 2026112107020100-0 of a.md stays, as after 'decree revert' has taken back a part of the run: one-a")
}

// TestGivenUpBesideWhatIsForgotten: a message whose run cannot be taken back, since what it wrote over was forgotten, names the way
// out, and holds nobody once it is given up.
func TestGivenUpBesideWhatIsForgotten(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 1\n",
		".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >$text.txt\n",
		".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n", "one.txt": "a secret\n",
	})
	b.killedOnceItRan()
	b.recover()
	require.NoError(t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Forget(t.Context(), recorder.ForgetOptions{Paths: []tree.Path{"one.txt"}, Yes: true})
		return err
	}))
	err := b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err })
	require.Equal(t, project.Integrity, project.KindOf(err))
	require.ErrorContains(t, err, "message a.md waits for it, and so do all others")
	require.Contains(t, project.HintOf(err), "'decree inbox cancel a'")
	require.NoError(t, b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err }))
	require.Equal(t, []string{"b.md done"}, names2(b.process()))
	require.Equal(t, "one\n", b.read("one.txt"))
}

// TestGivenUpBesideWhatCannotBeRead: a message whose run cannot be taken back, since a directory that it made cannot be
// read, is given up like another one; the next one waits until the directory can be read, and no longer for the message.
func TestGivenUpBesideWhatCannotBeRead(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 1\n",
		".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); [ \"$text\" = two ] || { mkdir z; echo 1 >z/f; }; echo \"$text\" >>\"$RAN\"\n",
		".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n",
	})
	b.killedOnceItRan()
	b.recover()
	z := filepath.Join(b.root, "z")
	require.NoError(t, os.Chmod(z, 0))
	defer func() { _ = os.Chmod(z, 0o755) }()
	asUser := func() error {
		return b.with(disktest.Inject(disk.OS, disktest.Rights), func(q *Queue) error { _, err := b.all(q); return err })
	}
	require.ErrorContains(t, asUser(), "z: permission denied")
	require.NoError(t, b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err }))
	require.NoError(t, asUser())
	require.Contains(t, strings.Join(b.said, "\n"), "a.md was taken out of the inbox, and what its run")
	require.Contains(t, strings.Join(b.said, "\n"), "b.md waits: its run cannot begin: z: permission denied")
	require.NoError(t, os.Chmod(z, 0o755))
	require.Equal(t, []string{"b.md done"}, names2(b.process()))
	require.Equal(t, "1\n", b.read("z/f"), "nobody takes it back unasked")
}

// TestEditedBesideWhatCannotBeTakenBack: a message whose run cannot be taken back, and that gets another text, is not said to be
// taken out of the inbox, nor is what it changed said to be gone.
func TestEditedBesideWhatCannotBeTakenBack(t *testing.T) {
	for _, edited := range []bool{false, true} {
		b := newBench(t, map[string]string{
			".decree/config.yml":          "max_attempts: 1\n",
			".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>one.txt\n",
			".decree/inbox/a.md":          "one\n", "one.txt": "was\n",
		})
		b.killedOnceItRan()
		b.recover()
		if edited {
			b.put(map[string]string{"one.txt": "mine\n"})
		}
		b.message("a.md", "two\n")
		require.Equal(t, []string{"a.md done"}, names2(b.process()))
		said := strings.Join(b.said, "\n")
		require.Contains(t, said, "a.md was changed in the inbox")
		require.NotContains(t, said, "taken out of the inbox")
		require.NotContains(t, said, "deleted from the inbox")
		require.Equal(t, edited, strings.Contains(said, "stays: 1 path differs"))
		require.Equal(t, !edited, strings.Contains(said, "is not in the tree"))
	}
}

// TestGivenUpWhateverBars: a message whose failed run cannot be put back names from the first refusal on how it is given up, however
// many attempts it has, and holds nobody once it is, whatever the put-back is refused for.
func TestGivenUpWhateverBars(t *testing.T) {
	for _, attempts := range []int{1, 3} {
		for _, cause := range []syscall.Errno{syscall.EPERM, syscall.EROFS, syscall.EXDEV, syscall.EIO} {
			t.Run(fmt.Sprint(attempts, " ", cause), func(t *testing.T) {
				b := newBench(t, map[string]string{
					".decree/config.yml":          fmt.Sprintf("max_attempts: %d\n", attempts),
					".decree/routines/develop.sh": "text=$(tail -n1 \"$message_file\"); echo \"$text\" >>\"$RAN\"; echo \"$text\" >>$text.txt; [ \"$text\" = two ]\n",
					".decree/inbox/a.md":          "one\n", ".decree/inbox/b.md": "two\n", "one.txt": "was\n",
				})
				all := func() (out []*Result, err error) {
					return out, b.with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
						if st.Op == "Chmod" && st.Path == filepath.Join(b.root, "one.txt") {
							return disktest.Action{Err: &fs.PathError{Op: "chmod", Path: st.Path, Err: cause}}
						}
						return disktest.Action{}
					}), func(q *Queue) (err error) { out, err = b.all(q); return err })
				}
				for range 2 {
					_, err := all()
					require.Error(t, err)
					require.Contains(t, project.HintOf(err), "'decree inbox cancel a'", "%v", err)
				}
				require.NoError(t, b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err }))
				out, err := all()
				require.NoError(t, err)
				require.Equal(t, []string{"b.md done"}, names2(out))
				require.Equal(t, "was\n"+strings.Repeat("one\n", (attempts+1)/2), b.read("one.txt"), "nobody takes it back unasked")
				require.Contains(t, strings.Join(b.said, "\n"), "a.md was taken out of the inbox, and what its run")
				require.Empty(t, b.inbox())
			})
		}
	}
}

// TestTakenBackBesideEdits: where decree died in a message's run, what was changed after the run's last output, perhaps by hand, is named
// when it is taken back with the run, and how it comes again.
func TestTakenBackBesideEdits(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 2\n",
		".decree/routines/develop.sh": "echo \"$message_id\" >>\"$RAN\"; echo did >>one.txt\n",
		".decree/inbox/a.md":          "one\n", "one.txt": "was\n",
	})
	b.killedOnceItRan()
	logs, err := filepath.Glob(filepath.Join(b.root, ".decree/runs/*/routine.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	require.NoError(t, os.WriteFile(logs[0], []byte("said\n"), 0o600))
	before := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(logs[0], before, before))
	require.NoError(t, os.Chtimes(filepath.Join(b.root, "one.txt"), before, before))
	require.NoError(t, os.WriteFile(filepath.Join(b.root, "work"), []byte("by hand\n"), 0o600))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Equal(t, "was\ndid\n", b.read("one.txt"))
	require.Contains(t, strings.Join(b.said, "\n"), "perhaps by hand, goes with it: work; 'decree revert 2026112107021")
}
