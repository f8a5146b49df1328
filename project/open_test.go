package project

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, w Where, create bool) *Project {
	t.Helper()
	p, err := Open(disk.OS, w, create)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// listing is every path below dir with its kind and size: what must not change.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		st, err := d.Info()
		require.NoError(t, err)
		out[path] = st.Mode().String() + st.ModTime().String()
		return nil
	})
	require.NoError(t, err)
	return out
}

func TestOpenCreatesAndFindsAgain(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	before := listing(t, filepath.Dir(home))
	_, err := Open(disk.OS, w, false)
	require.ErrorIs(t, err, ErrNoProject)
	assert.Equal(t, before, listing(t, filepath.Dir(home)), "reading writes nothing")

	p := open(t, w, true)
	assert.Len(t, p.ID, 32)
	assert.Equal(t, filepath.Join(home, ".local/share/decree", p.ID), p.StorePath)
	assert.Empty(t, p.Notes)
	ignore, err := os.ReadFile(filepath.Join(root, ".decree/.gitignore"))
	require.NoError(t, err)
	assert.Equal(t, gitignore, string(ignore))

	after := listing(t, filepath.Dir(home))
	q := open(t, w, false)
	r := open(t, w, true)
	assert.Equal(t, []string{p.ID, p.ID}, []string{q.ID, r.ID})
	assert.NotNil(t, q.Decree)
	assert.Equal(t, after, listing(t, filepath.Dir(home)), "what is known is not written again")
}

func TestStorePlaces(t *testing.T) {
	for _, c := range []struct {
		name, env, config, data string
		want                    func(home, root string) string
	}{
		{"DECREE_STORE", "$HOME/env", "store: /nowhere", "$HOME/xdg", func(h, _ string) string { return h + "/env" }},
		{"config", "", "store: ~/cfg", "$HOME/xdg", func(h, _ string) string { return h + "/cfg" }},
		{"config, in the tree", "", "store: .decree/store", "", func(_, r string) string { return r + "/.decree/store" }},
		{"XDG_DATA_HOME", "", "", "$HOME/xdg", func(h, _ string) string { return h + "/xdg/decree" }},
		{"a relative XDG_DATA_HOME is ignored", "", "", "xdg", func(h, _ string) string { return h + "/.local/share/decree" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			home, root := ground(t)
			if c.config != "" {
				write(t, filepath.Join(root, ".decree/config.yml"), c.config)
			}
			expand := func(s string) string { return os.Expand(s, func(string) string { return home }) }
			w := Where{Cwd: root, Home: home, StoreEnv: expand(c.env), DataHome: expand(c.data), ConfigStore: true}
			p := open(t, w, true)
			assert.Equal(t, filepath.Join(c.want(home, root), p.ID), p.StorePath)
			assert.Equal(t, p.ID, open(t, w, false).ID)
		})
	}
}

// A config that came with the tree does not decide where copies of all files go.
func TestConfigDoesNotPlaceTheStoreUnasked(t *testing.T) {
	home, root := ground(t)
	elsewhere := filepath.Join(home, "elsewhere")
	write(t, filepath.Join(root, ".decree/config.yml"), "store: "+elsewhere)
	w := Where{Cwd: root, Home: home}
	was := listing(t, filepath.Dir(home))
	_, err := Open(disk.OS, w, true)
	require.Error(t, err)
	assert.Equal(t, Refused, KindOf(err))
	assert.Contains(t, err.Error(), elsewhere)
	assert.Equal(t, was, listing(t, filepath.Dir(home)), "nothing is made")

	w.ConfigStore = true
	p := open(t, w, true)
	assert.Equal(t, elsewhere, filepath.Dir(p.StorePath))
	w.ConfigStore = false
	assert.Equal(t, p.ID, open(t, w, true).ID, "decided once")

	// A command that deletes .decree does not take along what says where its undo is.
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	assert.Equal(t, p.ID, open(t, w, true).ID)
	assert.Equal(t, elsewhere, filepath.Dir(open(t, w, false).StorePath))

	// The usual places need no question, and DECREE_STORE is the user's own word.
	for _, base := range []string{"~/.local/share/decree", ".decree/store"} {
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
		require.NoError(t, os.RemoveAll(p.StorePath))
		require.NoError(t, os.RemoveAll(filepath.Join(home, ".local/share/decree", p.linkName())))
		write(t, filepath.Join(root, ".decree/config.yml"), "store: "+base)
		p = open(t, w, true)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	write(t, filepath.Join(root, ".decree/config.yml"), "store: /nowhere")
	w.StoreEnv = elsewhere
	assert.Equal(t, elsewhere, filepath.Dir(open(t, w, true).StorePath))
}

func TestNoWritableHome(t *testing.T) {
	_, root := ground(t)
	for _, home := range []string{"", "/nonexistent"} {
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
		p := open(t, Where{Cwd: root, Home: home}, true)
		assert.Equal(t, filepath.Join(root, ".decree/store", p.ID), p.StorePath)
		assert.Len(t, p.Notes, 1)
		var id identity
		b, err := os.ReadFile(filepath.Join(root, ".decree/project.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &id))
		assert.EqualValues(t, inTree, id.Store)
	}
}

func TestStoreCannotBeMade(t *testing.T) {
	home, root := ground(t)
	write(t, filepath.Join(home, "file"), "")
	_, err := Open(disk.OS, Where{Cwd: root, Home: home, StoreEnv: filepath.Join(home, "file/store")}, true)
	require.Error(t, err)
	assert.Contains(t, HintOf(err), "DECREE_STORE")
	_, err = Open(disk.OS, Where{Cwd: root, Home: home, StoreEnv: "relative"}, true)
	assert.Equal(t, Usage, KindOf(err))
	assert.NoDirExists(t, filepath.Join(root, ".decree"))
}

func TestAnotherPlaceIsRefused(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p := open(t, w, true)
	was := listing(t, filepath.Dir(home))
	for _, create := range []bool{true, false} {
		asked := w
		asked.StoreEnv = filepath.Join(home, "other")
		_, err := Open(disk.OS, asked, create)
		require.Error(t, err)
		assert.Contains(t, err.Error(), asked.StoreEnv)
		assert.NotEmpty(t, HintOf(err))
	}
	assert.Equal(t, was, listing(t, filepath.Dir(home)))
	// Another default is not asked for, and the same place by another name is the same.
	w.DataHome = filepath.Join(home, "xdg")
	assert.Equal(t, p.ID, open(t, w, true).ID)
	require.NoError(t, os.Symlink(filepath.Join(home, ".local/share"), filepath.Join(home, "l")))
	w.StoreEnv = filepath.Join(home, "l/decree")
	assert.Equal(t, p.ID, open(t, w, true).ID)
	// Nor does a lost project.json make a second store.
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	w.StoreEnv = filepath.Join(home, "other")
	_, err := Open(disk.OS, w, true)
	require.Error(t, err)
}

func TestMissingStore(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p := open(t, w, true)
	require.NoError(t, os.Rename(p.StorePath, p.StorePath+".away"))
	for _, create := range []bool{true, false} {
		_, err := Open(disk.OS, w, create)
		require.Error(t, err)
		assert.Contains(t, err.Error(), p.StorePath)
		assert.NotEmpty(t, HintOf(err))
	}
	require.NoError(t, os.Rename(p.StorePath+".away", p.StorePath))
	open(t, w, true)
}

// TestHomeRenamed: after the home with the store was renamed the store is found where the user's stores are now, also where the
// tree lies in that home, or DECREE_STORE names the place, and project.json is written anew. A copy of the tree is told of it, and does not take it.
func TestHomeRenamed(t *testing.T) {
	for _, env := range []bool{false, true} {
		home, root := ground(t)
		inside := filepath.Join(home, "tree")
		mkdirs(t, inside)
		var ids, places []string
		for _, at := range []string{root, inside} {
			p := open(t, Where{Cwd: at, Home: home}, true)
			ids, places = append(ids, p.ID), append(places, at)
		}
		renamed := home + ".2"
		require.NoError(t, os.Rename(home, renamed))
		places[1] = filepath.Join(renamed, "tree")
		base := filepath.Join(renamed, ".local/share/decree")
		for i, at := range places {
			w := Where{Cwd: at, Home: renamed}
			if env {
				w = Where{Cwd: at, Home: filepath.Dir(root), StoreEnv: base}
			}
			for _, create := range []bool{false, true} {
				p := open(t, w, create)
				assert.Equal(t, ids[i], p.ID)
				assert.Contains(t, p.Notes, "this project's store is in "+base+" now, no more in "+filepath.Join(home, ".local/share/decree"))
			}
			assert.Empty(t, open(t, w, true).Notes, "it is said until it is written down")
		}

		copied := root + ".copy"
		require.NoError(t, exec.Command("cp", "-a", root, copied).Run())
		write(t, filepath.Join(copied, ".decree/project.json"), `{"version":1,"id":"`+ids[0]+`","store":"/gone"}`)
		w := Where{Cwd: copied, Home: renamed}
		_, err := Open(disk.OS, w, true)
		require.ErrorContains(t, err, "this project's store is missing")
		assert.Contains(t, HintOf(err), base+" has a store of its id")
		assert.Contains(t, HintOf(err), `"store":"`+base+`"`)
		require.NoError(t, os.RemoveAll(root))
		write(t, filepath.Join(copied, ".decree/project.json"), `{"version":1,"id":"`+ids[0]+`","store":"`+base+`"}`)
		assert.Equal(t, ids[0], open(t, w, true).ID, "what is advised helps")
	}
}

func TestMoveCopyAdopt(t *testing.T) {
	home, work := ground(t)
	a, b, c := filepath.Join(work, "a"), filepath.Join(work, "b"), filepath.Join(work, "c")
	mkdirs(t, a)
	at := func(root string) Where { return Where{Cwd: root, Home: home} }
	first := open(t, at(a), true)

	require.NoError(t, os.Rename(a, b))
	p := open(t, at(b), false)
	assert.Equal(t, first.ID, p.ID)
	assert.Len(t, p.Notes, 1, "a move is noted")
	assert.Len(t, open(t, at(b), true).Notes, 1)
	assert.Empty(t, open(t, at(b), true).Notes, "once")

	require.NoError(t, exec.Command("cp", "-a", b, c).Run())
	_, err := Open(disk.OS, at(c), false)
	require.ErrorIs(t, err, ErrNoProject)
	p = open(t, at(c), true)
	assert.NotEqual(t, first.ID, p.ID, "a copy gets an id of its own")
	assert.Len(t, p.Notes, 1)
	assert.Empty(t, open(t, at(c), true).Notes)
	assert.Equal(t, first.ID, open(t, at(b), true).ID)

	require.NoError(t, os.RemoveAll(filepath.Join(b, ".decree")))
	p = open(t, at(b), false)
	assert.Equal(t, first.ID, p.ID, "the store that remembers the root is adopted")
	assert.NoDirExists(t, filepath.Join(b, ".decree"))
	assert.Nil(t, p.Decree)
	p = open(t, at(b), true)
	assert.Equal(t, first.ID, p.ID)
	assert.FileExists(t, filepath.Join(b, ".decree/project.json"))

	// Another directory at the old path is not the old root.
	require.NoError(t, os.Rename(b, a))
	mkdirs(t, b)
	p = open(t, at(b), true)
	assert.NotEqual(t, first.ID, p.ID)
	assert.Equal(t, first.ID, open(t, at(a), true).ID)
}

// TestIdentityOfGoneRoot: the history of a root that is gone is continued by a tree without one, and is not
// taken for that of a tree which has one, though its project.json came there.
func TestIdentityOfGoneRoot(t *testing.T) {
	home, work := ground(t)
	gone, mine := filepath.Join(work, "gone"), filepath.Join(work, "mine")
	mkdirs(t, gone, mine)
	at := func(root string) Where { return Where{Cwd: root, Home: home} }
	other, own := open(t, at(gone), true), open(t, at(mine), true)
	file := filepath.Join(mine, ".decree/project.json")
	theirs, err := os.ReadFile(filepath.Join(gone, ".decree/project.json"))
	require.NoError(t, err)
	// Kept, so that no new directory gets its inode.
	require.NoError(t, os.Rename(gone, filepath.Join(home, "kept")))
	write(t, file, string(theirs))
	remembered, err := os.ReadFile(filepath.Join(other.StorePath, "store.json"))
	require.NoError(t, err)

	for _, create := range []bool{false, true} {
		p := open(t, at(mine), create)
		assert.Equal(t, own.ID, p.ID)
		require.Len(t, p.Notes, 1)
		assert.Contains(t, p.Notes[0], "it is that of "+gone+", which is gone")
		assert.Contains(t, p.Notes[0], "put "+string(theirs[:len(theirs)-1])+" into .decree/project.json")
	}
	assert.Empty(t, open(t, at(mine), true).Notes, "project.json is this tree's again")
	has, err := os.ReadFile(filepath.Join(other.StorePath, "store.json"))
	require.NoError(t, err)
	assert.Equal(t, remembered, has, "the other history still belongs to the root that is gone")

	// What the note says leads there, and back again.
	aside := filepath.Join(home, own.ID)
	require.NoError(t, os.Rename(own.StorePath, aside))
	write(t, file, string(theirs))
	assert.Equal(t, other.ID, open(t, at(mine), true).ID)
	require.NoError(t, os.Rename(aside, own.StorePath))
	assert.Equal(t, other.ID, open(t, at(mine), true).ID)
}

// TestMoveBack: a directory that was moved is the same one, though an earlier store remembers it where it is now.
func TestMoveBack(t *testing.T) {
	home, work := ground(t)
	a, b := filepath.Join(work, "a"), filepath.Join(work, "b")
	mkdirs(t, a)
	at := func(root string) Where { return Where{Cwd: root, Home: home} }
	open(t, at(a), true)
	require.NoError(t, os.RemoveAll(filepath.Join(a, ".decree")))
	require.NoError(t, os.Rename(a, b))
	second := open(t, at(b), true)
	require.NoError(t, os.Rename(b, a))
	assert.Equal(t, second.ID, open(t, at(a), true).ID)
}

func TestForeignIdentityIsNotBelieved(t *testing.T) {
	home, work := ground(t)
	mine, theirs := filepath.Join(work, "mine"), filepath.Join(work, "theirs")
	mkdirs(t, mine, theirs)
	p := open(t, Where{Cwd: mine, Home: home}, true)
	base := filepath.Dir(p.StorePath)
	identity := func(id, store string) string {
		b, err := json.Marshal(map[string]any{"version": 1, "id": id, "store": store})
		require.NoError(t, err)
		return string(b)
	}
	for name, content := range map[string]string{
		"empty": "", "not JSON": "{", "no version": `{"id":"` + p.ID + `","store":"/x"}`,
		"newer":         `{"version":2,"id":"` + p.ID + `","store":"` + base + `"}`,
		"short id":      identity("abc", base),
		"upper case":    identity("ABCDEF0123456789ABCDEF0123456789", base),
		"path as id":    identity("../../../../../../../../etc/xxxx", base),
		"relative base": identity(p.ID, "somewhere"), "unclean base": identity(p.ID, base+"/../decree"),
		"no such store": identity("00000000000000000000000000000000", base),
		"no store":      identity(p.ID, ""),
	} {
		t.Run(name, func(t *testing.T) {
			write(t, filepath.Join(theirs, ".decree/project.json"), content)
			for _, create := range []bool{false, true} {
				_, err := Open(disk.OS, Where{Cwd: theirs, Home: home}, create)
				require.Error(t, err)
				assert.Contains(t, err.Error()+HintOf(err), "project.json")
				if name == "newer" {
					assert.Contains(t, err.Error(), "version 2")
				}
			}
		})
	}
	t.Run("another project's", func(t *testing.T) {
		write(t, filepath.Join(theirs, ".decree/project.json"), identity(p.ID, base))
		q := open(t, Where{Cwd: theirs, Home: home}, true)
		assert.NotEqual(t, p.ID, q.ID)
	})
}

func TestLinksAreRefused(t *testing.T) {
	home, work := ground(t)
	mkdirs(t, filepath.Join(work, "elsewhere/runs"), filepath.Join(work, "a"), filepath.Join(work, "b/.decree"), filepath.Join(work, "c/.decree"))
	require.NoError(t, os.Symlink("../elsewhere", filepath.Join(work, "a/.decree")))
	require.NoError(t, os.Symlink("../../elsewhere/runs", filepath.Join(work, "b/.decree/runs")))
	require.NoError(t, os.Symlink("../../elsewhere/project.json", filepath.Join(work, "c/.decree/project.json")))
	write(t, filepath.Join(work, "elsewhere/project.json"), "{}")
	for _, name := range []string{"a", "b", "c"} {
		_, err := Open(disk.OS, Where{Cwd: filepath.Join(work, name), Home: home}, true)
		require.Error(t, err, name)
		assert.Equal(t, Refused, KindOf(err), name)
	}
	assert.Len(t, listing(t, filepath.Join(work, "elsewhere")), 3)
}

func TestEnsureDecreeBringsBackWhatACommandDeleted(t *testing.T) {
	home, root := ground(t)
	p := open(t, Where{Cwd: root, Home: home}, true)
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	require.NoError(t, p.EnsureDecree())
	assert.FileExists(t, filepath.Join(root, ".decree/project.json"))
	_, err := p.Decree.Stat("runs")
	require.NoError(t, err)
	write(t, filepath.Join(root, ".decree/.gitignore"), "mine\n")
	require.NoError(t, p.EnsureDecree())
	b, err := os.ReadFile(filepath.Join(root, ".decree/.gitignore"))
	require.NoError(t, err)
	assert.Equal(t, "mine\n", string(b))
}

func TestManyFirstCommandsMakeOneStore(t *testing.T) {
	home, root := ground(t)
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			p, err := Open(disk.OS, Where{Cwd: root, Home: home}, true)
			if assert.NoError(t, err) {
				ids[i] = p.ID
				p.Close()
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		assert.Equal(t, ids[0], id)
	}
	list, err := os.ReadDir(filepath.Join(home, ".local/share/decree"))
	require.NoError(t, err)
	assert.Len(t, list, 1)
}

func TestKindAndHint(t *testing.T) {
	inner := &Error{Kind: Integrity, Msg: "a: b", Advice: "look"}
	outer := &Error{Kind: Refused, Msg: "c", Err: inner}
	assert.Equal(t, "c: a: b", outer.Error())
	assert.Equal(t, Refused, KindOf(outer))
	assert.Equal(t, "look", HintOf(outer), "an outer error without a hint passes the inner one's on")
	assert.Equal(t, Failed, KindOf(errors.New("x")))
	assert.Empty(t, HintOf(errors.New("x")))
}

// TestAnotherDirectoryAtItsPath: a new directory at the path of a project is taken for it only where a command in place was at work, which may have made
// it: not beside an agent's turn or an isolated run that are open. The tree that was moved away keeps its history.
func TestAnotherDirectoryAtItsPath(t *testing.T) {
	for open1, same := range map[string]bool{
		`{"record":{"reason":"run"}}`:                        true,
		`{"record":`:                                         true,
		`{"record":{"reason":"turn"}}`:                       false,
		`{"record":{"reason":"run","isolated":"overlayfs"}}`: false,
	} {
		home, root := ground(t)
		w := Where{Cwd: root, Home: home}
		p := open(t, w, true)
		write(t, filepath.Join(p.StorePath, "open/2026112107020100-0.json"), open1)
		require.NoError(t, os.Rename(root, root+".old"))
		mkdirs(t, root)
		assert.Equal(t, same, open(t, w, true).ID == p.ID, open1)
		if !same {
			w.Cwd = root + ".old"
			assert.Equal(t, p.ID, open(t, w, true).ID, open1)
		}
	}
}
