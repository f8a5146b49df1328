package cmd

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"decree/recorder"
)

// globals are the flags that mean the same wherever they make sense.
type globals struct {
	root  string
	quiet bool
	json  bool
	yes   bool
	wait  time.Duration
	// events: what happens goes to stderr as a line of JSON each, instead of text.
	events bool
}

// The constructors below keep a flag to one line and leave out the defaults
// that say nothing ("false", "0s").

func boolFlag(dst *bool, usage, name string, aliases ...string) cli.Flag {
	return &cli.BoolFlag{Name: name, Aliases: aliases, Usage: usage, Destination: dst, DisableDefaultText: true}
}

func stringFlag(dst *string, usage, name string, aliases ...string) cli.Flag {
	return &cli.StringFlag{Name: name, Aliases: aliases, Usage: usage, Destination: dst, Value: *dst}
}

// texts is the value of a flag that may be given several times.
type texts []string

func (t *texts) Set(text string) error { *t = append(*t, text); return nil }
func (t *texts) String() string        { return strings.Join(*t, " ") }

func textsFlag(dst *texts, usage, name string, aliases ...string) cli.Flag {
	return &cli.GenericFlag{Name: name, Aliases: aliases, Usage: usage, Value: dst}
}

// modeFlag is a flag that stands alone or with one word as its value: --fence, --fence=strict.
type modeFlag struct {
	cli.GenericFlag
	word string
}

// TakesValue says no: the word that follows the flag is none of its.
func (*modeFlag) TakesValue() bool { return false }

// fenceFlag sets how a run's command is fenced.
func fenceFlag(dst *fenceMode) cli.Flag {
	return &modeFlag{word: "strict", GenericFlag: cli.GenericFlag{Name: "fence", Value: dst,
		Usage: "keep COMMAND from writing anywhere but below the root, in the temporary directory and where fence.write of the config says; strict: refuse where the kernel cannot do all of it"}}
}

// fenceMode is a recorder.FenceMode on the command line.
type fenceMode struct{ recorder.FenceMode }

// Set takes "true", which a flag alone means, "false" and "strict".
func (m *fenceMode) Set(text string) error {
	m.FenceMode = map[string]recorder.FenceMode{"true": recorder.Fenced, "strict": recorder.FencedStrictly}[text]
	return nil
}
func (m *fenceMode) String() string { return "" }

func intFlag(dst *int, usage, name string, aliases ...string) cli.Flag {
	return &cli.IntFlag{Name: name, Aliases: aliases, Usage: usage, Destination: dst, Value: *dst}
}

func durationFlag(dst *time.Duration, usage, name string) cli.Flag {
	return &cli.DurationFlag{Name: name, Usage: usage, Destination: dst, Value: *dst}
}

func (s *session) rootFlag() cli.Flag {
	return stringFlag(&s.global.root, "the tree's root is `DIR` (default: the nearest directory upwards with .decree or .git)", "root", "C")
}

func (s *session) quietFlag() cli.Flag {
	return boolFlag(&s.global.quiet, "print only errors and what was asked for", "quiet", "q")
}

func (s *session) jsonFlag() cli.Flag {
	return boolFlag(&s.global.json, "print JSON instead of text", "json")
}

func (s *session) eventsFlag() cli.Flag {
	return boolFlag(&s.global.events, "report what happens as JSON on stderr, one object per line; see 'decree help events'", "events")
}

func (s *session) yesFlag() cli.Flag {
	return boolFlag(&s.global.yes, "answer every question with yes", "yes", "y")
}

func (s *session) waitFlag() cli.Flag {
	return durationFlag(&s.global.wait, "wait up to `D` (30s, 5m) while another decree is working on this tree", "wait")
}

// globalFlags are those that may stand before the verb.
func (s *session) globalFlags() []cli.Flag {
	var version bool
	return []cli.Flag{s.rootFlag(), s.quietFlag(), s.jsonFlag(), s.yesFlag(), s.waitFlag(), cli.HelpFlag,
		boolFlag(&version, "print the version", "version", "v")}
}

// reading are the flags of a command that only looks.
func (s *session) reading(own ...cli.Flag) []cli.Flag {
	return append(own, s.jsonFlag(), s.rootFlag(), s.quietFlag())
}

// writing are the flags of a command that changes the history or the tree.
func (s *session) writing(own ...cli.Flag) []cli.Flag {
	return append(own, s.jsonFlag(), s.eventsFlag(), s.yesFlag(), s.waitFlag(), s.rootFlag(), s.quietFlag())
}

// badValue turns the flag parser's complaint about a value into a usage error.
// With a duration's, of the flags of the verb, the units are named.
func badValue(verb string, flags []cli.Flag, err error) error {
	text := strings.ReplaceAll(err.Error(), " flag -", " flag --")
	text = strings.TrimSuffix(text, ": parse error")
	e := usagef("%s", text)
	for _, f := range flags {
		if _, ok := f.(*cli.DurationFlag); ok && strings.HasSuffix(text, " flag --"+f.Names()[0]) {
			return e.Hintf("write a number and its unit: 30s, 5m or 2h")
		}
	}
	return e.Hintf("see '%s --help'", commandName(verb))
}
