package cmd

import (
	"bytes"
	"crypto/sha256"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/patch"
	"decree/tree"
)

// side is one side of a path in a test's diff.
func side(text string, mode uint32) (*tree.Entry, patch.Content) {
	return &tree.Entry{SHA256: sha256.Sum256([]byte(text)), Size: int64(len(text)), Mode: mode}, patch.Bytes(text)
}

// sampleDiff has one path of each kind that people see differently.
func sampleDiff(t *testing.T) []byte {
	var out bytes.Buffer
	w := patch.NewWriter(&out, patch.Limits{})
	write := func(c patch.Change) { require.NoError(t, w.Write(t.Context(), c)) }
	change := func(path tree.Path, old, new string) {
		c := patch.Change{Path: path}
		c.Old, c.OldContent = side(old, 0o644)
		c.New, c.NewContent = side(new, 0o644)
		write(c)
	}
	change("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\nfour\n")
	change("bin", "\x00old", "\x00newer")
	create := patch.Change{Path: "esc\nape"}
	create.New, create.NewContent = side("\x1b[31mred\n@@ -1 +1 @@\n# not ours\n", 0o600)
	write(create)
	write(patch.Change{Path: "made", New: &tree.Entry{Type: tree.Dir, Mode: 0o755}})
	mode := patch.Change{Path: "run.sh"}
	mode.Old, mode.OldContent = side("x\n", 0o644)
	mode.New, mode.NewContent = side("x\n", 0o755)
	write(mode)
	require.NoError(t, w.Close())
	return out.Bytes()
}

const sampleShown = `diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,4 @@
 one
-two
+2
 three
+four
modified bin: binary, 4 B -> 6 B
diff --git "a/esc\nape" "b/esc\nape"
new file mode 100600
--- /dev/null
+++ "b/esc\nape"
@@ -0,0 +1,3 @@
+\033[31mred
+@@ -1 +1 @@
+# not ours
created made: directory
diff --git a/run.sh b/run.sh
old mode 100644
new mode 100755
`

func TestDiffView(t *testing.T) {
	var out bytes.Buffer
	n, err := diffView{out: &out}.show(bytes.NewReader(sampleDiff(t)), nil)
	require.NoError(t, err)
	assert.Equal(t, 5, n)
	assert.Equal(t, sampleShown, out.String())
}

func TestDiffViewPaths(t *testing.T) {
	var out bytes.Buffer
	n, err := diffView{out: &out}.show(bytes.NewReader(sampleDiff(t)), []tree.Path{"bin", "run"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, "modified bin: binary, 4 B -> 6 B\n", out.String())
}

func TestDiffViewColours(t *testing.T) {
	var out bytes.Buffer
	_, err := diffView{out: &out, paint: true}.show(bytes.NewReader(sampleDiff(t)), []tree.Path{"a.txt"})
	require.NoError(t, err)
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, bold+"diff --git a/a.txt b/a.txt"+reset, lines[0])
	assert.Equal(t, cyan+"@@ -1,3 +1,4 @@"+reset, lines[3])
	assert.Equal(t, " one", lines[4])
	assert.Equal(t, red+"-two"+reset, lines[5])
	assert.Equal(t, green+"+2"+reset, lines[6])
}

func TestDiffstat(t *testing.T) {
	stat, err := readStat(bytes.NewReader(sampleDiff(t)), nil)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, stat.write(&out, &table{gap: 1}, false))
	assert.Equal(t, ` modified a.txt      |     3 ++-
 modified bin        | binary, 4 B -> 6 B
 created  "esc\nape" |     3 +++
 created  made       | directory
 mode     run.sh     | mode 644 -> 755
 1 created, 3 modified, 1 directory; +5 -1 lines
`, out.String())
}

func TestDiffstatBars(t *testing.T) {
	f := fileStat{Added: 1000, Removed: 1}
	assert.Equal(t, strings.Repeat("+", barWidth-1)+"-", f.bar(1001, barWidth, false))
	assert.Equal(t, "+-", fileStat{Added: 1, Removed: 1}.bar(100000, barWidth, false))
	assert.Empty(t, fileStat{}.bar(1, barWidth, false))
}

// TestDiffSourceCopy holds that a diff for other programs is the file, byte for
// byte, and that a part of it is a diff again.
func TestDiffSourceCopy(t *testing.T) {
	raw := sampleDiff(t)
	source := &diffSource{write: writeBytes(raw)}
	var out bytes.Buffer
	require.NoError(t, source.copy(&out))
	assert.Equal(t, string(raw), out.String())

	source.paths = []tree.Path{"bin", "run.sh"}
	out.Reset()
	require.NoError(t, source.copy(&out))
	var names []string
	require.NoError(t, patch.EachSection(bytes.NewReader(out.Bytes()), nil, func(sec *patch.Section) error {
		names = append(names, string(sec.Path))
		assert.Contains(t, string(raw), string(sec.Raw))
		return nil
	}))
	assert.Equal(t, []string{"bin", "run.sh"}, names)
}

func TestDiffSourceReportsDamage(t *testing.T) {
	raw := bytes.Replace(sampleDiff(t), []byte("\n-two\n"), []byte("\n-tw\n-o\n"), 1)
	source := &diffSource{write: writeBytes(raw), paths: []tree.Path{"run.sh"}}
	var out bytes.Buffer
	var syntax *patch.SyntaxError
	require.ErrorAs(t, source.copy(&out), &syntax)
}

func writeBytes(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}
