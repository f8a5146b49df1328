package layer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAheadBetweenTwoClocks: a process that waits between its readings of the two clocks, as on
// a loaded machine, does not take that for a clock that was set back.
func TestAheadBetweenTwoClocks(t *testing.T) {
	const apart = 1000 * int64(time.Hour)
	for wait := range 6 {
		now, readings := int64(time.Hour), 0
		read := func() int64 {
			readings++
			if readings == wait {
				now += int64(50 * time.Millisecond)
			}
			now++
			return now
		}
		got := aheadOf(func() int64 { return read() + apart }, read)
		assert.InDelta(t, apart, got, float64(time.Millisecond), "waits before reading %d", wait)
	}
	always := int64(0)
	require.NotZero(t, aheadOf(func() int64 { return apart }, func() int64 { always += int64(time.Second); return always }))
}
