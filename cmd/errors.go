package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/history"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/view"
	"decree/worktree"
)

// usagef is an error in how decree was called.
func usagef(format string, args ...any) *project.Error {
	return &project.Error{Kind: project.Usage, Msg: fmt.Sprintf(format, args...)}
}

func notFoundf(format string, args ...any) *project.Error {
	return &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf(format, args...)}
}

func refusedf(format string, args ...any) *project.Error {
	return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf(format, args...)}
}

// errFound is what a check returns when it has said on stdout what it found.
type errFound struct{ kind project.Kind }

func (e errFound) Error() string          { return "found something" }
func (e errFound) Category() project.Kind { return e.kind }

// runs says whether the command that was asked for runs another one.
func (s *session) runs() bool { return s.line.verb == "run" || s.line.verb == "race" }

// exitCode is the one place where an error becomes an exit status. All of run's
// own failures are 125: every other number may be the command's. Those of race are, too, but
// for how it was called.
func (s *session) exitCode(err error) int {
	if err == nil {
		return s.code
	}
	kind := project.KindOf(err)
	if s.runs() && (s.line.verb == "run" || kind != project.Usage) {
		// before the command was started
		if stopped, ok := errors.AsType[*recorder.Interrupted](err); ok {
			return stopped.ExitCode()
		}
		return runFailed
	}
	return int(kind)
}

// report prints err, if it is one that was not said already, and returns the
// exit status.
//
//	decree VERB: what; in which state things are left
//	  path  reason
//	hint: the next step
func (s *session) report(err error) int {
	code := s.exitCode(err)
	s.meter.stop()
	if err == nil || errors.As(err, new(errFound)) {
		return code
	}
	if s.global.events {
		s.newFeed().failed(s, err, code)
		return code
	}
	if s.global.json {
		s.reportJSON(err, code)
		return code
	}
	p := s.paint(s.env.Stderr)
	fmt.Fprintf(s.env.Stderr, "%s %s\n", p.in(red, commandName(s.knownVerb())+":"), s.describe(err))
	s.reportPaths(err)
	if hint := s.hintFor(err); hint != "" {
		for _, line := range strings.Split(hint, "\n") {
			fmt.Fprintf(s.env.Stderr, "%s %s\n", p.in(cyan, "hint:"), oneLine(line))
		}
	}
	return code
}

// reportJSON writes an error as one object on stderr, as --events does, so that what
// stdout has stays what was asked for.
func (s *session) reportJSON(err error, code int) {
	out := struct {
		Error view.Failure `json:"error"`
	}{s.failed(err, code)}
	_ = view.EncodeLine(s.env.Stderr, out) // a broken pipe ends the process by itself
}

func (s *session) failed(err error, code int) view.Failure {
	out := view.Failure{Command: s.knownVerb(), Message: s.describe(err), State: s.stateOf(err), ExitCode: code, Hint: s.hintFor(err), Paths: []view.FailureAtPath{}}
	if conflict, ok := errors.AsType[*recorder.ConflictError](err); ok {
		for _, item := range conflict.Items {
			out.Paths = append(out.Paths, view.FailureAtPath{Path: manifestPath(item.Path), Reason: itemReason(item)})
		}
	}
	return out
}

// knownVerb is the verb for messages, "" before it was understood.
func (s *session) knownVerb() string {
	if find(s.verbs(), s.line.verb) == nil {
		return ""
	}
	return s.line.verb
}

// describe is the first line of an error. Raw names in it are made safe: a
// *fs.PathError has the path as it is, newlines and all.
func (s *session) describe(err error) string {
	var conflict *recorder.ConflictError
	switch {
	case errors.As(err, &conflict):
		return conflictLine(conflict) + "; " + s.stateOf(err)
	case canceled(err):
		return "interrupted; " + s.stateOf(err)
	}
	text := s.withState(err)
	for e := err; e != nil; {
		var pe *fs.PathError
		if !errors.As(e, &pe) {
			break
		}
		if quoted := shownPath(pe.Path); quoted != pe.Path {
			text = strings.ReplaceAll(text, pe.Path, quoted)
		}
		e = pe.Err
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = oneLine(line)
	}
	// Further lines are indented, so that none can pass for a line of decree's.
	return strings.Join(lines, "\n  ")
}

// canceled says whether err is an interruption before anything was moved.
func canceled(err error) bool {
	var move *worktree.Error
	return errors.Is(err, context.Canceled) && (!errors.As(err, &move) || !move.Moved)
}

// withState is err's text with the state in which things are left.
func (s *session) withState(err error) string {
	if state := s.stateOf(err); state != project.StateOf(err) {
		return err.Error() + "; " + state
	}
	return err.Error()
}

// stateOf is the state in which err leaves things: what it says itself, or, of a refusal
// and of what could not begin, that nothing was changed; else "".
func (s *session) stateOf(err error) string {
	var held *project.HeldError
	var begin *recorder.BeginError
	var conflict *recorder.ConflictError
	state := project.StateOf(err)
	switch {
	case state != "":
		return state
	case errors.As(err, &conflict), canceled(err):
		return project.Unchanged
	case !errors.As(err, &held) && !errors.As(err, &begin):
		return ""
	case s.runs():
		return project.NotStarted
	}
	return project.Unchanged
}

// conflictLine counts what stands in the way.
func conflictLine(c *recorder.ConflictError) string {
	if c.Verb == "restore" {
		verb := "are"
		if len(c.Items) == 1 {
			verb = "is"
		}
		return fmt.Sprintf("%s %s in the way", count(len(c.Items), "path"), verb)
	}
	verb := "differ"
	if len(c.Items) == 1 {
		verb = "differs"
	}
	return fmt.Sprintf("%s %s from what %s", count(len(c.Items), "path"), verb, c.Subject)
}

// reportPaths lists what an error names, one path a line.
func (s *session) reportPaths(err error) {
	var conflict *recorder.ConflictError
	var detailed interface{ Details() [][]string }
	t := s.fits(&table{ragged: true}, s.env.Stderr) // the paths are to be copied
	switch {
	case errors.As(err, &conflict):
		for _, item := range conflict.Items {
			t.add("  "+shownPath(item.Path), itemReason(item))
		}
	case errors.As(err, &detailed):
		for _, columns := range detailed.Details() {
			for i := range columns {
				columns[i] = oneLine(columns[i])
			}
			columns[0] = "  " + columns[0]
			t.add(columns...)
		}
	}
	_ = t.write(s.env.Stderr)
}

// itemReason is why a path stands in the way, with the later records that changed it.
func itemReason(item plan.Item) string {
	reason := oneLine(item.Reason)
	if len(item.Later) == 0 {
		return reason
	}
	return fmt.Sprintf("%s (changed by %s)", reason, list(item.Later))
}

// limitHint is what to do where a limit of the process was met, which no other
// place for the store would lift.
func limitHint(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit on open files, for example with 'ulimit -n 256', then run this again"
	case errors.Is(err, syscall.ENFILE):
		return "the whole system has reached its limit on open files: end some programs, then run this again"
	case errors.Is(err, syscall.EFBIG):
		return "lift the limit on the size of files with 'ulimit -f unlimited', then run this again"
	}
	return ""
}

// hintFor is the next step for err.
func (s *session) hintFor(err error) string {
	if hint := limitHint(err); hint != "" {
		return hint
	}
	if hint := s.refHint(err); hint != "" {
		return hint
	}
	if hint := project.HintOf(err); hint != "" {
		return hint
	}
	if errors.Is(err, project.ErrNoProject) {
		return "record something first: 'decree run -- COMMAND', or 'decree checkpoint'"
	}
	if disk.Full(err) {
		return s.roomHint(err)
	}
	if hint := mountHint(err); hint != "" {
		return hint
	}
	if hint := s.standInHint(err); hint != "" {
		return hint
	}
	return rightsHint(err)
}

// standInHint is the next step where something else is in the place of one of the store's files.
func (s *session) standInHint(err error) string {
	var pe *fs.PathError
	if s.rec == nil || !disk.OtherKind(err) || !errors.As(err, &pe) || !strings.HasPrefix(pe.Path, s.rec.Project().StorePath+"/") {
		return ""
	}
	return "something else is in the place of decree's own file; 'decree doctor' says what can be done"
}

// mountHint is the next step where nothing can be moved within .decree, since another file
// system is mounted below it.
func mountHint(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(pe.Err, syscall.EXDEV) || !strings.Contains(pe.Path, "/.decree/") {
		return ""
	}
	return "another file system is mounted at .decree/tmp or .decree/runs: unmount it, and run this again"
}

// rightsHint is the next step where something in .decree may not be written: a
// container or another user left it there, or it is immutable, or something of the user's own keeps him out.
func rightsHint(err error) string {
	if advice := cmp.Or(project.SealedAdvice(err), project.UnmappedAdvice(err)); advice != "" {
		return advice + "; then run this again"
	}
	advice := project.RightsAdvice(err)
	if advice == "" {
		if advice = project.ModeAdvice(err); advice != "" {
			advice += ", and run this again"
		}
		return advice
	}
	return "it may be another user's, such as a container's, or immutable: " + advice + ", and run this again"
}

// refHint is the next step where a REF was needed and a PATH, or git's name for the newest
// commit, was typed; "" otherwise.
func (s *session) refHint(err error) string {
	if !errors.Is(err, history.ErrNoRecord) || errors.As(err, new(*history.AmbiguousError)) || len(s.line.words) == 0 || s.rec == nil {
		return ""
	}
	word := s.line.words[0]
	switch verb := s.line.verb; {
	case strings.HasPrefix(word, "HEAD"):
		return "the newest record is 'last', the one before it 'last~1'"
	case s.described(word) != "":
		id := s.described(word)
		return fmt.Sprintf("a description is not a label; the record described as %s is %s: 'decree %s %s', or 'decree label NAME %s' gives it a name", quoteWord(word), id, verb, id, id)
	case !s.isPath(s.rec, word):
		return ""
	case verb == "show":
		return fmt.Sprintf("it is a path: 'decree show last:%s' prints it as it was, 'decree log %[1]s' lists what changed it", quoteWord(word))
	case slices.Contains([]string{"revert", "apply", "restore", "export"}, verb):
		return fmt.Sprintf("it is a path, and a REF comes first: 'decree %s last %s'; 'decree log %[2]s' lists what changed it", verb, quoteWord(word))
	}
	return ""
}

// described is the newest record that has text as its description; "" where none has.
func (s *session) described(text string) string {
	if !s.rec.HasProject() {
		return ""
	}
	listing, err := s.rec.History().List(history.ListOptions{Limit: 1, Keep: func(r *history.Record) bool {
		return strings.EqualFold(r.Description, text)
	}})
	if err != nil || len(listing.Records) == 0 {
		return ""
	}
	return listing.Records[0].ID
}

// roomHint is the next step where a disk is full.
func (s *session) roomHint(full error) string {
	hint := "free some space there"
	if s.line.verb != "prune" && s.line.verb != "gc" && (s.rec == nil || s.rec.OfStore(full)) {
		hint += ", or run 'decree prune' and 'decree gc', which need none to begin"
	}
	if s.rec != nil {
		if path, n := s.rec.LargestCopy(full); n > 0 {
			hint += fmt.Sprintf(", or delete %s (%s), which 'decree doctor --repair' writes again", shownPath(path), size(n))
		}
	}
	return hint + "; then run this again"
}
