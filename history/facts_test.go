package history

import (
	"strings"
	"testing"

	"decree/patch"
	"decree/tree"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const someDiff = `# decree changes 1
# decree: {"path":"dir","op":"mkdir","new":{"mode":"755"}}
# decree: {"path":"dir/main.go","op":"modify","old":{"mode":"644","size":21,"sha256":"0000000000000000000000000000000000000000000000000000000000000001"},"new":{"mode":"644","size":21,"sha256":"0000000000000000000000000000000000000000000000000000000000000002"}}
diff --git a/dir/main.go b/dir/main.go
--- a/dir/main.go
+++ b/dir/main.go
@@ -1,2 +1,2 @@
 # decree: {"path":"content","op":"delete"}
-# decree: {"path":"content","op":"delete"}
+# decree: {"path":"content","op":"delete"}
# decree: {"path":"\"caf\\351\"","op":"delete","old":{"mode":"644","size":3,"sha256":"0000000000000000000000000000000000000000000000000000000000000003"}}
`

func TestFacts(t *testing.T) {
	var got []*patch.Section
	require.NoError(t, Facts(strings.NewReader(someDiff), func(f *patch.Section) bool { got = append(got, f); return true }))
	sum := func(last byte) (h tree.Hash) { h[31] = last; return h }
	assert.Equal(t, []*patch.Section{
		{Path: "dir", Op: "mkdir", New: &tree.Entry{Mode: 0o755, Type: tree.Dir}},
		{Path: "dir/main.go", Op: "modify", Old: &tree.Entry{SHA256: sum(1), Size: 21, Mode: 0o644}, New: &tree.Entry{SHA256: sum(2), Size: 21, Mode: 0o644}},
		{Path: "caf\xe9", Op: "delete", Old: &tree.Entry{SHA256: sum(3), Size: 3, Mode: 0o644}},
	}, got)
	long := strings.Repeat("x", 200_000)
	for name, text := range map[string]string{
		"a long line of content": "+" + long + "\n" + someDiff, "no end of line": strings.TrimSuffix(someDiff, "\n"), "empty": "",
	} {
		require.NoError(t, Facts(strings.NewReader(text), func(*patch.Section) bool { return true }), name)
	}
	for name, text := range map[string]string{
		"not JSON": "# decree: {\n", "outside": `# decree: {"path":"../x","op":"delete"}`, "in .git": `# decree: {"path":".git/x","op":"delete"}`,
		"quoting": `# decree: {"path":"\"x","op":"delete"}`, "long": "# decree: " + strings.Repeat("x", 2<<20) + "\n",
	} {
		err := Facts(strings.NewReader("\n"+text), func(*patch.Section) bool { return true })
		require.ErrorContains(t, err, "changes.diff: line 2", name)
	}
}

func TestTouches(t *testing.T) {
	w := newWorld(t)
	r := w.checkpoint()
	touched, err := w.Touches(r, "dir")
	require.NoError(t, err)
	assert.False(t, touched, "without a diff nothing changed")
	r.DiffSHA256 = tree.Sum([]byte(someDiff))
	_, err = w.Touches(r, "dir")
	require.Error(t, err)
	require.NoError(t, w.ReplaceFile(r.ID, "changes.diff", Bytes([]byte(someDiff))))
	for path, want := range map[tree.Path]bool{"": true, "dir": true, "dir/main.go": true, "dir/main": false, "di": false, "content": false, "caf\xe9": true} {
		touched, err := w.Touches(r, path)
		require.NoError(t, err)
		assert.Equal(t, want, touched, path)
	}
}
