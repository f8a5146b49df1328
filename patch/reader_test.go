package patch

import (
	"bytes"
	"decree/tree"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// facts returns a "# decree:" line; old and new are entries' JSON, or "".
func facts(path, op, old, new, more string) string {
	s := `# decree: {"path":"` + path + `","op":"` + op + `"`
	if old != "" {
		s += `,"old":` + old
	}
	if new != "" {
		s += `,"new":` + new
	}
	return s + more + "}\n"
}

// js returns an entry's JSON.
func js(e *tree.Entry) string { return string(appendEntry(nil, e)) }

const first = VersionLine + "\n"

var (
	oldJSON = js(file("a\nb\n", 0o644))
	newJSON = js(file("a\nc\n", 0o644))
	modLine = facts("f", "modify", oldJSON, newJSON, "")
	modHead = "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
	modHunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
	newLine = facts("f", "create", "", newJSON, "")
	newHead = "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n"
	binOld  = js(file("\x00a", 0o644))
	binNew  = js(file("\x00b", 0o644))
	binLine = facts("f", "modify", binOld, binNew, `,"binary":true`)
	binHead = "Binary files a/f and b/f differ\n"
	modeSec = facts("m", "mode", oldJSON, js(file("a\nb\n", 0o755)), "") +
		"diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"
	goneSec = facts("f", "delete", oldJSON, "", "") +
		"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
)

func mkdir(path string) string { return facts(path, "mkdir", "", `{"mode":"755"}`, "") }

func TestReaderTakes(t *testing.T) {
	for name, diff := range map[string]string{
		"empty":          "",
		"modify":         first + modLine + modHead + modHunk,
		"unknown fields": first + facts("f", "modify", oldJSON, newJSON, `,"later":{"a":[1,-2.5e3,"x",null,true],"b":{}},"more":0`) + modHead + modHunk,
		"key order":      first + `# decree: {"new":` + newJSON + `, "op":"modify", "old": ` + oldJSON + `,"path":"f"}` + "\n" + modHead + modHunk,
		"binary":         first + binLine + binHead + "# < AGE=\n# > AGI=\n",
		"stored":         first + facts("f", "modify", binOld, binNew, `,"binary":true,"store":true`) + binHead,
		"directories":    first + mkdir("a") + mkdir("a/b") + facts("b", "rmdir", `{"mode":"700"}`, "", "") + facts("c", "dirmode", `{"mode":"700"}`, `{"mode":"1777"}`, ""),
		"mode":           first + modeSec,
		"file to dir":    first + goneSec + mkdir("f"),
		"escaped path":   first + strings.ReplaceAll(modLine, `"f"`, `"\u0066"`) + modHead + modHunk,
	} {
		t.Run(name, func(t *testing.T) {
			all := read(t, []byte(diff))
			size := int64(len(first))
			for _, s := range all {
				require.Equal(t, size, s.Offset)
				require.Equal(t, diff[s.Offset:s.Offset+s.Size], string(s.Raw))
				size += s.Size
			}
			if len(all) > 0 {
				require.EqualValues(t, len(diff), size)
			}
		})
	}
}

// Hostile and broken diffs, each with the line and the reason that the reader must give.
func TestReaderRefuses(t *testing.T) {
	entry := func(mode, size, sum, more string) string {
		return `{"mode":"` + mode + `","size":` + size + `,"sha256":"` + sum + `"` + more + `}`
	}
	sum := tree.Sum([]byte("a\nb\n")).String()
	withOld := func(old string) string { return first + facts("f", "modify", old, newJSON, "") }
	pathed := func(p string) string { return first + mkdir(p) }
	mod := func(hunks string) string { return first + modLine + modHead + hunks }
	bin := func(payload string) string { return first + binLine + binHead + payload }
	lnk := func(hunk string) string {
		return first + facts("f", "modify", js(link("one")), js(link("two")), "") +
			"diff --git a/f b/f\nold mode 120000\nnew mode 120000\n--- a/f\n+++ b/f\n" + hunk
	}
	tests := []struct {
		name   string
		diff   string
		line   int
		reason string
	}{
		{"plain diff", "--- a/f\n+++ b/f\n" + modHunk, 1, "not a changes.diff"},
		{"newer version", "# decree changes 2\n", 1, "version 2 of the format is unknown"},
		{"version with more", "# decree changes 1.5\n", 1, "version 1.5 of the format"},
		{"version cut", "# decree changes 1", 1, "cut short"},
		{"CRLF", "# decree changes 1\r\n", 1, "version 1\r of the format"},
		{"nothing behind the version", first, 1, "a section expected"},
		{"blank line", first + "\n" + modLine, 2, `"# decree:" line expected`},
		{"no facts", first + modHead + modHunk, 2, `"# decree:" line expected`},
		{"text behind", mod(modHunk) + "x\n", 10, "hunk header expected"},
		{"comment behind", mod(modHunk) + "# hello\n", 10, `"# decree:" line expected`},
		{"NUL bytes", strings.Repeat("\x00", 200), 1, "line too long"},

		{"no JSON", first + "# decree: \n", 2, "ends too early"},
		{"JSON cut", first + "# decree: {\"path\":\"f\n", 2, "ends too early"},
		{"JSON not UTF-8", first + strings.Replace(modLine, `"f"`, "\"\xff\"", 1), 2, "invalid UTF-8"},
		{"JSON with more behind", first + strings.Replace(modLine, "}\n", "} {}\n", 1), 2, "something follows the JSON object"},
		{"JSON with CR behind", first + strings.Replace(modLine, "}\n", "}\r\n", 1), 2, "something follows the JSON object"},
		{"JSON control", first + "# decree: {\"path\":\"\x01\"}\n", 2, "expecting non-control character"},
		{"JSON surrogate", first + `# decree: {"path":"\ud800"}` + "\n", 2, "invalid surrogate pair"},
		{"JSON escape", first + `# decree: {"path":"\x41"}` + "\n", 2, "invalid escape sequence"},
		{"JSON deep", first + `# decree: {"x":` + strings.Repeat("[", 100000) + "\n", 2, "exceeded max depth"},
		{"JSON bare word", first + `# decree: {"x":nan}` + "\n", 2, "malformed JSON"},
		{"JSON number", first + `# decree: {"x":01}` + "\n", 2, "malformed JSON"},
		{"key twice", first + facts("f", "modify", oldJSON, newJSON, `,"op":"modify"`), 2, "a name stands twice"},
		{"key twice in an entry", withOld(entry("644", "4", sum, `,"mode":"644"`)), 2, "a name stands twice"},
		{"unknown key twice", first + facts("f", "modify", oldJSON, newJSON, `,"x":1,"x":1`), 2, "a name stands twice"},
		{"no path", first + `# decree: {"op":"mkdir","new":{"mode":"755"}}` + "\n", 2, "no path"},
		{"no op", first + `# decree: {"path":"f","new":{"mode":"755"}}` + "\n", 2, "no op"},
		{"op in capitals", first + `# decree: {"path":"f","Op":"mkdir","new":{"mode":"755"}}` + "\n", 2, "no op"},
		{"unknown op", first + facts("f", "chown", "", newJSON, ""), 2, `unknown op "chown"`},
		{"no sides", first + facts("f", "modify", "", "", ""), 2, "neither old nor new"},
		{"null side", withOld("null"), 2, "old: expected an object"},
		{"long facts", first + "# decree: {\"x\":\"" + strings.Repeat("x", 2<<20) + "\"}\n", 2, "line too long"},

		{"size huge", withOld(entry("644", "9223372036854775808", sum, "")), 2, "size: expected a whole number"},
		{"size of digits without end", withOld(entry("644", strings.Repeat("9", 50000), sum, "")), 2, "size: expected a whole number"},
		{"size negative", withOld(entry("644", "-1", sum, "")), 2, "size: expected a whole number"},
		{"size as a float", withOld(entry("644", "4.0", sum, "")), 2, "size: expected a whole number"},
		{"size as a string", withOld(entry("644", `"4"`, sum, "")), 2, "size: expected a whole number"},
		{"size 0 with a hash", withOld(entry("644", "0", sum, "")), 2, "size and sha256 contradict each other"},
		{"hash of nothing with a size", withOld(entry("644", "4", tree.EmptySum.String(), "")), 2, "size and sha256 contradict each other"},
		{"hash short", withOld(entry("644", "4", sum[1:], "")), 2, "sha256: expected 64"},
		{"hash in capitals", withOld(entry("644", "4", strings.ToUpper(sum), "")), 2, "sha256: expected 64"},
		{"mode decimal", withOld(entry("689", "4", sum, "")), 2, "mode: expected a mode in octal"},
		{"mode with a zero", withOld(entry("0644", "4", sum, "")), 2, "mode: expected a mode in octal"},
		{"mode too large", withOld(entry("100644", "4", sum, "")), 2, "mode: expected a mode in octal"},
		{"mode empty", withOld(entry("", "4", sum, "")), 2, "mode: expected a mode in octal"},
		{"no mode", withOld(`{"size":4,"sha256":"` + sum + `"}`), 2, "entry without mode"},
		{"no size", withOld(`{"mode":"644","sha256":"` + sum + `"}`), 2, "entry with one of size and sha256"},
		{"unknown type", withOld(entry("644", "4", sum, `,"type":"pipe"`)), 2, `unknown type "pipe"`},
		{"target without type", withOld(entry("644", "4", sum, `,"target":"a"`)), 2, "target and type disagree"},
		{"type without target", withOld(entry("777", "4", sum, `,"type":"symlink"`)), 2, "target and type disagree"},
		{"target not the hashed one", first + facts("f", "delete", entry("777", "4", sum, `,"type":"symlink","target":"evil"`), "", ""), 2, "not those of the target"},
		{"symlink's mode", first + facts("f", "delete", strings.Replace(js(link("x")), "777", "755", 1), "", ""), 2, "mode of a symlink"},
		{"symlink without hash", first + facts("f", "delete", `{"mode":"777","type":"symlink","target":"x"}`, "", ""), 2, "symlink without sha256"},
		{"target with NUL", first + facts("f", "delete", js(link("a\x00b")), "", ""), 2, "NUL byte in a target"},

		{"path up", pathed("../f"), 2, `".." in path`},
		{"path up inside", pathed("a/../../f"), 2, `".." in path`},
		{"path absolute", pathed("/etc/passwd"), 2, "absolute path"},
		{"path empty", pathed(""), 2, "empty path"},
		{"path dot", pathed("."), 2, "path not clean"},
		{"path with a dot", pathed("a/./b"), 2, "path not clean"},
		{"path with two slashes", pathed("a//b"), 2, "path not clean"},
		{"path ends in a slash", pathed("a/"), 2, "path not clean"},
		{"path in .git", pathed(".git/hooks/pre-commit"), 2, "path in .git"},
		{"path in .git below", pathed("sub/.git/config"), 2, "path in .git"},
		{"path .git itself", pathed(".git"), 2, "path in .git"},
		{"path in .decree", pathed(".decree/runs"), 2, "path in .decree"},
		{"path with NUL", pathed(`\"a\\000b\"`), 2, "NUL byte in path"},
		{"path long", pathed(strings.Repeat("a/", tree.MaxPath/2) + "a"), 2, "path too long"},
		{"path: not quoted", pathed(`a\nb`), 2, "path: not quoted"},
		{"path quoted without need", pathed(`\"a\"`), 2, "path: not quoted"},
		{"path quoted another way", pathed(`\"a\\012b\"`), 2, "path: not quoted"},

		{"op against the sides", first + facts("f", "modify", "", newJSON, ""), 2, "op does not fit old and new, which are a create"},
		{"op of a directory", first + facts("f", "mkdir", "", newJSON, ""), 2, "op does not fit"},
		{"op of a file", first + facts("f", "create", "", `{"mode":"755"}`, ""), 2, "op does not fit"},
		{"mode with a new content", first + facts("f", "mode", oldJSON, newJSON, ""), 2, "op does not fit"},
		{"sides the same", first + facts("f", "modify", oldJSON, oldJSON, ""), 2, "old and new are the same"},
		{"kinds in one section", first + facts("f", "modify", oldJSON, js(link("x")), ""), 2, "different kinds"},
		{"store without binary", first + facts("f", "modify", oldJSON, newJSON, `,"store":true`), 2, "store without binary"},
		{"binary mode", first + strings.Replace(modeSec, "}}\n", `},"binary":true}`+"\n", 1), 2, "binary on an op without contents"},
		{"binary directory", first + strings.Replace(mkdir("f"), "}}", `},"binary":true}`, 1), 2, "binary on an op without contents"},
		{"binary symlink", first + facts("f", "delete", js(link("x")), "", `,"binary":true`), 2, "binary symlink"},
		{"binary as a word", first + facts("f", "modify", oldJSON, newJSON, `,"binary":"true"`), 2, "binary: expected true or false"},

		{"order", first + mkdir("b") + mkdir("a"), 3, "not in byte order"},
		{"order of bytes", first + mkdir("a/b") + mkdir("a-b"), 3, "not in byte order"},
		{"twice", first + mkdir("a") + mkdir("a"), 3, "the path has a second section"},
		{"created, then deleted", first + mkdir("f") + goneSec, 3, "the path has a second section"},
		{"deleted, then created", first + goneSec + newLine, 10, "a delete and a create of the same kind, instead of a modify"},
		{"three times", first + goneSec + mkdir("f") + mkdir("f"), 11, "the path has a second section"},
		{"below a new link", first + facts("d", "create", "", js(link("/etc")), "") +
			"diff --git a/d b/d\nnew file mode 120000\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+/etc\n" + noNewline + "\n" +
			mkdir("d/x"), 10, "below d, which is not a directory"},
		{"below a removed directory", first + facts("d", "rmdir", `{"mode":"755"}`, "", "") + mkdir("d-x") + mkdir("d/x"), 4, "below d, which is not a directory"},
		{"old below a new directory", first + mkdir("d") + facts("d/x", "rmdir", `{"mode":"755"}`, "", ""), 3, "below d, which is not a directory"},

		{"header of another path", first + modLine + "diff --git a/g b/g\n--- a/g\n+++ b/g\n" + modHunk, 3, "header does not match"},
		{"--- of another path", first + modLine + strings.Replace(modHead, "--- a/f", "--- a/g", 1) + modHunk, 4, "header does not match"},
		{"+++ of another path", first + modLine + strings.Replace(modHead, "+++ b/f", "+++ b/../f", 1) + modHunk, 5, "header does not match"},
		{"tab behind the name", first + modLine + strings.Replace(modHead, "--- a/f", "--- a/f\t", 1) + modHunk, 4, "header does not match"},
		{"mode lines that lie", first + strings.Replace(modeSec, "100755", "104755", 1), 5, "header does not match"},
		{"create as modify", first + newLine + modHead, 4, "header does not match"},
		{"header missing", first + modLine + modHunk, 3, "header does not match"},
		{"header cut", first + modLine + "diff --git a/f b/f\n", 3, "cut short: --- a/f expected"},
		{"index line too many", first + modLine + "diff --git a/f b/f\nindex 1234567..89abcde\n", 4, "header does not match"},
		{"empty with a hunk", first + facts("f", "create", "", js(file("", 0o644)), "") + newHead + "@@ -0,0 +1 @@\n+x\n", 5, "header does not match"},

		{"no hunk", mod(""), 5, "cut short: hunk expected"},
		{"no hunk but facts", mod("") + mkdir("g"), 6, "hunk header expected"},
		{"huge count", mod("@@ -1,1000000000000 +1,2 @@\n a\n"), 6, "hunk header expected"},
		{"large count", mod("@@ -1,1000000000 +1,2 @@\n a\n-b\n+c\n"), 9, "cut short: hunk has fewer lines"},
		{"huge start", mod("@@ -99999999999999999999 +1,2 @@\n"), 6, "hunk header expected"},
		{"negative count", mod("@@ -1,-2 +1,2 @@\n"), 6, "hunk header expected"},
		{"count with zeros", mod("@@ -1,02 +1,2 @@\n a\n-b\n+c\n"), 6, "hunk header expected"},
		{"count of 1 written", mod("@@ -2,1 +2,1 @@\n-b\n+c\n"), 6, "hunk header expected"},
		{"start 0 with lines", mod("@@ -0,2 +1,2 @@\n a\n-b\n+c\n"), 6, "hunk header expected"},
		{"function behind the header", mod("@@ -1,2 +1,2 @@ func\n a\n-b\n+c\n"), 6, "hunk header expected"},
		{"half a header", mod("@@ -1,2\n"), 6, "hunk header expected"},
		{"count too small", mod("@@ -1 +1,2 @@\n a\n-b\n+c\n"), 8, "do not match the counts in its header"},
		{"count too large", mod("@@ -1,3 +1,3 @@\n a\n-b\n+c\n"), 9, "cut short: hunk has fewer lines"},
		{"count too large, facts behind", mod("@@ -1,3 +1,3 @@\n a\n-b\n+c\n") + mkdir("g"), 10, "do not match the counts in its header"},
		{"empty line in a hunk", mod("@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n"), 8, "do not match the counts in its header"},
		{"no change", mod("@@ -1,2 +1,2 @@\n a\n b\n"), 8, "hunk without a change"},
		{"no lines", mod("@@ -1,0 +1,0 @@\n"), 6, "hunk without lines"},
		{"overlap", mod("@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -2,2 +2,2 @@\n"), 10, "hunk overlaps"},
		{"order of hunks", mod("@@ -10 +10 @@\n-b\n+c\n@@ -2 +2 @@\n"), 9, "hunk overlaps"},
		{"starts apart", mod("@@ -1,2 +2,2 @@\n a\n-b\n+c\n"), 6, "starting lines do not fit"},
		{"later starts apart", mod("@@ -1 +1,2 @@\n a\n+c\n@@ -9 +9 @@\n"), 9, "starting lines do not fit"},
		{"NUL in a line", mod("@@ -1,2 +1,2 @@\n a\n-b\n+\x00\n"), 9, "NUL byte in a text section"},
		{"cut line", mod("@@ -1,2 +1,2 @@\n a\n-b\n+c"), 9, "cut short: no '\\n'"},
		{"other marker", mod("@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ no newline\n"), 10, "No newline at end of file\" expected"},
		{"marker first", mod("@@ -1,2 +1,2 @@\n" + noNewline + "\n a\n-b\n+c\n"), 7, "do not match the counts in its header"},
		{"marker in the middle", mod("@@ -1,2 +1,2 @@\n a\n" + noNewline + "\n-b\n+c\n"), 9, "line after the end of the file"},
		{"marker twice", mod("@@ -1,2 +1,2 @@\n a\n-b\n+c\n" + noNewline + "\n" + noNewline + "\n"), 11, "hunk header expected"},
		{"hunk after the marker", mod("@@ -1 +1 @@\n-b\n" + noNewline + "\n+c\n@@ -9 +9 @@\n-x\n+y\n"), 10, "hunk after the end of the file"},
		{"more than the old size", mod("@@ -1,2 +1,2 @@\n aaaaa\n-bbbb\n+c\n"), 9, "hunks do not give the size of old"},
		{"more than the new size", mod("@@ -1,2 +1,2 @@\n a\n-b\n+ccccc\n"), 9, "hunks do not give the size of new"},
		{"created with context", first + newLine + newHead + "@@ -0,0 +1,2 @@\n a\n+c\n", 8, "do not match the counts in its header"},
		{"created with old lines", first + newLine + newHead + "@@ -1 +1,2 @@\n a\n+c\n", 7, "hunk of a create has lines on the other side"},
		{"created from line 5", first + newLine + newHead + "@@ -0,0 +5,2 @@\n+a\n+c\n", 7, "starting lines do not fit"},
		{"created in two hunks", first + newLine + newHead + "@@ -0,0 +1 @@\n+a\n@@ -0,0 +2 @@\n+c\n", 10, "more than the whole content"},
		{"created in part", first + newLine + newHead + "@@ -0,0 +1 @@\n+a\n", 8, "hunks do not give the size of new"},
		{"deleted in part", first + strings.Replace(strings.Replace(goneSec, "-1,2", "-1", 1), "-b\n", "", 1), 8, "hunks do not give the size of old"},
		{"symlink's hunk lies", lnk("@@ -1 +1 @@\n-one\n" + noNewline + "\n+six\n" + noNewline + "\n"), 12, "hunks do not give the target"},
		{"symlink's line ended", lnk("@@ -1 +1 @@\n-one\n" + noNewline + "\n+tw\n"), 11, "hunks do not give the target"},
		{"new symlink's hunk lies", first + facts("d", "create", "", js(link("one")), "") +
			"diff --git a/d b/d\nnew file mode 120000\n--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+two\n" + noNewline + "\n", 9, "hunks do not give the target"},

		{"no Binary line", first + binLine + "# < AGE=\n# > AGI=\n", 3, "header does not match"},
		{"binary with diff --git", first + binLine + "diff --git a/f b/f\n" + binHead, 3, "header does not match"},
		{"payload missing", bin(""), 3, "cut short: payload expected"},
		{"payload of one side", bin("# < AGE=\n"), 4, "cut short: payload expected"},
		{"payload sides exchanged", bin("# > AGI=\n# < AGE=\n"), 4, "payload shorter"},
		{"payload too long", bin("# < AGE=\n# > AGI=\n# > AGI=\n"), 6, `"# decree:" line expected`},
		{"payload of another size", bin("# < AA==\n# > AGI=\n"), 5, "payload shorter than the size"},
		{"payload line long", bin("# < AGEAAAAA\n# > AGI=\n"), 4, "payload line of a wrong length"},
		{"payload not base64", bin("# < A*E=\n# > AGI=\n"), 4, "payload is not base64"},
		{"payload with loose bits", bin("# < AGF=\n# > AGI=\n"), 4, "payload is not base64"},
		{"payload with CR", bin("# < AG\rE\n# > AGI=\n"), 4, "payload is not base64"},
		{"payload with another hash", bin("# < AGI=\n# > AGI=\n"), 4, "payload does not have the sha256 of its entry"},
		{"payload of a stored one", first + facts("f", "modify", binOld, binNew, `,"binary":true,"store":true`) + binHead + "# < AGE=\n", 4, `"# decree:" line expected`},
		{"payload without NUL", first + facts("f", "modify", oldJSON, newJSON, `,"binary":true`) + binHead + "# < YQpiCg==\n# > YQpjCg==\n", 5, "binary section without a NUL"},
		{"payload of a petabyte", first + facts("f", "create", "", entry("644", "1000000000000000", sum, ""), `,"binary":true`) + binHead + "# > AGI=\n", 4, "payload line of a wrong length"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.diff))
			var err error
			for err == nil {
				_, err = r.Next()
			}
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			assert.Contains(t, syntax.Reason, tt.reason)
			assert.Equal(t, tt.line, syntax.Line, syntax.Error())
			assert.LessOrEqual(t, len(syntax.Error()), 1000)
			_, again := r.Next()
			require.Equal(t, err, again, "the error stays")
		})
	}
}

// A good diff that is cut anywhere, or has any byte changed, is never taken for another
// one: it is refused, or its contents do not apply, or only an unknown part has changed.
func TestReaderCutAnywhere(t *testing.T) {
	diff := []byte(first + modLine + modHead + modHunk + facts("g", "modify", binOld, binNew, `,"binary":true`) +
		"Binary files a/g and b/g differ\n# < AGE=\n# > AGI=\n" + modeSec)
	whole := len(read(t, diff))
	ends := map[int]bool{0: true}
	at := len(first)
	for _, s := range read(t, diff) {
		at += int(s.Size)
		ends[at] = true
	}
	for n := range len(diff) {
		r := NewReader(bytes.NewReader(diff[:n]))
		var err error
		count := 0
		for ; err == nil; count++ {
			_, err = r.Next()
		}
		if ends[n] {
			require.ErrorIs(t, err, io.EOF)
			continue
		}
		require.False(t, errors.Is(err, io.EOF), "cut at %d", n)
		require.LessOrEqual(t, count, whole)
	}
	for n := range diff {
		bad := bytes.Clone(diff)
		bad[n] ^= 1
		r := NewReader(bytes.NewReader(bad))
		for {
			s, err := r.Next()
			if err != nil {
				break
			}
			if s.Path == "f" {
				if got, err := s.Forward([]byte("a\nb\n")); err == nil {
					require.Equal(t, "a\nc\n", string(got), "byte %d", n)
				}
			}
		}
	}
}

// Errors of the source are passed on as they are, wherever they come, and are no syntax
// errors.
func TestReaderSourceErrors(t *testing.T) {
	boom := errors.New("boom")
	diff := first + modLine + modHead + modHunk + goneSec2("g")
	for n := range len(diff) {
		r := NewReader(io.MultiReader(strings.NewReader(diff[:n]), iotest.ErrReader(boom)))
		var err error
		for err == nil {
			_, err = r.Next()
		}
		require.ErrorIs(t, err, boom, fmt.Sprint("after ", n, " bytes"))
	}
	// A wrapped io.EOF at the end of a section is an error, not the end.
	wrapped := fmt.Errorf("pack damaged: %w", io.EOF)
	r := NewReader(io.MultiReader(strings.NewReader(first+mkdir("a")), iotest.ErrReader(wrapped)))
	_, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)

	r = NewReader(iotest.OneByteReader(strings.NewReader(diff)))
	for range 2 {
		_, err := r.Next()
		require.NoError(t, err)
	}
}

func goneSec2(path string) string {
	return strings.NewReplacer(`"f"`, `"`+path+`"`, "a/f", "a/"+path, "b/f", "b/"+path).Replace(goneSec)
}
