package project

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHooksThatFailTogether: each has its line.
func TestHooksThatFailTogether(t *testing.T) {
	home, work := ground(t)
	p := open(t, Where{Cwd: work, Home: home}, true)
	const hooks, events = 4, 25
	var all sync.WaitGroup
	errs := make(chan error, hooks*events)
	for h := range hooks {
		all.Go(func() {
			for e := range events {
				errs <- p.NoteHook(time.Unix(1, 0), fmt.Sprintf("event %d of %d", e, h))
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	lines, err := p.HooksLog(time.Time{})
	require.NoError(t, err)
	require.Len(t, lines, hooks*events)
}
