package message_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"decree/message"

	"github.com/stretchr/testify/require"
)

func parse(t testing.TB, text string) *message.Message {
	m, err := message.Parse("m.md", []byte(text))
	require.NoError(t, err)
	return m
}

func TestParseKnownFields(t *testing.T) {
	m := parse(t, `---
id: 0123
chain: 2026112107015900
seq: 2
type: spec
input_file: specs/a b.spec.md
routine: develop
cron: "*/5 * * * *"
catch_up: true
---
Do it.
`)
	require.Equal(t, "0123", m.ID)
	require.Equal(t, "2026112107015900", m.Chain)
	require.Equal(t, 2, m.Seq)
	require.Equal(t, message.Spec, m.Type)
	require.Equal(t, "specs/a b.spec.md", m.InputFile)
	require.Equal(t, "develop", m.Routine)
	require.Equal(t, "*/5 * * * *", m.Cron)
	require.True(t, m.CatchUp)
	require.Empty(t, m.Params)
	require.Equal(t, "Do it.\n", string(m.Body))
}

// TestParseScalarsStayText: nothing is turned into a number, a date or a truth value.
func TestParseScalarsStayText(t *testing.T) {
	m := parse(t, `---
octal: 0123
hex: 0x1F
float: 1.50
exp: 1e3
date: 2026-11-20
time: 2026-11-20 14:30:00 +0100
sexagesimal: 12:30:45
yes: yes
bool: true
none: null
tilde: ~
empty:
blank: ""
single: 'it''s'
double: "a\tb"
tagged: !!str 007
folded: >
  one
  two
literal: |
  one
  two
plain: one
  two
list: [a, 1, true, {k: 01}]
block:
  - x
  - y: "\""
map: {}
ключ: значение
"quoted key": v
---
`)
	want := []message.Param{
		{"octal", "0123"}, {"hex", "0x1F"}, {"float", "1.50"}, {"exp", "1e3"}, {"date", "2026-11-20"},
		{"time", "2026-11-20 14:30:00 +0100"}, {"sexagesimal", "12:30:45"}, {"yes", "yes"}, {"bool", "true"},
		{"none", "null"}, {"tilde", "~"}, {"empty", ""}, {"blank", ""}, {"single", "it's"}, {"double", "a\tb"},
		{"tagged", "007"}, {"folded", "one two\n"}, {"literal", "one\ntwo\n"}, {"plain", "one two"},
		{"list", `["a","1","true",{"k":"01"}]`}, {"block", `["x",{"y":"\""}]`}, {"map", `{}`},
		{"ключ", "значение"}, {"quoted key", "v"},
	}
	require.Equal(t, want, m.Params)
	require.Equal(t, -1, m.Seq)
}

// TestParseBody: the body is what follows the front matter, byte for byte.
func TestParseBody(t *testing.T) {
	for text, body := range map[string]string{
		"":                                "",
		"just text":                       "just text",
		"a\r\nb\r\n":                      "a\r\nb\r\n",
		"\xef\xbb\xbftext\n":              "\xef\xbb\xbftext\n",
		"\n---\nid: 1\n---\n":             "\n---\nid: 1\n---\n",
		"----\nid: 1\n":                   "----\nid: 1\n",
		"--- x\n---\n":                    "--- x\n---\n",
		" ---\nx\n":                       " ---\nx\n",
		"\xff\xfe\x00binary":              "\xff\xfe\x00binary",
		"---\n---\n":                      "",
		"---\n---":                        "",
		"---\n# nothing\n---\nx":          "x",
		"---\nk: v\n---\nx":               "x",
		"---\r\nk: v\r\n---\r\nx\r\n":     "x\r\n",
		"\xef\xbb\xbf---\nk: v\n---\nx\n": "x\n",
		"---  \nk: v\n--- \t\nx\n":        "x\n",
		"---\nk: v\n---\n\n\n---\nx\n---": "\n\n---\nx\n---",
		"---\nk: v\n---\n\xff\x00\r":      "\xff\x00\r",
		"---\nk: v\n---\n---\nid: 7\n---": "---\nid: 7\n---",
	} {
		m := parse(t, text)
		require.Equal(t, body, string(m.Body), "%q", text)
		require.Empty(t, m.ID)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"---\nid: 1\n":                              "m.md:1: the front matter has no end (--- alone in a line)",
		"---":                                       "m.md:1: the front matter has no end (--- alone in a line)",
		"---\na: 1\nb: [\n---\n":                    "m.md:3: the front matter is not YAML: did not find expected node content",
		"---\na: 1\nb: x: y\n---\n":                 "m.md:3: the front matter is not YAML: mapping values are not allowed in this context",
		"---\na: 1\n\tb: 2\n---\n":                  "m.md:3: the front matter is not YAML: found a tab character that violates indentation",
		"---\njust words\n---\n":                    "m.md:2: the front matter is not a list of fields (name: value)",
		"---\n- a\n---\n":                           "m.md:2: the front matter is not a list of fields (name: value)",
		"---\na: 1\na: 2\n---\n":                    `m.md:3: field "a" is given twice`,
		"---\na: {b: 1, b: 2}\n---\n":               `m.md:2: field "b" is given twice`,
		"---\n? [a]\n: 1\n---\n":                    "m.md:2: a field's name must be plain text",
		"---\na: &x 1\nb: *x\n---\n":                "m.md:2: an anchor (&x)",
		"---\na: *x\n---\n":                         "m.md: the front matter is not YAML: unknown anchor 'x' referenced",
		"---\n<<: {a: 1}\n---\n":                    "m.md:2: a merge key (<<)",
		"---\na: !!int 3\n---\n":                    "m.md:2: a tag (!!int)",
		"---\na: !!binary aGk=\n---\n":              "m.md:2: a tag (!!binary)",
		"---\na: 1\n...\nb: 2\n---\n":               "m.md:3: the front matter is not YAML: did not find expected <document start>",
		"---\na: \"\\0\"\n---\n":                    "m.md:2: a value holds a NUL byte, which no environment variable can hold",
		"---\nid: [1]\n---\n":                       "m.md:2: id must be text",
		"---\nroutine: {a: b}\n---\n":               "m.md:2: routine must be text",
		"---\nseq: one\n---\n":                      `m.md:2: seq is "one"; it must be a whole number, at least 0`,
		"---\nseq: -1\n---\n":                       `m.md:2: seq is "-1"; it must be a whole number, at least 0`,
		"---\nseq: 10000000000000000000000\n---\n":  `m.md:2: seq is "10000000000000000000000"; it must be a whole number, at least 0`,
		"---\ntype: epic\n---\n":                    `m.md:2: type is "epic"; it can be spec or task`,
		"---\ncatch_up: maybe\n---\n":               `m.md:2: catch_up is "maybe"; it can be true or false`,
		"---\nchain: a/b\n---\n":                    `m.md:2: "a/b" is not a chain: it can hold letters, digits, _, - and .`,
		"---\nchain: ..\n---\n":                     `m.md:2: ".." is not a chain: 1 to 100 letters, digits, _, - and ., a letter, digit or _ first`,
		"---\nroutine: ../x\n---\n":                 `m.md:2: "../x" is not the name of a routine`,
		"---\nroutine: a/b\n---\n":                  `m.md:2: "a/b" is not the name of a routine`,
		"---\nroutine: .hidden\n---\n":              `m.md:2: ".hidden" is not the name of a routine`,
		"---\nx: 1\ninput_file: ../x\n---\n":        `m.md:3: input_file "../x" is outside of the root; it is relative to it`,
		"---\ninput_file: a/../../x\n---\n":         `m.md:2: input_file "a/../../x" is outside of the root; it is relative to it`,
		"---\ninput_file: /etc/passwd\n---\n":       `m.md:2: input_file "/etc/passwd" is outside of the root; it is relative to it`,
		"---\ninput_file: a/..\n---\n":              `m.md:2: input_file "a/.." is not a file`,
		"---\ninput_file: \"a\\nb\"\n---\n":         `m.md:2: input_file "a\nb" holds a control character`,
		"---\na: \xff\n---\n":                       "m.md: the front matter is not YAML: invalid leading UTF-8 octet",
		"---\na: " + strings.Repeat("[", 40) + "\n": "m.md:1: the front matter has no end (--- alone in a line)",
		"---\na: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n":   "m.md:2: nested deeper than 32",
		"---\n" + strings.Repeat("a: "+strings.Repeat("x", 100)+"\n", 800) + "---\n": "m.md: the front matter is over 65536 bytes, or its end (--- alone in a line) is missing",
	} {
		_, err := message.Parse("m.md", []byte(text))
		require.EqualError(t, err, reason, "%.60q", text)
		var e *message.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, "m.md", e.Name)
	}
	_, err := message.Parse("m.md", make([]byte, message.MaxSize+1))
	require.EqualError(t, err, "m.md: over 16777216 bytes")
}

// TestParseBombs: what would grow is refused before it does.
func TestParseBombs(t *testing.T) {
	var b strings.Builder
	b.WriteString("---\na: &a [x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'z'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "]\n")
	}
	b.WriteString("---\n")
	_, err := message.Parse("m.md", []byte(b.String()))
	require.EqualError(t, err, "m.md:2: an anchor (&a)")
	_, err = message.Parse("m.md", []byte("---\n"+strings.Repeat("[", 60000)+"\n---\n"))
	require.Error(t, err)
	_, err = message.Parse("m.md", []byte("---\n"+strings.Repeat("- ", 30000)+"x\n---\n"))
	require.Error(t, err)
}

// FuzzParse: what is read completes to something that reads as the same, with the body
// untouched, and completing that changes nothing more.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "text", "---\n---\n", "---\nid: 0123\nk: v # c\n---\nbody",
		"\xef\xbb\xbf---\r\nchain: c\r\nseq: 01\r\n---\r\nx\r\n",
		"---\n{a: b, id: \"x\"}\n---\n", "---\n  k: |+\n    x\n\n---\n", "---\ntype:\n  spec\n# c\nroutine: >-\n  a\n---\n",
		"---\na: [1, {b: c}]\ninput_file: specs/01-x.spec.md\n---\n", "---\nk: v\n...\n---\n", "---\n? a\n: b\n---\n",
		"---\ncron: '0 9 * * 1-5'\ncatch_up: yes\n---\n", "---\na: \"\u2028\"\nid: x\n---\n", "---\na: b\rid: x\n---\n",
	} {
		f.Add([]byte(text))
	}
	d := message.Defaults{Chain: "2026112107015900", Seq: 1, Routine: "develop", MaxDepth: 10}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := message.Parse("m.md", data)
		if err != nil {
			return
		}
		if !bytes.HasSuffix(data, m.Body) {
			t.Fatalf("the body %q is not the end of %q", m.Body, data)
		}
		done, out, err := message.Complete(m, d)
		if err != nil {
			return
		}
		if !bytes.Equal(done.Body, m.Body) || !bytes.HasSuffix(out, m.Body) {
			t.Fatalf("the body was touched: %q became %q", m.Body, done.Body)
		}
		again, same, err := message.Complete(done, d)
		if err != nil || !bytes.Equal(out, same) || again.ID != done.ID {
			t.Fatalf("a complete message was rewritten: %q to %q: %v", out, same, err)
		}
	})
}

// TestInputFileIsCleaned: a path as shells complete it is the one that it leads to.
func TestInputFileIsCleaned(t *testing.T) {
	for _, text := range []string{"./specs/1.spec.md", "specs//1.spec.md", "specs/../specs/1.spec.md"} {
		m, err := message.Parse("a.md", []byte("---\ninput_file: "+text+"\n---\n"))
		require.NoError(t, err)
		require.Equal(t, "specs/1.spec.md", m.InputFile, text)
	}
	for _, none := range []string{"", `""`} {
		m, err := message.Parse("a.md", []byte("---\ninput_file: "+none+"\n---\n"))
		require.NoError(t, err)
		require.Empty(t, m.InputFile, none)
	}
}

// TestInputFileOfAnyName: a path that is no text stands in the front matter as in a manifest; the message has its bytes.
func TestInputFileOfAnyName(t *testing.T) {
	for text, want := range map[string]string{
		`'"specs/a\nb.spec.md"'`:    "specs/a\nb.spec.md",
		`'"specs/q\377.spec.md"'`:   "specs/q\xff.spec.md",
		`'"\"q\".spec.md"'`:         `"q".spec.md`,
		`'"q".spec.md'`:             `"q".spec.md`, // no such path would be written so
		`'"plain.spec.md"'`:         `"plain.spec.md"`,
		`'specs/back\nslash'`:       `specs/back\nslash`,
		`'specs/"in the midst".md'`: `specs/"in the midst".md`,
	} {
		m := parse(t, "---\ninput_file: "+text+"\n---\n")
		require.Equal(t, want, m.InputFile, text)
		done, _, err := message.Complete(m, defaults)
		require.NoError(t, err)
		require.Equal(t, strings.HasSuffix(want, ".spec.md"), done.Type == message.Spec, text)
	}
	for text, reason := range map[string]string{
		`'"../a\nb"'`: `m.md:2: input_file "../a\nb" is outside of the root; it is relative to it`,
		`'"/a\nb"'`:   `m.md:2: input_file "/a\nb" is outside of the root; it is relative to it`,
		`'"a\000b"'`:  `m.md:2: input_file holds a NUL byte`,
	} {
		_, err := message.Parse("m.md", []byte("---\ninput_file: "+text+"\n---\n"))
		require.EqualError(t, err, reason)
	}
}
