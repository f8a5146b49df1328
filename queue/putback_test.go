//go:build unix

package queue

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// TestPutBackByAPersonsCommand: a process that finds the message under way missing, as a person's command has it in its hand, waits for that
// command, which finds that the message is being done and puts it back. Its work is published, and it is not done again.
func TestPutBackByAPersonsCommand(t *testing.T) {
	needsLayers(t)
	b := newBench(t, bigFile(nil))
	b.unpublishedOnce()
	looks := make(chan struct{})
	meets := sync.OnceFunc(func() { close(looks) })
	ended := make(chan error, 1)
	process := func() {
		defer meets()
		looked := false
		ended <- b.with(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
			if looked && (s.Write || s.Op == "TryLock" && filepath.Base(s.Path) == "own") {
				meets()
			}
			looked = looked || s.Op == "List" && filepath.Base(s.Path) == "inbox"
			return disktest.Action{}
		}), func(q *Queue) error { _, err := b.all(q); return err })
	}
	taken, begins := false, sync.OnceFunc(func() {
		go process()
		<-looks
	})
	err := b.with(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		if taken {
			begins()
		}
		taken = taken || strings.HasSuffix(s.To, "/dead/a.md")
		return disktest.Action{}
	}), func(q *Queue) error { _, err := Cancel(q.o.Recorder, "h", "a.md", "not wanted"); return err })
	require.ErrorContains(t, err, "a.md is being done")
	require.NoError(t, <-ended)
	require.Equal(t, []string{"a.md"}, b.done(), strings.Join(b.said, "\n"))
	require.Empty(t, b.inbox())
	require.Empty(t, b.dead())
	require.Equal(t, []string{"go"}, b.ran())
}
