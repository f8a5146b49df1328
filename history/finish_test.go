package history

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"decree/disk"
	"decree/tree"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/project"
)

// begin opens a run and returns its open record.
func (w *world) begin() *Opened {
	w.t.Helper()
	r := w.draft()
	r.Reason, r.Status, r.Command, r.Cwd, r.Attempts = Run, StatusOpen, []string{"make"}, ".", 1
	r.Ended = time.Time{}
	o := &Opened{Record: r, Rules: []Rule{{".gitignore", tree.Sum([]byte("x"))}, {"caf\xe9/.gitignore", tree.Sum(nil)}}, Extra: map[string]json.RawMessage{"keep": json.RawMessage("true")}}
	require.NoError(w.t, w.Begin(o))
	require.NoError(w.t, w.BuildRun(r.ID, []RunFile{{Name: "run.json", Write: Bytes(r.JSON(nil))}, {Name: "manifest.json", Write: Bytes([]byte("{}\n"))}}))
	return o
}

// end is the closing of an open run with a diff.
func (w *world) end(o *Opened) Closing {
	w.t.Helper()
	r := *o.Record
	r.Status, r.ExitCode, r.Ended = StatusSucceeded, new(0), w.clock.Add(time.Second)
	r.DiffSHA256 = tree.Sum([]byte("the diff"))
	files, err := w.StoreFiles(w.t.Context(), w.shelf, r.ID, 0)
	require.NoError(w.t, err)
	return Closing{Record: &r, Files: files, Audit: Operation{Op: "run", Outcome: "done"}, Effects: o.Effects}
}

func TestLifeOfARun(t *testing.T) {
	w := newWorld(t)
	old := w.checkpoint()
	o := w.begin()
	id := o.Record.ID
	require.NoError(t, w.SetLeader(id, map[string]int{"pgid": 42}, false))

	w.reopen() // another process looks
	open, bad, err := w.ListOpen()
	require.NoError(t, err)
	assert.Empty(t, bad)
	assert.Equal(t, []*Opened{o}, open)
	var leader map[string]int
	ok, err := w.Leader(id, &leader)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, 42, leader["pgid"])
	assert.Equal(t, []string{id, old.ID}, ids(w.list().Records), "an open record is listed")
	assert.Empty(t, w.list().Warnings())
	last, err := w.Resolve("last", time.UTC)
	require.NoError(t, err)
	assert.Equal(t, old.ID, last.ID, "but is not the last one")

	require.NoError(t, w.ReplaceFile(id, "changes.diff", Bytes([]byte("the diff"))))
	require.NoError(t, w.ReplaceFile(id, "attempts/1/routine.log", Bytes([]byte("hello"))))
	c := w.end(o)
	assert.Len(t, c.Files, 2)
	require.NoError(t, w.End(c))
	assert.NoFileExists(t, w.stored("open/"+id+".json"))
	assert.NoFileExists(t, w.stored("open/"+id+".leader"))
	assert.Equal(t, string(c.Record.JSON(nil)), w.read(w.path("runs", id, "run.json")))
	left, err := os.ReadDir(w.path("tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
	w.reopen()
	got, err := w.Get(id)
	require.NoError(t, err)
	assert.Equal(t, c.Record, got)
	assert.Empty(t, w.list().Warnings())

	// All of it comes back from the store.
	before := w.read(w.path("runs", id, "run.json"))
	require.NoError(t, os.RemoveAll(w.path("runs")))
	lost, err := w.RestoreRun(id, false)
	require.NoError(t, err)
	assert.Empty(t, lost)
	assert.Equal(t, before, w.read(w.path("runs", id, "run.json")))
	assert.Equal(t, "hello", w.read(w.path("runs", id, "attempts/1/routine.log")))
	require.NoError(t, os.Remove(w.path("runs", id, "changes.diff")))
	f, err := w.OpenFile(id, "changes.diff")
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	assert.Equal(t, "the diff", string(b))
	_, err = w.OpenFile(id, "outside.diff")
	require.ErrorIs(t, err, fs.ErrNotExist)
	delete(w.shelf.objects, tree.Sum([]byte("the diff")))
	lost, err = w.RestoreRun(id, false)
	require.NoError(t, err)
	assert.Equal(t, []string{"changes.diff"}, lost)
}

func TestPrivateModes(t *testing.T) {
	w := newWorld(t)
	w.begin()
	w.checkpoint()
	require.NoError(t, w.Audit(Operation{Op: "x", Outcome: "done"}))
	for _, top := range []string{w.path("runs"), w.p.StorePath} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			require.NoError(t, err)
			st, err := d.Info()
			require.NoError(t, err)
			want := fs.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			assert.Equal(t, want, st.Mode().Perm(), path)
			return nil
		})
		require.NoError(t, err)
	}
}

// A death after the line: End does the rest, as often as it is called.
func TestEndAfterADeath(t *testing.T) {
	w := newWorld(t)
	undone := w.checkpoint()
	o := w.begin()
	o.Effects = Effects{Status: []StatusEffect{{ID: undone.ID, Status: StatusUndone, UndoneBy: o.Record.ID}, {ID: "2020010100000000-0", Status: StatusUndone}}, Labels: map[string]string{"mine": o.Record.ID}}
	require.NoError(t, w.Begin(o))
	c := w.end(o)
	l := &line{key: recordKey(c.Record), record: c.Record, files: c.Files}
	require.NoError(t, w.write(l)) // and dead
	w.reopen()
	open, _, err := w.ListOpen()
	require.NoError(t, err)
	require.Len(t, open, 1)
	done, err := w.Recorded(o.Record.ID)
	require.NoError(t, err)
	assert.True(t, done)
	assert.Equal(t, []string{o.Record.ID}, w.list().Edited, "run.json still says open")
	for range 3 {
		require.NoError(t, w.End(Closing{Record: open[0].Record, Effects: open[0].Effects, Audit: Operation{Op: "run", Outcome: "done"}}))
		w.reopen()
		assert.Empty(t, w.list().Warnings())
		got, err := w.Get(undone.ID)
		require.NoError(t, err)
		assert.Equal(t, []any{StatusUndone, o.Record.ID}, []any{got.Status, got.UndoneBy})
		labels, err := w.Labels()
		require.NoError(t, err)
		assert.Equal(t, map[string]string{"mine": o.Record.ID}, labels)
		rep, err := w.ReadAudit(nil)
		require.NoError(t, err)
		assert.Equal(t, 1, rep.Lines)
	}
	assert.Contains(t, w.read(w.path("runs", undone.ID, "run.json")), `"undone_by": "`+o.Record.ID)
}

func TestFinishAfterTheCommandDeletedDecree(t *testing.T) {
	w := newWorld(t)
	o := w.begin()
	require.NoError(t, os.RemoveAll(w.path()))
	assert.Equal(t, []string{o.Record.ID}, ids(w.list().Records))
	require.NoError(t, w.ReplaceFile(o.Record.ID, "changes.diff", Bytes([]byte("the diff"))))
	require.NoError(t, w.End(w.end(o)))
	assert.Empty(t, w.list().Warnings())
	assert.FileExists(t, w.path("project.json"))
}

func TestStatusOfOthers(t *testing.T) {
	w := newWorld(t)
	r := w.draft()
	r.Extra = []Field{{"later", json.RawMessage(`[1]`)}}
	require.NoError(t, w.End(Closing{Record: r}))
	line := w.read(w.stored(logFile))
	w.setStatus(r.ID, StatusUndone, "2026112107015900-7")
	text := w.read(w.stored(logFile))
	assert.True(t, strings.HasPrefix(text, line), "what stands there stays")
	assert.Contains(t, w.read(w.path("runs", r.ID, "run.json")), `"undone_by": "2026112107015900-7"`)
	w.setStatus(r.ID, StatusUndone, "2026112107015900-7")
	assert.Equal(t, text, w.read(w.stored(logFile)), "nothing to do")
	w.setStatus(r.ID, StatusSucceeded, "")
	got, err := w.Get(r.ID)
	require.NoError(t, err)
	assert.Equal(t, r, got, "unknown fields stay")
	assert.Equal(t, string(r.JSON(nil)), w.read(w.path("runs", r.ID, "run.json")))
	// A record that is in .decree/runs alone.
	require.NoError(t, os.Remove(w.stored(logFile)))
	w.reopen()
	w.setStatus(r.ID, StatusFailed, "")
	assert.Equal(t, string(r.JSON(nil)), w.read(w.path("runs", r.ID, "run.json")), "a foreign record is nobody's to change")
	assert.NoFileExists(t, w.stored(logFile))
}

// TestOneLineTellsAll: the line of a record says what it does to others, so that a death
// behind it loses nothing of that.
func TestOneLineTellsAll(t *testing.T) {
	w := newWorld(t)
	a, b := w.checkpoint(), w.checkpoint()
	before := w.read(w.stored(logFile))
	r := w.draft()
	r.Reason, r.Parent = Revert, a.ID
	require.NoError(t, w.End(Closing{Record: r, Effects: Effects{Status: []StatusEffect{{ID: a.ID, Status: StatusUndone, UndoneBy: r.ID}, {ID: b.ID, Status: StatusFailed}}}}))
	text := w.read(w.stored(logFile))
	require.True(t, strings.HasPrefix(text, before))
	require.Equal(t, 1, strings.Count(text[len(before):], "\n"))
	for cut := len(before); cut < len(text); cut += 17 { // a line that is torn says nothing
		w.put(w.stored(logFile), text[:cut])
		w.reopen()
		for _, id := range []string{a.ID, b.ID} {
			got, err := w.Get(id)
			require.NoError(t, err)
			require.Equal(t, StatusSucceeded, got.Status, cut)
		}
	}
	w.put(w.stored(logFile), text)
	w.reopen()
	want := ids(w.list().Records)
	require.Empty(t, w.list().Warnings())

	require.NoError(t, os.RemoveAll(w.path("runs")))
	w.reopen()
	rep, err := w.Repair()
	require.NoError(t, err)
	require.Len(t, rep.Restored, 3)
	w.reopen()
	require.Empty(t, w.list().Warnings())
	require.Equal(t, want, ids(w.list().Records))
	for id, s := range map[string]Status{a.ID: StatusUndone, b.ID: StatusFailed, r.ID: StatusSucceeded} {
		got, err := w.Get(id)
		require.NoError(t, err)
		require.Equal(t, s, got.Status)
		plain, err := w.ReadRun(id)
		require.NoError(t, err)
		require.Equal(t, got.JSON(nil), plain.JSON(nil))
	}

	// What a removed record has done to others stays, also when its line goes.
	require.NoError(t, w.Remove([]string{r.ID}))
	l, err := w.readOn()
	require.NoError(t, err)
	require.NoError(t, l.compact(w.p.Store))
	require.NotContains(t, w.read(w.stored(logFile)), `"reason":"revert"`)
	w.reopen()
	got, err := w.Get(a.ID)
	require.NoError(t, err)
	require.Equal(t, []any{StatusUndone, r.ID}, []any{got.Status, got.UndoneBy})
	require.Equal(t, []string{b.ID, a.ID}, ids(w.list().Records))
	require.Empty(t, w.list().Warnings())
}

// TestSecondLineOfARecord: earlier versions wrote a record's line again where its status
// changed.
func TestSecondLineOfARecord(t *testing.T) {
	w := newWorld(t)
	a, b := w.checkpoint(), w.checkpoint()
	w.setStatus(a.ID, StatusFailed, "")
	old := *a
	old.Status, old.UndoneBy = StatusUndone, b.ID
	require.NoError(t, w.write(&line{key: recordKey(a), record: &old}))
	w.reopen()
	got, err := w.Get(a.ID)
	require.NoError(t, err)
	require.Equal(t, &old, got)
	w.setStatus(a.ID, StatusSucceeded, "")
	got, err = w.Get(a.ID)
	require.NoError(t, err)
	require.Equal(t, a, got)
}

// TestRewrittenFiles: the hashes of files that were written anew are what counts of a
// record, and its line stays.
func TestRewrittenFiles(t *testing.T) {
	w := newWorld(t)
	o := w.begin()
	require.NoError(t, w.ReplaceFile(o.Record.ID, "changes.diff", Bytes([]byte("the diff"))))
	c := w.end(o)
	found, err := w.shelf.PutBytes([]byte("found"))
	require.NoError(t, err)
	require.NoError(t, c.Record.SetOutside(Outside{SHA256: found, Changes: Changes{Created: 1}}))
	c.Files[OutsideFile] = found
	require.NoError(t, w.End(c))
	was := w.read(w.stored(logFile))
	diff, err := w.shelf.PutBytes([]byte("a diff"))
	require.NoError(t, err)
	less, err := w.shelf.PutBytes([]byte("less"))
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, w.Rewrite(map[string]map[string]tree.Hash{o.Record.ID: {"changes.diff": diff, OutsideFile: less}}))
		w.reopen()
		text := w.read(w.stored(logFile))
		require.True(t, strings.HasPrefix(text, was))
		require.Equal(t, 2, strings.Count(text, "\n"), "once")
		got, err := w.Get(o.Record.ID)
		require.NoError(t, err)
		require.Equal(t, diff, got.DiffSHA256)
		out, ok := got.Outside()
		require.True(t, ok)
		require.Equal(t, Outside{SHA256: less, Changes: Changes{Created: 1}}, out)
		files, err := w.RecordFiles(o.Record.ID)
		require.NoError(t, err)
		require.Equal(t, []RecordFile{{"changes.diff", diff}, {OutsideFile, less}}, files)
		require.Equal(t, "a diff", w.read(w.path("runs", o.Record.ID, "changes.diff")))
		require.Equal(t, string(got.JSON(nil)), w.read(w.path("runs", o.Record.ID, "run.json")))
		require.Empty(t, w.list().Warnings())
	}
}

func TestAbandonAndSetAside(t *testing.T) {
	w := newWorld(t)
	o := w.begin()
	require.NoError(t, w.Abandon(o.Record.ID))
	assert.Empty(t, w.list().Records)
	assert.NoDirExists(t, w.path("runs", o.Record.ID))
	o = w.begin()
	w.put(w.stored("open/"+o.Record.ID+".json"), "{")
	open, bad, err := w.ListOpen()
	require.NoError(t, err)
	assert.Empty(t, open)
	assert.Equal(t, []string{o.Record.ID}, damagedIDs(bad))
	require.NoError(t, w.SetAside(o.Record.ID))
	_, bad, err = w.ListOpen()
	require.NoError(t, err)
	assert.Empty(t, bad)
	assert.FileExists(t, w.stored("open/"+o.Record.ID+".damaged"))
}

func TestOpenRecordsAreNotTrusted(t *testing.T) {
	w := newWorld(t)
	o := w.begin()
	path := w.stored("open/" + o.Record.ID + ".json")
	good := w.read(path)
	for name, text := range map[string]string{
		"newer": strings.Replace(good, `"version":1`, `"version":2`, 1), "no record": `{"version":1}`,
		"rule outside": strings.Replace(good, `"path":".gitignore"`, `"path":"../x"`, 1),
		"rule in .git": strings.Replace(good, `"path":".gitignore"`, `"path":".git/config"`, 1),
		"hash":         strings.Replace(good, tree.Sum(nil).String(), "00", 1),
		"another id":   strings.Replace(good, `"seq":0`, `"seq":1`, 1),
		"effect":       strings.Replace(good, `"extra":`, `"effects":{"status":[{"id":"../x","status":"undone"}]},"extra":`, 1),
	} {
		require.NotEqual(t, good, text, name)
		w.put(path, text)
		_, err := w.Opened(o.Record.ID)
		assert.Error(t, err, name)
	}
}

func TestRunFileNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"", ".", "..", "../x", "a/../b", "/x", "a//b", "a/", "a\x00b", "a/b/c/d/e", strings.Repeat("x", 300)} {
		assert.Error(t, w.BuildRun("2026112107015900-0", []RunFile{{Name: name, Write: Bytes(nil)}}), "%q", name)
		assert.Error(t, w.ReplaceFile("2026112107015900-0", name, Bytes(nil)), "%q", name)
	}
	left, err := os.ReadDir(w.path("tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestBuildRunLinks(t *testing.T) {
	w := newWorld(t)
	a, b := "2026112107015900-0", "2026112107015901-0"
	files := func(from string) []RunFile {
		return []RunFile{{Name: "manifest.json", Write: Bytes([]byte("same")), LinkFrom: from}}
	}
	require.NoError(t, w.BuildRun(a, files("2026112107015999-0")), "what is not there is written")
	require.NoError(t, w.BuildRun(b, files(a)))
	sa, err := os.Stat(w.path("runs", a, "manifest.json"))
	require.NoError(t, err)
	sb, err := os.Stat(w.path("runs", b, "manifest.json"))
	require.NoError(t, err)
	assert.True(t, os.SameFile(sa, sb))
	require.ErrorIs(t, w.BuildRun(a, nil), fs.ErrExist)
}

// TestCleanTmp: what this process or one that died before it has made is removed, and what
// others put there is moved aside with all that it holds, also under names like those.
func TestCleanTmp(t *testing.T) {
	w := newWorld(t)
	ctx, id := context.Background(), "2026112107015900-0"
	for range 2 { // the second dies before it has cleaned up after the first
		other, err := project.Open(disk.OS, w.where, true)
		require.NoError(t, err)
		unlock, err := other.Lock(ctx, project.Holder{}, 0)
		require.NoError(t, err)
		w.put(w.path("tmp", other.TmpName("file-"+id+"-run.json")), "x")
		lock := filepath.Join(other.StorePath, "lock.json")
		left, err := os.ReadFile(lock)
		require.NoError(t, err)
		unlock()
		other.Close()
		require.NoError(t, os.WriteFile(lock, left, 0o600))
	}
	unlock, err := w.p.Lock(ctx, project.Holder{}, 0)
	require.NoError(t, err)
	defer unlock()
	outside := filepath.Join(w.root, "outside")
	require.NoError(t, os.Mkdir(outside, 0o700))
	w.put(filepath.Join(outside, "keep"), "x")

	run := "tmp/" + w.p.TmpName("run-"+id)
	require.NoError(t, os.MkdirAll(w.path(run, "sub"), 0o700))
	w.put(w.path(run, "sub/f"), "x")
	require.NoError(t, os.Symlink(outside, w.path(run, "link")))
	require.NoError(t, os.Chmod(w.path(run, "sub"), 0o500))
	require.NoError(t, os.Mkdir(w.path("tmp", w.p.TmpName("gone-"+id)), 0o500))
	w.put(w.path("tmp", w.p.TmpName("manifest.json")), "x")
	for _, name := range []string{"clock-1z", "owner-1z"} {
		w.put(w.path("tmp", name), "")
	}

	files := []string{".env", "file-" + id + "-x", "capture-manifest.json", "message-0123456789abcdef", "clock-1", "owner-1", "0123456789abcdef-manifest.json", strings.Repeat("n", 255)}
	dirs := []string{"run-" + id, "gone-" + id, "txn-" + id}
	for _, name := range files {
		w.put(w.path("tmp", name), "mine")
	}
	for _, name := range dirs {
		require.NoError(t, os.Mkdir(w.path("tmp", name), 0o700))
		w.put(w.path("tmp", name, "run.json"), "mine")
		require.NoError(t, os.Chmod(w.path("tmp", name), 0o500))
	}
	require.NoError(t, w.CleanTmp())

	left, err := os.ReadDir(w.path("tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.FileExists(t, filepath.Join(outside, "keep"))
	moved, err := os.ReadDir(w.path("aside"))
	require.NoError(t, err)
	assert.Len(t, moved, len(files)+len(dirs))
	for _, name := range files {
		name = "tmp-" + name
		data, err := os.ReadFile(w.path("aside", name[:min(len(name), 200)]))
		require.NoError(t, err)
		assert.Equal(t, "mine", string(data))
	}
	for _, name := range dirs {
		assert.FileExists(t, w.path("aside", "tmp-"+name, "run.json"))
	}
	require.NoError(t, w.CleanTmp())
}
