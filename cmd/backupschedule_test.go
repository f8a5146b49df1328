package cmd

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup"
	"decree/disk"
	"decree/message"
	"decree/project"
)

// TestScheduledBackups has a clock that goes on with each look.
func TestScheduledBackups(t *testing.T) {
	store, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer store.Close()
	times, err := message.ParseCron("0 3 * * *")
	require.NoError(t, err)
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var made []string
	outcome := error(nil)
	c := &schedule{times: times, project: &project.Site{Store: store}, target: "/disk", now: func() time.Time { return clock }}
	c.make = func(context.Context) error {
		made = append(made, clock.Format("01-02 15:04"))
		if outcome != nil {
			return outcome
		}
		return backup.Remember(store, "/disk", func(r *backup.Remembered) { r.Generation, r.Timestamp = backup.NameOf(clock), clock })
	}
	look := func(days int, step time.Duration) []string {
		made = nil
		for end := clock.AddDate(0, 0, days); clock.Before(end); clock = clock.Add(step) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // one look
			c.serve(ctx, time.Nanosecond, func(error) {})
		}
		return made
	}
	require.Equal(t, []string{"03-02 03:00", "03-03 03:00"}, look(2, 10*time.Minute), "the first is not made at once, but when it is due")
	clock = clock.AddDate(0, 0, 10) // nobody was there; another daemon begins
	c.last = time.Time{}
	require.Equal(t, []string{"03-13 12:00", "03-14 03:00"}, look(1, 10*time.Minute), "what was missed is made once, at once")
	outcome = errors.New("no disk there")
	require.Equal(t, []string{"03-15 03:00", "03-16 03:00"}, look(2, 10*time.Minute), "one that failed is tried again when the next is due")
	clock = clock.AddDate(-1, 0, 0)
	outcome = nil
	require.Equal(t, []string{"03-17 03:00"}, look(1, 10*time.Minute), "a clock that was set back stops nothing")
	clock, c.last = clock.AddDate(1, 0, 0), time.Time{}
	require.NoError(t, backup.Remember(store, "/stick", func(r *backup.Remembered) { r.Generation, r.Timestamp = backup.NameOf(clock), clock }))
	require.Equal(t, []string{"03-17 12:00", "03-18 03:00"}, look(1, 10*time.Minute), "one that --to has made elsewhere is no backup in the target")
	require.NoError(t, project.ReplaceFile(store, project.HeldFile, []byte("{}"), 0o600, false))
	require.Empty(t, look(2, 10*time.Minute), "what came from elsewhere waits")
}
