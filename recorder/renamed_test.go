//go:build linux || darwin

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRenamedIsNotDeleted: .git and an ignored file that got names which are recorded, in a turn, in a run that succeeded or in one that
// was interrupted, have their own again when that is taken back or a restore goes back behind it. Where the name is taken
// they stay. What a redo brings is a copy, and goes with the next undo.
func TestRenamedIsNotDeleted(t *testing.T) {
	ctx := context.Background()
	revert := func(r *Recorder) (*MoveResult, error) {
		return r.Revert(ctx, MoveOptions{Refs: []string{"last"}, Yes: true})
	}
	undo := func(r *Recorder) (*MoveResult, error) { return r.Undo(ctx, UndoOptions{Yes: true}) }
	for name, take := range map[string]func(*Recorder) (*MoveResult, error){
		"revert": revert, "undo": undo,
		"restore": func(r *Recorder) (*MoveResult, error) {
			return r.Restore(ctx, RestoreOptions{Ref: "before", Yes: true})
		},
	} {
		for _, how := range []string{"turn", "run", "death"} {
			t.Run(name+" of a "+how, func(t *testing.T) {
				a := newAgents(t)
				a.write("f", "f\n")
				a.write(".gitignore", "*.env\n")
				a.write("my.env", "secret\n")
				require.NoError(t, os.MkdirAll(filepath.Join(a.root, ".git", "refs"), 0o755))
				a.write(".git/HEAD", "head\n")
				a.bench.checkpoint(CheckpointOptions{Label: "before"})
				at := func(name string) string { return filepath.Join(a.root, name) }
				work := func() {
					a.write(".git/index", "index\n")
					require.NoError(t, os.Rename(at(".git"), at("git.bak")))
					require.NoError(t, os.Mkdir(at("d"), 0o755))
					require.NoError(t, os.Rename(at("my.env"), at("d/your.txt")))
					a.write("f", "g\n")
				}
				switch how {
				case "turn":
					e := event("s", 100)
					a.prompt(e, "move")
					work()
					a.end(e)
				case "run":
					r := a.commanded(func() int { work(); return 0 })
					_, err := r.Run(ctx, command(a.bench))
					require.NoError(t, err)
					require.NoError(t, r.Close())
				case "death":
					r := a.commanded(func() int { work(); panic("death") })
					func() {
						defer func() { require.Equal(t, "death", recover()) }()
						_, _ = r.Run(ctx, command(a.bench))
					}()
					require.NoError(t, r.Close())
				}
				r := a.open()
				defer r.Close()
				if how == "death" {
					_, err := r.Recover(ctx, false)
					require.NoError(t, err)
				}
				res, err := take(r)
				require.NoError(t, err)
				notes := strings.Join(res.Notes, "\n")
				require.Contains(t, notes, "git.bak was .git when ")
				require.Contains(t, notes, "d/your.txt was my.env when ")
				require.Equal(t, "head\n", a.read(".git/HEAD"))
				require.Equal(t, "index\n", a.read(".git/index"))
				require.Equal(t, "secret\n", a.read("my.env"))
				require.Equal(t, "f\n", a.read("f"))
				require.NoDirExists(t, at("d"))
				require.NoDirExists(t, at("git.bak"))
				if name != "undo" {
					return
				}
				_, err = r.Redo(ctx, UndoOptions{Yes: true})
				require.NoError(t, err)
				require.Equal(t, "g\n", a.read("f"))
				require.Equal(t, "secret\n", a.read("my.env"))
				_, err = undo(r)
				require.NoError(t, err)
				require.Equal(t, "f\n", a.read("f"))
				require.Equal(t, "secret\n", a.read("my.env"))
				require.Equal(t, "head\n", a.read(".git/HEAD"))
				require.NoDirExists(t, at("git.bak"))
			})
		}
	}
}

// TestRenamedStaysWhereItsNameIsTaken: what got another name, and whose own something else has by now, is neither deleted nor exchanged.
func TestRenamedStaysWhereItsNameIsTaken(t *testing.T) {
	ctx := context.Background()
	a := newAgents(t)
	a.write(".gitignore", "*.env\n")
	a.write("my.env", "secret\n")
	a.checkpoint()
	e := event("s", 100)
	a.prompt(e, "move")
	require.NoError(t, os.Mkdir(filepath.Join(a.root, "d"), 0o755))
	require.NoError(t, os.Rename(filepath.Join(a.root, "my.env"), filepath.Join(a.root, "d", "your.txt")))
	a.write("my.env", "new\n")
	a.write("made", "")
	a.end(e)
	r := a.open()
	defer r.Close()
	res, err := r.Undo(ctx, UndoOptions{Yes: true})
	require.NoError(t, err)
	require.Contains(t, strings.Join(res.Notes, "\n"), "d/your.txt was my.env when turn "+res.Walked[0].ID+" began, and stays")
	require.Equal(t, "secret\n", a.read("d/your.txt"))
	require.Equal(t, "new\n", a.read("my.env"))
	require.NoFileExists(t, filepath.Join(a.root, "made"))
}
