package cmd

import (
	"context"
	"math"
	"slices"
	"time"

	"decree/project"

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
	// words says what completion offers for the words, most how many there may be, and
	// missing is the error where there must be one and is none.
	words   wordKind
	most    int
	missing *project.Error
	// interruptible: the first signal cancels the action, which then takes back what it
	// has begun.
	interruptible bool
	action        func(ctx context.Context) error
}

// anyWords is for a verb that takes as many words as there are, or counts them itself.
const anyWords = math.MaxInt

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
	agentWords
)

// The categories of `decree --help`, in this order.
const (
	recordCategory = "Record"
	lookCategory   = "Look"
	takeCategory   = "Take back, bring back"
	draftCategory  = "Isolated runs"
	keepCategory   = "Keep in order"

	messageCategory = "Messages"
	agentCategory   = "Coding agents"
)

var categories = []string{recordCategory, lookCategory, takeCategory, draftCategory, agentCategory, messageCategory, keepCategory}

// verbs are all commands, bound to this session.
func (s *session) verbs() []verb {
	return []verb{
		s.runVerb(), s.checkpointVerb(), s.initVerb(),
		s.logVerb(), s.showVerb(), s.diffVerb(), s.blameVerb(), s.uiVerb(), s.statusVerb(), s.atVerb(), s.filesVerb(), s.findVerb(), s.ignoredVerb(), s.exportVerb(), s.reportVerb(), s.serveVerb(),
		s.undoVerb(), s.redoVerb(), s.revertVerb(), s.applyVerb(), s.restoreVerb(), s.labelVerb(),
		s.raceVerb(), s.draftsVerb(), s.publishVerb(), s.enterVerb(), s.discardVerb(),
		s.agentsVerb(), s.turnsVerb(), s.hookVerb(), s.mcpVerb(), s.acpVerb(),
		s.sendVerb(), s.processVerb(), s.daemonVerb(), s.inboxVerb(), s.routinesVerb(),
		s.recoverVerb(), s.verifyVerb(), s.doctorVerb(), s.duVerb(), s.pruneVerb(), s.gcVerb(), s.forgetVerb(), s.auditVerb(), s.backupVerb(), s.completionVerb(), s.helpVerb(),
		s.manVerb(), s.completeVerb(),
	}
}

// find is the verb called name, also by an alias; nil if there is none.
func find(verbs []verb, name string) *verb {
	for i := range verbs {
		if verbs[i].name == name {
			return &verbs[i]
		}
		if slices.Contains(verbs[i].aliases, name) {
			return &verbs[i]
		}
	}
	return nil
}

// perform does what v is for, once its words are counted.
func (s *session) perform(ctx context.Context, v verb) error {
	if v.missing != nil && len(s.words()) == 0 {
		return v.missing
	}
	if err := s.atMost(v.most); err != nil {
		return err
	}
	if v.interruptible {
		var stop context.CancelFunc
		ctx, stop = interruptible(ctx)
		defer stop()
	}
	return v.action(ctx)
}

// command is v as the flag parser wants it.
func (s *session) command(v verb) *cli.Command {
	return &cli.Command{
		Name: v.name, Aliases: v.aliases, Usage: v.usage, ArgsUsage: v.args,
		Description: v.about, Category: v.category, Flags: v.flags, Hidden: v.hidden,
		HideHelpCommand: true,
		OnUsageError:    func(_ *cli.Context, err error, _ bool) error { return badValue(v.name, v.flags, err) },
		Action:          func(c *cli.Context) error { return s.perform(c.Context, v) },
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
		app.Commands = append(app.Commands, s.command(v))
	}
	return app
}
