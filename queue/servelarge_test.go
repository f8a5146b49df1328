//go:build unix

package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestServeBesideATooLargeFile: a daemon can ask nobody whether a file above capture.max_file is to be recorded. The message is dead, with
// the file's name, and the daemon goes on; where somebody is there to be asked the message waits. So where an attempt was made before.
func TestServeBesideATooLargeFile(t *testing.T) {
	serveBesideALargeFile(t, func(*bench) {})
	serveBesideALargeFile(t, func(b *bench) {
		b.killedOnceItRan()
		b.recover()
	})
}

func serveBesideALargeFile(t *testing.T, before func(b *bench)) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "capture: {max_file: 1KB}\n",
		".decree/routines/develop.sh": `tail -n1 "$message_file" >>"$RAN"` + "\n",
		".decree/inbox/a.md":          "one\n",
	})
	before(b)
	ran := b.ran()
	b.put(map[string]string{"big": string(make([]byte, 5000))})
	_, err := b.work(disk.OS)
	require.ErrorContains(t, err, "capture.max_file")
	require.Equal(t, []string{"a.md"}, b.inbox())

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.more = func(o *Options) {
		o.Tell = func(e Event) {
			if e.Result != nil && !e.Started {
				cancel()
			}
		}
	}
	require.NoError(t, b.with(disk.OS, func(q *Queue) error { return q.Serve(ctx, ServeOptions{Interval: 1e7}) }))
	require.Empty(t, b.inbox())
	require.Equal(t, []string{"a.error.txt", "a.md"}, b.dead())
	require.Regexp(t, `^a\.md: .*capture\.max_file.*: big; ignore what need not`, b.read(".decree/inbox/dead/a.error.txt"))
	require.Equal(t, ran, b.ran())
}
