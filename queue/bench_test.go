//go:build unix

package queue

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// bench is a tree with an inbox.
type bench struct {
	t    testing.TB
	base string
	root string
	mu   sync.Mutex // of what follows, which several jobs use
	clk  time.Time
	said []string
	more func(*Options)
	jobs int
}

func newBench(t testing.TB, files map[string]string) *bench {
	t.Helper()
	base := t.TempDir()
	b := &bench{t: t, base: base, root: filepath.Join(base, "tree"), clk: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC)}
	for _, dir := range []string{".decree/routines", ".decree/inbox"} {
		require.NoError(t, os.MkdirAll(filepath.Join(b.root, dir), 0o755))
	}
	b.put(files)
	return b
}

// put writes files; each is older than those after it in order of name.
func (b *bench) put(files map[string]string) {
	b.t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		path := filepath.Join(b.root, name)
		require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(b.t, os.WriteFile(path, []byte(files[name]), 0o644))
		at := time.Date(2026, 11, 20, 0, 0, i, 0, time.UTC)
		require.NoError(b.t, os.Chtimes(path, at, at))
	}
}

// message puts one message into the inbox.
func (b *bench) message(name, text string) { b.put(map[string]string{".decree/inbox/" + name: text}) }

func (b *bench) open(d disk.Disk) (*recorder.Recorder, error) {
	return recorder.Open(context.Background(), recorder.Options{
		ReaderOptions: recorder.ReaderOptions{
			Disk:     d,
			Where:    project.Where{RootFlag: b.root, Cwd: b.root, Home: filepath.Join(b.base, "home"), StoreEnv: filepath.Join(b.base, "store")},
			Location: time.UTC,
			Clock:    b.clock,
			Note:     b.say,
		},
		Create: true, Actor: history.Actor{User: "u", Host: "h"}, Beside: b.jobs > 1,
	})
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clk = b.clk.Add(time.Second)
	return b.clk
}

func (b *bench) say(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, text)
}

// with opens a queue for one process's life.
func (b *bench) with(d disk.Disk, do func(q *Queue) error) error {
	r, err := b.open(d)
	if err != nil {
		return err
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(b.t, err)
	defer null.Close()
	o := Options{
		Recorder: r, Jobs: b.jobs, Another: func() (*recorder.Recorder, error) { return b.open(d) },
		Clock: b.clock, Location: time.UTC, Host: "h", Stdin: null, Stdout: null, Stderr: null,
		Environ: append(os.Environ(), "RAN="+filepath.Join(b.base, "ran")), Grace: time.Second,
		Tell: func(e Event) {
			if e.Note != "" {
				b.say(e.Note)
			}
		},
	}
	if b.more != nil {
		b.more(&o)
	}
	return do(Open(o))
}

// all does what waits.
func (b *bench) all(q *Queue) (out []*Result, err error) {
	for {
		res, err := q.Next(context.Background(), 0, Pick{Specs: true})
		if err != nil || res == nil {
			return out, err
		}
		out = append(out, res)
	}
}

// work does what waits, several at once.
func (b *bench) work(d disk.Disk) (out []*Result, err error) {
	err = b.with(d, func(q *Queue) error {
		return q.Work(context.Background(), WorkOptions{Specs: true, Ended: func(res *Result) { out = append(out, res) }})
	})
	return out, err
}

// process is the command: everything that waits, on a disk that works.
func (b *bench) process() (out []*Result) {
	b.t.Helper()
	require.NoError(b.t, b.with(disk.OS, func(q *Queue) (err error) { out, err = b.all(q); return err }))
	return out
}

// list is what is in a directory, without what is below.
func (b *bench) list(dir string) []string {
	entries, err := os.ReadDir(filepath.Join(b.root, dir))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(b.t, err)
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out
}

func (b *bench) inbox() []string { return b.list(".decree/inbox") }
func (b *bench) done() []string  { return b.list(".decree/inbox/done") }
func (b *bench) dead() []string  { return b.list(".decree/inbox/dead") }

func (b *bench) read(name string) string {
	data, err := os.ReadFile(filepath.Join(b.root, name))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(b.t, err)
	return string(data)
}

// ran are the lines that routines wrote outside of the tree.
func (b *bench) ran() []string {
	data, err := os.ReadFile(filepath.Join(b.base, "ran"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(b.t, err)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// tree is the user's files.
func (b *bench) tree() map[string]string {
	out := map[string]string{}
	require.NoError(b.t, filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".decree" {
			return fs.SkipDir
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(b.root, path)
		out[rel] = string(data)
		return err
	}))
	return out
}

func names2(res []*Result) (out []string) {
	for _, r := range res {
		out = append(out, fmt.Sprintf("%s %s", r.Name, r.Outcome))
	}
	return out
}
