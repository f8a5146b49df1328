package page_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/page"
	"decree/recorder"
)

// past is a usage of a run a day of so many days, of a MiB each.
func past(days int) *recorder.Usage {
	u := &recorder.Usage{}
	for i := range days {
		u.Records = append(u.Records, recorder.RecordUsage{ID: fmt.Sprint(i), Store: 1 << 20, Record: &history.Record{
			ID: fmt.Sprint(i), Reason: history.Run, Command: []string{"make"}, Status: history.StatusSucceeded, Duration: time.Duration(i) * time.Second,
			Started: clock.Now.AddDate(0, 0, -i), Changes: history.Changes{Modified: i},
		}})
	}
	u.Store = int64(days) << 20
	for range 20 {
		u.Paths = append(u.Paths, recorder.PathUsage{Path: "large\x1b", Bytes: 5})
	}
	return u
}

func TestPlots(t *testing.T) {
	plots := page.Plots(past(40), 50<<20, clock)
	var titles []string
	for _, p := range plots {
		titles = append(titles, p.Title)
	}
	require.Equal(t, []string{"Space", "Runs a day", "Time a run", "Changes a run", "Sizes"}, titles)
	space := plots[0]
	require.Len(t, space.Points, 40)
	require.Equal(t, float64(1<<20), space.Points[0].Value)
	require.Equal(t, float64(40<<20), space.Points[39].Value)
	require.Equal(t, "What is kept takes 40 MiB, shown by the day on which it came. At the rate of the last 30 days max_store, 50 MiB, is reached in about 10 days; then the oldest records go.", space.Words)
	require.Equal(t, []page.Point{{At: space.Points[39].At.AddDate(0, 0, 10), Value: 50 << 20}}, space.Ahead)
	require.Equal(t, float64(1), plots[1].Points[7].Value)
	require.Equal(t, float64(39), plots[2].Points[0].Value, "the oldest is first")
	require.Equal(t, "today 20:00, make", plots[3].Points[39].Name)
	require.Len(t, plots[4].Points, 12)
	require.Equal(t, page.Point{Name: `"large\033"`, Value: 5}, plots[4].Points[0])
}

func TestForecasts(t *testing.T) {
	for _, c := range []struct {
		days  int
		most  int64
		want  string
		ahead bool
	}{
		{0, 0, "What is kept takes 0 B, shown by the day on which it came. ", false},
		{10, 0, "At the rate of the last 10 days it is 40 MiB in 30 days; max_store sets no bound.", true},
		{10, 5 << 20, "That is more than max_store, 5.0 MiB: what is always kept does not fit.", false},
		{10, 1 << 40, "At the rate of the last 10 days max_store, 1.0 TiB, is more than a year away.", true},
		{1, 2 << 20, "At the rate of the last 1 day max_store, 2.0 MiB, is reached in about 1 day; then the oldest records go.", true},
	} {
		p := page.Plots(past(c.days), c.most, clock)[0]
		require.Contains(t, p.Words, c.want)
		require.Equal(t, c.ahead, len(p.Ahead) > 0)
	}
	old := past(1)
	old.Records[0].Record.Started = clock.Now.AddDate(0, 0, -100)
	require.Contains(t, page.Plots(old, 0, clock)[0].Words, "It has not grown in the last 30 days.")
}

// TestPlotsOfALongPast holds that a plot stays small, whatever the past is, and counts all of it.
func TestPlotsOfALongPast(t *testing.T) {
	u := past(10000)
	u.Records = append(u.Records, recorder.RecordUsage{ID: "unknown", Runs: 5})
	plots := page.Plots(u, 0, clock)
	require.LessOrEqual(t, len(plots[0].Points), 180)
	runs := 0.0
	for _, p := range plots[1].Points {
		runs += p.Value
	}
	require.Equal(t, 10000.0, runs)
	require.Contains(t, plots[1].Title, "Runs in 56 days")
	require.Len(t, plots[2].Points, 100)
	for _, p := range plots {
		require.Less(t, len(p.Draw(time.UTC)), 40<<10)
	}
}
