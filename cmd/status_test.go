package cmd

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/recorder"
	"decree/tree"
)

// What a revert that is under way, or died, has moved was not changed outside any run.
func TestStatusOfAnUnfinishedMove(t *testing.T) {
	s := &session{env: Env{Stdout: os.Stdout}}
	st := &recorder.Status{Last: &history.Record{}, Changed: []tree.Change{{Path: "f", New: &tree.Entry{Type: tree.Regular}}}}
	says := func(reason history.Reason) string {
		st.Open = nil
		if reason != "" {
			st.Open = []*history.Record{{ID: "2026112223103800-0", Reason: reason}}
		}
		var out bytes.Buffer
		require.NoError(t, s.writeChanged(&out, st))
		return out.String()
	}
	for _, moves := range []history.Reason{history.Revert, history.Apply, history.Restore, history.Publish} {
		assert.Contains(t, says(moves), "1 path changed since the last record, by "+string(moves)+" 2026112223103800-0, which is still open, or outside any run:")
	}
	assert.Contains(t, says(""), "since the last record, outside any run:")
	assert.Contains(t, says(history.Manual), "since the last record, outside any run:")
}
