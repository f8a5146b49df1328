//go:build unix

package recorder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestLargeInbox: of an inbox that is too full to be looked at file by file a run knows
// all that waits as it is when it begins, whatever happened to it since the run before.
func TestLargeInbox(t *testing.T) {
	few := largeFrom
	largeFrom = 4
	t.Cleanup(func() { largeFrom = few })
	b := newBench(t)
	inbox := filepath.Join(b.root, ".decree", "inbox")
	at := func(name string) string { return filepath.Join(inbox, name) }
	write := func(name, text string) { require.NoError(t, os.WriteFile(at(name), []byte(text), 0o644)) }
	b.write("a", "a\n")
	require.NoError(t, os.MkdirAll(at("dead"), 0o755))
	for i := range 12 {
		write(fmt.Sprintf("m%02d.md", i), fmt.Sprintf("task %d\n", i))
	}
	write("dead/old.md", "dead\n")
	dir, err := disk.OS.OpenRoot(inbox)
	require.NoError(t, err)
	w, err := disk.NewWatch(dir, disk.Entries)
	dir.Close()
	if err != nil {
		t.Skip("every file is looked at here:", err)
	}
	w.Close()

	// waiting is what is in the inbox now, by its path below .decree.
	waiting := func() map[string]string {
		out := map[string]string{}
		require.NoError(t, filepath.WalkDir(inbox, func(file string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(file)
			rel, _ := filepath.Rel(filepath.Dir(inbox), file)
			out[rel] = string(data)
			return err
		}))
		return out
	}
	command := func() int { return 0 }
	r := b.commanded(func() int { return command() })
	defer func() { require.NoError(t, r.Close()) }()
	run := func(do func(id string) int) *RunResult {
		var id string
		command = func() int { return do(id) }
		res, err := r.Run(context.Background(), RunOptions{Args: []string{"x"}, Dir: b.root, Env: os.Environ(), Named: func(s string) error {
			if s != "" {
				id = s
			}
			return nil
		}})
		require.NoError(t, err)
		return res
	}
	nothing := func(string) int { return 0 }
	for _, c := range []struct {
		name   string
		do     func()
		anew   bool // all has to be looked at again
		change int  // lines that the log grows by, at most
	}{
		{name: "nothing", do: func() {}},
		{name: "one was edited in place", do: func() { write("m03.md", "another task\n") }, change: 1},
		{name: "one was edited and has its old times", do: func() {
			st, err := os.Stat(at("m03.md"))
			require.NoError(t, err)
			write("m03.md", "a third task\n")
			require.NoError(t, os.Chtimes(at("m03.md"), st.ModTime(), st.ModTime()))
		}, change: 1},
		{name: "one came and one went", do: func() {
			write("new.md", "new\n")
			require.NoError(t, os.Remove(at("m04.md")))
		}, change: 2},
		{name: "one has another name", do: func() { require.NoError(t, os.Rename(at("m05.md"), at("z.md"))) }, change: 2},
		{name: "one was replaced", do: func() {
			write("dead/draft", "replaced\n")
			require.NoError(t, os.Rename(at("dead/draft"), at("m06.md")))
		}, change: 1},
		{name: "one was edited under its second name", do: func() {
			require.NoError(t, os.Link(at("m07.md"), filepath.Join(b.base, "second")))
			require.NoError(t, os.Chmod(at("m07.md"), 0o600)) // a link elsewhere alone leaves no event
			run(nothing)
			require.NoError(t, os.WriteFile(filepath.Join(b.base, "second"), []byte("by another name\n"), 0o644))
		}, change: 2},
		{name: "one is a directory now", do: func() {
			require.NoError(t, os.Remove(at("m08.md")))
			require.NoError(t, os.Mkdir(at("m08.md"), 0o755))
			write("m08.md/below", "below\n")
		}, change: 1},
		{name: "the inbox was replaced", do: func() {
			require.NoError(t, os.Rename(inbox, inbox+".old"))
			require.NoError(t, os.Mkdir(inbox, 0o755))
			for i := range 9 {
				write(fmt.Sprintf("n%02d.md", i), fmt.Sprintf("new task %d\n", i))
			}
			require.NoError(t, os.RemoveAll(inbox+".old"))
		}, anew: true},
		{name: "too much happened", do: func() { r.own.large["inbox"].blind = true }, anew: true},
		{name: "contents were freed", do: func() {
			freed := with(b, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
			require.Positive(t, freed.Objects)
		}, anew: true},
		{name: "the log was tidied away", do: func() { b.checkpoint(CheckpointOptions{}) }, anew: true},
		{name: "it is nearly empty", do: func() {
			for i := range 8 {
				require.NoError(t, os.Remove(at(fmt.Sprintf("n%02d.md", i))))
			}
		}, anew: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(nothing)
			run(nothing)
			watched, lines := r.own.large["inbox"], r.own.log.lines
			require.NotNil(t, watched)
			c.do()
			want := waiting()
			res := run(func(id string) int {
				opened, err := r.history.Opened(id)
				require.NoError(t, err)
				own, err := r.ownOf(opened)
				require.NoError(t, err)
				known := map[string]tree.Hash{}
				for _, f := range own {
					if strings.HasPrefix(f.Path, "inbox/") && !f.Dir {
						known[f.Path] = f.Hash
					}
				}
				require.Len(t, known, len(want))
				for at, text := range want {
					require.Equal(t, tree.Hash(sha256.Sum256([]byte(text))), known[at], at)
				}
				if !c.anew {
					require.Same(t, watched, r.own.large["inbox"])
					require.LessOrEqual(t, r.own.log.lines, lines+c.change)
				}
				require.NoError(t, os.RemoveAll(inbox))
				return 1
			})
			require.Equal(t, want, waiting(), "%v", res.Notes)
		})
	}
}

// TestLargeInboxLosesOne: what a command deletes of a full inbox is found by its name,
// without a look at the others, and its content is kept meanwhile; what it moved elsewhere
// is not missing.
func TestLargeInboxLosesOne(t *testing.T) {
	few := largeFrom
	largeFrom = 4
	t.Cleanup(func() { largeFrom = few })
	b := newBench(t)
	for i := range 12 {
		b.write(fmt.Sprintf(".decree/inbox/m%02d.md", i), fmt.Sprintf("task %d\n", i))
	}
	b.write(".decree/inbox/dead/old.md", "dead\n")
	inbox := filepath.Join(b.root, ".decree", "inbox")
	begun := false
	r := b.commanded(func() int {
		if !begun {
			begun = true
			return 0
		}
		with(b, func(beside *Recorder) (*Collected, error) { return beside.Gc(context.Background()) })
		require.NoError(t, os.Remove(filepath.Join(inbox, "m03.md")))
		require.NoError(t, os.Rename(filepath.Join(inbox, "m04.md"), filepath.Join(inbox, "dead", "m04.md")))
		require.NoError(t, os.Remove(filepath.Join(inbox, "m05.md")))
		require.NoError(t, os.Mkdir(filepath.Join(inbox, "m05.md"), 0o755))
		return 0
	})
	defer func() { require.NoError(t, r.Close()) }()
	var res *RunResult
	for range 2 { // the contents are of the first run
		var err error
		res, err = r.Run(context.Background(), RunOptions{Args: []string{"x"}, Dir: b.root, Env: os.Environ()})
		require.NoError(t, err)
	}
	require.Equal(t, []string{"deleted while the command ran, and written again: .decree/inbox/m03.md, .decree/inbox/m05.md"}, res.Notes)
	require.FileExists(t, filepath.Join(inbox, "m05.md"))
	require.NoFileExists(t, filepath.Join(inbox, "m04.md"))
}
