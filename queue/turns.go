package queue

import (
	"math"
	"slices"
	"sync"
)

// turnQueue lets one goroutine after the other do what needs the project's lock. Of those that
// wait the one with the lowest number is next: messages end in the order in which they
// began, and a new one begins when none waits to end. While one makes its last attempt nobody
// else ends, also not who began earlier: the work of others could take it that attempt too.
type turnQueue struct {
	mu      sync.Mutex
	taken   bool
	waiting []waiting // the lowest number first
	last    []int     // the numbers of those that make their last attempt: the first ends first
}

type waiting struct {
	number int
	next   chan struct{}
}

// beginner is the number of who has no message yet.
const beginner = math.MaxInt

func (t *turnQueue) acquire(number int) {
	t.mu.Lock()
	w := waiting{number, make(chan struct{})}
	at, _ := slices.BinarySearchFunc(t.waiting, number, func(w waiting, n int) int {
		if w.number <= n { // after those of its number
			return -1
		}
		return 1
	})
	t.waiting = slices.Insert(t.waiting, at, w)
	t.next()
	t.mu.Unlock()
	<-w.next
}

func (t *turnQueue) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	t.next()
}

// next gives the turn to the first that may have it.
func (t *turnQueue) next() {
	if t.taken {
		return
	}
	at := slices.IndexFunc(t.waiting, func(w waiting) bool {
		return w.number == beginner || len(t.last) == 0 || w.number == t.last[0]
	})
	if at >= 0 {
		t.taken = true
		close(t.waiting[at].next)
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
}

// makeLast notes that a message makes its last attempt: all others wait with their ends until it has ended.
func (t *turnQueue) makeLast(number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, number)
}

func (t *turnQueue) ended(number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = slices.DeleteFunc(t.last, func(n int) bool { return n == number })
	t.next()
}
