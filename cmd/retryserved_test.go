//go:build unix

package cmd

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/queue"
	"decree/recorder"
)

// TestRetryServedAfterADeath: decree dies after the move of a failed message to dead, and a person has it tried again on a
// page: it waits, and its routine is started once more.
func TestRetryServedAfterADeath(t *testing.T) {
	base := t.TempDir()
	root, ran := filepath.Join(base, "tree"), filepath.Join(base, "ran")
	for name, text := range map[string]string{
		"config.yml": "max_attempts: 1\n", "inbox/a.md": "one\n", "routines/develop.sh": "echo >>" + ran + "\nexit 1\n",
	} {
		path := filepath.Join(root, ".decree", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	require.NoError(t, err)
	defer null.Close()
	env := Env{Cwd: root, Host: "h", Now: time.Now, Location: time.UTC, Stdin: null, Stdout: null, Stderr: null, Environ: os.Environ()}
	s := &session{env: env, global: globals{quiet: true}}
	with := func(d disk.Disk, do func(*recorder.Recorder) error) error {
		rec, err := recorder.Open(t.Context(), recorder.Options{ReaderOptions: recorder.ReaderOptions{Disk: d, Clock: time.Now, Location: time.UTC,
			Where: project.Where{RootFlag: root, Cwd: root, Home: base, StoreEnv: filepath.Join(base, "store")}}, Create: true, Actor: history.Actor{Host: "h"}})
		require.NoError(t, err)
		defer rec.Close()
		return do(rec)
	}
	all := func(rec *recorder.Recorder) error {
		q, done, err := s.queueOver(t.Context(), rec, queue.Options{Tell: func(queue.Event) {}})
		require.NoError(t, err)
		defer done()
		for {
			if res, err := q.Next(t.Context(), 0, queue.Pick{}); res == nil || err != nil {
				return err
			}
		}
	}
	dead, died := filepath.Join(root, ".decree/inbox/dead"), false
	require.Error(t, with(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		list, _ := os.ReadDir(dead)
		died = died || st.Write && len(list) == 2
		return disktest.Action{Die: died}
	}), all))
	// In this test the dead decree is this process, which lives.
	held, err := filepath.Glob(filepath.Join(base, "store/*/lock.json"))
	require.NoError(t, err)
	for _, note := range held {
		require.NoError(t, os.Remove(note))
	}
	require.NoError(t, with(disk.OS, func(rec *recorder.Recorder) error { return s.retryForServer(t.Context(), rec, "a.md") }))
	require.NoError(t, with(disk.OS, all))
	times, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "\n\n", string(times))
}
