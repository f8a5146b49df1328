package backup

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/backup/target"
	"decree/project"
)

// busy is a target whose lock somebody else has, until it was asked for twice.
type busy struct {
	target.Target
	free  func() error
	asked int
	once  sync.Once
}

func (b *busy) Lock(ctx context.Context, prefix string) (func() error, error) {
	if b.asked++; b.asked > 2 {
		b.once.Do(func() { _ = b.free() })
	}
	return b.Target.(target.Locker).Lock(ctx, prefix)
}

// TestABackupWaitsForAnother: beside another backup into the same directory one waits as long as it may, and else says what goes on.
func TestABackupWaitsForAnother(t *testing.T) {
	w := newWorld(t)
	with := func(wait time.Duration) (err error) {
		w.wait = wait
		return w.with(func(o Options) error {
			free, err := o.Target.(target.Locker).Lock(t.Context(), "tree")
			require.NoError(t, err)
			defer free() //nolint:errcheck // it may be free already
			o.Target = &busy{Target: o.Target, free: free}
			_, unlock, err := o.openPlace(t.Context())
			if err == nil {
				unlock()
			}
			return err
		})
	}
	err := with(0)
	require.ErrorContains(t, err, "/w/target/tree: another backup is under way there")
	require.Equal(t, project.Refused, project.KindOf(err))
	require.Contains(t, project.HintOf(err), "--wait")
	require.NoError(t, with(time.Hour))
}

// seized is a directory in which somebody else begins as soon as its lock is given back.
type seized struct {
	*target.Directory
	t *testing.T
}

func (s seized) Lock(ctx context.Context, prefix string) (func() error, error) {
	release, err := s.Directory.Lock(ctx, prefix)
	return func() error {
		err := release()
		_, lerr := s.Directory.Lock(ctx, prefix)
		require.NoError(s.t, lerr)
		return err
	}, err
}

// TestABackupIsOneThing: nobody begins another one there between its generation, its proof and its rotation.
func TestABackupIsOneThing(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.with(func(o Options) error {
		o.Target = seized{o.Target.(*target.Directory), t}
		out, err := Run(t.Context(), o, RunOptions{Prove: true})
		require.NoError(t, err)
		require.Empty(t, out.Failed)
		require.NotNil(t, out.Proof)
		require.NotNil(t, out.Pruned)
		return nil
	}))
}

// locked is a target whose lock somebody else has for ever. Of each who asks for it it notes whether he has the project's lock.
type locked struct {
	target.Target
	o     *Options
	under []bool
}

func (l *locked) Lock(ctx context.Context, _ string) (func() error, error) {
	unlock, err := l.o.Recorder.Project().Lock(ctx, l.o.Recorder.Holder(), 0)
	if err == nil {
		unlock()
	}
	l.under = append(l.under, err != nil)
	return nil, target.ErrLocked
}

// TestARestoreWaitsForItsTargetBeforehand: it waits for a backup that goes on there before it has the project's lock, which that one may need and
// other commands do; what is here is then kept elsewhere.
func TestARestoreWaitsForItsTargetBeforehand(t *testing.T) {
	w := newWorld(t)
	w.wait = 50 * time.Millisecond
	place := w.place()
	require.NoError(t, w.with(func(o Options) error {
		src, err := place.Generation(t.Context(), place.Generations()[0])
		require.NoError(t, err)
		to := &locked{Target: o.Target, o: &o}
		free := o
		o.Target = to
		out, err := Restore(t.Context(), o, RestoreOptions{Source: src, Aside: func() (target.Target, error) {
			return target.OpenDirectory(w.m, "/w/aside", true)
		}})
		require.NoError(t, err)
		require.Contains(t, out.Before, "/w/aside/tree/archives/pre-restore-")
		require.Greater(t, len(to.under), 1, "it waits")
		require.NotContains(t, to.under, true)
		free.Target = &locked{Target: free.Target, o: &free}
		_, err = free.keepIn(t.Context())
		require.ErrorContains(t, err, "another backup is under way there")
		require.Len(t, free.Target.(*locked).under, 1, "nobody is waited for under the project's lock")
		return nil
	}))
}
