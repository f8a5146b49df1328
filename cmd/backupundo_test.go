package cmd

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/recorder"
)

// TestAFailedRestoreLeavesWhoeverIsAtWork: the project that was made for a restore is removed with it, but not under somebody who has waited for
// the lock and has recorded nothing yet.
func TestAFailedRestoreLeavesWhoeverIsAtWork(t *testing.T) {
	root := t.TempDir()
	where := project.Where{RootFlag: root, Cwd: root, StoreEnv: t.TempDir(), RealPath: func(s string) (string, error) { return s, nil }}
	rec, err := recorder.Open(t.Context(), recorder.Options{Create: true, ReaderOptions: recorder.ReaderOptions{Disk: disk.OS, Where: where, Clock: time.Now}})
	require.NoError(t, err)
	defer rec.Close()
	other, err := project.Open(disk.OS, where, true)
	require.NoError(t, err)
	defer other.Close()
	unlock, err := other.Lock(t.Context(), project.Holder{PID: os.Getpid()}, 0)
	require.NoError(t, err)

	r := &restore{session: &session{env: Env{Now: time.Now}}, root: root, fresh: true, rec: rec}
	r.undo(errors.New("the generation is damaged"))
	require.DirExists(t, rec.Project().StorePath)
	require.FileExists(t, root+"/.decree/project.json")

	unlock()
	r.undo(errors.New("the generation is damaged"))
	require.NoDirExists(t, rec.Project().StorePath)
	require.NoFileExists(t, root+"/.decree/project.json")
}
