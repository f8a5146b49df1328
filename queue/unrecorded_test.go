//go:build unix

package queue

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// outgrown are the files of a tree with a routine that makes a recorded file, f, larger than capture.max_file.
func outgrown(routine string, more map[string]string) map[string]string {
	files := map[string]string{
		".decree/config.yml":          "capture: {max_file: 1MiB}\nmax_attempts: 2\n",
		".decree/routines/develop.sh": `echo "$(tail -n1 "$message_file") $(head -c 5 f)" >>"$RAN"; grow() { head -c 2000000 /dev/zero >"$1"; }` + "\n" + routine + "\n",
		".decree/inbox/a.md":          "one\n", "f": "old\n", "small": "old\n",
	}
	for name, text := range more {
		files[name] = text
	}
	return files
}

func (b *bench) tryAll() error {
	return b.with(disk.OS, func(q *Queue) error { _, err := b.all(q); return err })
}

// restored brings what was at a path before the first run.
func (b *bench) restored(path tree.Path) {
	b.t.Helper()
	require.NoError(b.t, os.RemoveAll(filepath.Join(b.root, string(path)))) // decree does not overwrite what it cannot record
	require.NoError(b.t, b.person(func(q *Queue) error {
		_, err := q.o.Recorder.Restore(context.Background(), recorder.RestoreOptions{Ref: b.runs()[0], Paths: []tree.Path{path}, Yes: true})
		return err
	}))
}

// TestTakenBackWhereUnrecorded: a message whose run died after it had left a file too large to be recorded is done again only where that file is
// what it was before, or a person has decided; whatever else became of the run, the file counts as the run's work or as an edit.
func TestTakenBackWhereUnrecorded(t *testing.T) {
	mine := func(b *bench) { b.put(map[string]string{"f": "mine\n"}) }
	higher := func(b *bench) { b.put(map[string]string{".decree/config.yml": "capture: {max_file: 9MiB}\n"}) }
	for name, tt := range map[string]struct {
		act func(b *bench)
		now string // what the message finds when it is done again; "": it is not
	}{
		"nothing":        {func(*bench) {}, ""},
		"a higher limit": {higher, ""},
		"a higher limit, and recorded": {func(b *bench) {
			higher(b)
			require.NoError(t, b.person(func(q *Queue) error {
				_, err := q.o.Recorder.Checkpoint(context.Background(), recorder.CheckpointOptions{})
				return err
			}))
		}, ""},
		"reverted": {func(b *bench) {
			higher(b)
			require.NoError(t, b.person(func(q *Queue) error {
				_, err := q.o.Recorder.Revert(context.Background(), recorder.MoveOptions{Refs: []string{b.runs()[0]}, Yes: true})
				return err
			}))
		}, ""},
		"edited": {mine, ""},
		"edited and recorded": {func(b *bench) {
			mine(b)
			require.NoError(t, b.person(func(q *Queue) error {
				_, err := q.o.Recorder.Checkpoint(context.Background(), recorder.CheckpointOptions{})
				return err
			}))
		}, ""},
		"deleted":                   {func(b *bench) { require.NoError(t, os.Remove(filepath.Join(b.root, "f"))) }, ""},
		"written again as it was":   {func(b *bench) { b.put(map[string]string{"f": "old\n"}) }, "old"},
		"restored":                  {func(b *bench) { b.restored("f") }, "old"},
		"another path restored":     {func(b *bench) { higher(b); b.restored("small") }, ""},
		"restored, and then edited": {func(b *bench) { b.restored("f"); mine(b) }, "mine"},
		"ignored":                   {func(b *bench) { mine(b); b.put(map[string]string{".decreeignore": "f\n"}) }, "mine"},
		"given up and sent again": {func(b *bench) {
			mine(b)
			require.NoError(t, b.person(func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err }))
			b.process()
			require.Contains(t, strings.Join(b.said, "\n"), "'decree restore "+b.runs()[0]+" PATH...' brings what was there before it")
			b.message("b.md", "one\n")
		}, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, outgrown(`[ -e "$RAN.again" ] || { touch "$RAN.again"; echo new >small; grow f; }`, nil))
			b.killedOnceItRan()
			b.recover()
			tt.act(b)
			f := b.read("f")
			for range 2 {
				err := b.tryAll()
				require.Equal(t, f, b.read("f"), "no edit goes unasked")
				require.Equal(t, "old\n", b.read("small"))
				if tt.now != "" {
					require.NoError(t, err)
					require.Equal(t, []string{"one old", "one " + tt.now}, b.ran())
					continue
				}
				require.ErrorContains(t, err, "not as before run "+b.runs()[0]+", whose record does not hold what it left there")
				require.ErrorContains(t, err, ": f; message a.md waits for it, and so do all others")
				require.Contains(t, project.HintOf(err), "'decree restore "+b.runs()[0]+" PATH...'")
				require.Equal(t, []string{"one old"}, b.ran())
			}
		})
	}
}

// TestFailedWhereUnrecorded: a failed run that leaves what its record does not hold is not put back, and holds what comes next, until a person
// has taken that away.
func TestFailedWhereUnrecorded(t *testing.T) {
	for what, path := range map[string]tree.Path{"a recorded file": "f", "a new file": "made", "and another file": "f"} {
		t.Run(what, func(t *testing.T) {
			more := map[string]string{"and another file": "echo new >small; "}[what]
			b := newBench(t, outgrown("grep -q two $message_file || { "+more+"grow "+string(path)+"; exit 3; }", map[string]string{
				".decree/config.yml": "capture: {max_file: 1MiB}\nmax_attempts: 1\n", ".decree/inbox/b.md": "two\n",
			}))
			for range 2 {
				require.ErrorContains(t, b.tryAll(), "not as before run")
				require.Empty(t, b.dead())
				require.Equal(t, []string{"one old"}, b.ran())
			}
			b.put(map[string]string{".decree/config.yml": "capture: {max_file: 9MiB}\nmax_attempts: 1\n"})
			require.ErrorContains(t, b.tryAll(), "not as before run")
			if path == "made" {
				require.NoError(t, os.Remove(filepath.Join(b.root, "made")))
			} else {
				b.restored(path)
			}
			require.Equal(t, []string{"a.md dead", "b.md done"}, names2(b.process()))
			require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "put back since: decree diff")
			require.Equal(t, []string{"one old", "two old"}, b.ran())
			require.Equal(t, "old\n", b.read("small"))
		})
	}
}

// TestDeadWhereItsWorkStays: a message that somebody deleted holds nobody, and its reason does not say that its work was put back.
func TestDeadWhereItsWorkStays(t *testing.T) {
	b := newBench(t, outgrown("grow f; exit 3", map[string]string{".decree/config.yml": "capture: {max_file: 1MiB}\nmax_attempts: 1\n"}))
	require.ErrorContains(t, b.tryAll(), "not as before run")
	require.NoError(t, os.Remove(filepath.Join(b.root, ".decree/inbox/a.md")))
	require.Equal(t, []string{"a.md dead"}, names2(b.process()))
	require.Contains(t, b.read(".decree/inbox/dead/a.error.txt"), "what it changed stays in the tree: decree diff "+b.runs()[0])
}

// TestServeWhereUnrecorded: a daemon lives where a message waits for what its record does not hold, also
// where the last of several attempts needs a clean tree.
func TestServeWhereUnrecorded(t *testing.T) {
	for _, attempts := range []string{"1", "2", "3"} {
		t.Run(attempts, func(t *testing.T) {
			b := newBench(t, outgrown("grow f; exit 3", map[string]string{".decree/config.yml": "capture: {max_file: 1MiB}\nmax_attempts: " + attempts + "\n"}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := 0
			b.more = func(o *Options) {
				tell := o.Tell
				o.Tell = func(e Event) {
					tell(e)
					if strings.Contains(e.Note, "not as before run") {
						said++
						cancel()
					}
				}
			}
			require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.Serve(ctx, ServeOptions{Interval: 1e7}) }))
			require.Equal(t, 1, said)
			require.Empty(t, b.dead())
			require.Equal(t, []string{"a.md"}, b.inbox())
		})
	}
}
