package backup

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/project"
)

// TestSeveralRememberAtOnce has backups of one project to several targets end at the same moment.
func TestSeveralRememberAtOnce(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		wg.Go(func() {
			errs[i] = Remember(store, fmt.Sprint("target", i), func(r *Remembered) { r.Timestamp = time.Unix(int64(i), 0) })
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, ReadMemory(store).Targets, len(errs))
}

// TestAMemoryThatCannotBeReadNow stays: without it a disk that is not mounted would be a target that has never had anything.
func TestAMemoryThatCannotBeReadNow(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	require.NoError(t, Remember(store, "/mnt", func(r *Remembered) { r.Generation = "2026-11-20T030000Z" }))
	broken := disktest.InjectDir(store, func(s disktest.Step) (a disktest.Action) {
		if s.Op == "Read" {
			a.Err = syscall.EIO
		}
		return a
	})
	require.ErrorIs(t, Remember(broken, "/other", func(*Remembered) {}), syscall.EIO)
	require.ErrorIs(t, Missing(broken, "/mnt"), syscall.EIO)
	require.ErrorContains(t, Missing(store, "/mnt"), "held backups of this project")
	require.Equal(t, `mount the disk that belongs there; or, if it was emptied on purpose, take "/mnt" out of "targets" in /store/backup.json`, project.HintOf(Missing(store, "/mnt")),
		"what is known of other targets stays")
}

// TestTwoSpellingsOfATarget are one: what is known by each of them is known of it, as an earlier decree has remembered them apart.
func TestTwoSpellingsOfATarget(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	require.NoError(t, project.ReplaceFile(store, memoryFile, []byte(`{"version":1,"targets":{
		"/mnt/usb/":{"name":"p","generation":"2026-11-20T030000Z","timestamp":"2026-11-20T03:00:00Z","proof":{"at":"2026-11-20T03:00:01Z","ok":true}},
		"/mnt/usb":{"name":"p","generation":"2026-11-12T030000Z","timestamp":"2026-11-12T03:00:00Z","proof":{"at":"2026-11-12T03:00:01Z"},"whole":"2026-11-12T03:00:01Z"}}}`), 0o600, true))
	m := ReadMemory(store)
	require.Len(t, m.Targets, 1)
	r := m.Targets["/mnt/usb"]
	require.Equal(t, "2026-11-20T030000Z", r.Generation)
	require.True(t, r.Proof.OK)
	require.False(t, r.Whole.IsZero())
	at := OpenOptions{To: "/mnt/usb/"}.Place()
	require.ErrorContains(t, Missing(store, at), "held backups of this project")
	require.NoError(t, Remember(store, at, func(r *Remembered) { r.Problems = []string{"x"} }))
	require.Len(t, ReadMemory(store).Targets, 1)
}

// TestTargetsOfAnyName: a path need not be valid UTF-8, and each is remembered by itself.
func TestTargetsOfAnyName(t *testing.T) {
	store, err := disktest.NewMem().MkdirAll("/store", 0o700)
	require.NoError(t, err)
	names := []string{"/mnt/usb", "/mnt/\xff", "/mnt/\xfe", "/mnt/My \"disk\"\n", `/mnt/a\b`}
	for _, at := range names {
		require.NoError(t, Remember(store, at, func(r *Remembered) { r.Generation, r.Name = "2026-11-20T030000Z", at[5:6] }))
	}
	require.Len(t, ReadMemory(store).Targets, len(names))
	for _, at := range names {
		require.ErrorContains(t, Missing(store, at), "held backups of this project", "%q", at)
	}
	require.NoError(t, project.ReplaceFile(store, memoryFile, []byte(`{"version":1,"targets":{"/mnt/a\\b":{"generation":"g"}}}`), 0o600, true))
	require.Contains(t, ReadMemory(store).Targets, `/mnt/a\b`, "as an earlier decree has written it")
}
