package recorder

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// TestLayerThatStays: a layer, or what a judge wrote beside it, that may not be removed, as another user's
// directory in a copy, is told; the record has been made, and no command is stopped.
func TestLayerThatStays(t *testing.T) {
	b := newBench(t)
	b.write(".gitignore", "target/\n")
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{})
	b.chattr("+i", filepath.Join(b.root, ".gitignore"))
	b.chattr("-i", filepath.Join(b.root, ".gitignore"))
	var notes []string
	r := b.open()
	defer func() { require.NoError(t, r.Close()) }()
	r.opt.Note = func(s string) { notes = append(notes, s) }
	r.Reader.opt.Note = r.opt.Note
	layers := filepath.Join(r.project.StorePath, layersDir)
	t.Cleanup(func() { _ = exec.Command("chattr", "-R", "-i", layers).Run() })
	seal := "mkdir -p target; : >target/f; chattr +i target"
	o := RaceOptions{Candidates: 1, Judge: seal, Isolated: IsolatedOptions{Copy: true}}
	told := func(what string) {
		t.Helper()
		require.NotEmpty(t, notes)
		require.Contains(t, strings.Join(notes, "\n"), what)
		require.Contains(t, strings.Join(notes, "\n"), "chattr -R -i "+layers)
		notes = nil
		_, err := r.Checkpoint(t.Context(), CheckpointOptions{})
		require.NoError(t, err)
	}

	none := b.raced(r, RaceOptions{Candidates: 1, Isolated: o.Isolated}, seal) // nothing that is recorded
	require.NoError(t, none.Candidates[0].Err)
	require.Equal(t, history.StatusSucceeded, none.Candidates[0].Result.Record.Status)
	told("the layer of run " + none.Candidates[0].Result.Record.ID + " is not needed any more, and stays: ")

	judged := b.raced(r, o, "echo b >a")
	require.NoError(t, judged.Candidates[0].Err)
	told("what the judge wrote is not removed yet: ")
	_, err := r.Discard(t.Context(), DiscardOptions{Refs: []string{judged.Candidates[0].Result.Record.ID}, Yes: true})
	require.NoError(t, err)
	told("the layer of run " + judged.Candidates[0].Result.Record.ID)

	require.NoError(t, exec.Command("chattr", "-R", "-i", layers).Run())
	_, err = r.Checkpoint(t.Context(), CheckpointOptions{})
	require.NoError(t, err)
	left, err := os.ReadDir(layers)
	require.NoError(t, err)
	require.Empty(t, left)
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
