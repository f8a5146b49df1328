//go:build unix

package queue

import (
	"context"
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
	"decree/project"
)

// failing is a disk on which the steps that match fail.
func failing(cause error, match func(op, path string) bool) disk.Disk {
	return disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if match(st.Op, st.Path) {
			return disktest.Action{Err: &fs.PathError{Op: st.Op, Path: st.Path, Err: cause}}
		}
		return disktest.Action{}
	})
}

// processOn is process on a disk of the test.
func (b *bench) processOn(d disk.Disk) (out []*Result) {
	b.t.Helper()
	require.NoError(b.t, b.with(d, func(q *Queue) (err error) { out, err = b.all(q); return err }))
	return out
}

// TestRoutineThatCannotBeRead: its message is dead with the reason, the next is done.
func TestRoutineThatCannotBeRead(t *testing.T) {
	for want, make := range map[string]func(path string) error{
		"it is a link":                   func(path string) error { return os.Symlink("good.sh", path) },
		"it is not a regular file":       func(path string) error { return os.Mkdir(path, 0o755) },
		"it is larger than 16 MiB":       func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("#", 16<<20+1)), 0o644) },
		"it is not a regular file: pipe": func(path string) error { return syscall.Mkfifo(path, 0o644) },
	} {
		want, _, _ = strings.Cut(want, ": ")
		b := newBench(t, map[string]string{
			".decree/routines/good.sh": echoRoutine,
			".decree/inbox/a.md":       "---\nroutine: odd\n---\n", ".decree/inbox/b.md": "---\nroutine: good\n---\n",
		})
		require.NoError(t, make(filepath.Join(b.root, ".decree/routines/odd.sh")))
		require.Equal(t, []string{"a.md dead", "b.md done"}, names2(b.process()))
		require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "a.md: routine odd: "+want)
	}
}

// TestMessageThatCannotBeRead is dead; one that can neither be written back nor
// moved stays; the next one is done.
func TestMessageThatCannotBeRead(t *testing.T) {
	files := map[string]string{
		".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n", ".decree/inbox/b.md": "two\n",
	}
	b := newBench(t, files)
	unreadable := failing(syscall.EACCES, func(op, path string) bool { return op == "Open" && strings.HasSuffix(path, "inbox/a.md") })
	require.Equal(t, []string{"a.md dead", "b.md done"}, names2(b.processOn(unreadable)))
	require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "it cannot be read: permission denied")

	b = newBench(t, files)
	fixed := failing(syscall.EPERM, func(op, path string) bool {
		return op == "Rename" && strings.HasSuffix(path, "inbox/.queue-draft") || op == "Exchange" && strings.Contains(path, "/inbox/")
	})
	require.NoError(t, b.with(fixed, func(q *Queue) error {
		res, err := b.all(q)
		require.Empty(t, res)
		require.Equal(t, 2, q.Passed())
		_, err2 := q.Next(context.Background(), 0, Pick{Name: "a.md"})
		require.Equal(t, project.Refused, project.KindOf(err2))
		return err
	}))
	require.Contains(t, strings.Join(b.said, "\n"), "a.md stays in the inbox and is skipped until the next start")
	require.Equal(t, []string{"a.md", "b.md"}, b.inbox())
	require.Len(t, b.process(), 2)
}

// TestOddNames: names as long as a name can be, over two lines, and of no encoding;
// the reason of one that is dead has a name that fits.
func TestOddNames(t *testing.T) {
	long, odd, bad := strings.Repeat("x", 252)+".md", "a\nb\xff.md", strings.Repeat("z", 252)+".md"
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": echoRoutine,
		".decree/inbox/" + long:       "one\n", ".decree/inbox/" + odd: "two\n", ".decree/inbox/" + bad: "---\nno: [\n---\n",
		".decree/inbox/done/" + long: "another\n",
	})
	require.Len(t, b.process(), 3)
	require.Empty(t, b.inbox())
	require.Len(t, b.done(), 3)
	require.Contains(t, b.done(), odd)
	require.Equal(t, "another\n", b.read(".decree/inbox/done/"+long))
	dead := b.dead()
	require.Len(t, dead, 2)
	require.Equal(t, strings.TrimSuffix(dead[0], ".error.txt"), strings.TrimSuffix(dead[1], ".md"))
	require.Contains(t, b.read(".decree/inbox/dead/"+dead[0]), "front matter")
}

// TestOddSpecs: a spec is done once whatever its name is, and its routine finds it by that; one that was dead before is done when it
// is tried again.
func TestOddSpecs(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": `tail -n1 "$spec_file" >>"$RAN"; cmp "$input_file" "$spec_file"` + "\n",
		"specs/a\xff.spec.md":         "one\n", "specs/b\nc.spec.md": "---\nroutine: develop\n---\ntwo\n", "specs/d.spec.md": "three\n",
		".decree/inbox/again.md": "---\ninput_file: '\"specs/b\\nc.spec.md\"'\nid: 2026112107015900-0\nchain: 2026112107015900\nseq: 0\ntype: task\n---\n",
	})
	for range 2 {
		b.process()
		require.Equal(t, []string{"one", "two", "three"}, b.ran())
	}
	require.Empty(t, b.dead())
	require.Len(t, b.done(), 3, "the message that waits is the spec's")
	require.Equal(t, `"a\377.spec.md"`+"\n"+`"b\nc.spec.md"`+"\nd.spec.md\n", b.read("specs/processed-spec.md"))
}

// TestOddSpecGone: what is wrong with such a spec is told with its name as it is written elsewhere.
func TestOddSpecGone(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": echoRoutine,
		".decree/inbox/a.md":          "---\ninput_file: '\"specs/b\\nc.spec.md\"'\n---\n",
	})
	require.Contains(t, b.process()[0].Reason, `input_file "specs/b\nc.spec.md": `)
}

// TestSpecsOutOfReach: the inbox is done although the specs cannot be looked at.
func TestSpecsOutOfReach(t *testing.T) {
	b := newBench(t, map[string]string{".decree/routines/develop.sh": echoRoutine, ".decree/inbox/a.md": "one\n"})
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(b.root, "specs")))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Contains(t, strings.Join(b.said, "\n"), "no spec of specs is done")
}

// TestSpecThatCannotBeMarked is remembered, not done again, and marked later.
func TestSpecThatCannotBeMarked(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/routines/develop.sh": echoRoutine + "mkdir -p specs/processed-spec.md; touch specs/processed-spec.md/x\n",
		"specs/a.spec.md":             "one\n", ".decree/inbox/b.md": "two\n",
	})
	require.Len(t, b.process(), 2)
	require.Len(t, b.done(), 2)
	require.NoError(t, os.RemoveAll(filepath.Join(b.root, "specs/processed-spec.md")))
	require.Empty(t, b.process())
	require.Len(t, b.ran(), 2)
	require.Equal(t, "a.spec.md\n", b.read("specs/processed-spec.md"))
}

// TestInboxOnAnotherFileSystem: what leaves it is copied, and nothing is lost when
// the copying fails.
func TestInboxOnAnotherFileSystem(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 1\n",
		".decree/routines/develop.sh": `echo more >.decree/inbox/$chain-1.md; ! grep -q bad "$message_file"` + "\n",
		".decree/inbox/a.md":          "bad\n",
	})
	other := failing(syscall.EXDEV, func(op, path string) bool {
		return op == "RenameNew" && strings.Contains(path, ".decree/inbox/") && !strings.Contains(path, ".queue-")
	})
	res := b.processOn(other)
	require.Equal(t, []string{"a.md dead"}, names2(res))
	require.Empty(t, b.inbox())
	require.Equal(t, "more\n", b.read(".decree/runs/"+res[0].Record.ID+"/outbox/"+res[0].Record.Chain+"-1.md"))
	require.Contains(t, b.read(".decree/inbox/dead/a.md"), "bad\n")
}

// TestStateOfAFullInboxCanBeRead: however many odd names there are.
func TestStateOfAFullInboxCanBeRead(t *testing.T) {
	b := newBench(t, nil)
	require.NoError(t, b.with(disk.OS, func(q *Queue) error {
		s := &state{Version: stateVersion, UnderWay: []*underWay{{Name: "a.md", Before: slices.Repeat([]string{strings.Repeat("\x01", 252) + ".md"}, 4900)}}}
		require.NoError(t, s.write(q.project().Store))
		got, err := readState(q.project().Store)
		require.NoError(t, err)
		require.Equal(t, "a.md", got.UnderWay[0].Name)
		return nil
	}))
}

// TestServeEndsWhenItsRootIsReplaced, and says so.
func TestServeEndsWhenItsRootIsReplaced(t *testing.T) {
	for _, replace := range []bool{true, false} {
		b := newBench(t, nil)
		err := b.with(disk.OS, func(q *Queue) error {
			return q.Serve(context.Background(), ServeOptions{Interval: 1e7, Ready: func(int) {
				require.NoError(t, os.Rename(b.root, b.root+".old"))
				if replace {
					require.NoError(t, os.CopyFS(b.root, os.DirFS(b.root+".old")))
				}
			}})
		})
		require.ErrorContains(t, err, b.root+" was moved or deleted")
	}
}
