//go:build unix

package recorder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
)

// yard is a tree of small files, 20 a directory, with a recorder: whole
// operations on the file system of TMPDIR, flushed as always.
type yard struct {
	b          testing.TB
	root, base string
	files      []string
	size       int64
	stores     int
	clock      time.Time
	round      int
}

// yards makes the trees of each size when the first of their benchmarks asks.
func yards(b *testing.B, run func(n int, of func() *yard)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		var y *yard
		run(n, func() *yard {
			if y == nil {
				y = newYard(b, n)
			}
			return y
		})
	}
}

func newYard(b testing.TB, n int) *yard {
	base := b.TempDir()
	y := &yard{b: b, base: base, root: filepath.Join(base, "tree"), clock: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	for i := range n {
		dir := filepath.Join(y.root, fmt.Sprintf("module%03d/package%05d", i/2000, i/20))
		if i%20 == 0 {
			require.NoError(b, os.MkdirAll(dir, 0o755))
		}
		path := filepath.Join(dir, fmt.Sprintf("file_%06d.go", i))
		data := fmt.Appendf(nil, "package p%d\n\n// Value is the %d-th of its kind.\nconst Value = %d\n", i/20, i, i*i)
		require.NoError(b, os.WriteFile(path, data, 0o644))
		y.files, y.size = append(y.files, path), y.size+int64(len(data))
	}
	return y
}

// do opens a recorder for one operation, as each command does.
func (y *yard) do(op func(r *Recorder) error) {
	r, err := Open(context.Background(), Options{
		ReaderOptions: ReaderOptions{
			Disk:     disk.OS,
			Where:    project.Where{RootFlag: y.root, Cwd: y.root, Home: filepath.Join(y.base, "home"), StoreEnv: filepath.Join(y.base, fmt.Sprintf("store%d", y.stores))},
			Location: time.UTC,
			Clock:    func() time.Time { y.clock = y.clock.Add(time.Second); return y.clock },
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"},
	})
	require.NoError(y.b, err)
	require.NoError(y.b, op(r))
	require.NoError(y.b, r.Close())
}

func (y *yard) checkpoint() (id string) {
	y.do(func(r *Recorder) error {
		rec, err := r.Checkpoint(context.Background(), CheckpointOptions{})
		if err == nil {
			id = rec.ID
		}
		return err
	})
	return id
}

// run records command.
func (y *yard) run(command ...string) (id string) {
	null, err := os.Open(os.DevNull)
	require.NoError(y.b, err)
	defer null.Close()
	y.do(func(r *Recorder) error {
		res, err := r.Run(context.Background(), RunOptions{Args: command, Dir: y.root, Stdin: null, Env: os.Environ(), Grace: time.Second, Yes: true})
		if err == nil {
			id = res.Record.ID
		}
		return err
	})
	return id
}

// change appends a line to percent of the files.
func (y *yard) change(percent int) {
	y.round++
	for i, path := range y.files {
		if i%100 >= percent {
			continue
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(y.b, err)
		_, err = fmt.Fprintf(f, "// round %d\n", y.round)
		require.NoError(y.b, err)
		require.NoError(y.b, f.Close())
	}
}

// changing is a run that changes percent of the files: a script that the
// benchmark itself wrote, so that the recorder sees it done by a command.
func (y *yard) changing(percent int) string {
	y.round++
	list := filepath.Join(y.base, "list")
	f, err := os.Create(list)
	require.NoError(y.b, err)
	for i, path := range y.files {
		if i%100 < percent {
			fmt.Fprintln(f, path)
		}
	}
	require.NoError(y.b, f.Close())
	return y.run("sh", "-c", fmt.Sprintf(`while read -r f; do echo "// round %d" >> "$f"; done < '%s'`, y.round, list))
}

// BenchmarkCold is the first capture of a tree, with a store of its own.
func BenchmarkCold(b *testing.B) {
	yards(b, func(n int, of func() *yard) {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			y := of()
			b.SetBytes(y.size)
			b.ReportAllocs()
			cpu := &processor{b: b}
			cpu.since = cpu.now()
			for b.Loop() {
				cpu.pause()
				y.stores++
				require.NoError(b, os.RemoveAll(filepath.Join(y.root, ".decree")))
				cpu.resume()
				y.checkpoint()
			}
			cpu.report()
		})
	})
}

// BenchmarkCheckpoint is a capture after percent of the files were changed, its
// record and all.
func BenchmarkCheckpoint(b *testing.B) {
	each(b, []int{0, 1, 10}, func(b *testing.B, y *yard, cpu *processor, percent int) {
		y.checkpoint()
		cpu.since = cpu.now()
		for b.Loop() {
			cpu.pause()
			y.change(percent)
			cpu.resume()
			y.checkpoint()
		}
	})
}

// BenchmarkRun is a run of a command that changes nothing: both walks and the record.
func BenchmarkRun(b *testing.B) {
	each(b, []int{0}, func(b *testing.B, y *yard, cpu *processor, _ int) {
		y.checkpoint()
		cpu.since = cpu.now()
		for b.Loop() {
			y.run("true")
		}
	})
}

// BenchmarkRevert takes a run of percent changed files back; it is applied again
// in between.
func BenchmarkRevert(b *testing.B) {
	each(b, []int{1, 10}, func(b *testing.B, y *yard, cpu *processor, percent int) {
		id := y.changing(percent)
		cpu.since = cpu.now()
		for b.Loop() {
			y.revert(id)
			cpu.pause()
			y.apply(id)
			cpu.resume()
		}
	})
}

// BenchmarkApply brings a run back that was taken back.
func BenchmarkApply(b *testing.B) {
	each(b, []int{1, 10}, func(b *testing.B, y *yard, cpu *processor, percent int) {
		id := y.changing(percent)
		y.revert(id)
		cpu.since = cpu.now()
		for b.Loop() {
			y.apply(id)
			cpu.pause()
			y.revert("last")
			cpu.resume()
		}
	})
}

// BenchmarkRestore makes a tree of which percent differ equal to a record.
func BenchmarkRestore(b *testing.B) {
	each(b, []int{1, 10}, func(b *testing.B, y *yard, cpu *processor, percent int) {
		id := y.checkpoint()
		cpu.since = cpu.now()
		for b.Loop() {
			cpu.pause()
			y.change(percent)
			cpu.resume()
			y.do(func(r *Recorder) error {
				_, err := r.Restore(context.Background(), RestoreOptions{Ref: id, Yes: true})
				return err
			})
		}
	})
}

func (y *yard) revert(ref string) {
	y.do(func(r *Recorder) error {
		_, err := r.Revert(context.Background(), MoveOptions{Refs: []string{ref}})
		return err
	})
}

func (y *yard) apply(ref string) {
	y.do(func(r *Recorder) error {
		_, err := r.Apply(context.Background(), MoveOptions{Refs: []string{ref}})
		return err
	})
}

func each(b *testing.B, percents []int, run func(b *testing.B, y *yard, cpu *processor, percent int)) {
	yards(b, func(n int, of func() *yard) {
		for _, percent := range percents {
			if n*percent > 100_000 && testing.Short() {
				continue
			}
			b.Run(fmt.Sprintf("files=%d/changed=%d%%", n, percent), func(b *testing.B) {
				y := of()
				b.ReportAllocs()
				cpu := &processor{b: b}
				run(b, y, cpu, percent)
				cpu.report()
			})
		}
	})
}
