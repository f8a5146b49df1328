package cmd

import (
	"fmt"
	"strings"

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
