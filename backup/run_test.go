package backup

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

func TestPing(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/broken/secret" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	require.NoError(t, fetch(t.Context(), server.URL+"/secret"))
	require.Equal(t, 1, asked)
	err := fetch(t.Context(), server.URL+"/broken/secret")
	require.ErrorContains(t, err, "answered 500")
	require.NotContains(t, err.Error(), "secret", "the address may be one")
	address := server.URL
	server.Close()
	err = fetch(t.Context(), address+"/secret")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestAlarm(t *testing.T) {
	store, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer store.Close()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	wanted := &project.Config{Backup: project.Backup{To: "/disk", Warn: 7 * day, Drill: 30 * day}}
	plain := &project.Config{Backup: project.Backup{Warn: 7 * day, Drill: 30 * day}}
	alarm := func(c *project.Config) string { return Alarm(store, c, now) }
	remember := func(change func(r *Remembered)) {
		require.NoError(t, Remember(store, "/disk", change))
	}
	require.Empty(t, alarm(plain))
	require.Equal(t, "there is no backup yet: 'decree backup' makes the first", alarm(wanted))
	remember(func(r *Remembered) { r.Failed = &Failure{now.Add(-time.Hour), "no such disk"} })
	require.Equal(t, "there is no backup, and the last try 1 hour ago failed: no such disk", alarm(wanted))

	remember(func(r *Remembered) {
		r.Failed, r.Generation, r.Timestamp = nil, NameOf(now), now
		r.Proof = &Proof{At: now, Generation: NameOf(now), Files: 20, Of: 20, OK: true}
	})
	require.Empty(t, alarm(wanted))
	require.Empty(t, alarm(plain))
	now = now.Add(7 * day)
	require.Empty(t, alarm(plain), "as old as it may be")
	now = now.Add(time.Second)
	require.Equal(t, "the newest backup is 1 week old; 'decree backup status' says more", alarm(plain), "a backup exists")
	remember(func(r *Remembered) { r.Timestamp = now.Add(24 * day) })
	now = now.Add(24 * day)
	require.Equal(t, "the newest proof is 1 month old; 'decree backup status' says more", alarm(plain))
	remember(func(r *Remembered) {
		r.Proof = &Proof{At: now, Generation: NameOf(now), Files: 1, Of: 20, Problems: []string{"a pack is missing", "another"}}
	})
	now = now.Add(30 * day)
	require.Contains(t, alarm(plain), "the newest proof of the backup failed: restored 1 of 20 files of 2026-03-01T12:00Z in 0.0 s: a pack is missing, and 1 more"[:60], "it outranks all else")
	remember(func(r *Remembered) { r.Timestamp = now.AddDate(1, 0, 0); r.Proof = &Proof{At: now, OK: true} })
	require.Contains(t, alarm(plain), "the newest backup lies in the future")
}

func TestStandstill(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	place := func(at time.Time, others ...string) *Place {
		m := &Manifest{Timestamp: at, Others: map[string]Generation{}}
		for _, name := range others {
			m.Others[name] = Generation{SHA256: tree.Sum(nil)}
		}
		return &Place{Manifest: m}
	}
	sound := &Proof{At: now, OK: true}
	require.Empty(t, place(now, "2026-03-01T000000Z").Standstill(sound, 7*day, now))
	require.Equal(t, "the newest backup is 1 week old", place(now.Add(-8*day)).Standstill(sound, 7*day, now))
	require.Equal(t, "nothing was proven yet", place(now).Standstill(nil, 7*day, now))
	require.Equal(t, "the newest proof failed", place(now).Standstill(&Proof{At: now}, 7*day, now))
	require.Equal(t, "the newest proof is 1 week old", place(now).Standstill(&Proof{At: now.Add(-8 * day), OK: true}, 7*day, now))
	require.Equal(t, "generation 2027-03-10T120000Z lies in the future", place(now, "2027-03-10T120000Z").Standstill(sound, 7*day, now))
	require.Equal(t, "generation pre-restore-2027-03-10T120000Z lies in the future", place(now, "pre-restore-2027-03-10T120000Z").Standstill(sound, 7*day, now))
}
