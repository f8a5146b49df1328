package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/tree"
)

func file(path tree.Path, content string, mode uint32) tree.Item {
	return tree.Item{Path: path, Entry: tree.Entry{SHA256: tree.Sum([]byte(content)), Size: int64(len(content)), Mode: mode}}
}

func link(path tree.Path, target string) tree.Item { return tree.Item{Path: path, Entry: Link(target)} }
func dir(path tree.Path, mode uint32) tree.Item {
	return tree.Item{Path: path, Entry: tree.Entry{Type: tree.Dir, Mode: mode}}
}

func encode(t testing.TB, partial bool, items ...tree.Item) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Encode(&b, Of(items...), partial))
	return b.String()
}

const (
	sumA     = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of "a"
	sumEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// TestFormat holds the format byte for byte.
func TestFormat(t *testing.T) {
	target := fmt.Sprintf("%x", sha256.Sum256([]byte("bin/tool2")))
	got := encode(t, false,
		file("caf\xe9", "", 0o4755), file("new\nline", "a", 0o600), file("quo\"te", "a", 0),
		file("src/main.go", "a", 0o644), link("tool", "bin/tool2"), file("\u2028<&>", "a", 0o644),
		dir("empty", 0o700), dir("src", 0o1755))
	want := `{
  "version": 1,
  "files": {
    "\"caf\\351\"": {"sha256": "` + sumEmpty + `", "size": 0, "mode": "4755"},
    "\"new\\nline\"": {"sha256": "` + sumA + `", "size": 1, "mode": "600"},
    "quo\"te": {"sha256": "` + sumA + `", "size": 1, "mode": "0"},
    "src/main.go": {"sha256": "` + sumA + `", "size": 1, "mode": "644"},
    "tool": {"sha256": "` + target + `", "size": 9, "mode": "777", "type": "symlink", "target": "bin/tool2"},
    "` + "\u2028<&>" + `": {"sha256": "` + sumA + `", "size": 1, "mode": "644"}
  },
  "dirs": {
    "empty": "700",
    "src": "1755"
  }
}
`
	assert.Equal(t, want, got)
	assert.True(t, json.Valid([]byte(got)))
	assert.Equal(t, "{\n  \"version\": 1,\n  \"partial\": true,\n  \"files\": {},\n  \"dirs\": {}\n}\n", encode(t, true))
}

func TestEncoderRefusesDisorder(t *testing.T) {
	for name, items := range map[string][]tree.Item{
		"order":      {file("b", "", 0o644), file("a", "", 0o644)},
		"twice":      {file("a", "", 0o644), file("a", "", 0o644)},
		"dir first":  {dir("a", 0o755), file("b", "", 0o644)},
		"dir order":  {dir("b", 0o755), dir("a", 0o755)},
		"below file": {file("a", "", 0o644), file("a-", "", 0o644), file("a/b", "", 0o644)},
	} {
		err := Encode(io.Discard, Of(items...), false)
		require.Error(t, err, name)
		if name != "below file" {
			assert.ErrorIs(t, err, tree.ErrOrder, name)
		}
	}
}

// TestDecodesOtherSpellings reads what other JSON writers make of the same content.
func TestDecodesOtherSpellings(t *testing.T) {
	items := []tree.Item{file("caf\xe9", "x", 0o644), link("l", "a\nb"), file("s/m", "", 0o600), file("\u00e9", "", 0o644), dir("s", 0o755)}
	text := encode(t, true, items...)
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, []byte(text)))
	compact := b.String()
	b.Reset()
	require.NoError(t, json.Indent(&b, []byte(text), "\t", "    "))
	wide := b.String()
	escaped := strings.ReplaceAll(strings.ReplaceAll(text, "\u00e9", `\u00E9`), `"s/m"`, `"s\/\u006d"`)
	unknown := strings.Replace(text, `"partial"`, `"x": [{"a": [1, -2.5e+3, null]}, {}, []], "partial"`, 1)
	unknown = strings.Replace(unknown, `"mode": "600"`, `"later": {"a": true}, "mode": "600"`, 1)
	unknown = strings.Replace(unknown, `"dirs"`, `"y": "\ud83d\ude00", "dirs"`, 1)
	unknown = unknown[:len(unknown)-2] + `, "z": false} `
	for name, in := range map[string]string{"own": text, "compact": compact, "wide": wide, "escaped": escaped, "unknown": unknown} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
			d := NewDecoder(r)
			got, err := Collect(d.All())
			require.NoError(t, err, name)
			assert.Equal(t, items, got, name)
			assert.True(t, d.partial, name)
			_, _, err = d.Next()
			assert.Equal(t, io.EOF, err, name)
		}
	}
}

// TestDecoderRefuses lists what no encoder could have meant.
func TestDecoderRefuses(t *testing.T) {
	const facts = `{"sha256": "` + sumA + `", "size": 1, "mode": "644"}`
	whole := func(files, dirs string) string {
		return `{"version": 1, "files": {` + files + `}, "dirs": {` + dirs + `}}`
	}
	one := func(entry string) string { return whole(`"a": `+entry, "") }
	long := strings.Repeat("x", tree.MaxPath)
	for name, c := range map[string]struct{ in, says string }{
		"empty":             {"", "line 1"},
		"no object":         {"[]", "an object"},
		"cut":               {`{"version": 1, "files": {"a": {"sha256": "` + sumA, "unexpected EOF"},
		"behind the end":    {whole("", "") + "x", "invalid character"},
		"two":               {whole("", "") + "{}", "the end"},
		"no version":        {`{"files": {}, "dirs": {}}`, `"version" is missing`},
		"newer":             {`{"version": 2, "files": {}, "dirs": {}}`, "version 2"},
		"version twice":     {`{"version": 1, "version": 1, "files": {}, "dirs": {}}`, "repeated"},
		"version text":      {`{"version": "1", "files": {}, "dirs": {}}`, "whole number"},
		"version 1.0":       {`{"version": 1.0, "files": {}, "dirs": {}}`, "whole number"},
		"no dirs":           {`{"version": 1, "files": {}}`, `"dirs" is missing`},
		"dirs first":        {`{"version": 1, "dirs": {}, "files": {}}`, "dirs before files"},
		"files twice":       {`{"version": 1, "files": {}, "files": {}, "dirs": {}}`, "repeated"},
		"partial text":      {`{"version": 1, "partial": 1, "files": {}, "dirs": {}}`, "true or false"},
		"order":             {whole(`"b": `+facts+`, "a": `+facts, ""), "out of order"},
		"twice":             {whole(`"a": `+facts+`, "a": `+facts, ""), "out of order"},
		"below a file":      {whole(`"a": `+facts+`, "a.": `+facts+`, "a/b": `+facts, ""), "below a file"},
		"dirs order":        {whole("", `"b": "755", "a": "755"`), "out of order"},
		"dirs twice":        {whole("", `"b": "755", "b": "755"`), "out of order"},
		"dir facts":         {whole("", `"b": `+facts), "a string"},
		"dir mode":          {whole("", `"b": "0755"`), "not a valid mode"},
		"absolute":          {whole(`"/a": `+facts, ""), "absolute"},
		"up":                {whole(`"a/../b": `+facts, ""), `".."`},
		"not clean":         {whole(`"a//b": `+facts, ""), "not clean"},
		"empty path":        {whole(`"": `+facts, ""), "empty path"},
		"git":               {whole(`"a/.git/x": `+facts, ""), ".git"},
		"decree":            {whole(`".decree": `+facts, ""), ".decree"},
		"dir up":            {whole("", `"..": "755"`), `".."`},
		"nul":               {whole(`"\"a\\000\"": `+facts, ""), "NUL"},
		"long":              {whole(`"`+long+`": `+facts, ""), "too long"},
		"endless":           {whole(`"`+strings.Repeat(long, 40)+`": `+facts, ""), "too long"},
		"control":           {whole("\"a\tb\": "+facts, ""), "control character"},
		"control escaped":   {whole(`"a\tb": `+facts, ""), "not quoted correctly"},
		"needless quotes":   {whole(`"\"a\"": `+facts, ""), "not quoted correctly"},
		"other quotes":      {whole(`"\"\\303\\251\"": `+facts, ""), "not quoted correctly"},
		"bad UTF-8":         {whole("\"a\xff\": "+facts, ""), "invalid UTF-8"},
		"lone surrogate":    {whole(`"a\ud800": `+facts, ""), `\u`},
		"bad escape":        {whole(`"a\x": `+facts, ""), `\x`},
		"upper hex":         {one(strings.ToUpper(facts)), "missing"},
		"upper hash":        {one(strings.Replace(facts, "ca97", "CA97", 1)), "not a valid sha256"},
		"short hash":        {one(strings.Replace(facts, "ca97", "ca9", 1)), "not a valid sha256"},
		"no hash":           {one(`{"size": 1, "mode": "644"}`), "missing"},
		"not a valid mode":  {one(`{"sha256": "` + sumA + `", "size": 1}`), "missing"},
		"negative size":     {one(strings.Replace(facts, ": 1,", ": -1,", 1)), "whole number"},
		"size 01":           {one(strings.Replace(facts, ": 1,", ": 01,", 1)), "invalid character"},
		"huge size":         {one(strings.Replace(facts, ": 1,", ": 9999999999999999999,", 1)), "whole number"},
		"mode 8":            {one(strings.Replace(facts, "644", "648", 1)), "not a valid mode"},
		"mode 0644":         {one(strings.Replace(facts, "644", "0644", 1)), "not a valid mode"},
		"mode 10000":        {one(strings.Replace(facts, "644", "10000", 1)), "not a valid mode"},
		"fact twice":        {one(`{"size": 1, "size": 1, "mode": "644", "sha256": "` + sumA + `"}`), "repeated"},
		"other type":        {one(strings.Replace(facts, "}", `, "type": "fifo", "target": "x"}`, 1)), "not a valid type"},
		"type alone":        {one(strings.Replace(facts, "}", `, "type": "symlink"}`, 1)), "only for a symbolic link"},
		"target alone":      {one(strings.Replace(facts, "}", `, "target": "a"}`, 1)), "only for a symbolic link"},
		"link mode":         {one(strings.Replace(facts, "}", `, "type": "symlink", "target": "a"}`, 1)), `"777"`},
		"link hash":         {one(strings.Replace(strings.Replace(facts, "644", "777", 1), "}", `, "type": "symlink", "target": "b"}`, 1)), "target's"},
		"empty target":      {one(strings.Replace(strings.Replace(facts, "644", "777", 1), "}", `, "type": "symlink", "target": ""}`, 1)), "empty"},
		"missing comma":     {whole(`"a": `+facts+` "b": `+facts, ""), "','"},
		"comma at the end":  {whole(`"a": `+facts+`,`, ""), "invalid character"},
		"nested":            {`{"version": 1, "x": ` + strings.Repeat("[", 20000), "max depth"},
		"mismatched braces": {`{"version": 1, "x": [}, "files": {}, "dirs": {}}`, "'}'"},
		"bad literal":       {`{"version": 1, "x": tru, "files": {}, "dirs": {}}`, "invalid character"},
		"bad number":        {`{"version": 1, "x": 1., "files": {}, "dirs": {}}`, "invalid character"},
	} {
		_, err := Collect(NewDecoder(strings.NewReader(c.in)).All())
		var syntax *SyntaxError
		if assert.ErrorAs(t, err, &syntax, name) {
			assert.ErrorContains(t, err, c.says, name)
		}
	}
	_, err := Collect(NewDecoder(strings.NewReader(`{"version": 7,`)).All())
	var version *VersionError
	require.ErrorAs(t, err, &version)
	assert.Equal(t, int64(7), version.Version)
}

func TestDecoderErrors(t *testing.T) {
	broken := errors.New("broken")
	d := NewDecoder(io.MultiReader(strings.NewReader("{\n\"version\": 1,"), iotest.ErrReader(broken)))
	_, _, err := d.Next()
	require.ErrorIs(t, err, broken)
	_, _, err = d.Next()
	require.ErrorIs(t, err, broken)
	text := encode(t, false, file("a", "", 0o644), file("b", "", 0o644))
	_, err = Collect(NewDecoder(strings.NewReader(strings.Replace(text, `"b"`, `"B"`, 1))).All())
	assert.ErrorContains(t, err, "line 5: B: paths out of order")
	assert.ErrorIs(t, err, tree.ErrOrder)
}

// random returns a tree of about n entries in manifest order.
func random(r *rand.Rand, n int) []tree.Item {
	parts := []tree.Path{"a", "a-", "a.b", "b", "caf\xe9", "\"", "new\n", "é", "\u2028", "\\", "z z"}
	used := map[tree.Path]bool{}
	var files, dirs []tree.Item
	var grow func(prefix tree.Path, depth int)
	grow = func(prefix tree.Path, depth int) {
		for _, p := range parts {
			path := prefix + p
			if r.IntN(3) > 0 || len(used) > n {
				continue
			}
			used[path] = true
			switch r.IntN(4) {
			case 0:
				dirs = append(dirs, dir(path, r.Uint32N(0o10000)))
				if depth < 4 {
					grow(path+"/", depth+1)
				}
			case 1:
				files = append(files, link(path, "to "+string(parts[r.IntN(len(parts))])))
			default:
				files = append(files, file(path, fmt.Sprint(r.IntN(5)), []uint32{0o644, 0o755, 0o4711, 0}[r.IntN(4)]))
			}
		}
	}
	grow("", 0)
	sortItems(files)
	sortItems(dirs)
	return append(files, dirs...)
}

func sortItems(items []tree.Item) {
	for i := range items {
		for j := i; j > 0 && items[j].Path < items[j-1].Path; j-- {
			items[j], items[j-1] = items[j-1], items[j]
		}
	}
}

// TestRoundTrips holds decode(encode(m)) == m in all forms.
func TestRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		a, b := random(r, 60), random(r, 60)
		text := encode(t, false, a...)
		require.True(t, json.Valid([]byte(text)))
		got, err := Collect(NewDecoder(strings.NewReader(text)).All())
		require.NoError(t, err)
		require.Equal(t, a, got)

		tree, err := AppendTree(nil, Of(a...))
		require.NoError(t, err)
		got, err = Collect(DecodeTree(tree))
		require.NoError(t, err)
		require.Equal(t, a, got)
		got, err = Collect(ReadTree(iotest.OneByteReader(bytes.NewReader(tree))))
		require.NoError(t, err)
		require.Equal(t, a, got)

		changes, err := Compare(Of(a...), Of(b...))
		require.NoError(t, err)
		checkChanges(t, a, b, changes)
	}
}

// checkChanges compares with the changes found by looking every path up.
func checkChanges(t *testing.T, a, b []tree.Item, changes []tree.Change) {
	state := func(items []tree.Item) map[tree.Path]tree.Entry {
		m := map[tree.Path]tree.Entry{}
		for _, it := range items {
			m[it.Path] = it.Entry
		}
		return m
	}
	was, is := state(a), state(b)
	seen := map[tree.Path]bool{}
	for i, ch := range changes {
		if i > 0 {
			require.Less(t, changes[i-1].Path, ch.Path)
		}
		seen[ch.Path] = true
		x, inA := was[ch.Path]
		y, inB := is[ch.Path]
		require.Equal(t, inA, ch.Old != nil)
		require.Equal(t, inB, ch.New != nil)
		if inA {
			require.Equal(t, x, *ch.Old)
		}
		if inB {
			require.Equal(t, y, *ch.New)
		}
		require.False(t, inA && inB && x.Same(y))
	}
	for path, x := range was {
		y, ok := is[path]
		require.Equal(t, !ok || !x.Same(y), seen[path], "%q", path)
	}
	for path := range is {
		if _, ok := was[path]; !ok {
			require.True(t, seen[path], "%q", path)
		}
	}
}

func TestCompareIgnoresLinkModes(t *testing.T) {
	a, b := link("l", "x"), link("l", "x")
	b.Entry.Mode = 0o755
	changes, err := Compare(Of(a), Of(b))
	require.NoError(t, err)
	assert.Empty(t, changes)
}

func TestCompareErrors(t *testing.T) {
	bad := []tree.Item{file("b", "", 0o644), file("a", "", 0o644)}
	_, err := Compare(Of(bad...), Of())
	require.ErrorIs(t, err, tree.ErrOrder)
	_, err = Compare(Of(), Of(bad...))
	require.ErrorIs(t, err, tree.ErrOrder)
	_, err = Compare(Of(), DecodeTree([]byte("nonsense")))
	require.ErrorIs(t, err, ErrBinary)
	_, err = Compare(Of(), Of(file("a", "", 0o644), dir("a", 0o755)))
	require.ErrorIs(t, err, tree.ErrOrder)
}

// TestBinaryRefusesDamage cuts and extends the binary form at every place.
func TestBinaryRefusesDamage(t *testing.T) {
	items := []tree.Item{file("a", "1", 0o600), link("ab", "x"), file("ac/d", "2", 0o600), dir("ac", 0o755)}
	tree, err := AppendTree(nil, Of(items...))
	require.NoError(t, err)
	for n := range len(tree) {
		_, err := Collect(DecodeTree(tree[:n]))
		require.ErrorIs(t, err, ErrBinary, n)
	}
	_, err = Collect(DecodeTree(append(tree, 0)))
	require.ErrorIs(t, err, ErrBinary)
}

func TestSequencesCanBeLeft(t *testing.T) {
	items := []tree.Item{file("a", "1", 0o600), file("b", "x", 0o644), dir("c", 0o755)}
	encoded, err := AppendTree(nil, Of(items...))
	require.NoError(t, err)
	text := encode(t, false, items...)
	for name, s := range map[string]tree.Seq{
		"tree": DecodeTree(encoded), "text": NewDecoder(strings.NewReader(text)).All(),
	} {
		for it, err := range s {
			require.NoError(t, err)
			assert.Equal(t, tree.Path("a"), it.Path, name)
			break
		}
	}
}

// TestShortCheck holds that the check of only a path's new part is as strict as the whole.
func TestShortCheck(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	parts := []tree.Path{"a", "b", ".", "..", ".git", ".decree", ".x", "", "a\x00", "git", "/"}
	prev := tree.Path("")
	for range 20_000 {
		var path tree.Path
		for i := range 1 + r.IntN(4) {
			if i > 0 {
				path += "/"
			}
			path += parts[r.IntN(len(parts))]
		}
		plain := path != "" && path[0] != '/' && plainFrom(path, []byte(prev))
		ok := path.Check() == nil
		if plain {
			require.True(t, ok, "%q after %q", path, prev)
		}
		if ok && !strings.Contains(string(path), ".") {
			require.True(t, plain, "%q after %q", path, prev)
		}
		if ok {
			prev = path
		}
	}
}

// TestDirectoryOwners: behind the mode of a directory stands whose it is, where that is recorded.
func TestDirectoryOwners(t *testing.T) {
	shared := dir("shared", 0o2775)
	shared.Entry.Owner = tree.Owner{UID: 7, GID: 50, Known: true}
	got := encode(t, false, shared)
	require.Contains(t, got, "\n    \"shared\": \"2775 7:50\"\n")
	items := 0
	for it, err := range NewDecoder(strings.NewReader(got)).All() {
		require.NoError(t, err)
		require.Equal(t, shared, it)
		items++
	}
	require.Equal(t, 1, items)
	for _, bad := range []string{"755 7:50", "2775 ", "2775  7:50", "2775 7", "2775 7:50 ", " 2775"} {
		var err error
		for _, err = range NewDecoder(strings.NewReader(strings.Replace(got, "2775 7:50", bad, 1))).All() {
			if err != nil {
				break
			}
		}
		require.ErrorContains(t, err, "is not a valid mode", bad)
	}
}
