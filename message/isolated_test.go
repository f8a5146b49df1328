package message_test

import (
	"testing"

	"decree/message"

	"github.com/stretchr/testify/require"
)

// TestIsolates: the message goes before its routine's head, and that before the config.
func TestIsolates(t *testing.T) {
	for _, c := range []struct {
		front, file, routine string
		usually, want        bool
	}{
		{"", "r.sh", "echo\n", false, false},
		{"", "r.sh", "echo\n", true, true},
		{"isolated: true\n", "r.sh", "echo\n", false, true},
		{"isolated: yes\n", "r.sh", "# isolated: false\necho\n", false, true},
		{"isolated: False\n", "r.sh", "# isolated: true\necho\n", true, false},
		{"isolated:\n", "r.sh", "#!/bin/bash\n# Does it.\n#\n# isolated: true\nset -e\necho\n", false, true},
		{"", "r.sh", "# Does it.\n\nset -e\nx=1\n#isolated: true\n", false, true},
		{"", "r.sh", "# isolated: no\necho\n", true, false},
		{"", "r.sh", "echo\n# isolated: true\n", false, false},
		{"", "r.sh", "# isolated: runs are fine\necho\n", false, false},
		{"", "n.ipynb", `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"markdown","metadata":{},"source":["# Does it\n","isolated: true"]}]}`, false, true},
	} {
		m, err := message.Parse("m.md", []byte("---\n"+c.front+"---\ngo\n"))
		require.NoError(t, err)
		require.Empty(t, m.Params, "it is no parameter")
		r, err := message.ReadRoutine(c.file, []byte(c.routine))
		require.NoError(t, err)
		require.Equal(t, c.want, message.Isolates(m, &r, c.usually), "%+v", c)
		require.NotContains(t, r.Description, "isolated: true")
	}
	_, err := message.Parse("m.md", []byte("---\nisolated: perhaps\n---\n"))
	require.ErrorContains(t, err, `m.md:2: isolated is "perhaps"; it can be true or false`)
	_, err = message.ReadRoutine("r.sh", []byte("# isolated: ture\necho\n"))
	require.ErrorContains(t, err, `r.sh: isolated is "ture"; it can be true or false`)
}
