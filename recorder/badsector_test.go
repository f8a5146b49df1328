package recorder

import (
	"bytes"
	"math/rand"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
)

// TestRecoveryBesideABadSector: the old content of a file that an interrupted run has changed lies where the disk
// cannot read it. The run's record is closed without it, as where other bytes are there, and what comes next works.
func TestRecoveryBesideABadSector(t *testing.T) {
	s := &sweep{bench: newBench(t), t: t}
	old := make([]byte, 64<<10)
	_, _ = rand.New(rand.NewSource(1)).Read(old)
	old[0] = 0 // no text
	s.write("a", string(old))
	s.run(0, 0, shell("echo first >g"))
	pack := s.onePack()
	data, err := os.ReadFile(pack)
	require.NoError(t, err)
	at := bytes.Index(data, old[100:200])
	require.Positive(t, at)

	err = s.try(disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		return disktest.Action{Die: st.Write && s.read("a") == "new\n"}
	}), func(r *Recorder) error { return s.execute(r, 0, shell("echo new >a")) })
	require.Error(t, err)

	s.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action { return disktest.Unreadable(st, pack, int64(at)+8<<10) })
	done := with(s.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(t.Context(), false) })
	require.Len(t, done, 1)
	require.Contains(t, done[0].What, "without what the store has lost")
	s.run(0, 0, shell("echo third >g"))
	checks := with(s.bench, func(r *Recorder) ([]Check, error) { return r.Repair(t.Context()) })
	require.NotEmpty(t, checks)
	require.Empty(t, with(s.bench, func(r *Recorder) ([]*history.Opened, error) {
		open, _, err := r.history.ListOpen()
		return open, err
	}))
}
