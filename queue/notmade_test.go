//go:build unix

package queue

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestAnAttemptThatWasNotMade: one that could not be started, as somebody had renamed the project's directory, is not counted.
func TestAnAttemptThatWasNotMade(t *testing.T) {
	b := newBench(t, map[string]string{
		".decree/config.yml":          "max_attempts: 2\n",
		".decree/routines/develop.sh": `echo $DECREE_ATTEMPT >>"$RAN"; [ $DECREE_ATTEMPT != 2 ] || exit 0; mv "$DECREE_ROOT" "$DECREE_ROOT.away"; exit 1` + "\n",
		".decree/inbox/a.md":          "one\n",
	})
	_, err := b.work(disk.OS)
	require.ErrorContains(t, err, "attempt 2 was not started")
	require.NoError(t, os.Rename(b.root+".away", b.root))
	require.Equal(t, []string{"a.md done"}, names2(b.process()))
	require.Equal(t, []string{"1", "2"}, b.ran())
}
