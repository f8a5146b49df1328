package recorder

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/tree"
)

func (b *bench) tar(p func(r *Recorder) Point) []byte {
	b.t.Helper()
	return with(b, func(r *Recorder) ([]byte, error) {
		var buf bytes.Buffer
		_, err := r.ExportTar(context.Background(), &buf, p(r))
		return buf.Bytes(), err
	})
}

func record(t *testing.T, r *Recorder, id string) *history.Record {
	t.Helper()
	rec, err := r.History().Get(id)
	require.NoError(t, err)
	return rec
}

func TestExportTar(t *testing.T) {
	b := newBench(t)
	populate(b.root, rand.New(rand.NewSource(4)))
	b.write("sub/ünï \xff name", "bytes")
	b.write(strings.Repeat("long/", 40)+"file", "deep")
	require.NoError(t, os.Symlink("sub/nowhere", filepath.Join(b.root, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(b.root, "hollow"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(b.root, "hollow"), 0o750))
	rec := b.checkpoint(CheckpointOptions{})
	at := func(r *Recorder) Point { return Point{Record: record(t, r, rec.ID)} }
	data := b.tar(at)
	require.Equal(t, data, b.tar(at), "one state, one sequence of bytes")

	want := map[tree.Path]tree.Entry{}
	with(b, func(r *Recorder) (any, error) {
		seq, err := r.History().Tree(rec.Before)
		require.NoError(t, err)
		for it, err := range seq {
			require.NoError(t, err)
			want[it.Path] = it.Entry
		}
		return nil, nil
	})
	tr, last := tar.NewReader(bytes.NewReader(data)), tree.Path("")
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		name := tree.Path(strings.TrimSuffix(h.Name, "/"))
		require.Less(t, last, name)
		last = name
		e, known := want[name]
		require.True(t, known, name)
		delete(want, name)
		require.Equal(t, rec.Started.Truncate(time.Second), h.ModTime.UTC())
		switch e.Type {
		case tree.Dir:
			require.Equal(t, byte(tar.TypeDir), h.Typeflag)
			require.EqualValues(t, e.Mode, h.Mode)
		case tree.Symlink:
			require.Equal(t, e.Target, h.Linkname)
		default:
			body, err := io.ReadAll(tr)
			require.NoError(t, err)
			require.Equal(t, e.SHA256, tree.Sum(body))
			require.EqualValues(t, e.Mode, h.Mode)
		}
	}
	require.Empty(t, want)
}

// TestExportStream feeds the stream to git, where it is installed, and compares
// the trees it makes with the records', file by file.
func TestExportStream(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	for seed := range int64(min(seeds(t), 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { streamOnce(t, seed) })
	}
}

func streamOnce(t *testing.T, seed int64) {
	b := newBench(t)
	populate(b.root, rand.New(rand.NewSource(seed)))
	for i := range int64(3) {
		b.run(seed*10+i, 0, nil)
	}
	b.revert("last")
	b.run(0, 0, func(o *RunOptions) { o.Args = []string{"/bin/sh", "-c", "rm -rf ./*; mkdir a; echo x >a/b; ln -s a l"} })
	b.run(0, 0, func(o *RunOptions) {
		o.Args = []string{"/bin/sh", "-c", "rm -r a l; echo now a file >a; mkdir l; echo in >l/f; echo '\"quoted'>'\"q'; echo 1 >'new\nline'; chmod +x a"}
	})
	b.checkpoint(CheckpointOptions{Description: "same <tree>\tagain"})
	b.run(seed, 3, nil) // put back
	with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Restore(context.Background(), RestoreOptions{Ref: "last~5", Yes: true})
	})
	stream := with(b, func(r *Recorder) ([]byte, error) {
		var buf bytes.Buffer
		_, err := r.ExportStream(context.Background(), &buf, nil, nil)
		return buf.Bytes(), err
	})
	repo := filepath.Join(b.base, "repo")
	git := func(in []byte, args ...string) []byte {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "core.quotePath=false"}, args...)...)
		cmd.Stdin = bytes.NewReader(in)
		cmd.Env = append(os.Environ(), "HOME="+b.base, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
		return out
	}
	require.NoError(t, os.Mkdir(repo, 0o755))
	git(nil, "init", "-q")
	git(stream, "fast-import", "--quiet")
	git(nil, "fsck", "--strict", "--no-dangling")

	r := b.open()
	defer r.Close()
	all, err := r.History().List(history.ListOptions{})
	require.NoError(t, err)
	taken := map[string]int{}
	ref := func(at time.Time) string {
		name := "refs/decree/" + at.UTC().Format("2006-01-02T15-04-05Z")
		if taken[name]++; taken[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, taken[name])
		}
		return name
	}
	for _, rec := range slices.Backward(all.Records) {
		if observedWhole(rec) {
			requireGitTree(t, r, Point{Record: rec}, ref(rec.Started), git)
		}
		if !observedWhole(rec) || treeAfter(rec) != rec.Before {
			requireGitTree(t, r, Point{Record: rec, After: true}, ref(rec.Ended), git)
		}
	}
	refs := strings.Fields(string(git(nil, "for-each-ref", "--format=%(refname)")))
	n := 0
	for _, k := range taken {
		n += k
	}
	require.Len(t, refs, n, "no other ref")
}

// requireGitTree compares a commit's files with those of a point.
func requireGitTree(t *testing.T, r *Recorder, p Point, ref string, git func([]byte, ...string) []byte) {
	t.Helper()
	want := map[tree.Path]string{}
	seq, err := r.entries(p)
	require.NoError(t, err)
	for it, err := range seq {
		require.NoError(t, err)
		switch {
		case it.Entry.Type == tree.Symlink:
			want[it.Path] = "120000 " + tree.Sum([]byte(it.Entry.Target)).String()
		case it.Entry.Type == tree.Dir:
		case it.Entry.Mode&0o100 != 0:
			want[it.Path] = "100755 " + it.Entry.SHA256.String()
		default:
			want[it.Path] = "100644 " + it.Entry.SHA256.String()
		}
	}
	have := map[tree.Path]string{}
	for _, line := range strings.Split(strings.TrimSuffix(string(git(nil, "ls-tree", "-r", "-z", ref)), "\x00"), "\x00") {
		head, path, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		f := strings.Fields(head)
		have[tree.Path(path)] = f[0] + " " + tree.Sum(git(nil, "cat-file", "blob", f[2])).String()
	}
	require.Equal(t, want, have, "%s of %s", ref, p.Record.ID)
}
