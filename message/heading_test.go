package message_test

import (
	"strings"
	"testing"

	"decree/message"

	"github.com/stretchr/testify/require"
)

func TestHeading(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n \n": "", "one\ntwo\n": "one", "\n## Fix it\r\nbody": "Fix it", "#\n# \nthen\n": "then",
		"---\nroutine: x\n---\n# After": "After", "a\x1b[31mb\u009bc\xff": "a [31mb c\ufffd",
		strings.Repeat("é", 80): strings.Repeat("é", 71) + "…",
	} {
		m, err := message.Parse("m.md", []byte(text))
		require.NoError(t, err)
		require.Equal(t, want, m.Heading(), "%q", text)
	}
}
