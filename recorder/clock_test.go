package recorder

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockWrongByCenturies: what is recorded while the clock stands where no record
// can stand is read again like any other, and keeps its order.
func TestClockWrongByCenturies(t *testing.T) {
	b := newBench(t)
	right := b.clk
	var want []string
	for i, years := range []int{0, 236, 236, 300, 8000, 0, -400, -2100, 0} {
		b.clk = right.AddDate(years, 0, 0)
		b.write("file", noise(i, 100))
		want = append(want, b.checkpoint(CheckpointOptions{}).ID)
	}
	b.clk = right.Add(time.Hour)
	require.Equal(t, want, b.recordIDs())
	b.requireSound()
}
