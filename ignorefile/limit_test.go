package ignorefile_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/ignorefile"
)

func TestParseLimits(t *testing.T) {
	line := bytes.Repeat([]byte("a"), ignorefile.MaxLine)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, c := range []struct {
		name string
		data []byte
		want string // the error, empty for none
	}{
		{"longest line", join(line, []byte("\nb\n")), ""},
		{"longest last line", join([]byte("b\n"), line), ""},
		{"line too long", join([]byte("b\n\n"), line, []byte("a\n")), "x/.gitignore:3: line longer than 1048576 bytes"},
		{"last line too long", join([]byte("b\n"), line, []byte("a")), "x/.gitignore:2: line longer than 1048576 bytes"},
		{"comment too long", join([]byte("#"), line), "x/.gitignore:1: line longer than 1048576 bytes"},
		{"longest file", bytes.Repeat([]byte("a\n"), ignorefile.MaxFile/2), ""},
		{"file too long", bytes.Repeat([]byte("\n"), ignorefile.MaxFile+1), "x/.gitignore: ignore file longer than 67108864 bytes"},
	} {
		f, err := ignorefile.Parse("x/.gitignore", c.data)
		if c.want == "" {
			require.NoError(t, err, c.name)
			assert.NotZero(t, f.Len(), c.name)
			continue
		}
		var limit *ignorefile.LimitError
		require.ErrorAs(t, err, &limit, c.name)
		assert.Equal(t, "x/.gitignore", limit.Source, c.name)
		assert.EqualError(t, err, c.want, c.name)
		assert.Nil(t, f, c.name)
	}
}
