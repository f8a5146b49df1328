//go:build linux || darwin

package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestRenamedIsNotDeleted: .git and an ignored file that got names which are recorded, in a turn, in a run that succeeded or in one that
// was interrupted, have their own again when that is taken back or a restore goes back behind it. Where the name is taken
// they stay.
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
				a.write(".gitignore", "*.env\nlogs/\n")
				a.write("my.env", "secret\n")
				a.write("other.env", "other\n")
				a.write("config", "config\n")
				require.NoError(t, os.MkdirAll(filepath.Join(a.root, ".git", "logs"), 0o755))
				a.write(".git/logs/HEAD", "log\n")
				require.NoError(t, os.MkdirAll(filepath.Join(a.root, ".git", "refs"), 0o755))
				a.write(".git/HEAD", "head\n")
				a.bench.checkpoint(CheckpointOptions{Label: "before"})
				at := func(name string) string { return filepath.Join(a.root, name) }
				work := func() {
					a.write(".git/index", "index\n")
					require.NoError(t, os.Rename(at(".git"), at("git.bak")))
					require.NoError(t, os.Mkdir(at("d"), 0o755))
					require.NoError(t, os.Rename(at("my.env"), at("d/your.txt")))
					require.NoError(t, os.Rename(at("other.env"), at("config")))
					if bornIn(t, a.root, "config") != 0 { // else it is known by its size and time alone
						a.write("config", "edited\n")
					}
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
				config := a.read("config")
				require.NotEqual(t, "config\n", config)
				stays := func() {
					require.Equal(t, "head\n", a.read("git.bak/HEAD"))
					require.Equal(t, "index\n", a.read("git.bak/index"))
					require.Equal(t, "log\n", a.read("git.bak/logs/HEAD"))
					require.Equal(t, "secret\n", a.read("d/your.txt"))
					require.Equal(t, config, a.read("config"))
				}
				require.Contains(t, notes, "git.bak was .git when ")
				require.Contains(t, notes, "began, and stays; 'mv git.bak .git' gives it its name again")
				require.Contains(t, notes, "d/your.txt was my.env when ")
				require.Contains(t, notes, "config was other.env when ")
				require.Contains(t, notes, "'mv config other.env' gives it its name again; once it is moved away, 'decree restore ")
				require.Equal(t, "f\n", a.read("f"))
				stays()
				if name == "undo" {
					_, err = r.Redo(ctx, UndoOptions{Yes: true})
					require.NoError(t, err)
					require.Equal(t, "g\n", a.read("f"))
					stays()
					_, err = undo(r)
					require.NoError(t, err)
					require.Equal(t, "f\n", a.read("f"))
					stays()
				}
				require.NoError(t, os.Rename(at("config"), at("other.env")))
				_, err = r.Restore(ctx, RestoreOptions{Ref: "before", Paths: []tree.Path{"config"}, Yes: true})
				require.NoError(t, err)
				require.Equal(t, "config\n", a.read("config"))
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

// TestRenamedInTurn: what two runs renamed, one after the other, and what a later run changed in it, stays where several are undone at once.
func TestRenamedInTurn(t *testing.T) {
	ctx := context.Background()
	s := &sweep{bench: newBench(t), t: t}
	s.write(".gitignore", "build\n*.env\n")
	s.write("my.env", "secret\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "build"), 0o755))
	s.write("build/x", "x\n")
	for _, command := range []string{"mv build a; mv my.env mine", "mv a b; echo y >b/y; echo more >mine; echo f >f"} {
		require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell(command)) }))
	}
	r := s.open()
	defer r.Close()
	res, err := r.Undo(ctx, UndoOptions{N: 2, Yes: true})
	require.NoError(t, err)
	notes := strings.Join(res.Notes, "\n")
	require.Contains(t, notes, "b was build when run ")
	require.Contains(t, notes, "mine was my.env when run ")
	require.Equal(t, "x\n", s.read("b/x"))
	require.Equal(t, "more\n", s.read("mine"))
	require.NoFileExists(t, filepath.Join(s.root, "f"))
}

// TestRenamedIntoANewDirectory: a recorded file in whose place a directory with something renamed stands stays away, and the notes say how it comes back.
func TestRenamedIntoANewDirectory(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write(".gitignore", "venv\n")
	s.write("d", "file\n")
	require.NoError(t, os.Mkdir(filepath.Join(s.root, "venv"), 0o755))
	s.write("venv/x", "x\n")
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell("rm d; mkdir d; mv venv d/v")) }))
	r := s.open()
	defer r.Close()
	res, err := r.Undo(context.Background(), UndoOptions{Yes: true})
	require.NoError(t, err)
	id := res.Walked[0].ID
	require.Contains(t, strings.Join(res.Notes, "\n"), "d/v was venv when run "+id+" began, and stays; 'mv d/v venv' gives it its name again; once it is moved away, 'decree restore "+id+" d' brings")
	require.Equal(t, "x\n", s.read("d/v/x"))
}

// TestRenamedAndEdited: an edit in what stays where it is stands in the way of nothing.
func TestRenamedAndEdited(t *testing.T) {
	ctx := context.Background()
	for name, take := range map[string]func(*Recorder) (*MoveResult, error){
		"revert": func(r *Recorder) (*MoveResult, error) {
			return r.Revert(ctx, MoveOptions{Refs: []string{"last"}, Yes: true})
		},
		"undo": func(r *Recorder) (*MoveResult, error) { return r.Undo(ctx, UndoOptions{Yes: true}) },
		"restore": func(r *Recorder) (*MoveResult, error) {
			return r.Restore(ctx, RestoreOptions{Ref: "last", Yes: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sweep{bench: newBench(t), t: t}
			s.write(".gitignore", "build\n*.env\n")
			s.write("my.env", "secret\n")
			require.NoError(t, os.Mkdir(filepath.Join(s.root, "build"), 0o755))
			s.write("build/x", "x\n")
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell("mv build a; mv my.env mine; echo f >f")) }))
			s.write("a/x", "edited\n")
			s.write("mine", "edited\n")
			r := s.open()
			defer r.Close()
			res, err := take(r)
			require.NoError(t, err)
			notes := strings.Join(res.Notes, "\n")
			require.Contains(t, notes, "a was build when run ")
			require.Contains(t, notes, "mine was my.env when run ")
			require.NotContains(t, notes, "brings what was there before")
			require.Equal(t, "edited\n", s.read("a/x"))
			require.Equal(t, "edited\n", s.read("mine"))
			require.NoFileExists(t, filepath.Join(s.root, "f"))
		})
	}
}

// TestRenamedAndMadeAnew: what one run renamed, and a second one saved by a rename or gave another name again, stays where both are undone, at once or
// one after the other. Where it has its own name again, what is at the other one is not it, and goes.
func TestRenamedAndMadeAnew(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1, 2} {
		s := &sweep{bench: newBench(t), t: t}
		s.write(".gitignore", "build\n*.env\n")
		s.write("my.env", "secret\n")
		require.NoError(t, os.Mkdir(filepath.Join(s.root, "build"), 0o755))
		s.write("build/x", "x\n")
		for _, command := range []string{"mv build a; mv my.env mine", "mv a b; echo more >new; mv new mine"} {
			require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell(command)) }))
		}
		r := s.open()
		defer r.Close()
		var notes []string
		for range 3 - n {
			res, err := r.Undo(ctx, UndoOptions{N: n, Yes: true})
			require.NoError(t, err)
			notes = append(notes, res.Notes...)
		}
		said := strings.Join(notes, "\n")
		require.Contains(t, said, "mine was my.env when run ")
		require.Contains(t, said, map[int]string{1: "a was build when run ", 2: "b was build when run "}[n])
		require.Equal(t, map[int]string{1: "secret\n", 2: "more\n"}[n], s.read("mine"))
		require.Equal(t, "x\n", s.read(map[int]string{1: "a/x", 2: "b/x"}[n]))
	}
	s := &sweep{bench: newBench(t), t: t}
	s.write(".gitignore", "*.env\n")
	s.write("my.env", "secret\n")
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell("mv my.env mine")) }))
	require.NoError(t, os.Rename(filepath.Join(s.root, "mine"), filepath.Join(s.root, "my.env")))
	s.write("mine", "secret\n")
	r := s.open()
	defer r.Close()
	_, err := r.Undo(ctx, UndoOptions{Yes: true})
	require.NoError(t, err)
	require.Equal(t, "secret\n", s.read("my.env"))
	require.NoFileExists(t, filepath.Join(s.root, "mine"))
}

// TestRenamedAndRestored: a restore to after the run brings what it recorded of that.
func TestRenamedAndRestored(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	s.write(".gitignore", "*.env\n")
	s.write("my.env", "secret\n")
	require.NoError(t, s.try(disk.OS, func(r *Recorder) error { return s.execute(r, 0, shell("mv my.env mine")) }))
	s.write("mine", "edited\n")
	r := s.open()
	defer r.Close()
	_, err := r.Restore(context.Background(), RestoreOptions{Ref: "last", After: true, Yes: true})
	require.NoError(t, err)
	require.Equal(t, "secret\n", s.read("mine"))
}
