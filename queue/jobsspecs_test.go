//go:build unix

package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestSpecsInOrderBesideEachOther: with several jobs, too, a spec whose message has to wait for another one's end comes before the specs after it.
func TestSpecsInOrderBesideEachOther(t *testing.T) {
	needsLayers(t)
	b := newBench(t, map[string]string{
		".decree/config.yml":          "isolated: {queue: true}\n",
		".decree/routines/develop.sh": "echo $input_file >>\"$RAN\"; base=${RAN%/*}\ncase $input_file in *01*) echo 1 >$base/started; read line <$base/go ;; esac\n",
		".decree/routines/place.sh":   "# isolated: false\necho $input_file >>\"$RAN\"\n",
		"specs/01.spec.md":            "1\n",
		"specs/02.spec.md":            "---\nroutine: place\n---\n2\n",
		"specs/03.spec.md":            "3\n",
	})
	b.known()
	b.jobs = 2
	await, let := b.meet()
	done := make(chan error)
	go func() { _, err := b.work(disk.OS); done <- err }()
	require.Equal(t, "1", await())
	for len(b.inbox()) < 2 && t.Context().Err() == nil { // the second one's message is made, by who has the turn
	}
	let()
	require.NoError(t, <-done)
	require.Equal(t, []string{"specs/01.spec.md", "specs/02.spec.md", "specs/03.spec.md"}, b.ran())
}
