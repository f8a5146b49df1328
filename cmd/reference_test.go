package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

// reference is docs/cli.md: what `--help` says, of the program and of each
// command. A test writes it and fails when it differs.
func reference(verbs []verb, global []cli.Flag) string {
	var b strings.Builder
	b.WriteString("# Commands\n\nMade from the commands' own help by `make docs`; do not edit it here.\n\n")
	fmt.Fprintf(&b, "```text\n%s```\n", programHelp(verbs, global, helpWidth))
	for i := range verbs {
		if v := &verbs[i]; !v.hidden {
			fmt.Fprintf(&b, "\n## decree %s\n\n```text\n%s```\n", v.name, verbHelp(v, helpWidth))
		}
	}
	fmt.Fprintf(&b, "\n## Environment\n\n```text\n%s```\n", envHelp(helpWidth))
	fmt.Fprintf(&b, "\n## Events\n\n```text\n%s```\n", eventsHelp(helpWidth))
	return b.String()
}

// TestReference holds that docs/cli.md is what the commands say of themselves;
// `make docs` writes it.
func TestReference(t *testing.T) {
	s := &session{}
	path := filepath.Join("..", "docs", "cli.md")
	have := reference(s.verbs(), s.globalFlags())
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(have), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), have, "docs/cli.md is old: run 'make docs'")
}

func TestHelpFits(t *testing.T) {
	s := &session{}
	for _, l := range strings.Split(reference(s.verbs(), s.globalFlags()), "\n") {
		assert.LessOrEqual(t, len(l), 110, "%s", l)
	}
}

func TestManPage(t *testing.T) {
	s := &session{}
	page := manPage(s.verbs(), s.globalFlags())
	for _, v := range s.verbs() {
		if !v.hidden {
			assert.Contains(t, page, ".SS decree "+v.name)
		}
	}
	for _, l := range strings.Split(page, "\n") {
		if strings.HasPrefix(l, ".") {
			assert.Regexp(t, `^\.(TH|SH|SS|PP|TP|B|I|EX|EE)( |$)`, l)
		}
	}
}
