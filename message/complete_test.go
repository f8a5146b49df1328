package message_test

import (
	"errors"
	"testing"

	"decree/message"

	"github.com/stretchr/testify/require"
)

const chain = "2026112107015900"

var defaults = message.Defaults{Chain: chain, Routine: "develop", MaxDepth: 10}

func complete(t testing.TB, name, text string, d message.Defaults) (*message.Message, string) {
	m, err := message.Parse(name, []byte(text))
	require.NoError(t, err)
	done, data, err := message.Complete(m, d)
	require.NoError(t, err)
	return done, string(data)
}

// TestCompleteBytes: what is missing is added, what is wrong is corrected in its line,
// and everything else stays as it is.
func TestCompleteBytes(t *testing.T) {
	full := "id: " + chain + "-0\nchain: " + chain + "\nseq: 0\ntype: task\nroutine: develop\n"
	for _, c := range []struct{ name, text, want string }{
		{"no front matter", "Do it.", "---\n" + full + "---\nDo it."},
		{"an empty file", "", "---\n" + full + "---\n"},
		{"an empty one", "---\n---\nx\n", "---\n" + full + "---\nx\n"},
		{"comments", "---\n# first\nk: v # why\n\n# last\n---\nx", "---\n# first\nk: v # why\n\n# last\n" + full + "---\nx"},
		{"line ends", "---\r\nk: v\r\n---\r\na\nb\r\n", "---\r\nk: v\r\nid: " + chain + "-0\r\nchain: " + chain + "\r\nseq: 0\r\ntype: task\r\nroutine: develop\r\n---\r\na\nb\r\n"},
		{"line ends of a body", "a\r\nb\n", "---\r\nid: " + chain + "-0\r\nchain: " + chain + "\r\nseq: 0\r\ntype: task\r\nroutine: develop\r\n---\r\na\r\nb\n"},
		{"a byte-order mark", "\xef\xbb\xbf---\nk: v\n---\nx", "\xef\xbb\xbf---\nk: v\n" + full + "---\nx"},
		{"a mark in the body", "\xef\xbb\xbfx", "---\n" + full + "---\n\xef\xbb\xbfx"},
		{"another id", "---\nid: 0123 # mine\nchain: c\nk: v\n---\nx", "---\nid: c-0 # mine\nchain: c\nk: v\nseq: 0\ntype: task\nroutine: develop\n---\nx"},
		{"a seq with zeros", "---\nseq: 007\nchain: c\n---\n", "---\nseq: 7\nchain: c\nid: c-7\ntype: task\nroutine: develop\n---\n"},
		{"a quoted value", "---\nchain: 'c'\nroutine: \"other\"\n---\n", "---\nchain: 'c'\nroutine: develop\nid: c-0\nseq: 0\ntype: task\n---\n"},
		{"indented fields", "---\n  k: v\n---\n", "---\n  k: v\n  id: " + chain + "-0\n  chain: " + chain + "\n  seq: 0\n  type: task\n  routine: develop\n---\n"},
		{"a block at the end", "---\nk: |+\n  text\n\n---\nx", "---\nk: |+\n  text\n\n" + full + "---\nx"},
		{"flow style", "---\n{k: 01, id: x}\n---\nx", "---\nk: 01\nid: " + chain + "-0\nchain: \"" + chain + "\"\nseq: \"0\"\ntype: task\nroutine: develop\n---\nx"},
		{"a value over two lines", "---\ntype:\n  spec\nk: v\n---\nx", "---\ntype: task\nk: v\nid: " + chain + "-0\nchain: \"" + chain + "\"\nseq: \"0\"\nroutine: develop\n---\nx"},
		{"no end of line", "---\n---", "---\n" + full + "---"},
	} {
		_, got := complete(t, "m.md", c.text, defaults)
		require.Equal(t, c.want, got, c.name)
		_, again := complete(t, "m.md", got, message.Defaults{Chain: "other", Routine: "develop", MaxDepth: 10})
		require.Equal(t, got, again, "%s: a complete message is not rewritten", c.name)
	}
}

// TestCompleteWhoDecides: front matter before name before default, for chain and seq.
func TestCompleteWhoDecides(t *testing.T) {
	for _, c := range []struct {
		name, text string
		d          message.Defaults
		id         string
	}{
		{"m.md", "x", defaults, chain + "-0"},
		{"m.md", "x", message.Defaults{Chain: chain, Seq: 4, MaxDepth: 10}, chain + "-4"},
		{"fix-login-2.md", "x", defaults, "fix-login-2"},
		{"2025010203040500-3.md", "x", defaults, "2025010203040500-3"},
		{"a-1.md", "---\nchain: b\n---\n", defaults, "b-0"},
		{"a-1.md", "---\nchain: a\n---\n", defaults, "a-1"},
		{"a-1.md", "---\nseq: 5\n---\n", defaults, "a-5"},
		{"m.md", "---\nseq: 5\n---\n", defaults, chain + "-5"},
		{"a-1.md", "---\nchain: b\nseq: 7\nid: z-9\n---\n", defaults, "b-7"},
		{"2026-11-20.md", "x", defaults, chain + "-0"},
		{"step-117.md", "x", defaults, chain + "-0"},
		{"step-07.md", "x", defaults, chain + "-0"},
	} {
		m, _ := complete(t, c.name, c.text, c.d)
		require.Equal(t, c.id, m.ID, "%s %q", c.name, c.text)
	}
}

func TestCompleteType(t *testing.T) {
	for text, want := range map[string]string{
		"x": message.Task,
		"---\ninput_file: specs/a.spec.md\n---\n":             message.Spec,
		"---\ninput_file: specs/a.md\n---\n":                  message.Task,
		"---\ntype: spec\n---\n":                              message.Task,
		"---\ntype: task\ninput_file: specs/a.spec.md\n---\n": message.Spec,
	} {
		m, _ := complete(t, "m.md", text, defaults)
		require.Equal(t, want, m.Type, "%q", text)
	}
}

func TestCompleteRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text, reason string
		d                  message.Defaults
	}{
		{"m.md", "---\ndepth: 10\n---\n", "m.md: the depth is reached: depth 10, and max_depth is 10", defaults},
		{"m.md", "---\nseq: 5\n---\n", "m.md: the chain is full: seq 5, and max_chain is 5", message.Defaults{Chain: chain, MaxChain: 5}},
		{chain + "-10.md", "x", chain + "-10.md: the chain is full: seq 10, and max_chain is 10", message.Defaults{Chain: chain, MaxChain: 10}},
		{"m.md", "x", "m.md: the chain is full: seq 3, and max_chain is 3", message.Defaults{Chain: chain, Seq: 3, MaxChain: 3}},
		{"m.md", "x", `m.md: "" is not a chain: 1 to 100 letters, digits, _, - and ., a letter, digit or _ first`, message.Defaults{}},
		{"m.md", "x", `m.md: "a/b" is not the name of a routine`, message.Defaults{Chain: chain, Routine: "a/b"}},
	} {
		m, err := message.Parse(c.name, []byte(c.text))
		require.NoError(t, err)
		_, _, err = message.Complete(m, c.d)
		require.EqualError(t, err, c.reason)
		require.ErrorAs(t, err, new(*message.Error))
	}
}

func TestSet(t *testing.T) {
	m := parse(t, "---\n# kept\nk: old # why\n---\nbody")
	got, data, err := message.Set(m, []message.Param{{"routine", "my routine"}, {"k", "a: b\n\"c\""}, {"n", "007"}})
	require.NoError(t, err)
	require.Equal(t, "---\n# kept\nk: \"a: b\\n\\\"c\\\"\" # why\nroutine: \"my routine\"\nn: 007\n---\nbody", string(data))
	require.Equal(t, "my routine", got.Routine)
	require.Equal(t, []message.Param{{"k", "a: b\n\"c\""}, {"n", "007"}}, got.Params)
	for _, fields := range [][]message.Param{{{"a", "1"}, {"a", "2"}}, {{"seq", "x"}}, {{"input_file", "../x"}}, {{"a", "\x00"}}, {{"", "x"}}} {
		_, _, err := message.Set(m, fields)
		require.Error(t, err, "%v", fields)
	}
	_, same, err := message.Set(m, nil)
	require.NoError(t, err)
	require.Equal(t, "---\n# kept\nk: old # why\n---\nbody", string(same))
}

func TestChooseRoutine(t *testing.T) {
	asked := 0
	router := func(answer string, err error) func() (string, error) {
		return func() (string, error) { asked++; return answer, err }
	}
	spec := parse(t, "---\nroutine: ofspec\n---\n")
	known := func(name string) bool { return name != "nosuch" }
	for _, c := range []struct {
		text   string
		choice message.Choice
		want   string
		asks   int
		passed string
	}{
		{"---\nroutine: own\n---\n", message.Choice{Spec: spec, Router: router("routed", nil), Default: "develop"}, "own", 0, ""},
		{"x", message.Choice{Spec: spec, Router: router("routed", nil), Default: "develop"}, "ofspec", 0, ""},
		{"x", message.Choice{Spec: parse(t, "x"), Router: router("\n routed \nbecause\n", nil), Default: "develop"}, "routed", 1, ""},
		{"x", message.Choice{Router: router("nosuch", nil), Default: "develop"}, "develop", 1, `the router's answer "nosuch" is not the name of a routine`},
		{"x", message.Choice{Router: router("", nil), Default: "develop"}, "develop", 1, `the router's answer "" is not the name of a routine`},
		{"x", message.Choice{Router: router("", errors.New("exit status 1")), Default: "develop"}, "develop", 1, "exit status 1"},
		{"x", message.Choice{Default: "develop"}, "develop", 0, ""},
		{"---\nroutine:\n---\n", message.Choice{Default: "develop"}, "develop", 0, ""},
	} {
		asked = 0
		c.choice.Known = known
		got, passed, err := message.ChooseRoutine(parse(t, c.text), c.choice)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.asks, asked)
		if c.passed == "" {
			require.NoError(t, passed)
		} else {
			require.EqualError(t, passed, c.passed)
		}
	}
	_, _, err := message.ChooseRoutine(parse(t, "---\nroutine: nosuch\n---\n"), message.Choice{Default: "develop", Known: known})
	require.EqualError(t, err, `m.md: no routine is called "nosuch"`)
}

func TestNameParts(t *testing.T) {
	for name, want := range map[string]string{
		chain + "-0.md": chain, chain + "-10.md": chain, "a-b-3.md": "a-b", "3-3.md": "3",
		"a-10.md": "", "a-03.md": "", "a.md": "", "-3.md": "", "a-3.txt": "", "a-3": "", "a b-3.md": "", ".a-3.md": "", "a--3.md": "a-",
	} {
		got, _, ok := message.NameParts(name, 10)
		require.Equal(t, want != "", ok, name)
		require.Equal(t, want, got, name)
	}
}
