package tree

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTextInJSON(t *testing.T) {
	for _, text := range []Text{"", "a b", "é", "a\nb", "a\xffb", `"`, `"a"`, `"a\nb"`, "\x7f"} {
		data, err := json.Marshal(text)
		require.NoError(t, err)
		var back Text
		require.NoError(t, json.Unmarshal(data, &back), "%s", data)
		require.Equal(t, text, back)
	}
	var old Text // as an earlier decree has written the names of files in a backup
	require.NoError(t, json.Unmarshal([]byte(`"a\nb"`), &old))
	require.Equal(t, Text("a\nb"), old)
}
