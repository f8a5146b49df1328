package cmd

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// line is a command line taken apart: which verb, its flags in canonical form
// ("--name=value"), and its words. Flags may stand on either side of the words,
// which the flag package alone does not allow.
type line struct {
	verb  string
	flags []string
	// words stand before a "--", paths after it; dashed says that one was there.
	words, paths  []string
	dashed        bool
	help, version bool
	pending       string // the flag at the end whose value is missing; "" for none
}

// flagValue is the value of a flag, by its first name, "" where the line does not have it.
func (l line) flagValue(flag string) (value string) {
	for _, f := range l.flags {
		if v, ok := strings.CutPrefix(f, "--"+flag+"="); ok {
			value = v
		}
	}
	return value
}

// argv is what the flag parser gets: flags first, then everything else.
func (l line) argv() []string {
	out := []string{"decree"}
	if l.verb != "" {
		out = append(out, l.verb)
	}
	if l.help {
		return append(out, "--help")
	}
	out = append(out, l.flags...)
	out = append(out, "--")
	out = append(out, l.words...)
	return append(out, l.paths...)
}

// splitLine takes args apart by the flag tables of verbs. Flags before the verb
// must be among global and are handed to the verb, which may still refuse them. With
// typing the line is not whole yet: what is wrong with its flags is passed over.
func splitLine(args []string, global []cli.Flag, verbs []verb, typing bool) (line, error) {
	var l line
	before := tableOf(global)
	for len(args) > 0 && l.verb == "" {
		word := args[0]
		if !isFlag(word) {
			l.verb, args = word, args[1:]
			break
		}
		n, err := l.flag(args, before, "")
		if err != nil && !typing {
			return l, err
		}
		args = args[n:]
	}
	if l.verb == "" {
		return l, nil
	}
	v := find(verbs, l.verb)
	if v == nil {
		return l, unknownVerb(l.verb, verbs)
	}
	l.verb = v.name
	if err := l.hoisted(v); err != nil && !typing {
		return l, err
	}
	return l, l.rest(args, v, typing)
}

// hoisted checks the flags that stood before the verb against the verb's own.
func (l *line) hoisted(v *verb) error {
	own := tableOf(v.flags)
	for _, f := range l.flags {
		name, _, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		if _, ok := own.names[name]; !ok {
			return usagef("there is no flag --%s here", name).Hintf("see 'decree %s --help'", v.name)
		}
	}
	return nil
}

// rest takes apart what follows the verb.
func (l *line) rest(args []string, v *verb, typing bool) error {
	own := tableOf(v.flags)
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			l.dashed, l.paths = true, args[1:]
			return nil
		case isFlag(word):
			n, err := l.flag(args, own, v.name)
			if err != nil && !typing {
				return err
			}
			args = args[n:]
		case v.stops:
			// From its first word on the line is the recorded command's, flags and all.
			l.words = args
			return nil
		default:
			l.words = append(l.words, word)
			args = args[1:]
		}
	}
	return nil
}

// flag takes one flag from the head of args and says how many words it took, one where
// there is something wrong with it.
func (l *line) flag(args []string, t flagTable, verb string) (int, error) {
	word := args[0]
	name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
	long := strings.HasPrefix(word, "--")
	if number := name[min(1, len(name)):]; !long && !given && number != "" && strings.Trim(number, "0123456789") == "" {
		name, value, given = name[:1], number, true // -n5; only numbers, or -dry-run were a -d
	}
	spec, ok := t.names[name]
	if ok && given && spec.word != "" && !slices.Contains([]string{spec.word, "true", "false"}, value) {
		return 1, usagef("--%s takes no value but %s", spec.name, spec.word).Hintf("see '%s --help'", commandName(verb))
	}
	if !ok || long != (len(name) > 1) || given && !spec.value && spec.word == "" && value != "true" && value != "false" {
		return 1, unknownFlag(verb, word, t.flags)
	}
	switch {
	case spec.name == "help":
		l.help = true
		return 1, nil
	case spec.name == "version":
		l.version = true
		return 1, nil
	case given:
		l.flags = append(l.flags, "--"+spec.name+"="+value)
		return 1, nil
	case !spec.value:
		l.flags = append(l.flags, "--"+spec.name+"=true")
		return 1, nil
	case len(args) < 2:
		l.pending = spec.name
		return 1, usagef("%s needs a value", word).Hintf("see '%s --help'", commandName(verb))
	}
	l.flags = append(l.flags, "--"+spec.name+"="+args[1])
	return 2, nil
}

// isFlag says whether a word is a flag; a lone "-" is a word like others.
func isFlag(word string) bool { return len(word) > 1 && word[0] == '-' }

// flagSpec is what the splitter must know of a flag.
type flagSpec struct {
	name  string // the first, canonical one
	value bool   // takes a value
	word  string // the one that it takes after a "=", if it does
}

// flagTable finds a flag by any of its names.
type flagTable struct {
	names map[string]flagSpec
	flags []cli.Flag
}

func tableOf(flags []cli.Flag) flagTable {
	t := flagTable{names: map[string]flagSpec{}, flags: flags}
	for _, f := range append([]cli.Flag{cli.HelpFlag}, flags...) {
		d, _ := f.(cli.DocGenerationFlag)
		spec := flagSpec{name: f.Names()[0], value: d != nil && d.TakesValue()}
		if m, ok := f.(*modeFlag); ok {
			spec.word = m.word
		}
		for _, name := range f.Names() {
			t.names[name] = spec
		}
	}
	return t
}

// unknownFlag is the usage error for a flag that nobody knows, with the nearest one.
func unknownFlag(verb, word string, flags []cli.Flag) error {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	shown, _, _ := strings.Cut(word, "=")
	e := usagef("there is no flag %s", shown)
	if advice, ok := elsewhereFlags[verb+" "+name]; ok {
		return e.Hintf("%s", advice)
	}
	if near := cli.SuggestFlag(flags, name, false); isNear(name, strings.TrimLeft(near, "-")) {
		return e.Hintf("did you mean %s? '%s --help' lists them all", near, commandName(verb))
	}
	return e.Hintf("see '%s --help'", commandName(verb))
}

// elsewhereFlags are the flags that other programs have, by "VERB FLAG", and what to do
// with decree instead.
var elsewhereFlags = map[string]string{
	"diff staged":    "'decree diff --edits' shows what was edited since the newest record",
	"diff cached":    "'decree diff --edits' shows what was edited since the newest record",
	"log stat":       "'decree diff REF --stat' shows it of one record, 'decree log -p' every diff",
	"log oneline":    "'decree log' has a line for each record",
	"run json":       "--events tells what happens as JSON on stderr; 'decree show last --json' prints the record",
	"help events":    "'decree help events' explains what --events prints",
	"restore before": "a restore goes to the state before the record unless --after is given",
	"inbox all":      "'decree inbox --dead' lists them; 'decree inbox retry NAME...' takes several",
}

// isNear says whether the name of a flag is a likely slip of another's: one goes on where
// the other ends, or at most two letters differ.
func isNear(name, other string) bool {
	if name == "" || other == "" {
		return false
	}
	if strings.HasPrefix(name, other) || strings.HasPrefix(other, name) {
		return true
	}
	typos := smetrics.WagnerFischer(name, other, 1, 1, 1)
	return typos <= 2 && typos < len(name) && typos < len(other)
}

// elsewhere are the names that other programs have for what decree's commands do.
var elsewhere = map[string]string{
	"rollback": "revert last", "reset": "restore REF",
	"save": "checkpoint", "snapshot": "checkpoint", "commit": "checkpoint", "stash": "checkpoint",
	"ls": "files", "list": "log", "records": "log", "cat": "show REF:PATH", "checkout": "restore REF PATH", "switch": "restore REF",
	"tag": "label", "bookmark": "label", "annotate": "blame", "exec": "run -- COMMAND", "start": "run -- COMMAND",
	"clean": "prune", "fsck": "verify --all", "check": "doctor", "repair": "doctor --repair", "st": "status",
	"changes": "diff", "queue": "inbox", "push": "send", "work": "process",
	"add": "checkpoint",
}

// unknownVerb is the usage error for a command that does not exist.
func unknownVerb(word string, verbs []verb) error {
	e := usagef("there is no command %s", quoteWord(word))
	if there, ok := elsewhere[word]; ok {
		return e.Hintf("that is 'decree %s'; 'decree --help' lists all commands", there)
	}
	if near := nearest(word, verbs); near != "" {
		return e.Hintf("did you mean 'decree %s'? 'decree --help' lists them all; to record a command: 'decree run -- %s'", near, quoteWord(word))
	}
	return e.Hintf("see 'decree --help'; to record a command: 'decree run -- %s'", quoteWord(word))
}

// nearest is the verb whose name is at most two typing errors away, which spare its first
// letter if there are two of them; "" if none is.
func nearest(word string, verbs []verb) string {
	best, fewest := "", 3
	for _, v := range verbs {
		if v.hidden {
			continue
		}
		for _, name := range append([]string{v.name}, v.aliases...) {
			if n := smetrics.WagnerFischer(word, name, 1, 1, 1); n < fewest && n < len(word) && (n < 2 || name[0] == word[0]) {
				best, fewest = name, n
			}
		}
	}
	return best
}

// commandName is how a verb is called: "decree" or "decree VERB".
func commandName(verb string) string {
	if verb == "" {
		return "decree"
	}
	return "decree " + verb
}
