package recorder

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/tree"
)

const secret = "token=hunter2-correct-horse\n"

// secretBench has a secret in the trees and diffs of several records, and a
// copy of it at another path.
func secretBench(b *bench) (ids []string) {
	b.t.Helper()
	script := func(text string) string {
		return b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", text} }).Record.ID
	}
	b.write("conf/.env", "token=none\n")
	b.write("empty", "")
	outside := filepath.Join(b.base, "secret")
	require.NoError(b.t, os.WriteFile(outside, []byte(secret), 0o600))
	ids = append(ids, script("cp "+outside+" conf/.env; echo one >other"))
	ids = append(ids, script("cp conf/.env copy; echo two >other"))
	ids = append(ids, script("rm conf/.env copy"))
	b.write("large", noise(3, 100_000))
	b.checkpoint(CheckpointOptions{})
	return ids
}

func (b *bench) forget(paths ...tree.Path) *Forgetting {
	b.t.Helper()
	return with(b, func(r *Recorder) (*Forgetting, error) {
		return r.Forget(context.Background(), ForgetOptions{Paths: paths, Yes: true})
	})
}

// holds says in which files below the bench's directories text stands, packs
// being written without compression where they are small.
func (b *bench) holds(text string) (found []string) {
	b.t.Helper()
	for _, dir := range []string{"store", "tree/.decree"} {
		err := filepath.WalkDir(filepath.Join(b.base, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(text)) {
				found = append(found, path)
			}
			return err
		})
		require.NoError(b.t, err)
	}
	return found
}

func TestForget(t *testing.T) {
	b := newBench(t)
	ids := secretBench(b)
	require.NotEmpty(t, b.holds("hunter2"))
	state := snapshot(t, b.root)

	would := with(b, func(r *Recorder) (*Forgetting, error) {
		return r.WouldForget([]tree.Path{"conf"})
	})
	require.Len(t, would.Contents, 2)
	require.Equal(t, ids, would.Records)
	require.Equal(t, []tree.Path{"copy"}, would.Also)
	require.NotEmpty(t, b.holds("hunter2"), "a dry run changes nothing")

	r := b.open()
	_, err := r.Forget(context.Background(), ForgetOptions{Paths: []tree.Path{"conf"}})
	require.Equal(t, project.Refused, project.KindOf(err))
	_, err = r.Forget(context.Background(), ForgetOptions{Paths: []tree.Path{"conf", "nothing"}, Yes: true})
	require.Equal(t, project.NotFound, project.KindOf(err))
	require.NoError(t, r.Close())
	require.NotEmpty(t, b.holds("hunter2"))

	did := b.forget("conf")
	require.Equal(t, would.Contents, did.Contents)
	require.Empty(t, b.holds("hunter2"))
	require.Equal(t, state, snapshot(t, b.root), "the tree is not touched")
	b.requireSound()

	for _, id := range []string{ids[0], ids[2]} {
		r := b.open()
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{id}, Force: true, Yes: true})
		require.Equal(t, project.Integrity, project.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "forgotten")
		_, err = r.Restore(context.Background(), RestoreOptions{Ref: ids[1], Yes: true})
		require.Equal(t, project.Integrity, project.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "forgotten")
		require.NoError(t, r.Close())
		require.Equal(t, state, snapshot(t, b.root))
	}
	with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Revert(context.Background(), MoveOptions{Refs: []string{ids[1]}, Paths: []tree.Path{"other"}})
	})
	got, err := os.ReadFile(filepath.Join(b.root, "other"))
	require.NoError(t, err)
	require.Equal(t, "one\n", string(got), "other paths still go")
	require.Empty(t, b.forget("conf").Contents, "nothing left to forget")
}

// TestForgottenAndRecordedAgain: what is in the tree is stored again, whatever
// was forgotten, and can be taken back.
func TestForgottenAndRecordedAgain(t *testing.T) {
	b := newBench(t)
	b.write(".env", secret)
	b.write("f", "x")
	b.checkpoint(CheckpointOptions{})
	did := b.forget(".env")
	require.Equal(t, []tree.Path{".env"}, did.InTree)
	require.Empty(t, b.holds("hunter2"))
	res := b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "echo gone >.env"} })
	b.revert(res.Record.ID)
	got, err := os.ReadFile(filepath.Join(b.root, ".env"))
	require.NoError(t, err)
	require.Equal(t, secret, string(got))
	b.requireSound()
	b.forget(".env")
	require.Empty(t, b.holds("hunter2"))
	b.requireSound()
}

// TestForgetOutside: run.json names the outside.diff that there is after a forget.
func TestForgetOutside(t *testing.T) {
	b := newBench(t)
	b.write("a", "one\n")
	b.checkpoint(CheckpointOptions{})
	b.write(".env", secret) // by hand
	rec := b.checkpoint(CheckpointOptions{})
	b.forget(".env")
	require.Empty(t, b.holds("hunter2"))
	r := b.open()
	defer r.Close()
	files, err := r.History().RecordFiles(rec.ID)
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, history.OutsideFile, files[0].Name)
	got, err := r.History().ReadRun(rec.ID)
	require.NoError(t, err)
	found, ok := got.Outside()
	require.True(t, ok)
	require.Equal(t, files[0].SHA256, found.SHA256)
	was, _ := rec.Outside()
	require.Equal(t, was.Changes, found.Changes)
	require.NotEqual(t, was.SHA256, found.SHA256)
}

// TestForgetACopyOfTheHistorys: what is one object with a diff or a directory of a record
// stays, since without it nothing could be freed or forgotten any more.
func TestForgetACopyOfTheHistorys(t *testing.T) {
	b := newBench(t)
	b.write("a", "one\n")
	b.checkpoint(CheckpointOptions{})
	b.write("a", "two\n") // by hand
	rec := b.checkpoint(CheckpointOptions{})
	object := func(sum tree.Hash) string {
		r := b.open()
		defer r.Close()
		f, _, err := r.store.Open(sum)
		require.NoError(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		require.NoError(t, err)
		return string(data)
	}
	outside, err := os.ReadFile(filepath.Join(b.root, ".decree/runs", rec.ID, history.OutsideFile))
	require.NoError(t, err)
	b.write("copies/outside.patch", string(outside))
	b.write("copies/tree", object(rec.Before))
	b.checkpoint(CheckpointOptions{})
	for _, path := range []tree.Path{"copies/outside.patch", "copies/tree", "copies"} {
		r := b.open()
		_, err := r.Forget(context.Background(), ForgetOptions{Paths: []tree.Path{path}, Yes: true})
		require.ErrorContains(t, err, "of record "+rec.ID+", which needs them", path)
		require.Equal(t, project.Refused, project.KindOf(err))
		require.NoError(t, r.Close())
	}
	b.requireSound()
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
	b.forget("a") // which rewrites the diff: its copy is no part of the history then
	require.Len(t, b.forget("copies/outside.patch").Contents, 1)
	b.requireSound()
}

// TestFilesThatLookLikeDiffs: a command may write what it likes beside the files of its
// record, and over those of its earlier attempts: space is freed and secrets go all the same.
func TestFilesThatLookLikeDiffs(t *testing.T) {
	b := newBench(t)
	b.write("a", "one\n")
	b.write(".env", secret)
	const fact = `# decree: {"path":"q","op":"create","new":{"mode":"644","size":9,"sha256":"bb0179ced6d3000000000000000000000000000000000000000000000000000a"},"store":true,"binary":true}`
	b.run(0, 0, func(o *RunOptions) {
		o.Args = []string{"/bin/sh", "-c", `cd "$DECREE_RUN_DIR"; echo '# decree: {"path":' >torn.diff; echo '` + fact + `' >lost.diff
			echo '# decree: no JSON' >attempts/1/changes.diff; test $DECREE_ATTEMPT = 2`}
		o.Attempts = 2
	})
	b.requireSound()
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
	require.Len(t, b.forget(".env").Contents, 1)
	require.Empty(t, b.holds("hunter2"))
	b.requireSound()
}

// TestDamagedListOfForgotten: nobody's work has to wait for it.
func TestDamagedListOfForgotten(t *testing.T) {
	b := newBench(t)
	b.write(".env", secret)
	b.checkpoint(CheckpointOptions{})
	b.forget(".env")
	lists, err := filepath.Glob(filepath.Join(b.base, "store", "*", "forgotten.json"))
	require.NoError(t, err)
	require.Len(t, lists, 1)
	require.NoError(t, os.Truncate(lists[0], 9))
	b.write("a", "one\n")
	b.checkpoint(CheckpointOptions{})
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(context.Background()) })
}

// TestForgetBesideWhatIsNoDiff: what an attempt has made of an earlier one's diff may name the
// secret and be no diff: it is emptied, since nobody can say what of it holds the secret.
func TestForgetBesideWhatIsNoDiff(t *testing.T) {
	b := newBench(t)
	b.write("conf/.env", secret)
	b.checkpoint(CheckpointOptions{})
	sum := tree.Sum([]byte(secret))
	fact := `# decree: {"path":"conf/.env","op":"create","new":{"mode":"644","size":28,"sha256":"` + sum.String() + `"}}`
	run := b.run(0, 1, func(o *RunOptions) {
		o.Attempts = 3
		o.Args = []string{"/bin/sh", "-c", `echo $DECREE_ATTEMPT >a; at=$DECREE_RUN_DIR/attempts/1/changes.diff
[ $DECREE_ATTEMPT != 2 ] || { echo '# decree changes 1'; echo '` + fact + `'; cat conf/.env; } >$at; exit 1`}
	})
	require.NotEmpty(t, b.holds(secret))
	b.write("conf/.env", "none\n")
	b.forget("conf/.env")
	require.Empty(t, b.holds(secret))
	b.requireSound()
	require.Equal(t, "# decree changes 1\n", b.read(".decree/runs/"+run.Record.ID+"/attempts/1/changes.diff"))
}

// TestForgetBesideOneThatWaits: what an interrupted forget has left is done by the next one too,
// which runs while the recovery waits for an isolated run.
func TestForgetBesideOneThatWaits(t *testing.T) {
	b := newBench(t)
	b.write("first", "hunter1\n")
	b.write("second", "hunter2\n")
	b.run(0, 0, shell("cat first >>third; cat second >>fourth; rm third fourth"))
	listed := false
	b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		listed = listed || st.Op == "Rename" && strings.HasSuffix(st.To, "forgotten.json")
		if listed && st.Write && strings.Contains(st.Path, "/packs") {
			return disktest.Action{Err: syscall.ENOSPC}
		}
		return disktest.Action{}
	})
	r := b.open()
	_, err := r.Forget(t.Context(), ForgetOptions{Paths: []tree.Path{"first"}, Yes: true})
	require.ErrorContains(t, err, "not forgotten yet")
	require.NoError(t, r.Close())
	b.disk = nil
	require.NotEmpty(t, b.holds("hunter1"))
	r = b.open()
	release, err := r.project.Lease("2026112107020500-9", project.Holder{Run: "2026112107020500-9", Isolated: true})
	require.NoError(t, err)
	b.forget("second")
	release()
	require.NoError(t, r.Close())
	require.Empty(t, b.holds("hunter2"))
	require.Empty(t, b.holds("hunter1"))
	b.checkpoint(CheckpointOptions{})
	b.requireSound()
}
