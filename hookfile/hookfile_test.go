package hookfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/agent"
	"decree/disk"
	"decree/disk/disktest"
	"decree/project"
)

func fileOf(t *testing.T, name, home string) agent.File {
	files, err := agent.Files(name, agent.Places{Home: home, Getenv: func(string) string { return "" }}, "")
	require.NoError(t, err)
	return files[0]
}

func write(t *testing.T, path, text string, perm os.FileMode) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), perm))
	require.NoError(t, os.Chmod(path, perm))
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// names are all files and directories below dir.
func names(t *testing.T, dir string) []string {
	found := []string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if path != dir {
			found = append(found, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return found
}

const settings = "{\n  // mine\n  \"theme\": \"dark\"\n}\n"

// What was there comes back byte for byte, with its mode, and nothing is left beside it.
func TestInstallAndRemove(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	f, path := fileOf(t, "gemini", home), filepath.Join(home, ".gemini/settings.json")
	write(t, path, settings, 0o600)

	dry, err := Install(ctx, disk.OS, f, true)
	require.NoError(t, err)
	assert.True(t, dry.Changes())
	assert.Equal(t, settings, read(t, path), "a dry run changes nothing")

	c, err := Install(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, path+".before-decree", c.Copy)
	assert.Equal(t, string(dry.New), read(t, path))
	assert.Equal(t, settings, read(t, c.Copy))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.Equal(t, agent.FullyHooked, Look(disk.OS, f).Hooked)

	c, err = Install(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.False(t, c.Changes(), "twice is once")

	_, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, settings, read(t, path))
	assert.Equal(t, []string{".gemini", ".gemini/settings.json"}, names(t, home))
	c, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.False(t, c.Changes())
}

// Of a file that was edited since, only decree's own entries go.
func TestRemoveAfterAnEdit(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	f, path := fileOf(t, "gemini", home), filepath.Join(home, ".gemini/settings.json")
	write(t, path, settings, 0o644)
	_, err := Install(ctx, disk.OS, f, false)
	require.NoError(t, err)
	write(t, path, strings.Replace(read(t, path), "dark", "light", 1), 0o644)
	_, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(settings, "dark", "light", 1), read(t, path))
	assert.Equal(t, []string{".gemini", ".gemini/settings.json"}, names(t, home))
}

// A file that has the name of the copy already is somebody's own, and stays.
func TestNameOfTheCopyIsTaken(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	f, path := fileOf(t, "gemini", home), filepath.Join(home, ".gemini/settings.json")
	for n, was := range []string{settings, "  \n", ""} {
		write(t, path, was, 0o644)
		write(t, path+copySuffix, "mine", 0o600)
		_, err := Install(ctx, disk.OS, f, false)
		require.NoError(t, err)
		_, err = Remove(ctx, disk.OS, f, false)
		require.NoError(t, err)
		assert.Equal(t, was, read(t, path))
		assert.Equal(t, "mine", read(t, fmt.Sprintf("%s%s-%d", path, copySuffix, n+1)))
	}
	require.NoError(t, os.RemoveAll(home+"/.gemini"))
	write(t, path+copySuffix, "mine", 0o600)
	_, err := Install(ctx, disk.OS, f, false)
	require.NoError(t, err)
	_, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, []string{".gemini", ".gemini/settings.json.before-decree"}, names(t, home))
}

// Where there was nothing, nothing is left but the agent's own directory.
func TestNothingThereBefore(t *testing.T) {
	for _, name := range agent.Names() {
		home, ctx := t.TempDir(), context.Background()
		files, err := agent.Files(name, agent.Places{Home: home, Getenv: func(string) string { return "" }}, "")
		require.NoError(t, err)
		for _, f := range files {
			c, err := Install(ctx, disk.OS, f, false)
			require.NoError(t, err, name)
			assert.Empty(t, c.Copy)
			info, err := os.Stat(c.Path)
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(f.Perm), info.Mode())
		}
		for _, f := range files {
			_, err := Remove(ctx, disk.OS, f, false)
			require.NoError(t, err, name)
		}
		assert.Equal(t, files[0].Dir, filepath.Join(home, names(t, home)[len(names(t, home))-1]), name)
	}
}

// What is no plain file that its owner may write, or is not understood, stays as it is.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		about, want string
		make        func(t *testing.T, path string)
	}{
		{"two names", "the file has other names too (hard links)", func(t *testing.T, path string) {
			write(t, path, "{}", 0o644)
			require.NoError(t, os.Link(path, path+".b"))
		}},
		{"broken", "malformed JSON: line 1, column 2", func(t *testing.T, path string) { write(t, path, "{", 0o644) }},
		{"a link", "the file is a link", func(t *testing.T, path string) {
			write(t, path+".real", settings, 0o644)
			require.NoError(t, os.Symlink(path+".real", path))
		}},
		{"read-only", "the file is read-only", func(t *testing.T, path string) { write(t, path, settings, 0o444) }},
		{"a directory", "no regular file", func(t *testing.T, path string) { require.NoError(t, os.MkdirAll(path, 0o755)) }},
		{"endless", "bytes, more than settings have", func(t *testing.T, path string) {
			write(t, path, "", 0o644)
			require.NoError(t, os.Truncate(path, 1<<40))
		}},
	} {
		home := t.TempDir()
		path := filepath.Join(home, ".gemini/settings.json")
		c.make(t, path)
		before := names(t, home)
		_, err := Install(context.Background(), disk.OS, fileOf(t, "gemini", home), false)
		require.ErrorContains(t, err, c.want, c.about)
		require.ErrorContains(t, err, "nothing was changed", c.about)
		assert.Equal(t, project.Refused, project.KindOf(err), c.about)
		assert.Equal(t, before, names(t, home), c.about)
	}
}

// A tree must not lead decree out of it.
func TestLinkInATree(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(root, ".gemini")))
	files, err := agent.Files("gemini", agent.Places{Getenv: func(string) string { return "" }}, root)
	require.NoError(t, err)
	_, err = Install(context.Background(), disk.OS, files[0], false)
	require.ErrorContains(t, err, "a directory of it is a link, or none; nothing was changed")
	assert.Empty(t, names(t, elsewhere))
}

// Whatever step fails, or is the last of the process, the file is the old one or the new
// one, the fault is told, and the next install and remove end as if nothing had been.
func TestSweep(t *testing.T) {
	for _, old := range []string{settings, ""} {
		for _, die := range []bool{false, true} {
			n := 0
			for sweepStep(t, old, n, die) {
				n++
			}
			t.Logf("%d steps of %d bytes, death %t", n, len(old), die)
			require.Greater(t, n, 10, "each step was tried")
		}
	}
}

func sweepStep(t *testing.T, old string, n int, die bool) (fired bool) {
	home, ctx := t.TempDir(), context.Background()
	f, path := fileOf(t, "qwen", home), filepath.Join(home, ".qwen/settings.json")
	if old != "" {
		write(t, path, old, 0o644)
	}
	broken := errors.New("broken")
	d := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.N != n {
			return disktest.Action{}
		}
		fired = true
		if die {
			return disktest.Action{Die: true, Torn: st.Size / 2}
		}
		return disktest.Action{Err: broken}
	})
	_, err := Install(ctx, d, f, false)
	if !fired {
		require.NoError(t, err)
	}
	if text, rerr := os.ReadFile(path); rerr == nil {
		new, err := f.With([]byte(old))
		require.NoError(t, err)
		assert.Contains(t, []string{old, string(new)}, string(text), "step %d", n)
		if string(text) == old {
			assert.True(t, !fired || old != "", "step %d", n)
		}
	} else if err == nil {
		t.Errorf("step %d: no file, and no error", n)
	}
	_, err = Install(ctx, disk.OS, f, false)
	require.NoError(t, err, "step %d", n)
	assert.Equal(t, agent.FullyHooked, Look(disk.OS, f).Hooked, "step %d", n)
	_, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err, "step %d", n)
	want := []string{".qwen"}
	if old != "" {
		assert.Equal(t, old, read(t, path), "step %d", n)
		want = append(want, ".qwen/settings.json")
	}
	assert.Equal(t, want, names(t, home), "step %d", n)
	return fired
}

// Installs at once, and somebody who writes the file meanwhile, all end well.
func TestAtOnce(t *testing.T) {
	home, ctx := t.TempDir(), context.Background()
	f, path := fileOf(t, "gemini", home), filepath.Join(home, ".gemini/settings.json")
	write(t, path, settings, 0o644)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := Install(ctx, disk.OS, f, false)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	assert.Equal(t, agent.FullyHooked, Look(disk.OS, f).Hooked)
	_, err := Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, settings, read(t, path))

	edited := strings.Replace(settings, "dark", "light", 1)
	once := sync.OnceFunc(func() { write(t, path, edited, 0o644) })
	d := disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "Create" {
			once() // after it was read, before it is replaced
		}
		return disktest.Action{}
	})
	_, err = Install(ctx, d, f, false)
	require.NoError(t, err)
	_, err = Remove(ctx, disk.OS, f, false)
	require.NoError(t, err)
	assert.Equal(t, edited, read(t, path), "the other's edit stands")
}

// TestHeard: what is known of an agent is put together from events and trials, and what cannot be
// read says nothing.
func TestHeard(t *testing.T) {
	base := filepath.Join(t.TempDir(), "decree")
	at := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	event := func(h *Heard) { h.Event = &HeardEvent{Name: "Stop", Kind: "turn-end", At: at, Root: "/tree"} }
	require.Error(t, NoteHeard(disk.OS, base, "codex", false, event))
	require.Equal(t, Heard{}, ReadHeard(disk.OS, base, "codex"))
	require.NoError(t, NoteHeard(disk.OS, base, "codex", true, func(h *Heard) { h.Proof = &Proof{at, true} }))
	require.NoError(t, NoteHeard(disk.OS, base, "codex", false, event))
	h := ReadHeard(disk.OS, base, "codex")
	require.Equal(t, &Proof{at, true}, h.Proof)
	require.Equal(t, "Stop", h.Event.Name)
	require.Equal(t, Heard{}, ReadHeard(disk.OS, base, "gemini"))
	require.NoError(t, os.WriteFile(filepath.Join(base, "agents", "codex.json"), []byte("{"), 0o600))
	require.Equal(t, Heard{}, ReadHeard(disk.OS, base, "codex"))
}

// TestLinkOfAUser's: root writes no hooks where a link in a user's home leads, unless that is the user's too.
func TestLinkOfAUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	const user = 4711
	home, roots := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chown(home, user, user))
	require.NoError(t, os.Symlink(roots, filepath.Join(home, ".claude")))
	f := fileOf(t, "claude", home)
	_, err := Install(context.Background(), disk.OS, f, false)
	require.ErrorContains(t, err, "belongs to another user than "+home)
	list, err := os.ReadDir(roots)
	require.NoError(t, err)
	require.Empty(t, list)

	require.NoError(t, os.Chown(roots, user, user))
	_, err = Install(context.Background(), disk.OS, f, false)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(roots, "settings.json"))

	require.NoError(t, os.Remove(filepath.Join(home, ".claude")))
	_, err = Install(context.Background(), disk.OS, f, false)
	require.NoError(t, err, "a directory that is made")
}
