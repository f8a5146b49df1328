package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"decree/agent"
	"decree/history"
	"decree/message"
	"decree/patch"
	"decree/queue"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

const (
	// completedRecords is how many ids a completion offers.
	completedRecords = 100
	// completedPast is how many records are searched for paths that are gone.
	completedPast = 20
)

// candidate is what a word can become, and what it is. One that ends in '/' or '='
// is not the whole word yet.
type candidate struct{ word, what string }

// typed is a line that is being typed, up to the word where the cursor is.
type typed struct {
	line
	verb  *verb      // nil before there is one
	flags []cli.Flag // that can stand where the word is
	value cli.Flag   // the flag whose value the word is; nil: it is none's
}

// completeVerb is what the completion scripts call: with the words of a line behind "--",
// the last one as far as it is typed, it prints what that one can become. A line is
// "WORD<tab>DESCRIPTION". Instead of these there may be one line that leaves it to the
// shell: "<tab>files", or "<tab>command N" where the command to complete is the line's
// word N, decree being word 0.
func (s *session) completeVerb() verb {
	return verb{
		name: "__complete", hidden: true, flags: []cli.Flag{s.quietFlag()}, most: anyWords,
		action: func(ctx context.Context) error {
			words := s.line.paths
			if len(words) == 0 {
				return nil
			}
			return s.complete(ctx, words[:len(words)-1], words[len(words)-1])
		},
	}
}

// complete prints what last can become behind words; nothing where they name no command.
func (s *session) complete(ctx context.Context, words []string, last string) error {
	t, ok := s.typedLine(words)
	if !ok {
		return nil
	}
	if t.verb != nil && t.verb.stops && t.value == nil && (len(t.before()) > 0 || t.dashed || !isFlag(last)) {
		return s.print(func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "\tcommand %d\n", len(words)-len(t.before())+1)
			return err
		})
	}
	s.global.root = t.flagValue("root")
	rec, err := s.forReading()
	if err != nil {
		rec = nil // flags and files can be completed without a project
	}
	c := completer{session: s, rec: rec}
	return s.print(func(w io.Writer) error { return writeCandidates(w, c.candidates(ctx, t, last), last) })
}

// writeCandidates prints those that go on where word ends. No shell could type a name
// with a control character from a list of lines: it is left out.
func writeCandidates(w io.Writer, list []candidate, word string) error {
	known, printed := map[string]bool{}, map[string]bool{}
	for _, c := range list {
		known[c.word] = true
	}
	for _, c := range list {
		// A directory that a record made or removed is among the paths without its slash, too.
		unfit := !strings.HasPrefix(c.word, word) || strings.ContainsFunc(c.word, isControl) || known[c.word+"/"]
		if printed[c.word] || unfit && c.word != "" {
			continue
		}
		printed[c.word] = true
		if _, err := fmt.Fprintf(w, "%s\t%s\n", c.word, c.what); err != nil {
			return err
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// typedLine takes the words before the one that is completed apart; it is not ok where
// they name no command.
func (s *session) typedLine(words []string) (t typed, ok bool) {
	verbs := s.verbs()
	l, err := splitLine(words, s.globalFlags(), verbs, true)
	t = typed{line: l, verb: find(verbs, l.verb), flags: s.globalFlags()}
	if t.verb != nil {
		t.flags = t.verb.flags
	}
	t.value = flagNamed(t.flags, l.pending)
	return t, err == nil
}

// before are the verb's words before the one that is completed.
func (t typed) before() []string { return slices.Concat(t.words, t.paths) }

// flagNamed is the flag of that name that takes a value, nil if there is none.
func flagNamed(flags []cli.Flag, name string) cli.Flag {
	for _, f := range flags {
		if value, _ := unquoteUsage(f); value != "" && slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// completer finds candidates.
type completer struct {
	*session
	rec *recorder.Reader // nil where there is no project
}

func (c completer) candidates(ctx context.Context, t typed, word string) []candidate {
	if t.value != nil {
		return c.values(t, t.value, word)
	}
	if !t.dashed && isFlag(word) {
		if name, value, given := strings.Cut(word, "="); given {
			f := flagNamed(t.flags, strings.TrimLeft(name, "-"))
			if f == nil {
				return nil
			}
			return prefixed(name+"=", c.values(t, f, value))
		}
		return flagCandidates(t.flags)
	}
	if t.verb == nil {
		return verbCandidates(c.verbs())
	}
	return c.words(ctx, t, word)
}

func prefixed(prefix string, list []candidate) []candidate {
	for i := range list {
		if list[i].word != "" {
			list[i].word = prefix + list[i].word
		}
	}
	return list
}

func flagCandidates(flags []cli.Flag) (out []candidate) {
	for _, f := range append(slices.Clone(flags), cli.HelpFlag) {
		_, usage := unquoteUsage(f)
		for _, name := range f.Names() {
			dashes := "--"
			if len(name) == 1 {
				dashes = "-"
			}
			out = append(out, candidate{dashes + name, usage})
		}
	}
	return out
}

func verbCandidates(verbs []verb) (out []candidate) {
	for _, v := range verbs {
		if !v.hidden {
			for _, name := range append([]string{v.name}, v.aliases...) {
				out = append(out, candidate{name, v.usage})
			}
		}
	}
	return out
}

// bareWords are candidates that need no description.
func bareWords(words ...string) (out []candidate) {
	for _, word := range words {
		out = append(out, candidate{word: word})
	}
	return out
}

// byShell leaves the word to the shell's own completion of files.
var byShell = []candidate{{what: "files"}}

// values are what may be the value of a flag, by the name that its usage gives it.
func (c completer) values(t typed, f cli.Flag, word string) []candidate {
	name, usage := unquoteUsage(f)
	switch name {
	case "REASON":
		if !strings.Contains(usage, "revert") { // a checkpoint's
			return bareWords("manual", "auto", "publish")
		}
		return bareWords("run", "turn", "manual", "auto", "publish", "restore", "revert", "apply", "outside")
	case "WHEN":
		return bareWords("always", "never", "auto")
	case "L":
		return c.labelNames()
	case "ROUTINE":
		return c.routineNames()
	case "NAME":
		if t.verb != nil && t.verb.name == "run" && slices.Contains(f.Names(), "message") {
			return c.messageNames("")
		}
	case "PATH":
		return c.paths(word, nil)
	case "FILE", "DIR":
		return byShell
	}
	return nil
}

// words are what may stand for a word of the verb.
func (c completer) words(ctx context.Context, t typed, word string) []candidate {
	before := t.before()
	switch t.verb.words {
	case refWords:
		if t.verb.category == draftCategory {
			return c.drafts()
		}
		if ref, path, ok := strings.Cut(word, ":"); ok && t.verb.name == "show" {
			return prefixed(ref+":", c.below(path, c.stateOf(ref, path)))
		}
		return c.refs()
	case refAndPathWords:
		return c.refsAndPaths(ctx, t, word)
	case pathWords:
		var gone []string
		if name := t.verb.name; name == "log" || name == "at" || name == "forget" {
			gone = c.gone(ctx)
		}
		return c.paths(word, gone)
	case labelWords:
		if len(before) == 0 {
			return c.labelNames()
		}
		return c.refs()
	case routineWords:
		return c.routineNames()
	case messageWords:
		if len(before) == 0 {
			return bareWords("show", "edit", "cancel", "retry")
		}
		return c.messageNames(messagesOf[before[0]]...)
	case agentWords:
		if len(before) == 0 {
			return bareWords("install", "remove", "test")
		}
		return bareWords(agent.Names()...)
	case shellWords:
		return bareWords("bash", "zsh", "fish")
	case helpWords:
		return append(bareWords("config", "env", "events"), verbCandidates(c.verbs())...)
	}
	return nil
}

// messagesOf says in which lists inbox's subcommands look for a NAME.
var messagesOf = map[string][]string{
	"show": {"", "dead", "done"}, "edit": {"", "dead"}, "cancel": {""}, "retry": {"dead"},
}

// refsAndPaths are REFs, and the PATHs that the first REF of the line makes sense with:
// for revert, apply and diff what the record changed, for others also what it held.
func (c completer) refsAndPaths(ctx context.Context, t typed, word string) (out []candidate) {
	switch {
	case t.dashed:
	case t.verb.category == draftCategory:
		out = c.drafts()
	default:
		out = c.refs()
	}
	before := t.before()
	if len(before) == 0 || c.rec == nil || t.flagValue("from") != "" {
		return append(out, c.paths(word, nil)...)
	}
	switch t.verb.name {
	case "restore", "files":
		return append(out, c.paths(word, c.stateOf(before[0], word))...)
	}
	changed, err := c.changed(ctx, before[0])
	if err != nil || t.verb.name == "diff" {
		return append(out, c.paths(word, changed)...)
	}
	return append(out, c.below(word, changed)...)
}

// drafts are those that wait, by their names, or else their ids.
func (c completer) drafts() (out []candidate) {
	if c.rec == nil {
		return nil
	}
	waiting, err := c.rec.WaitingDrafts()
	if err != nil {
		return nil
	}
	for _, r := range waiting {
		out = append(out, candidate{nameOf(r), clip(view.What(r), 48)})
	}
	return out
}

// refs are what can be completed as a REF.
func (c completer) refs() []candidate {
	if c.rec == nil {
		return nil
	}
	listing, err := c.rec.History().List(history.ListOptions{Limit: completedRecords})
	if err != nil || len(listing.Records) == 0 {
		return nil
	}
	out := append([]candidate{{"last", "the newest record"}}, c.labelNames()...)
	for _, r := range listing.Records {
		out = append(out, candidate{r.ID, clip(view.What(r), 48)})
	}
	return out
}

func (c completer) labelNames() (out []candidate) {
	if c.rec == nil {
		return nil
	}
	labels, err := c.rec.History().Labels()
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, candidate{name, "a label"})
	}
	return out
}

func (c completer) routineNames() (out []candidate) {
	if c.rec == nil {
		return nil
	}
	found, err := message.List(queue.OpenRoutines(c.rec.Project()).Dirs...)
	if err != nil {
		return nil
	}
	for _, f := range found {
		what, _, _ := strings.Cut(f.Description, "\n")
		out = append(out, candidate{f.Name, clip(what, 48)})
	}
	return out
}

// messageNames are the messages in these lists of the inbox: "" is those that wait.
func (c completer) messageNames(lists ...string) (out []candidate) {
	if c.rec == nil {
		return nil
	}
	for _, where := range lists {
		files, err := queue.Waiting(c.rec.Project(), where)
		if err != nil {
			continue
		}
		for _, f := range files {
			out = append(out, candidate{strings.TrimSuffix(f.Name, ".md"), cmp.Or(where, "waits")})
		}
	}
	return out
}

// changed are the paths, below the root, that what a REF names changed.
func (c completer) changed(ctx context.Context, ref string) (paths []string, err error) {
	if c.rec == nil {
		return nil, fs.ErrNotExist
	}
	source, err := c.diffOf(ctx, c.rec, ref, nil, false)
	if err != nil {
		return nil, err
	}
	err = source.read(func(r io.Reader) error {
		return patch.EachSection(r, nil, func(sec *patch.Section) error {
			paths = append(paths, string(sec.Path))
			return nil
		})
	})
	return paths, err
}

// gone are the paths that the newest records changed, or found changed: what is not there
// any more is among them.
func (c completer) gone(ctx context.Context) (paths []string) {
	if c.rec == nil {
		return nil
	}
	listing, err := c.rec.History().List(history.ListOptions{Limit: completedPast})
	if err != nil {
		return nil
	}
	for _, r := range listing.Records {
		if changed, err := c.changed(ctx, r.ID); err == nil {
			paths = append(paths, changed...)
		}
	}
	return paths
}

// stateOf are the paths near word that the tree at a REF had.
func (c completer) stateOf(ref, word string) (paths []string) {
	if c.rec == nil {
		return nil
	}
	point, err := c.resolve(c.rec, ref)
	dir, inside := c.dirOf(word)
	if err != nil || !inside {
		return nil
	}
	err = c.rec.Entries(point, dir, func(path tree.Path, e tree.Entry) error {
		if e.Type == tree.Dir {
			path += "/"
		}
		paths = append(paths, string(path))
		return nil
	})
	if err != nil {
		return nil
	}
	return paths
}

// dirOf is the directory, below the root, whose entries word could go on with.
func (c completer) dirOf(word string) (dir tree.Path, inside bool) {
	head := cmp.Or(word[:strings.LastIndexByte(word, '/')+1], ".")
	dirs, err := c.inTree(c.rec.Project().Root, []string{head})
	if err != nil {
		return "", false
	}
	return dirs[0], true
}

// below are those of the paths below the root that word could become, as seen from the
// working directory, each up to its next slash.
func (c completer) below(word string, paths []string) (out []candidate) {
	if c.rec == nil || len(paths) == 0 {
		return nil
	}
	dir, inside := c.dirOf(word)
	if !inside {
		return nil
	}
	head := word[:strings.LastIndexByte(word, '/')+1]
	for _, path := range paths {
		rest, ok := strings.CutPrefix(path, string(dir)+"/")
		if dir == "" {
			rest, ok = path, true
		}
		if !ok || rest == "" {
			continue
		}
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			rest = rest[:i+1]
		}
		out = append(out, candidate{word: head + rest})
	}
	return out
}

// paths are what is there and those of the paths below the root that word could become.
// What decree never records is not offered, and of hidden entries only what begins with
// a dot that is typed.
func (c completer) paths(word string, more []string) []candidate {
	out := c.below(word, more)
	slash := strings.LastIndexByte(word, '/') + 1
	head, name := word[:slash], word[slash:]
	dir := head
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.env.Cwd, dir)
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return out
	}
	for _, e := range list {
		n := e.Name()
		if n == ".git" || n == ".decree" || n[0] == '.' && !strings.HasPrefix(name, ".") {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, n)); err == nil && info.IsDir() {
			n += "/"
		}
		out = append(out, candidate{word: head + n})
	}
	return out
}
