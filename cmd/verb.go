package cmd

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"
)

// verb is one command: what it does, and everything its help, the reference,
// the man page and the completions say about it.
type verb struct {
	name     string
	aliases  []string
	category string
	args     string // what may follow the flags, as in "REF [PATH...]"
	usage    string // one line
	about    string // paragraphs, one a line, blank lines between
	examples []example
	exits    []exit
	flags    []cli.Flag
	// stops: the first word that is not a flag ends decree's part of the line.
	stops  bool
	hidden bool
	// words says what completion offers for the words.
	words  wordKind
	action func(ctx context.Context) error
}

// example is a command line and what it is for.
type example struct{ line, what string }

// exit is an exit code and what it means for this verb.
type exit struct {
	code string
	what string
}

// wordKind is what the words of a verb are, for completion.
type wordKind int

const (
	noWords wordKind = iota
	refWords
	pathWords
	refAndPathWords
	shellWords
	helpWords
	commandWords
	labelWords
	routineWords
	messageWords
)

// The categories of `decree --help`, in this order.
const (
	recordCategory = "Record"
	lookCategory   = "Look"
	takeCategory   = "Take back, bring back"
	keepCategory   = "Keep in order"

	messageCategory = "Messages"
)

var categories = []string{recordCategory, lookCategory, takeCategory, messageCategory, keepCategory}

// verbs are all commands, bound to this session.
func (s *session) verbs() []verb {
	return []verb{
		s.runVerb(), s.checkpointVerb(), s.initVerb(),
		s.logVerb(), s.showVerb(), s.diffVerb(), s.blameVerb(), s.statusVerb(), s.atVerb(), s.filesVerb(), s.findVerb(), s.ignoredVerb(), s.exportVerb(),
		s.revertVerb(), s.applyVerb(), s.restoreVerb(), s.labelVerb(),
		s.sendVerb(), s.processVerb(), s.daemonVerb(), s.inboxVerb(), s.routinesVerb(),
		s.recoverVerb(), s.verifyVerb(), s.doctorVerb(), s.duVerb(), s.pruneVerb(), s.gcVerb(), s.forgetVerb(), s.auditVerb(), s.completionVerb(), s.helpVerb(),
		s.manVerb(), s.completeVerb(),
	}
}

// find is the verb called name, also by an alias; nil if there is none.
func find(verbs []verb, name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
		for _, a := range verbs[i].aliases {
			if a == name {
				return &verbs[i]
			}
		}
	}
	return nil
}

// command is v as the flag parser wants it.
func (v verb) command() *cli.Command {
	return &cli.Command{
		Name: v.name, Aliases: v.aliases, Usage: v.usage, ArgsUsage: v.args,
		Description: v.about, Category: v.category, Flags: v.flags, Hidden: v.hidden,
		HideHelpCommand: true,
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return badValue(v.name, v.flags, err) },
		Action:          func(c *cli.Context) error { return v.action(c.Context) },
	}
}

// app is the whole program for the flag parser.
func (s *session) app(verbs []verb) *cli.App {
	app := &cli.App{
		Name: "decree", HelpName: "decree", Usage: tagline, Version: Version(),
		HideHelpCommand: true, HideVersion: true, Compiled: time.Unix(0, 0),
		Reader: s.env.Stdin, Writer: s.env.Stdout, ErrWriter: s.env.Stderr,
		Flags:          s.globalFlags(),
		OnUsageError:   func(_ *cli.Context, err error, _ bool) error { return badValue("", s.globalFlags(), err) },
		ExitErrHandler: func(*cli.Context, error) {}, // errors become exit codes in one place: exitCode
	}
	for _, v := range verbs {
		app.Commands = append(app.Commands, v.command())
	}
	return app
}
