package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTidyRemovesWhatEarlierVersionsKept(t *testing.T) {
	w := newWorld(t)
	w.checkpoint()
	w.put(w.stored("records.idx"), "dindex1\n")
	require.NoError(t, w.Tidy())
	assert.NoFileExists(t, w.stored("records.idx"))
	assert.FileExists(t, w.stored(logFile))
}
