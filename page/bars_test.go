package page_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/page"
)

func TestBars(t *testing.T) {
	plots := page.Plots(past(40), 50<<20, clock)
	bars, left := plots[0].Bars(4, time.UTC)
	require.Zero(t, left, "a line is shown from its beginning to its end")
	require.Equal(t, []page.Bar{
		{Label: "14 Oct 2026", Shown: "1.0 MiB", Part: 0.02}, {Label: "27 Oct 2026", Shown: "14 MiB", Part: 0.28},
		{Label: "9 Nov 2026", Shown: "27 MiB", Part: 0.54}, {Label: "22 Nov 2026", Shown: "40 MiB", Part: 0.8},
		{Label: "2 Dec 2026, expected", Shown: "50 MiB", Part: 1}, {Label: "at most", Shown: "50 MiB", Part: 1},
	}, bars)

	bars, left = plots[3].Bars(2, time.UTC)
	require.Equal(t, 38, left)
	require.Equal(t, []page.Bar{{Label: "yesterday 20:00, make", Shown: "1 file", Part: 1 / 39.}, {Label: "today 20:00, make", Shown: "0 files"}}, bars, "the newest")

	bars, left = plots[4].Bars(3, time.UTC)
	require.Equal(t, 9, left)
	require.Equal(t, page.Bar{Label: `"large\033"`, Shown: "5 B", Part: 1}, bars[0], "the largest")

	bars, _ = (&page.Plot{Unit: page.Things, Noun: "run"}).Bars(8, time.UTC)
	require.Empty(t, bars)
}
