package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"decree/project"
)

// helpWidth is how wide help is; it is the same everywhere, so that
// docs/cli.md is what `--help` says.
const helpWidth = 88

func (s *session) helpVerb() verb {
	return verb{
		name: "help", category: keepCategory, args: "[COMMAND | config | events]", words: helpWords,
		usage: "explain a command, the config file, or --events",
		about: `Without a word: all commands. With a command's name: its flags, examples and exit codes. "help config" prints the schema of .decree/config.yml, "help events" what --events writes.`,
		examples: []example{
			{"decree help revert", "how to take a run back"},
			{"decree help config", "what may stand in .decree/config.yml"},
		},
		flags:  []cli.Flag{s.rootFlag(), s.quietFlag()},
		action: s.help,
	}
}

func (s *session) help(context.Context) error {
	if err := s.atMost(1); err != nil {
		return err
	}
	verbs, words := s.verbs(), s.words()
	switch {
	case len(words) == 0:
		return s.printProgramHelp(verbs)
	case words[0] == "events":
		return s.print(func(w io.Writer) error {
			_, err := io.WriteString(w, eventsHelp())
			return err
		})
	case words[0] == "config":
		return s.print(func(w io.Writer) error {
			_, err := io.WriteString(w, project.ConfigHelp())
			return err
		})
	}
	v := find(verbs, words[0])
	if v == nil {
		return unknownVerb(words[0], verbs)
	}
	return s.printVerbHelp(v)
}

func (s *session) printProgramHelp(verbs []verb) error {
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, programHelp(verbs, s.globalFlags()))
		return err
	})
}

func (s *session) printVerbHelp(v *verb) error {
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, verbHelp(v))
		return err
	})
}

// programHelp is what `decree --help` says.
func programHelp(verbs []verb, flags []cli.Flag) string {
	var b strings.Builder
	fmt.Fprintf(&b, "decree - %s\n\nUsage: decree COMMAND [FLAGS] [WORDS]\n\n", tagline)
	b.WriteString(wrap(programAbout, helpWidth, ""))
	for _, c := range categories {
		fmt.Fprintf(&b, "\n%s:\n", c)
		for _, v := range verbs {
			if v.category == c && !v.hidden {
				fmt.Fprintf(&b, "  %-11s %s\n", v.name, v.usage)
			}
		}
	}
	b.WriteString("\nFlags, before or after the command, where they make sense:\n")
	b.WriteString(flagHelp(flags))
	b.WriteString("\nExamples:\n")
	b.WriteString(exampleHelp(programExamples))
	b.WriteString("\nExit codes (but for run):\n")
	b.WriteString(exitHelp(programExits))
	return b.String()
}

const programAbout = `decree records the files of a tree before a command runs and what the command changed, and puts them back when you want, or when it fails. It needs no version control and leaves yours alone.

REF names a record: its id, a beginning or end of one, a label, "last", "last~2", or "@TIME". PATHs are relative to the working directory. Flags may stand before or after them; "--" ends the flags.`

var programExamples = []example{
	{"decree run -- make generate", "record a command; if it fails, its changes are put back"},
	{"decree diff", "what the last record changed"},
	{"decree revert last", "take that back"},
	{"decree apply last~1", "bring a run's work back"},
}

var programExits = []exit{
	{"0", "done, or nothing to do"},
	{"1", "failed"},
	{"2", "called wrongly"},
	{"3", "no such record, label or path"},
	{"4", "refused (a conflict, a lock held, no confirmation); nothing was changed"},
	{"5", "a hash does not match"},
}

// verbHelp is what `decree VERB --help` says.
func verbHelp(v *verb) string {
	var b strings.Builder
	fmt.Fprintf(&b, "decree %s - %s\n\nUsage: %s\n", v.name, v.usage, usageLine(v))
	if len(v.aliases) > 0 {
		fmt.Fprintf(&b, "Also called: %s\n", strings.Join(v.aliases, ", "))
	}
	b.WriteString("\n" + wrap(v.about, helpWidth, ""))
	b.WriteString("\nFlags:\n" + flagHelp(v.flags))
	if len(v.examples) > 0 {
		b.WriteString("\nExamples:\n" + exampleHelp(v.examples))
	}
	if len(v.exits) > 0 {
		b.WriteString("\nExit codes:\n" + exitHelp(v.exits))
	}
	return b.String()
}

func usageLine(v *verb) string {
	return strings.TrimSpace("decree " + v.name + " [FLAGS] " + v.args)
}

func flagHelp(flags []cli.Flag) string {
	var b strings.Builder
	heads, width := make([]string, len(flags)), 0
	for i, f := range flags {
		heads[i] = flagHead(f)
		width = max(width, utf8.RuneCountInString(heads[i]))
	}
	for i, f := range flags {
		_, usage := unquoteUsage(f)
		text := wrap(usage, helpWidth, strings.Repeat(" ", width+4))
		fmt.Fprintf(&b, "  %-*s  %s", width, heads[i], strings.TrimLeft(text, " "))
	}
	return b.String()
}

// flagHead is "-d, --description TEXT", with room for a missing short form.
func flagHead(f cli.Flag) string {
	short := "    "
	for _, name := range f.Names() {
		if len(name) == 1 {
			short = "-" + name + ", "
		}
	}
	head := short + "--" + f.Names()[0]
	if value, _ := unquoteUsage(f); value != "" {
		head += " " + value
	}
	return head
}

// unquoteUsage takes the value's name, which stands between backquotes, out of
// a flag's usage.
func unquoteUsage(f cli.Flag) (value, usage string) {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return "", ""
	}
	usage = d.GetUsage()
	if _, rest, ok := strings.Cut(usage, "`"); ok {
		value, _, _ = strings.Cut(rest, "`")
	}
	return value, strings.ReplaceAll(usage, "`", "")
}

func exampleHelp(examples []example) string {
	var b strings.Builder
	for _, e := range examples {
		fmt.Fprintf(&b, "  %s\n      %s\n", e.line, e.what)
	}
	return b.String()
}

func exitHelp(exits []exit) string {
	var b strings.Builder
	for _, e := range exits {
		text := wrap(e.what, helpWidth, "         ")
		fmt.Fprintf(&b, "  %-5s  %s", e.code, strings.TrimLeft(text, " "))
	}
	return b.String()
}
