package patch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/jsonread"
	"decree/tree"
)

// TestOwnersOfDirectories: a side's facts say whose a directory is where that matters.
func TestOwnersOfDirectories(t *testing.T) {
	shared := &tree.Entry{Type: tree.Dir, Mode: 0o2775, Owner: tree.Owner{UID: 7, GID: 50, Known: true}}
	text := string(appendEntry(nil, shared))
	assert.Equal(t, `{"mode":"2775","owner":"7:50"}`, text)
	var got *tree.Entry
	read := func(text string) error {
		return jsonread.Object([]byte(`{"old":`+text+"}"), func(_ string, v *jsonread.Value) error {
			got = entryOf(v)
			return v.Err()
		})
	}
	require.NoError(t, read(text))
	assert.Equal(t, shared, got)
	require.ErrorContains(t, read(`{"mode":"755","owner":"7:50"}`), "an owner is only for")
}

func TestHeaderName(t *testing.T) {
	assert.Equal(t, "a/b+c-d,e~f", headerName("a/", "b+c-d,e~f"))
	assert.Equal(t, `"a/b c"`, headerName("a/", "b c"))
	assert.Equal(t, `"a/\303\251\\\"\t"`, headerName("a/", "é\\\"\t"))
}
