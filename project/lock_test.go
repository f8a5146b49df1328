package project

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"decree/disk"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLockNamesItsHolder(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p, q := open(t, w, true), open(t, w, true)
	h := Holder{PID: 4711, Host: "here", Start: time.Unix(1e9, 0).UTC(), Command: []string{"decree", "run", "make"}, Run: "2026112107015900-0"}
	unlock, err := p.Lock(context.Background(), h, 0)
	require.NoError(t, err)

	_, err = q.Lock(context.Background(), Holder{PID: 1}, 0)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, h, held.Holder)
	assert.Equal(t, Refused, KindOf(err))
	for _, part := range []string{"4711", "here", "decree run make", h.Run} {
		assert.Contains(t, err.Error(), part)
	}
	_, err = q.Lock(context.Background(), Holder{PID: 1}, 20*time.Millisecond)
	require.ErrorAs(t, err, &held)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = q.Lock(ctx, Holder{PID: 1}, time.Hour)
	require.ErrorIs(t, err, context.Canceled)

	unlock()
	assert.Zero(t, p.Holder())
	unlock, err = q.Lock(context.Background(), Holder{PID: 2}, 0)
	require.NoError(t, err)
	unlock()
}

// Two stores of one root, as under sudo, exclude each other all the same.
func TestLockIsTheRoots(t *testing.T) {
	home, root := ground(t)
	p := open(t, Where{Cwd: root, Home: home}, true)
	dir, err := disk.OS.OpenRoot(root)
	require.NoError(t, err)
	defer dir.Close()
	unlock, err := dir.TryLock()
	require.NoError(t, err)
	_, err = p.Lock(context.Background(), Holder{PID: 1}, 0)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	assert.Zero(t, held.Holder.PID)
	assert.NotContains(t, err.Error(), "process 0")

	// A project that is known opens for writing while another is at work.
	assert.Equal(t, p.ID, open(t, Where{Cwd: root, Home: home}, true).ID)
	require.NoError(t, unlock())
}

func TestSixteenWritersOneAtATime(t *testing.T) {
	home, root := ground(t)
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			p, err := Open(disk.OS, Where{Cwd: root, Home: home}, true)
			if !assert.NoError(t, err) {
				return
			}
			defer p.Close()
			for range 5 {
				unlock, err := p.Lock(context.Background(), Holder{PID: 1}, time.Minute)
				if !assert.NoError(t, err) {
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, most.Load())
}
