//go:build linux || darwin

package recorder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/capture"
	"decree/disk"
	"decree/disk/disktest"
	"decree/plan"
	"decree/project"
	"decree/tree"
)

// TestWhatIsLeftOutIsNeverLost lets each step after a command fail, or be the last
// of decree, that moved .git and an ignored file, in the tree or into the place of
// decree's own files: they are somewhere in the root, after a recovery too, and where
// the run said that it was put back without a word of them they are in their places.
func TestWhatIsLeftOutIsNeverLost(t *testing.T) {
	step := disktest.Stride(23)
	for name, action := range map[string]disktest.Action{"error": {Err: syscall.EIO}, "death": {Die: true}} {
		sweepLeftOut(t, name, step, action, "mv .git g; mkdir d; mv my.env d/your.env")
		sweepLeftOut(t, name+" over what is recorded", step, action, "rm a; mv .git a; mv my.env .gitignore")
		sweepLeftOut(t, name+" in .decree", step, action, "mv .git .decree/tmp/run-$DECREE_RUN_ID; mv my.env $DECREE_RUN_DIR/run.json")
	}
}

func sweepLeftOut(t *testing.T, name string, step int, action disktest.Action, command string) {
	t.Run(name, func(t *testing.T) {
		moved := 0
		for n := 0; ; n += step {
			s := &sweep{bench: newBench(t), t: t}
			s.write("a", "a\n")
			s.write(".gitignore", "*.env\n")
			s.write("my.env", "secret\n")
			require.NoError(t, os.Mkdir(filepath.Join(s.root, ".git"), 0o755))
			s.write(".git/HEAD", "head\n")
			i, fired := 0, false
			err := s.try(disktest.Inject(disk.OS, func(disktest.Step) disktest.Action {
				if exists(s.mark()) {
					if i++; i == n+1 {
						fired = true
						return action
					}
				}
				return disktest.Action{}
			}), func(r *Recorder) error {
				return s.execute(r, 3, shell(command+`; echo b >>a; echo >>"$DECREE_TEST_MARK"; exit 3`))
			})
			there := func(content string) (at string) {
				require.NoError(t, filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
					if err != nil || !e.Type().IsRegular() {
						return err
					}
					data, err := os.ReadFile(path)
					if err == nil && string(data) == content {
						require.Empty(t, at, "step %d: twice", n)
						at, err = filepath.Rel(s.root, path)
					}
					return err
				}))
				require.NotEmpty(t, at, "step %d: lost; %v", n, err)
				return at
			}
			for range 2 {
				git, env := there("head\n"), there("secret\n")
				if git == ".git/HEAD" && env == "my.env" {
					moved++
				}
				if err == nil && len(s.said) == 2 && s.gone == 0 {
					require.Equal(t, ".git/HEAD my.env", git+" "+env, "step %d", n)
				}
				s.settle(0)
			}
			if !fired {
				require.NoError(t, err)
				require.Greater(t, moved, 2)
				return
			}
		}
	})
}

// TestIgnoredMountWithoutAServer: what cannot even be looked at, as a mount of sshfs after a suspend, stops no run that does not record it.
func TestIgnoredMountWithoutAServer(t *testing.T) {
	for _, ignored := range []bool{true, false} {
		b := newBench(t)
		b.write("f", "a\n")
		b.write("m/below", "")
		if ignored {
			b.write(".decreeignore", "/m\n")
		}
		s := &sweep{bench: b, t: t}
		err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if filepath.Base(st.Path) == "m" {
				return disktest.Action{Err: syscall.ENOTCONN}
			}
			return disktest.Action{}
		}), func(r *Recorder) error {
			return s.execute(r, 3, shell("echo b >f; exit 3"))
		})
		if !ignored {
			require.ErrorIs(t, err, syscall.ENOTCONN)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "a\n", b.read("f"))
	}
}

// TestRenamedInALargeRoot: what is ignored gets its name again in a root with any number of recorded entries, too.
func TestRenamedInALargeRoot(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	for n := range maxLeftOut {
		s.write(fmt.Sprintf("f%d", n), "")
	}
	s.write(".gitignore", "*.env\n")
	s.write("my.env", "secret\n")
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 3, shell("mv my.env mine; exit 3")) }))
	require.Equal(t, "secret\n", s.read("my.env"))
}

// TestAnotherInodesNumber: what was deleted is not taken for a new file that has got
// its number.
func TestAnotherInodesNumber(t *testing.T) {
	l := unrecordedEntry{Name: "a", Ino: 2, Born: 9, Size: 3, Mtime: 4}
	born := func(at int64) func() int64 { return func() int64 { return at } }
	now := disk.Info{Kind: disk.Regular, Ino: 2, Size: 3, Mtime: 4, Ctime: 6}
	require.True(t, l.is(now, born(9)))
	require.True(t, l.is(now, born(10)), "an overlay has copied it up")
	now.Mtime = 7
	require.True(t, l.is(now, born(9)), "it was written to")
	require.False(t, l.is(now, born(10)))
	now.Kind = disk.Directory
	require.False(t, l.is(now, born(9)))
	l.Dir, l.Born = true, 0
	require.False(t, l.is(now, born(0)))
}

// TestRenamedAndWritten: an ignored directory that is renamed and written to gets its name again.
func TestRenamedAndWritten(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write(".gitignore", "venv\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "venv"), 0o755))
	s.write("venv/lib", "lib\n")
	if bornIn(t, s.root, "venv") == 0 {
		t.Skip("the file system keeps no birth times")
	}
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 3, shell("mv venv env; echo new >env/new; exit 3")) }))
	require.Equal(t, "lib\n", s.read("venv/lib"))
}

// bornIn is disk.Dir.Born.
func bornIn(t *testing.T, at, name string) int64 {
	dir, err := disk.OS.OpenRoot(at)
	require.NoError(t, err)
	defer dir.Close()
	return dir.Born(name)
}

// TestConflictNamesItsPaths: a line that says that a run is not put back names the first
// paths that are in the way.
func TestConflictNamesItsPaths(t *testing.T) {
	c := &ConflictError{Subject: "the command left"}
	for _, p := range []tree.Path{"a", "b\n", "c", "d", "e", "f"} {
		c.Items = append(c.Items, plan.Item{Path: p})
	}
	require.Equal(t, `: a, "b\n", c, d, e and 1 more`, NamedIn(fmt.Errorf("x: %w", c)))
	require.Empty(t, NamedIn(syscall.EIO))
}

// TestUnreadableHasANextStep: what cannot be read where a run is taken back is named with what helps.
func TestUnreadableHasANextStep(t *testing.T) {
	err := lookError(fmt.Errorf("look: %w", &fs.PathError{Op: "open", Path: "/p/a b", Err: syscall.EACCES}))
	require.Contains(t, project.HintOf(err), `chmod u+rX '/p/a b'`)
	unread := &capture.UnreadableError{Path: "z", Err: fs.ErrPermission}
	require.Contains(t, unread.Hint(), "chmod u+rX z")
	require.NotContains(t, (&capture.UnreadableError{Path: "z", Err: syscall.EIO}).Hint(), "chmod")
}
