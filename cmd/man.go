package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

func (s *session) manVerb() verb {
	return verb{
		name: "man", category: keepCategory, hidden: true,
		usage:    "print the man page",
		about:    `Prints decree(1) as roff.`,
		examples: []example{{"decree man > /usr/local/share/man/man1/decree.1", "install it"}},
		flags:    []cli.Flag{s.quietFlag()},
		action: func(context.Context) error {
			return s.print(func(w io.Writer) error {
				_, err := io.WriteString(w, manPage(s.verbs(), s.globalFlags()))
				return err
			})
		},
	}
}

// manPage is decree(1), made of what `--help` says.
func manPage(verbs []verb, flags []cli.Flag) string {
	var b strings.Builder
	b.WriteString(".TH DECREE 1\n.SH NAME\n")
	fmt.Fprintf(&b, "decree \\- %s\n.SH SYNOPSIS\n.B decree\n.I COMMAND\n[FLAGS] [WORDS]\n.SH DESCRIPTION\n", roff(tagline))
	roffText(&b, programAbout)
	b.WriteString(".SH FLAGS\nBefore or after the command, where they make sense:\n")
	roffFlags(&b, flags)
	b.WriteString(".SH COMMANDS\n")
	for i := range verbs {
		if !verbs[i].hidden {
			roffVerb(&b, &verbs[i])
		}
	}
	b.WriteString(".SH EXIT STATUS\nBut for run:\n")
	roffExits(&b, programExits)
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range environment {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(v.line), roff(v.what))
	}
	b.WriteString(".SH FILES\n")
	for _, f := range placesOfFiles {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(f.line), roff(f.what))
	}
	return b.String()
}

// environment is what decree reads and sets.
var environment = []example{
	{"DECREE_STORE", "the directory in which stores are made, instead of $XDG_DATA_HOME/decree"},
	{"DECREE_PAGER, PAGER", "the pager for log and diff on a terminal; less -FRX if unset"},
	{"NO_COLOR", "no colours, whatever its value"},
	{"COLUMNS", "how wide the terminal is taken to be"},
	{"DECREE_AGENT, DECREE_SESSION, DECREE_TURN", "who acts, for the records"},
	{"DECREE_RUN_ID, DECREE_RUN_DIR, DECREE_ROOT, DECREE_ATTEMPT, DECREE_ATTEMPTS", "set for a recorded command"},
	{"DECREE_FAILURE_CONTEXT", "set for the last of several attempts: the file that tells how the others failed"},
}

var placesOfFiles = []example{
	{".decree/runs/<id>/", "a record: run.json, manifest.json, changes.diff, routine.log"},
	{".decree/config.yml", "the config; 'decree help config' explains it"},
	{".gitignore, .decreeignore", "what is not recorded"},
	{"$XDG_DATA_HOME/decree/<project-id>/", "the store"},
}

func roffVerb(b *strings.Builder, v *verb) {
	fmt.Fprintf(b, ".SS %s\n%s\n", roff(usageLine(v)), roff(strings.ToUpper(v.usage[:1])+v.usage[1:]+"."))
	if len(v.aliases) > 0 {
		fmt.Fprintf(b, "Also called %s.\n", roff(strings.Join(v.aliases, ", ")))
	}
	b.WriteString(".PP\n")
	roffText(b, v.about)
	roffFlags(b, v.flags)
	for _, e := range v.examples {
		fmt.Fprintf(b, ".PP\n.EX\n%s\n.EE\n%s\n", roff(e.line), roff(e.what))
	}
	if len(v.exits) > 0 {
		b.WriteString(".PP\nExit codes:\n")
		roffExits(b, v.exits)
	}
}

func roffText(b *strings.Builder, text string) {
	for i, par := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(roff(par) + "\n")
	}
}

func roffFlags(b *strings.Builder, flags []cli.Flag) {
	for _, f := range flags {
		_, usage := unquoteUsage(f)
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(flagHead(f))), roff(usage))
	}
}

func roffExits(b *strings.Builder, exits []exit) {
	for _, e := range exits {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(e.code), roff(e.what))
	}
}

// roff escapes text: backslashes, hyphens that are to be copied as such, and a
// dot or an apostrophe that would begin a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
