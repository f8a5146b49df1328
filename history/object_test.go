package history

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each byte at each place of a word and behind it, alone and after an odd one.
func TestPlainText(t *testing.T) {
	for n := range 20 {
		text := bytes.Repeat([]byte("a"), n)
		assert.True(t, plainText(text))
		for at := range n {
			for c := range 256 {
				text[at] = byte(c)
				plain := c >= 0x20 && c < 0x80 && c != '\\'
				assert.Equal(t, plain, plainText(text), "%q", text)
			}
			text[at] = "a~ \x7f"[at%4]
		}
	}
}

// The quick way through plain text and the careful one read the same.
func TestPlainTextIsReadAlike(t *testing.T) {
	for _, text := range []string{
		`{"a":"b","c":["d",1,{"e":null}],"f":-0.5}`, `{"a":"b`, `{"a":"b"`, `{"a"`, `{"a":"b""c"}`, `{"":""}`, `{"a":"b"} x`, `{"a":b}`, `{`, ``,
	} {
		read := func(data string) (out []string, err error) {
			err = object([]byte(data), func(key string, v *value) error {
				if v.raw[0] == '"' {
					out = append(out, key, v.text())
				}
				return v.err()
			})
			return out, err
		}
		quick, qerr := read(text)
		careful, cerr := read("\n" + text) // a control character: not plain
		assert.Equal(t, careful, quick, text)
		assert.Equal(t, cerr, qerr, text)
	}
}
