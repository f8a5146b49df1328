package runner

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestApart runs several at once: each leads a session that has no terminal, and what its
// shell has put into groups of their own ends with it.
func TestApart(t *testing.T) {
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			c := shell(`read -r pid name state parent group session tty rest </proc/$$/stat
				set -m; sleep 1000 & [ "$session $tty" = "$$ 0" ] && exit "$1"`, string(rune('1'+n)))
			c.Apart, c.Grace = true, time.Second
			res, err := Run(t.Context(), c)
			assert.NoError(t, err)
			assert.Equal(t, n+1, res.ExitCode)
			assert.Len(t, res.Stragglers, 1)
			assert.Empty(t, res.Survivors)
		})
	}
	all.Wait()
}

// TestApartStopped: a command that stops itself stops nobody else, and goes on when it is
// told to.
func TestApartStopped(t *testing.T) {
	c := shell(`(while read -r pid name state rest </proc/$$/stat && [ "$state" != T ]; do :; done; kill -CONT $$) & kill -STOP $$; wait; exit 3`)
	c.Apart, c.Grace = true, time.Second
	assert.Equal(t, 3, run(t, c).ExitCode)
}
