package disk

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFolded(t *testing.T) {
	for _, names := range [][]string{
		{"readme", "README", "ReadMe"}, {"caf\u00e9", "cafe\u0301", "CAFE\u0301"}, {"stra\u00dfe", "STRASSE", "stra\u1e9ee"},
		{"\u017fign", "sign"}, {"\u212bng", "\u00c5ng", "a\u030ang"}, {"a\u200db", "AB"}, {"\u1fb7", "\u03b1\u0345\u0342"}, {"src/\u00c9", "SRC/e\u0301"},
	} {
		for _, name := range names {
			assert.Equal(t, Folded(names[0]), Folded(name), "%q", name)
		}
	}
	for _, names := range [][2]string{{"a", "b"}, {"cafe", "caf\u00e9"}, {"\u00e9/a", "\u00e9a"}, {"i", "\u0131"}} {
		assert.NotEqual(t, Folded(names[0]), Folded(names[1]))
	}
	assert.NotPanics(t, func() { Folded("\xff\xfe\u00e9\xc3") })
}
