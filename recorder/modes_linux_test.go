package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/runner"
)

// withRoutine makes a tree with routines and messages, in which 'chmod -R a+rwX .' changes every mode, and returns the
// modes of the root and of what is in .decree, but for the records themselves.
func (b *bench) withRoutine() map[string]os.FileMode {
	b.t.Helper()
	require.NoError(b.t, os.Chmod(b.root, 0o755))
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{})
	for _, dir := range []string{"routines", "inbox"} {
		require.NoError(b.t, os.MkdirAll(filepath.Join(b.root, ".decree", dir), 0o755))
	}
	for name, mode := range map[string]os.FileMode{"config.yml": 0o600, "routines/r.sh": 0o755, "inbox/a.md": 0o640, "inbox/b.md": 0o640} {
		at := filepath.Join(b.root, ".decree", name)
		require.NoError(b.t, os.WriteFile(at, []byte("# own\n"), mode))
		require.NoError(b.t, os.Chmod(at, mode))
	}
	modes := map[string]os.FileMode{}
	for _, at := range []string{".", ".decree", ".decree/runs", ".decree/tmp", ".decree/project.json", ".decree/.gitignore", ".decree/config.yml",
		".decree/routines", ".decree/routines/r.sh", ".decree/inbox", ".decree/inbox/a.md"} {
		modes[at] = b.mode(at)
	}
	return modes
}

func (b *bench) mode(at string) os.FileMode {
	b.t.Helper()
	st, err := os.Stat(filepath.Join(b.root, at))
	require.NoError(b.t, err)
	return st.Mode()
}

const openAll = "chmod -R a+rwX ."

// TestChmodOfAll: after a run that gave every user all rights, .decree has its modes again; the root's own comes back with
// a failed run, and is named after another, as no record has it.
func TestChmodOfAll(t *testing.T) {
	for _, large := range []bool{false, true} {
		t.Run(fmt.Sprintf("large inbox %v", large), func(t *testing.T) {
			if large {
				few := largeFrom
				largeFrom = 2
				t.Cleanup(func() { largeFrom = few })
			}
			b := newBench(t)
			before := b.withRoutine()
			notes := strings.Join(b.fails(openAll+"; exit 3").Notes, "\n")
			for at, mode := range before {
				require.Equal(t, mode, b.mode(at), at)
			}
			require.Contains(t, notes, "the command had given other users rights on .decree, ")
			require.Contains(t, notes, "the command had changed the root's own mode to 777; it is 755 again")

			res := b.succeeds(openAll)
			for at, mode := range before {
				if at != "." {
					require.Equal(t, mode, b.mode(at), at)
				}
			}
			require.Contains(t, strings.Join(res.Notes, "\n"), "the root's own mode is 777 now, was 755; no record has it, so that no revert changes it back: 'chmod 755 "+b.root+"' does")
		})
	}
}

// TestOnlyTheRootsMode: a failed run that changed nothing but the root's own mode gives it back, and one before whose last attempt
// the tree is put back has it there.
func TestOnlyTheRootsMode(t *testing.T) {
	b := newBench(t)
	b.withRoutine()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, attempts := range []int{1, 2} {
		script := `if [ "$DECREE_ATTEMPT" = 2 ]; then stat -c %a . >.decree/seen; fi; chmod 1770 .; exit 1`
		res := with(b, func(r *Recorder) (*RunResult, error) {
			return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", script}, Dir: b.root, Stdin: null, Env: os.Environ(), Attempts: attempts})
		})
		require.EqualValues(t, os.ModeDir|0o755, b.mode("."))
		require.Contains(t, strings.Join(res.Notes, "\n"), "the command had changed the root's own mode to 1770; it is 755 again")
	}
	seen, err := os.ReadFile(filepath.Join(b.root, ".decree", "seen"))
	require.NoError(t, err)
	require.Equal(t, "755\n", string(seen))
}

// TestRightsOfOnesOwnStay: what the user had opened to others before a run stays open.
func TestRightsOfOnesOwnStay(t *testing.T) {
	b := newBench(t)
	b.withRoutine()
	for at, mode := range map[string]os.FileMode{".decree": 0o775, ".decree/runs": 0o750, ".decree/inbox": 0o777, ".decree/inbox/a.md": 0o666} {
		require.NoError(t, os.Chmod(filepath.Join(b.root, at), mode))
	}
	res := b.succeeds("chmod 755 .decree/runs; chmod 700 .decree/inbox")
	require.EqualValues(t, os.ModeDir|0o775, b.mode(".decree"))
	require.EqualValues(t, os.ModeDir|0o750, b.mode(".decree/runs"))
	require.EqualValues(t, os.ModeDir|0o700, b.mode(".decree/inbox"), "nothing is opened")
	require.EqualValues(t, 0o666, b.mode(".decree/inbox/a.md"))
	require.Contains(t, strings.Join(res.Notes, "\n"), "the command had given other users rights on .decree/runs; they are taken away again")
}

// TestChmodOfAllThenDeath: the recovery of such a run does the same.
func TestChmodOfAllThenDeath(t *testing.T) {
	b := newBench(t)
	before := b.withRoutine()
	died := false
	b.disk = disktest.Inject(disk.OS, func(disktest.Step) disktest.Action { return disktest.Action{Die: died} })
	r := b.outsider()
	b.disk = nil
	r.execute = func(_ context.Context, c runner.Command) (runner.Result, error) {
		require.NoError(t, c.Starting(runner.Leader{PID: 1 << 30, PGID: 1 << 30}))
		do := exec.Command("/bin/sh", "-c", openAll)
		do.Dir = b.root
		require.NoError(t, do.Run())
		died = true
		return runner.Result{}, errors.New("killed")
	}
	_, err := r.Run(context.Background(), command(b))
	require.Error(t, err)
	r.Close()
	done := with(b, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
	var words []string
	for _, d := range done {
		words = append(words, d.What)
	}
	for at, mode := range before {
		if at != "." {
			require.Equal(t, mode, b.mode(at), at)
		}
	}
	require.Contains(t, strings.Join(words, "\n"), "the root's own mode is 777 now, was 755")
}

// TestDoctorNamesAnOpenDecree: doctor says where every user can write in .decree.
func TestDoctorNamesAnOpenDecree(t *testing.T) {
	b := newBench(t)
	b.withRoutine()
	look := func() string {
		checks, err := b.reader().Doctor(context.Background())
		require.NoError(t, err)
		for _, c := range checks {
			if c.Name == "privacy" && c.Level == Warning {
				return c.Text
			}
		}
		return ""
	}
	require.Empty(t, look())
	require.NoError(t, os.Chmod(filepath.Join(b.root, ".decree/routines"), 0o777))
	require.NoError(t, os.Chmod(filepath.Join(b.root, ".decree"), 0o777))
	require.Equal(t, "every user of this machine can write to .decree, .decree/routines: what is put there may be executed as your routine or message", look())
}
