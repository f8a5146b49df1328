package recorder

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/manifest"
	"decree/patch"
	"decree/project"
	"decree/tree"
)

// testdata/store1.tar.zst is a tree and its store as the last decree before version 2 of
// the store made them: checkpoints, labels, 40 runs of which each changed a little, runs
// that were put back, kept and interrupted, changed kinds, odd names, set-user-ID, whole and
// partial reverts, an apply, restores of some paths, a message done, a pruned log, and an
// open record whose process is gone.

// oldStore unpacks it.
func oldStore(b *bench) {
	b.t.Helper()
	require.NoError(b.t, os.RemoveAll(b.root))
	f, err := os.Open("testdata/store1.tar.zst")
	require.NoError(b.t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(b.t, err)
	defer z.Close()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(b.t, err)
		to := filepath.Join(b.base, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			require.NoError(b.t, os.MkdirAll(to, 0o700))
		case tar.TypeSymlink:
			require.NoError(b.t, os.Symlink(h.Linkname, to))
			continue
		case tar.TypeLink:
			require.NoError(b.t, os.Link(filepath.Join(b.base, h.Linkname), to))
			continue
		default:
			data, err := io.ReadAll(in)
			require.NoError(b.t, err)
			text := strings.ReplaceAll(string(data), "/sample/", b.base+"/")
			require.NoError(b.t, os.WriteFile(to, []byte(text), 0o600))
		}
		require.NoError(b.t, os.Chmod(to, os.FileMode(h.Mode&0o777)|mode(h.Mode)))
	}
	b.clk = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
}

func mode(bits int64) (m fs.FileMode) {
	if bits&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	return m
}

func openOldStore(b *bench, d disk.Disk) (r *Recorder, notes []string, err error) {
	r, err = Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk:     d,
			Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
			Location: time.UTC,
			Clock:    func() time.Time { b.clk = b.clk.Add(time.Second); return b.clk },
			Note:     func(n string) { notes = append(notes, n) },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
	return r, notes, err
}

// requireConverted holds that every record has its trees: what manifest.json was made of
// them is what was recorded when they were kept in the old form.
func requireConverted(t *testing.T, r *Recorder) {
	t.Helper()
	logged, err := r.history.Logged()
	require.NoError(t, err)
	require.Len(t, logged, 33)
	open, bad, err := r.history.ListOpen()
	require.NoError(t, err)
	require.Empty(t, bad)
	for _, o := range open {
		logged = append(logged, o.Record)
	}
	require.Len(t, logged, 34)
	for _, rec := range logged {
		pr, pw := io.Pipe()
		go func() { pw.CloseWithError(r.history.WriteManifest(rec, pw)) }()
		sum, err := sumOf(t.Context(), pr)
		require.NoError(t, err, rec.ID)
		require.Equal(t, rec.ManifestSHA256, sum, rec.ID)
		require.NoError(t, r.history.VerifyTree(rec.Before))
		if !rec.After.IsZero() {
			require.NoError(t, r.history.VerifyTree(rec.After))
		}
		if rec.DiffSHA256.IsZero() || rec.Status == history.StatusOpen {
			continue
		}
		var facts []tree.Change
		f, err := r.history.OpenStored(rec.ID, diffFile)
		require.NoError(t, err)
		require.NoError(t, history.Facts(f, func(s *patch.Section) bool {
			facts = append(facts, tree.Change{Path: s.Path, Old: s.Old, New: s.New})
			return true
		}))
		f.Close()
		facts, err = manifest.Merge(facts)
		require.NoError(t, err)
		changes, err := r.history.Compare(rec.Before, rec.After)
		require.NoError(t, err)
		require.Equal(t, len(facts), len(changes), rec.ID)
		for i := range facts {
			require.Equal(t, facts[i].Path, changes[i].Path)
		}
	}
}

func TestConvertStore(t *testing.T) {
	b := newBench(t)
	oldStore(b)
	r, notes, err := openOldStore(b, disk.OS)
	require.NoError(t, err)
	require.Contains(t, strings.Join(notes, "\n"), "the store was converted to version 2")
	requireConverted(t, r)
	require.NoError(t, r.Close())
	r, notes, err = openOldStore(b, disk.OS)
	require.NoError(t, err)
	require.NotContains(t, strings.Join(notes, "\n"), "converted")
	requireConverted(t, r)
	require.NoError(t, r.Close())

	// The open run is recorded, and all goes on as if nothing had been converted.
	ctx := context.Background()
	with(b, func(r *Recorder) (*history.Record, error) { return r.Checkpoint(ctx, CheckpointOptions{}) })
	now := snapshot(t, b.root)
	with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Restore(ctx, RestoreOptions{Ref: "start", Yes: true})
	})
	require.NotEqual(t, now, snapshot(t, b.root))
	b.revert("last")
	require.Equal(t, now, snapshot(t, b.root))
	with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Restore(ctx, RestoreOptions{Ref: "second", Yes: true})
	})
	b.revert("2026112203360408-0") // a revert
	b.apply("2026112203360408-0")
	with(b, func(r *Recorder) (*MoveResult, error) {
		return r.Restore(ctx, RestoreOptions{Ref: "second", DryRun: true})
	})
	with(b, func(r *Recorder) (*Collected, error) { return r.Gc(ctx) })
	stores, err := filepath.Glob(filepath.Join(b.base, "store", "*", "queue.json"))
	require.NoError(t, err)
	require.Len(t, stores, 1)
	require.NoError(t, os.Remove(stores[0])) // that of a message done, which no bench has
	b.requireSound()
	with(b, func(r *Recorder) (any, error) {
		found, err := r.Verify(ctx, VerifyOptions{All: true})
		require.Empty(t, found)
		return nil, err
	})
}

// TestConvertSweep makes each step of a conversion fail, or be the last one.
func TestConvertSweep(t *testing.T) {
	every := disktest.Stride(3)
	for _, die := range []bool{true, false} {
		for at := 0; ; at += every {
			b := newBench(t)
			oldStore(b)
			n, fired := 0, false
			r, _, err := openOldStore(b, disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
				if !s.Write {
					return disktest.Action{}
				}
				n++
				if n-1 != at {
					return disktest.Action{}
				}
				fired = true
				if die {
					return disktest.Action{Die: true, Torn: s.Size / 2}
				}
				return disktest.Action{Err: &fs.PathError{Op: s.Op, Path: s.Path, Err: errors.New("no luck")}}
			}))
			if err == nil {
				if !die {
					requireConverted(t, r)
				}
				_ = r.Close()
			}
			r, _, err = openOldStore(b, disk.OS)
			require.NoError(t, err, at)
			requireConverted(t, r)
			require.NoError(t, r.Close())
			if !fired {
				break
			}
			if die && at > 500 {
				t.Fatal("it does not end")
			}
		}
	}
}
