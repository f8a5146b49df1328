//go:build unix

package queue

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTurns: whoever began first ends first where several wait, beginners come last, and who
// makes his last attempt is waited for, also by those that began before him.
func TestTurns(t *testing.T) {
	var turn turnQueue
	var order []int // guarded by the turn
	var group sync.WaitGroup
	wait := func(number int) {
		n := turn.count() + 1
		group.Go(func() {
			turn.acquire(number)
			defer turn.release()
			order = append(order, number)
		})
		for turn.count() < n { //nolint:revive // until it waits
		}
	}
	turn.acquire(2)
	turn.makeLast(2)
	for _, number := range []int{5, beginner, 1, 4} {
		wait(number)
	}
	turn.release()
	group.Go(func() {
		turn.acquire(2)
		order = append(order, 2)
		turn.ended(2)
		turn.release()
	})
	group.Wait()
	require.Contains(t, [][]int{{beginner, 2, 1, 4, 5}, {2, 1, 4, 5, beginner}}, order)
}

func (t *turnQueue) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}
