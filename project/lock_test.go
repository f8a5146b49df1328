package project

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"decree/disk"
	"decree/disk/disktest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLockNamesItsHolder(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p, q := open(t, w, true), open(t, w, true)
	h := Holder{PID: 4711, Host: "here", Start: time.Unix(1e9, 0).UTC(), Command: []string{"decree", "run", "make"}, Run: "2026112107015900-0", Lock: lockInStore}
	unlock, err := p.Lock(context.Background(), h, 0)
	require.NoError(t, err)

	_, err = q.Lock(context.Background(), Holder{PID: 1}, 0)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	h.Tmp = held.Holder.Tmp
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

// A process that dies may leave the lock to one that it had just forked, which has it
// until it executes its own program.
func TestLockOfADyingProcess(t *testing.T) {
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p, q := open(t, w, true), open(t, w, true)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	unlock, err := p.Lock(context.Background(), Holder{PID: gone.Process.Pid, Host: "here"}, 0)
	require.NoError(t, err)
	given := make(chan struct{})
	time.AfterFunc(50*time.Millisecond, func() { unlock(); close(given) })

	again, err := q.Lock(context.Background(), Holder{PID: os.Getpid(), Host: "here"}, 0)
	require.NoError(t, err)
	again()
	<-given // before p is closed
}

// rootLock takes the root's own lock, as earlier versions did.
func rootLock(t *testing.T, root string) (unlock func() error) {
	t.Helper()
	dir, err := disk.OS.OpenRoot(root)
	require.NoError(t, err)
	defer dir.Close()
	unlock, err = dir.TryLock()
	require.NoError(t, err)
	return unlock
}

// The lock on the root counts when a decree has it: one whose store is another, as
// under sudo, or one of an earlier version. This process passes for one.
func TestRootIsLockedToo(t *testing.T) {
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("the system does not tell who holds a lock")
	}
	home, root := ground(t)
	p := open(t, Where{Cwd: root, Home: home}, true)
	unlock := rootLock(t, root)
	_, err := p.Lock(context.Background(), Holder{PID: 1}, 0)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	assert.Zero(t, held.Holder.PID)
	assert.NotContains(t, err.Error(), "process 0")
	assert.True(t, free(t, p), "the store's lock was given back")

	// A project that is known opens for writing while another is at work.
	assert.Equal(t, p.ID, open(t, Where{Cwd: root, Home: home}, true).ID)
	require.NoError(t, unlock())

	release, err := p.Lock(context.Background(), Holder{PID: 1}, 0)
	require.NoError(t, err)
	_, err = p.Dir.TryLock()
	require.ErrorIs(t, err, disk.ErrLocked, "earlier versions are kept out")
	assert.False(t, free(t, p))
	release()
}

func free(t *testing.T, p *Project) bool {
	t.Helper()
	release, err := (&Project{}).lockStore(p.Store)
	if err == nil {
		require.NoError(t, release())
	}
	return err == nil
}

// Another program may hold the root as long as it likes: commands work, the first too.
func TestRootLockedByAnother(t *testing.T) {
	flock, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("no flock")
	}
	home, root := ground(t)
	c := exec.Command(flock, root, "sh", "-c", "echo locked; read line")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	defer func() {
		in.Close()
		assert.Error(t, c.Wait())
	}()
	_, err = io.ReadFull(out, make([]byte, len("locked")))
	require.NoError(t, err)

	p := open(t, Where{Cwd: root, Home: home}, true)
	q := open(t, Where{Cwd: root, Home: home}, true)
	unlock, err := p.Lock(context.Background(), Holder{PID: 1}, 0)
	require.NoError(t, err)
	_, err = q.Lock(context.Background(), Holder{PID: 2}, 0)
	var held *HeldError
	require.ErrorAs(t, err, &held)
	assert.Equal(t, 1, held.Holder.PID)
	unlock()
	unlock, err = q.Lock(context.Background(), Holder{PID: 2}, 0)
	require.NoError(t, err)
	unlock()
}

// Where the system does not say who holds the root, an earlier version's note in the
// store does.
func TestNoteOfAnEarlierVersion(t *testing.T) {
	for _, c := range []struct {
		note Holder
		want bool
	}{
		{Holder{}, false},
		{Holder{PID: os.Getpid(), Host: "here"}, true},
		{Holder{PID: os.Getpid(), Host: "here", Lock: lockInStore}, false},
		{Holder{PID: 1 << 30, Host: "here"}, false},
		{Holder{PID: 1 << 30, Host: "there"}, true},
	} {
		root := disktest.InjectDir(rootOfMem(t), func(s disktest.Step) disktest.Action {
			if s.Op == "TryLock" {
				return disktest.Action{Err: disk.ErrLocked}
			}
			return disktest.Action{}
		})
		_, err := tryRoot(root, c.note, false, "here")
		assert.Equal(t, c.want, err != nil, "%+v", c.note)
	}
}

func rootOfMem(t *testing.T) disk.Dir {
	t.Helper()
	d, err := disktest.NewMem().OpenRoot("/")
	require.NoError(t, err)
	return d
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
