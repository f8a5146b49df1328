package recorder

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
)

// chattr is the command, or the test is skipped: it takes root and a file system that has
// these attributes. What is sealed is unsealed when the test ends.
func (b *bench) chattr(flag, path string) {
	b.t.Helper()
	if out, err := exec.Command("chattr", "-R", flag, path).CombinedOutput(); err != nil {
		b.t.Skipf("%v: %s", err, out)
	}
	b.t.Cleanup(func() { _ = exec.Command("chattr", "-R", "-i", "-a", path).Run() })
}

// TestSealedByTheCommand: a failed run whose command made .decree, or parts of it, immutable
// or append-only is put back all the same, and no later command is stopped.
func TestSealedByTheCommand(t *testing.T) {
	for _, flag := range []string{"+i", "+a"} {
		for _, what := range []string{".decree", ".decree/runs", ".decree/tmp"} {
			t.Run(flag+" "+what, func(t *testing.T) {
				b := newBench(t)
				b.write("a", "a\n")
				b.write("b", "b\n")
				b.write(".decree/inbox/m.md", "m\n")
				b.checkpoint(CheckpointOptions{})
				b.chattr(flag, filepath.Join(b.root, ".decree/inbox"))
				b.chattr("-"+flag[1:], filepath.Join(b.root, ".decree/inbox"))
				t.Cleanup(func() { _ = exec.Command("chattr", "-R", "-i", "-a", b.root).Run() })
				null, err := os.Open(os.DevNull)
				require.NoError(t, err)
				defer null.Close()
				res := with(b, func(r *Recorder) (*RunResult, error) {
					return r.Run(context.Background(), RunOptions{Args: []string{"/bin/sh", "-c", "echo c >>a; rm b; chattr -R " + flag + " " + what + "; exit 3"}, Dir: b.root, Env: os.Environ(), Stdin: null})
				})
				require.Equal(t, history.StatusReverted, res.Record.Status, res.Notes)
				require.Equal(t, "a\n", b.read("a"))
				require.Equal(t, "b\n", b.read("b"))
				require.Contains(t, res.Notes[len(res.Notes)-1], "immutable or append-only; that was taken away again")
				require.Equal(t, 3, b.run(0, 3, shell("echo c >>a; exit 3")).ExitCode)
				b.requireSound()
			})
		}
	}
}

// TestSealedByAPerson: what needs .decree is refused and says which attribute it is and what
// takes it away; nothing is left there that could not be removed. Then all goes on.
func TestSealedByAPerson(t *testing.T) {
	for flag, word := range map[string]string{"+i": "immutable", "+a": "append-only"} {
		t.Run(flag, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "a\n")
			b.checkpoint(CheckpointOptions{})
			b.run(0, 0, shell("echo b >>a"))
			decree := filepath.Join(b.root, ".decree")
			b.chattr(flag, decree)
			for name, op := range map[string]func(*Recorder) error{
				"checkpoint": func(r *Recorder) error {
					_, err := r.Checkpoint(context.Background(), CheckpointOptions{})
					return err
				},
				"revert": func(r *Recorder) error {
					_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{"last"}})
					return err
				},
			} {
				r := b.open()
				err := op(r)
				require.Error(t, err, name)
				require.Contains(t, err.Error()+project.RightsAdvice(err), word, name)
				require.Contains(t, project.HintOf(err)+project.RightsAdvice(err), "chattr -R -"+flag[1:]+" "+decree, name)
				require.NoError(t, r.Close())
			}
			left, err := os.ReadDir(filepath.Join(decree, "tmp"))
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, "a\nb\n", b.read("a"))
			require.NoError(t, exec.Command("chattr", "-R", "-"+flag[1:], decree).Run())
			b.revert("last")
			require.Equal(t, "a\n", b.read("a"))
			b.requireSound()
		})
	}
}
