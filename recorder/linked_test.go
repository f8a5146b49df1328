//go:build unix

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// inPlaceOf are shell commands that put something in the place of a directory of decree's. elsewhere is beside the tree.
var inPlaceOf = map[string]string{
	"a link":            `rm -rf $at; ln -s "$elsewhere" $at`,
	"a link to nowhere": `rm -rf $at; ln -s nowhere $at`,
	"a file":            `rm -rf $at; echo mine >$at`,
	"a pipe":            `rm -rf $at; mkfifo $at`,
}

// replacing is a failing run whose command replaces a directory of decree's.
func replacing(t *testing.T, at, script string) *sweep {
	op := operation{"run replaces " + at, func(s *sweep) {
		s.ids = append(s.ids, s.run(500, 0, nil).Record.ID)
		require.NoError(s.t, os.MkdirAll(filepath.Join(s.base, "elsewhere"), 0o755))
		require.NoError(s.t, os.WriteFile(filepath.Join(s.base, "elsewhere", "file"), []byte("elsewhere\n"), 0o644))
	}, func(s *sweep, r *Recorder) error {
		script := "at=" + at + "; elsewhere=" + filepath.Join(s.base, "elsewhere") + "; " + script
		return s.execute(r, 3, func(o *RunOptions) { o.Env = append(o.Env, tamperEnv+"="+script) })
	}, judgePutBack}
	return begin(t, op, int64(seedOf(t, 1)))
}

// TestDeathAfterItsDirectoryWasReplaced: a command replaces .decree or .decree/runs, and decree dies at a step after that: the
// recovery moves aside what stands there, follows no link, and records the run.
func TestDeathAfterItsDirectoryWasReplaced(t *testing.T) {
	step := disktest.Stride(41)
	for name, script := range inPlaceOf {
		for _, at := range []string{".decree", ".decree/runs"} {
			t.Run(name+" for "+at, func(t *testing.T) {
				s := replacing(t, at, script)
				tried := 0
				for n, fired := 0, true; fired; n += step {
					s.reset()
					i := -1
					fired = false
					err := s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
						if _, err := os.Stat(s.mark()); err != nil || !st.Write {
							return disktest.Action{}
						}
						i++
						fired = fired || i == n
						return disktest.Action{Die: i == n, Torn: s.rng.Intn(st.Size + 1)}
					}), func(r *Recorder) error { return s.op.do(s, r) })
					if !fired {
						require.NoError(t, err)
						break
					}
					tried++
					s.judgeReplaced(at, err)
				}
				require.NotZero(t, tried)
			})
		}
	}
}

// judgeReplaced recovers, and holds what is there then against what was there before.
func (s *sweep) judgeReplaced(at string, err error) {
	s.t.Helper()
	info, serr := os.Lstat(filepath.Join(s.root, at))
	inPlace := serr == nil && !info.IsDir()
	if inPlace && s.rng.Intn(2) == 0 {
		s.said = nil
		require.NoError(s.t, s.try(disk.OS, func(r *Recorder) error { _, err := r.Recover(context.Background(), false); return err }))
		require.Contains(s.t, strings.Join(s.said, "\n"), at+" was in the place of decree's own files and is now .decree/aside/")
	}
	s.settle(s.rng.Intn(2))
	s.doAsTold()
	list, lerr := os.ReadDir(filepath.Join(s.base, "elsewhere"))
	require.NoError(s.t, lerr)
	require.Len(s.t, list, 1, "the link was followed")
	s.sound()
	s.op.judge(s, verdict{err: err, said: true, ran: 1, state: s.tree(), newest: s.fresh()})
	s.goOn()
}

// TestALinkOfAPerson: where no run died, a link in the place of a directory of decree's is refused, and stays.
func TestALinkOfAPerson(t *testing.T) {
	for _, at := range []string{".decree", ".decree/runs"} {
		s := &sweep{bench: newBench(t), t: t}
		s.run(500, 0, nil)
		path, moved := filepath.Join(s.root, at), filepath.Join(s.base, "moved")
		require.NoError(t, os.Rename(path, moved))
		require.NoError(t, os.Symlink(moved, path))
		_, err := s.openOn(disk.OS)
		require.ErrorContains(t, err, path+": is a symbolic link")
		target, err := os.Readlink(path)
		require.NoError(t, err)
		require.Equal(t, moved, target)
		require.NoError(t, os.Rename(path, path+".moved"), "as the hint says")
		s.run(501, 0, nil)
		with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(context.Background()) })
		s.sound()
	}
}
