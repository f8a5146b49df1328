package recorder

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// reader opens a Reader, whose clock and notes may be used by several goroutines.
func (b *bench) reader() *Reader {
	b.t.Helper()
	r, err := OpenReader(ReaderOptions{
		Disk:     disk.OS,
		Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
		Location: time.UTC, Clock: time.Now,
	})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, r.Close()) })
	return r
}

// lookAtAll asks a Reader for everything that it knows.
func lookAtAll(r *Reader) error {
	ctx := context.Background()
	list, err := r.History().List(history.ListOptions{})
	if err != nil {
		return err
	}
	newest, oldest := list.Records[0], list.Records[len(list.Records)-1]
	first := Point{Record: oldest}
	for _, look := range []func() error{
		func() error { _, err := r.History().Get(newest.ID); return err },
		func() error { _, err := r.History().Resolve("last", time.UTC); return err },
		func() error { _, err := r.History().LabelsOf(); return err },
		func() error {
			_, err := r.History().Past(history.PastOptions{Paths: []tree.Path{""}}, func(history.Moment) bool { return true })
			return err
		},
		func() error {
			_, err := r.History().ReadAudit(func(*history.Operation) error { return nil })
			return err
		},
		func() error { return r.Manifest(ctx, io.Discard, Point{Record: newest}) },
		func() error { _, err := r.At(newest.Started); return err },
		func() error {
			_, err := r.Diff(ctx, io.Discard, DiffOptions{From: first, To: Point{Record: newest}})
			return err
		},
		func() error {
			rc, _, err := r.Content(ctx, first, "stays")
			if err == nil {
				_, err = io.Copy(io.Discard, rc)
				rc.Close()
			}
			return err
		},
		func() error { _, err := r.Blame(ctx, "stays"); return err },
		func() error { _, err := r.Status(ctx); return err },
		func() error { _, err := r.Usage(); return err },
		func() error { _, err := r.Verify(ctx, VerifyOptions{Record: oldest}); return err },
		func() error { _, err := r.Waiting(); return err },
	} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// TestReaderBesideRuns looks with one Reader from 16 goroutines while runs and other
// records are made. Each new record is seen by the Reader that was opened before it.
func TestReaderBesideRuns(t *testing.T) {
	b := newBench(t)
	b.write("stays", "one\ntwo\n")
	b.checkpoint(CheckpointOptions{})
	r := b.reader()

	var done atomic.Bool
	var looked atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, 16)
	for range cap(errs) {
		group.Add(1)
		go func() {
			defer group.Done()
			for last := false; !last; looked.Add(1) {
				last = done.Load()
				if err := lookAtAll(r); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	for i := range 4 {
		b.write("changes", noise(i, 2000))
		run := b.run(int64(i), i%2, func(o *RunOptions) { o.Attempts = 1 })
		last, err := r.History().Resolve("last", time.UTC)
		require.NoError(t, err)
		require.Equal(t, run.Record.ID, last.ID, "a new record is seen at once")
		b.write("stays", "one\nmore\ntwo\n")
		require.Equal(t, b.checkpoint(CheckpointOptions{}).ID, newestOf(t, r).ID)
	}
	done.Store(true)
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, looked.Load(), int64(cap(errs)))
}

// TestBlameOfAFileThatIsWritten: somebody empties or shortens the file between the two readings
// of a blame, which is then of the one or the other.
func TestBlameOfAFileThatIsWritten(t *testing.T) {
	b := newBench(t)
	b.write("stays", "one\ntwo\n")
	b.checkpoint(CheckpointOptions{})
	b.write("stays", "one\nmore\ntwo\n")
	b.checkpoint(CheckpointOptions{})
	for _, text := range []string{"", "one\n"} {
		b.write("stays", "one\nmore\ntwo\n")
		opened := 0
		r, err := OpenReader(ReaderOptions{
			Disk: disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
				if st.Op == "Open" && st.Path == filepath.Join(b.root, "stays") {
					if opened++; opened == 3 { // its beginning was looked at, and its hash made
						b.write("stays", text)
					}
				}
				return disktest.Action{}
			}),
			Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
			Location: time.UTC, Clock: time.Now,
		})
		require.NoError(t, err)
		file, err := r.Blame(context.Background(), "stays")
		require.NoError(t, err)
		require.Equal(t, 3, opened)
		require.Equal(t, strings.Count(text, "\n"), file.Lines)
		require.NoError(t, r.Close())
	}
}

// TestBlameOfALargeBinary holds that a file that is no text is refused by its beginning: nothing reads the rest.
func TestBlameOfALargeBinary(t *testing.T) {
	b := newBench(t)
	b.write("large", "")
	b.checkpoint(CheckpointOptions{})
	require.NoError(t, os.Truncate(filepath.Join(b.root, "large"), 1<<30))
	opened := 0
	r, err := OpenReader(ReaderOptions{
		Disk: disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
			if st.Op == "Open" && st.Path == filepath.Join(b.root, "large") {
				opened++
			}
			return disktest.Action{}
		}),
		Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
		Location: time.UTC, Clock: time.Now,
	})
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Blame(context.Background(), "large")
	require.ErrorContains(t, err, "not a text file")
	require.Equal(t, 1, opened)
}

func newestOf(t *testing.T, r *Reader) *history.Record {
	t.Helper()
	list, err := r.History().List(history.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Records, 1)
	require.Empty(t, list.Warnings())
	return list.Records[0]
}

// TestReaderAfterUpheaval keeps a Reader open while records are removed, the store is
// written anew and .decree is deleted and made again.
func TestReaderAfterUpheaval(t *testing.T) {
	b := newBench(t)
	b.write("stays", "one\ntwo\n")
	b.checkpoint(CheckpointOptions{})
	r := b.reader()
	require.NoError(t, lookAtAll(r))
	for i := range 6 {
		b.write("f", noise(i, 3000))
		b.checkpoint(CheckpointOptions{Reason: "auto"})
	}
	b.prune(PruneOptions{Last: map[string]int{"auto": 1, "manual": 0}})
	with(b, func(w *Recorder) (*Collected, error) { return w.Gc(context.Background()) })
	require.NoError(t, lookAtAll(r))

	require.NoError(t, os.RemoveAll(filepath.Join(b.root, ".decree")))
	b.write("f", "after")
	rec := b.checkpoint(CheckpointOptions{})
	require.NoError(t, lookAtAll(r))
	plain, err := r.History().ReadRun(rec.ID)
	require.NoError(t, err, "the run directory in the new .decree is found")
	require.Equal(t, rec.ID, plain.ID)
}
