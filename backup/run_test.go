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
	alarm := func(c *project.Config) string { return Alarm(store, c, "/disk", now) }
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

// TestTheAlarmOfSeveralTargets: what --to has made elsewhere does not hide that the config's target has no new backup, or that a proof failed.
func TestTheAlarmOfSeveralTargets(t *testing.T) {
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	made := func(days int, ok bool) Remembered {
		at := now.Add(-time.Duration(days) * day)
		return Remembered{Generation: NameOf(at), Timestamp: at, Proof: &Proof{At: at, OK: ok, Generation: NameOf(at), Files: 2, Of: 2}}
	}
	failed := Remembered{Failed: &Failure{now.Add(-time.Hour), "no such disk"}}
	const old = "the newest backup is 2 weeks old; 'decree backup status"
	for name, c := range map[string]struct {
		to      string // that the config names
		targets map[string]Remembered
		want    string // the beginning; "": no alarm
	}{
		"the config's is old":                    {"/disk", map[string]Remembered{"/disk": made(14, true), "/stick": made(0, true)}, old + "' says more"},
		"the config's is new":                    {"/disk", map[string]Remembered{"/disk": made(1, true), "/stick": made(14, true)}, ""},
		"the config's could not be made":         {"/disk", map[string]Remembered{"/disk": failed, "/stick": made(0, true)}, "there is no backup in /disk, and the last try 1 hour ago failed"},
		"the config's was never used":            {"/disk", map[string]Remembered{"/stick": made(14, true)}, old + " --to /stick' says more"},
		"the config's has what was replaced":     {"/disk", map[string]Remembered{"/disk": {Generations: []string{"pre-restore-1"}}, "/stick": made(1, true)}, ""},
		"the proof of another failed":            {"/disk", map[string]Remembered{"/disk": made(1, true), "/a stick": made(3, false)}, "the newest proof of the backup failed"},
		"the proof of another failed long ago":   {"/disk", map[string]Remembered{"/disk": made(1, true), "/stick": made(31, false)}, ""},
		"none is configured, and one is old":     {"", map[string]Remembered{"/disk": made(14, true), "/stick": made(0, true)}, ""},
		"none is configured, and all are old":    {"", map[string]Remembered{"/disk": made(28, true), "/stick": made(14, true)}, old + " --to /stick' says more"},
		"none is configured, and a proof failed": {"", map[string]Remembered{"/disk": made(14, false), "/stick": made(0, true)}, "the newest proof of the backup failed"},
	} {
		store, err := disk.OS.OpenRoot(t.TempDir())
		require.NoError(t, err)
		for at, r := range c.targets {
			require.NoError(t, Remember(store, at, func(to *Remembered) { *to = r }))
		}
		got := Alarm(store, &project.Config{Backup: project.Backup{To: c.to, Warn: 7 * day, Drill: 30 * day}}, "/disk", now)
		if c.want == "" {
			require.Empty(t, got, name)
		} else {
			require.Contains(t, got, c.want, name)
		}
		if name == "the proof of another failed" {
			require.Contains(t, got, "'decree backup status --to '/a stick'' says more", name)
		}
		store.Close()
	}
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
	require.Empty(t, place(now, "2026-03-01T000000Z").standstill(sound, 7*day, now))
	require.Equal(t, "the newest backup is 1 week old", place(now.Add(-8*day)).standstill(sound, 7*day, now))
	require.Equal(t, "nothing was proven yet", place(now).standstill(nil, 7*day, now))
	require.Equal(t, "the newest proof failed", place(now).standstill(&Proof{At: now}, 7*day, now))
	require.Equal(t, "the newest proof is 1 week old", place(now).standstill(&Proof{At: now.Add(-8 * day), OK: true}, 7*day, now))
	require.Equal(t, "generation 2027-03-10T120000Z lies in the future", place(now, "2027-03-10T120000Z").standstill(sound, 7*day, now))
	require.Equal(t, "generation pre-restore-2027-03-10T120000Z lies in the future", place(now, "pre-restore-2027-03-10T120000Z").standstill(sound, 7*day, now))
}
