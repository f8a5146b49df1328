package manifest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecode: what is accepted is a tree, and encoding it is a fixed point.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encode(f, false, file("a", "x", 0o644), link("l", "t"), file("x/\xff", "", 0o755), dir("x", 0o755))))
	f.Add([]byte(encode(f, true)))
	f.Add([]byte(`{"version":1,"x":[{}],"files":{"a\/b":{"mode":"0","size":0,"sha256":"` + sumEmpty + `"}},"dirs":{"a":"755"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := NewDecoder(bytes.NewReader(in))
		items, err := Collect(d.All())
		if err != nil {
			return
		}
		var once bytes.Buffer
		require.NoError(t, Encode(&once, Of(items...), d.partial))
		again, err := Collect(NewDecoder(bytes.NewReader(once.Bytes())).All())
		require.NoError(t, err)
		require.Equal(t, items, again)
	})
}

// FuzzTree: the binary form has one encoding for each tree.
func FuzzTree(f *testing.F) {
	tree, err := AppendTree(nil, Of(file("a", "x", 0o644), link("l", "t"), file("x/\xff", "", 0o755), dir("x", 0o755)))
	require.NoError(f, err)
	f.Add(tree)
	f.Fuzz(func(t *testing.T, in []byte) {
		items, err := Collect(DecodeTree(in))
		if err != nil {
			return
		}
		again, err := AppendTree(nil, Of(items...))
		require.NoError(t, err)
		require.Equal(t, in, again)
	})
}
