package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/project"
)

// helpWidth is how wide help is, but on a narrower terminal; docs/cli.md is what
// `--help` says with it.
const helpWidth = 88

// helpColumns is how wide help is here.
func (s *session) helpColumns() int {
	if !isTerminal(s.env.Stdout) {
		return helpWidth
	}
	return min(helpWidth, max(40, s.columns(s.env.Stdout)))
}

func (s *session) helpVerb() verb {
	return verb{
		name: "help", category: keepCategory, args: "[COMMAND | config | env | events]", words: helpWords, most: 1,
		usage: "explain a command, the config file, the environment, or --events",
		about: `Without a word: all commands. With a command's name: its flags, examples and exit codes. "help config" prints the schema of .decree/config.yml, "help env" the environment variables, "help events" what --events writes.`,
		examples: []example{
			{"decree help revert", "how to take a run back"},
			{"decree help config", "what may stand in .decree/config.yml"},
		},
		flags:  []cli.Flag{s.rootFlag(), s.quietFlag()},
		action: s.help,
	}
}

func (s *session) help(context.Context) error {
	verbs, words := s.verbs(), s.words()
	switch {
	case len(words) == 0:
		return s.printProgramHelp(verbs)
	case words[0] == "events":
		return s.print(func(w io.Writer) error {
			_, err := io.WriteString(w, eventsHelp(s.helpColumns()))
			return err
		})
	case words[0] == "env":
		return s.print(func(w io.Writer) error {
			_, err := io.WriteString(w, envHelp(s.helpColumns()))
			return err
		})
	case words[0] == "config":
		return s.print(func(w io.Writer) error {
			_, err := io.WriteString(w, configHelp())
			return err
		})
	}
	v := find(verbs, words[0])
	if v == nil {
		return unknownVerb(words[0], verbs)
	}
	return s.printVerbHelp(v)
}

// variables are what `decree help env` lists: those that decree reads, then those that it
// gives to a recorded command.
var variables = []struct {
	title string
	list  []exit
}{
	{"Read by decree", []exit{
		{"DECREE_STORE", "where the stores of new projects are kept, instead of store in the config and the usual place."},
		{"XDG_DATA_HOME", "stores are kept in decree below it; ~/.local/share/decree where it is unset or empty."},
		{"DECREE_AGENT, DECREE_SESSION, DECREE_TURN", "who calls decree: recorded as the record's actor. DECREE_TURN is a number."},
		{"PAGER", "the pager for long output on a terminal; cat, or an empty value, for none."},
		{"NO_COLOR, TERM", "no colours where NO_COLOR is set or TERM is dumb."},
		{"COLUMNS", "how wide the terminal is taken to be, else what it says itself. Tables are shortened to it; a file or another program gets all of them."},
	}},
	{"Given to a command that is recorded", []exit{
		{"DECREE_RUN_ID", "the record's id."},
		{"DECREE_RUN_DIR", "the directory of its files."},
		{"DECREE_ROOT", "the root of the tree."},
		{"DECREE_ATTEMPT, DECREE_ATTEMPTS", "which attempt this is, and how many there are in all."},
		{"DECREE_FAILURE_CONTEXT", "on the last of several attempts: a file that says how the earlier ones failed."},
	}},
	{"Also given to a routine", []exit{
		{"DECREE_OUTBOX", "a directory: a message that is written into it follows in the same chain."},
		{"message_file, message_id, message_dir, spec_file, input_file, chain, seq", "the message; its other fields too, where the routine's head declares them."},
	}},
}

func envHelp(columns int) string {
	var b strings.Builder
	for i, v := range variables {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(v.title + ":\n")
		for _, e := range v.list {
			b.WriteString(wrap(e.code, columns, "  ") + wrap(e.what, columns, "      "))
		}
	}
	return b.String()
}

// configHelp is the schema of .decree/config.yml.
func configHelp() string {
	var b strings.Builder
	b.WriteString("The config is .decree/config.yml. All keys are optional; an unknown one, or a\nvalue of another type, is an error with its line. Sizes are bytes, or 64MiB,\n10 GiB. A dot means a key below another: capture.max_files is max_files\nbelow capture.\n")
	for _, k := range project.Keys() {
		fmt.Fprintf(&b, "\n%s (%s, default %s)\n%s", k.Name, k.Type, cmp.Or(k.Default, "none"), wrap(k.Doc, 78, "    "))
	}
	return b.String()
}

func (s *session) printProgramHelp(verbs []verb) error {
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, programHelp(verbs, s.globalFlags(), s.helpColumns()))
		return err
	})
}

func (s *session) printVerbHelp(v *verb) error {
	return s.print(func(w io.Writer) error {
		_, err := io.WriteString(w, verbHelp(v, s.helpColumns()))
		return err
	})
}

// programHelp is what `decree --help` says.
func programHelp(verbs []verb, flags []cli.Flag, columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "decree - %s\n\nUsage: decree COMMAND [FLAGS] [WORDS]\n\n", tagline)
	b.WriteString(wrap(programAbout, columns, ""))
	for _, c := range categories {
		fmt.Fprintf(&b, "\n%s:\n", c)
		for _, v := range verbs {
			if v.category == c && !v.hidden {
				text := wrap(v.usage, columns, strings.Repeat(" ", 14))
				fmt.Fprintf(&b, "  %-11s %s", v.name, strings.TrimLeft(text, " "))
			}
		}
	}
	b.WriteString("\nFlags, before or after the command, where they make sense:\n")
	b.WriteString(flagHelp(flags, columns))
	b.WriteString("\nExamples:\n")
	b.WriteString(exampleHelp(programExamples))
	b.WriteString("\nExit codes (but for run):\n")
	b.WriteString(exitHelp(programExits, columns))
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
	{"2", "wrong usage"},
	{"3", "no such record, label or path"},
	{"4", "refused (a conflict, a lock held, no confirmation); nothing was changed"},
	{"5", "a hash does not match"},
}

// verbHelp is what `decree VERB --help` says.
func verbHelp(v *verb, columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "decree %s - %s\n\nUsage: %s\n", v.name, v.usage, usageLine(v))
	if len(v.aliases) > 0 {
		fmt.Fprintf(&b, "Also called: %s\n", strings.Join(v.aliases, ", "))
	}
	b.WriteString("\n" + wrap(v.about, columns, ""))
	b.WriteString("\nFlags:\n" + flagHelp(v.flags, columns))
	if len(v.examples) > 0 {
		b.WriteString("\nExamples:\n" + exampleHelp(v.examples))
	}
	if len(v.exits) > 0 {
		b.WriteString("\nExit codes:\n" + exitHelp(v.exits, columns))
	}
	return b.String()
}

func usageLine(v *verb) string {
	return strings.TrimSpace("decree " + v.name + " [FLAGS] " + v.args)
}

func flagHelp(flags []cli.Flag, columns int) string {
	var b strings.Builder
	heads, widest := make([]string, len(flags)), 0
	for i, f := range flags {
		heads[i] = flagHead(f)
		widest = max(widest, width(heads[i]))
	}
	for i, f := range flags {
		_, usage := unquoteUsage(f)
		if columns < helpWidth { // beside the heads there is no room
			fmt.Fprintf(&b, "  %s\n%s", heads[i], wrap(usage, columns, "        "))
			continue
		}
		text := wrap(usage, columns, strings.Repeat(" ", widest+4))
		fmt.Fprintf(&b, "  %-*s  %s", widest, heads[i], strings.TrimLeft(text, " "))
	}
	return b.String()
}

// flagHead is "-d, --description TEXT", with room for a missing short form.
func flagHead(f cli.Flag) string {
	short := "    "
	for _, name := range f.Names() {
		if len(name) == 1 {
			short = "-" + name + ", "
			break
		}
	}
	head := short + "--" + f.Names()[0]
	if value, _ := unquoteUsage(f); value != "" {
		head += " " + value
	}
	if m, ok := f.(*modeFlag); ok {
		head += "[=" + m.word + "]"
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

func exitHelp(exits []exit, columns int) string {
	var b strings.Builder
	for _, e := range exits {
		text := wrap(e.what, columns, "         ")
		fmt.Fprintf(&b, "  %-5s  %s", e.code, strings.TrimLeft(text, " "))
	}
	return b.String()
}
