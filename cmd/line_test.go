package cmd

import (
	"testing"

	"decree/project"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

func testLine(args ...string) (line, error) {
	s := &session{}
	return splitLine(args, s.globalFlags(), s.verbs(), false)
}

func TestSplitLine(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want line
	}{
		{"nothing", nil, line{}},
		{"verb alone", []string{"log"}, line{verb: "log"}},
		{"alias", []string{"history"}, line{verb: "log"}},
		{"flag behind a word", []string{"diff", "last", "--stat"},
			line{verb: "diff", flags: []string{"--stat=true"}, words: []string{"last"}}},
		{"flag with its value behind a word", []string{"checkpoint", "x", "-d", "some text"},
			line{verb: "checkpoint", flags: []string{"--description=some text"}, words: []string{"x"}}},
		{"value after =", []string{"checkpoint", "--description=a=b"},
			line{verb: "checkpoint", flags: []string{"--description=a=b"}}},
		{"a value that looks like a flag", []string{"checkpoint", "-d", "--json"},
			line{verb: "checkpoint", flags: []string{"--description=--json"}}},
		{"global flags before the verb", []string{"--root", "/x", "-q", "status"},
			line{verb: "status", flags: []string{"--root=/x", "--quiet=true"}}},
		{"double dash ends the flags", []string{"diff", "--", "--stat", "last"},
			line{verb: "diff", paths: []string{"--stat", "last"}, dashed: true}},
		{"words on both sides of it", []string{"revert", "last", "--", "-x"},
			line{verb: "revert", words: []string{"last"}, paths: []string{"-x"}, dashed: true}},
		{"a lone dash is a word", []string{"ignored", "-"}, line{verb: "ignored", words: []string{"-"}}},
		{"a digit as a flag", []string{"files", "-0"}, line{verb: "files", flags: []string{"--null=true"}}},
		{"a number behind its flag", []string{"log", "-n5"}, line{verb: "log", flags: []string{"--limit=5"}}},
		{"run: the command's flags are its own", []string{"run", "--keep", "make", "-j4", "--root", "x", "--", "y"},
			line{verb: "run", flags: []string{"--keep=true"}, words: []string{"make", "-j4", "--root", "x", "--", "y"}}},
		{"run: after a double dash", []string{"run", "--attempts", "3", "--", "--odd", "-q"},
			line{verb: "run", flags: []string{"--attempts=3"}, paths: []string{"--odd", "-q"}, dashed: true}},
		{"help wins", []string{"diff", "last", "--help"}, line{verb: "diff", words: []string{"last"}, help: true}},
		{"version", []string{"--version"}, line{version: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := testLine(tt.args...)
			require.NoError(t, err)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestSplitLineRefuses(t *testing.T) {
	tests := []struct {
		args      []string
		msg, hint string
	}{
		{[]string{"diff", "--stats"}, "there is no flag --stats", "did you mean --stat?"},
		{[]string{"diff", "-stat"}, "there is no flag -stat", "did you mean --stat?"},
		{[]string{"--jsn", "log"}, "there is no flag --jsn", "did you mean --json?"},
		{[]string{"run", "--kep", "x"}, "there is no flag --kep", "did you mean --keep?"},
		{[]string{"revert", "-n5"}, "there is no flag -n5", "did you mean -n?"},
		{[]string{"diff", "--stat=please"}, "there is no flag --stat", "--help"},
		{[]string{"checkpoint", "-d"}, "-d needs a value", "--help"},
		{[]string{"--root"}, "--root needs a value", "--help"},
		{[]string{"--json", "run", "x"}, "there is no flag --json here", "decree run --help"},
		{[]string{"rvert"}, "there is no command rvert", "did you mean 'decree revert'?"},
		{[]string{"make"}, "there is no command make", "decree run -- make"},
	}
	for _, tt := range tests {
		_, err := testLine(tt.args...)
		var f *project.Error
		require.ErrorAs(t, err, &f, "%v", tt.args)
		assert.Equal(t, tt.msg, f.Msg)
		assert.Contains(t, f.Advice, tt.hint)
		assert.EqualValues(t, 2, f.Kind)
	}
}

// TestFlagsAreDocumented holds that every flag says what it is for, that one
// with a value names it, and that no two flags of a command share a name.
func TestFlagsAreDocumented(t *testing.T) {
	s := &session{}
	check := func(where string, flags []cli.Flag) {
		seen := map[string]bool{}
		for _, f := range flags {
			d, ok := f.(cli.DocGenerationFlag)
			require.True(t, ok, "%s: %v", where, f.Names())
			assert.NotEmpty(t, d.GetUsage(), "%s: --%s has no documentation", where, f.Names()[0])
			value, _ := unquoteUsage(f)
			assert.Equal(t, d.TakesValue(), value != "", "%s: --%s: its value's name must stand in backquotes", where, f.Names()[0])
			for _, name := range f.Names() {
				assert.False(t, seen[name], "%s: two flags %s", where, name)
				seen[name] = true
			}
		}
	}
	check("decree", s.globalFlags())
	for _, v := range s.verbs() {
		check(v.name, v.flags)
		if v.name == "__complete" {
			continue
		}
		assert.NotEmpty(t, v.usage, v.name)
		assert.NotEmpty(t, v.about, v.name)
		assert.NotEmpty(t, v.examples, v.name)
		assert.Contains(t, categories, v.category, v.name)
	}
}
