//go:build unix

package recorder

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/project"
)

// standIns are what somebody can put in the place of a file or a directory, by kind.
var standIns = map[string]func(path string) error{
	"directory": func(path string) error {
		if err := os.MkdirAll(filepath.Join(path, "sub"), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "mine"), []byte("mine\n"), 0o644)
	},
	"file":   func(path string) error { return os.WriteFile(path, []byte("mine\n"), 0o644) },
	"link":   func(path string) error { return os.Symlink(os.TempDir(), path) },
	"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
	"socket": bind,
}

// bind makes a socket at path, which may be longer than a socket's name can be.
func bind(path string) error {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return os.Rename(filepath.Join(dir, "s"), path)
}

// storeNames is what a store has, and whether a command that finds something else in its place
// goes on: true, is refused: false. A directory ends with a slash.
var storeNames = map[string]bool{
	"index": true, "index.log": true, "cache": true, "cap.json": true, "lock.json": true, "reserve": true,
	"daemon/": true, "leases/": true, "lock/": true, "own/": true, "own/acts.jsonl": true, "hooks.log": true, "labels.json.new": true, "lock.json.new": true, "index.tmp": true,
	"audit.jsonl": false, "cron.json": false, "forgotten.json": false, "labels.json": false, "queue.json": false,
	"records.jsonl": false, "layers/": false, "open/": false, "packs/": false, "txn/": false, "packs/00000001.pack": false,
}

// TestStandIns puts something else in the place of each file of a store. What decree makes
// anew is moved aside, and the command goes on; else it is refused and nothing has changed,
// until a repair moves it aside. Looking hangs nowhere.
func TestStandIns(t *testing.T) {
	for name, goesOn := range storeNames {
		for kind, put := range standIns {
			if strings.HasSuffix(name, "/") == (kind == "directory") || !strings.HasSuffix(name, "/") && kind == "file" {
				continue // what it is
			}
			t.Run(strings.ReplaceAll(name, "/", ":")+" "+kind, func(t *testing.T) {
				b := newBench(t)
				b.write("a", "a\n")
				b.checkpoint(CheckpointOptions{Label: "first"})
				b.run(0, 0, shell("echo b >>a"))
				at := filepath.Join(filepath.Dir(filepath.Dir(b.onePack())), filepath.Clean(name))
				require.NoError(t, os.RemoveAll(at))
				require.NoError(t, put(at))
				b.looks()
				if !goesOn {
					b.refused(at)
					b.repaired(at, name)
				}
				require.Equal(t, 3, b.run(0, 3, shell("echo c >>a; exit 3")).ExitCode)
				require.Equal(t, "a\nb\n", b.read("a"))
				b.write("a", "other\n")
				b.checkpoint(CheckpointOptions{Label: "second"})
				found, err := filepath.Glob(filepath.Join(b.base, "store", "*", "aside", strings.ReplaceAll(filepath.Clean(name), "/", "-")))
				require.NoError(t, err)
				require.Len(t, found, 1, "it is kept")
				require.NoError(t, os.RemoveAll(filepath.Dir(found[0])))
				if goesOn {
					b.requireSound()
					require.Len(t, b.recordIDs(), 4)
				}
			})
		}
	}
}

// looks has readers look at all that there is; they may fail.
func (b *bench) looks() {
	r := b.reader()
	defer r.Close()
	_, _ = r.Status(context.Background())
	_, _ = r.History().List(history.ListOptions{})
	_, _ = r.Verify(context.Background(), VerifyOptions{All: true})
	checks, err := r.Doctor(context.Background())
	require.NoError(b.t, err)
	require.True(b.t, hasCheck(checks, Error, "has to be there"), checks)
}

func hasCheck(checks []Check, level Level, text string) bool {
	for _, c := range checks {
		if c.Level == level && strings.Contains(c.Text, text) {
			return true
		}
	}
	return false
}

// refused says that writing commands are, with words, and have changed nothing.
func (b *bench) refused(at string) {
	r := b.open()
	defer func() { require.NoError(b.t, r.Close()) }()
	ctx := context.Background()
	_, checkpoint := r.Checkpoint(ctx, CheckpointOptions{})
	_, recover := r.Recover(ctx, false)
	_, gc := r.Gc(ctx)
	_, revert := r.Revert(ctx, MoveOptions{Refs: []string{"last"}})
	for _, err := range []error{checkpoint, recover, gc, revert} {
		require.ErrorContains(b.t, err, at+" is a")
		require.Equal(b.t, project.Refused, project.KindOf(err))
		require.Contains(b.t, project.HintOf(err), "'decree doctor --repair' moves what is there to ")
	}
	require.Equal(b.t, "a\nb\n", b.read("a"))
}

// repaired has a repair move the stand-in aside and say so.
func (b *bench) repaired(at, name string) {
	r := b.open()
	defer func() { require.NoError(b.t, r.Close()) }()
	checks, err := r.Repair(context.Background())
	require.NoError(b.t, err)
	require.True(b.t, hasCheck(checks, Error, at+" was in the place of decree's own files and is now"), "%s: %v", name, checks)
}

// TestStoreIsKnown: whatever a store has in its directory, StandIns knows of what kind it is.
func TestStoreIsKnown(t *testing.T) {
	b := newBench(t)
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{Label: "first"})
	b.run(0, 3, shell("echo b >>a; exit 3"))
	entries, err := os.ReadDir(filepath.Dir(filepath.Dir(b.onePack())))
	require.NoError(t, err)
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		if name == "store.json" { // without it nobody knows that it is a store
			continue
		}
		_, known := storeNames[name]
		require.True(t, known, name)
	}
}

// TestStandInsOfUnfinishedWork: a directory in the place of an open record or a journal is
// set aside as damaged, and stops nobody.
func TestStandInsOfUnfinishedWork(t *testing.T) {
	for _, name := range []string{"open/2026112107015900-0.json", "txn/2026112107015900-0.journal", "leases/2026112107015900-0", "own/x.jsonl"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "a\n")
			b.checkpoint(CheckpointOptions{})
			at := filepath.Join(filepath.Dir(filepath.Dir(b.onePack())), name)
			require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
			if strings.HasPrefix(name, "leases") {
				require.NoError(t, standIns["pipe"](at))
			} else {
				require.NoError(t, standIns["directory"](at))
			}
			_ = with(b, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) })
			b.write("a", "other\n")
			b.checkpoint(CheckpointOptions{})
			require.Equal(t, 3, b.run(0, 3, shell("echo c >>a; exit 3")).ExitCode)
			require.Equal(t, "other\n", b.read("a"))
		})
	}
}

// TestDamagedLabels: labels that cannot be read are moved aside by a repair, which says so.
func TestDamagedLabels(t *testing.T) {
	for name, size := range map[string]int64{"garbage": 8, "larger than any": 20 << 20} {
		t.Run(name, func(t *testing.T) { damagedLabels(t, size) })
	}
}

func damagedLabels(t *testing.T, size int64) {
	b := newBench(t)
	b.write("a", "a\n")
	b.checkpoint(CheckpointOptions{Label: "first"})
	at := filepath.Join(filepath.Dir(filepath.Dir(b.onePack())), "labels.json")
	require.NoError(t, os.WriteFile(at, []byte("garbage\n"), 0o600))
	require.NoError(t, os.Truncate(at, size))
	r := b.open()
	_, err := r.History().Labels()
	require.ErrorContains(t, err, at)
	require.Contains(t, project.HintOf(err), "'decree doctor --repair'")
	checks, err := r.Doctor(context.Background())
	require.NoError(t, err)
	require.True(t, hasCheck(checks, Error, at), checks)
	_, err = r.Repair(context.Background())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.FileExists(t, filepath.Join(filepath.Dir(at), "aside", "labels.json"))
	require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(at), "aside")))
	b.requireSound()
}
