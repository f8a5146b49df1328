package recorder

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
)

// put writes a file below .decree.
func (a *agents) put(at, text string) {
	a.t.Helper()
	to := filepath.Join(a.root, ".decree", at)
	require.NoError(a.t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(a.t, os.WriteFile(to, []byte(text), 0o644))
}

// ownNow are the user's own files in .decree and their contents.
func (a *agents) ownNow() map[string]string {
	a.t.Helper()
	now := map[string]string{}
	for _, dir := range []string{"", "inbox", "inbox/dead", "routines", "cron"} {
		list, err := os.ReadDir(filepath.Join(a.root, ".decree", dir))
		if !os.IsNotExist(err) {
			require.NoError(a.t, err)
		}
		for _, e := range list {
			if at := filepath.Join(dir, e.Name()); !e.IsDir() && !notOwn[at] {
				data, err := os.ReadFile(filepath.Join(a.root, ".decree", at))
				require.NoError(a.t, err)
				now[at] = string(data)
			}
		}
	}
	return now
}

// TestATurnThatDeletesDecree: what an agent's 'git clean -xfd' takes of .decree is there again when its turn has ended, whatever ends it, with
// what a person sent meanwhile and the plain files of the records. What is deleted by itself stays deleted.
func TestATurnThatDeletesDecree(t *testing.T) {
	all := map[string]string{"config.yml": "agents: {prompts: true}\n", "inbox/a.md": "a\n", "inbox/dead/b.md": "b\n", "routines/develop.sh": "true\n", "cron/n.md": "n\n"}
	without := func(names ...string) map[string]string {
		left := map[string]string{}
		for at, text := range all {
			left[at] = text
		}
		for _, name := range names {
			delete(left, name)
		}
		return left
	}
	a := newAgents(t)
	before := a.checkpoint()
	e := event("s", 100)
	remove := func(names ...string) {
		for _, name := range names {
			require.NoError(t, os.RemoveAll(filepath.Join(a.root, ".decree", name)))
		}
	}
	turn := func(text string, work func(), end func()) map[string]string {
		for at, text := range all {
			a.put(at, text)
		}
		require.NotNil(t, a.prompt(e, text))
		work()
		end()
		return a.ownNow()
	}
	ended := func() { require.NotNil(t, a.end(e)) }

	require.Equal(t, all, turn("sweep", func() { remove("") }, ended))
	require.DirExists(t, filepath.Join(a.root, ".decree", "runs", before.ID))
	require.Equal(t, all, turn("die", func() { remove(""); a.gone[100] = true }, func() { a.checkpoint(); a.gone[100] = false }))
	require.Equal(t, all, turn("sweep all but what git has", func() { remove("runs", "inbox", "project.json", "tmp", "cron") }, ended))
	require.Equal(t, all, turn("sweep what git does not know", func() { remove("config.yml", "routines", "cron") }, ended))
	require.Equal(t, all, turn("sweep what git does not know of it", func() { remove("config.yml", "cron") }, ended))
	require.Equal(t, without("inbox/a.md", "inbox/dead/b.md"), turn("the inbox", func() { remove("inbox") }, ended))
	require.Equal(t, without("cron/n.md", "routines/develop.sh", "inbox/dead/b.md"), turn("tidy", func() { remove("cron", "routines/develop.sh", "inbox/dead/b.md") }, ended))

	acts := func(acts ...project.Act) {
		with(a.bench, func(r *Recorder) (struct{}, error) {
			return struct{}{}, r.project.Act(func(note func(...project.Act) error) error { return note(acts...) })
		})
	}
	done := turn("done beside", func() {
		acts(project.Act{Path: []byte("inbox/a.md"), Gone: true}, project.Act{Path: []byte("inbox/new.md"), New: true, Mode: 0o644, Data: []byte("new\n")})
		remove("")
	}, ended)
	want := without("inbox/a.md")
	want["inbox/new.md"] = "new\n"
	require.Equal(t, want, done)

	remove("inbox/new.md")
	a.prompt(e, "open")
	with(a.bench, func(r *Recorder) (struct{}, error) {
		open, err := r.openTurns()
		require.NoError(t, err)
		require.Len(t, open, 1)
		require.Contains(t, open[0].Extra, extraOwn)
		return struct{}{}, nil
	})
	ended()
	a.checkpoint()
	with(a.bench, func(r *Recorder) (struct{}, error) {
		_, err := r.project.Store.OpenDir(history.OpenLogs)
		require.NoError(t, err)
		log, err := os.ReadDir(filepath.Join(r.project.StorePath, history.OpenLogs))
		for _, e := range log {
			require.NotEqual(t, project.ActsLog, e.Name(), "the log of acts goes with the turn")
		}
		return struct{}{}, err
	})
}
