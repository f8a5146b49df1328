package queue

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"decree/disk"
	"decree/history"
	"decree/message"
	"decree/project"
	"decree/recorder"
	"decree/tree"
)

// do does one message of the inbox: q.u, of which an earlier run was interrupted, or one that
// has not begun. ctx ends the question which routine it is for, and not the message.
func (q *job) do(ctx context.Context, d *dirs, name string) (*Result, error) {
	res := &Result{Name: name}
	m, found, err := q.understandAsItIs(ctx, d, name)
	ctx = context.WithoutCancel(ctx)
	var bad *message.Error
	switch {
	case errors.As(err, &bad):
		return q.reject(d, res, bad)
	case errors.Is(err, errFixed):
		return nil, q.pass(d, name, err)
	case err != nil:
		return nil, err
	}
	res.ID, res.Routine = m.ID, m.Routine
	isolated := message.Isolates(m, &found.Routine, q.project().Config.Isolated.Queue)
	if err := q.beside(m, isolated); err != nil {
		return nil, err
	}
	if err := q.begin(d, name, m, isolated); err != nil {
		return nil, err
	}
	if err := q.stillThere(d); err != nil {
		return nil, err
	}
	if known := q.stuck[q.u.ID]; known == nil || known.begun { // else that it begins was told
		q.tell(true, res)
	}
	if isolated {
		return q.doIsolated(ctx, d, res, m, found)
	}
	began := time.Now()
	res.Run, err = q.run(ctx, d, m, found)
	if rerr := q.backAtQueue(d); rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	if errors.As(err, &bad) { // a notebook that takes no parameters as they are
		return q.reject(d, res, bad)
	}
	if waits := new(*recorder.WaitError); errors.As(err, waits) {
		return nil, q.waitsUnbegun(*waits, began)
	}
	if err != nil {
		return q.notEnded(d, res, err)
	}
	q.ran(res, found)
	if err := q.list.look(d.inbox); err != nil {
		return nil, err
	}
	defer func() { q.list.noteOwnChange(d.inbox, name) }()
	return q.conclude(ctx, d, res, slices.Clone(q.list.appeared))
}

// ran notes a run of a routine that has ended. Bash reads a script as it goes on: in one that somebody saves in place
// meanwhile it goes on at the same offset of another text.
func (q *job) ran(res *Result, found *message.Found) {
	res.Record = res.Run.Record
	if found.Kind == message.Script {
		if now, err := found.Dir.Read(found.File); err == nil && now != nil && !bytes.Equal(now, found.Data) {
			q.note("%s: routine %s was changed while bash read it; if it was saved in place, what the run did may be of both texts: decree diff %s", tree.Quote(res.Name), found.Name, res.Record.ID)
		}
	}
	for _, note := range res.Run.Notes {
		q.note("%s: %s", tree.Quote(res.Name), note)
	}
}

// backAtQueue looks again at what others may have changed while the lock was free.
func (q *job) backAtQueue(d *dirs) error {
	if err := q.reopen(d); err != nil {
		return err
	}
	return q.reread()
}

// reread reads the state again; what it says of this job's message the job knows itself, but for what a person has
// taken back from dead meanwhile, and what began beside it.
func (q *job) reread() error {
	s, err := readState(q.project().Store)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(s.UnderWay, func(u *underWay) bool { return u.Name == q.u.Name && u.Record == q.u.Record })
	if at < 0 {
		s.UnderWay = append(s.UnderWay, q.u)
	} else { // it keeps its place among those that wait
		q.u.Before, q.u.Beside = s.UnderWay[at].Before, s.UnderWay[at].Beside
		s.UnderWay[at] = q.u
	}
	q.s = s
	return nil
}

// reopen opens the directories anew, which a run may have deleted.
func (q *job) reopen(d *dirs) error {
	d.close()
	reopened, err := q.open()
	if err != nil {
		*d = dirs{}
		return err
	}
	*d = *reopened
	return nil
}

// reject puts a message that cannot be understood into dead.
func (q *job) reject(d *dirs, res *Result, bad *message.Error) (*Result, error) {
	if err := q.list.look(d.inbox); err != nil {
		return nil, err
	}
	out, err := q.dead(d, res, bad.Error(), nil)
	if ofFile(err) {
		q.list.stale = true // its reason may have been written
		return nil, q.pass(d, res.Name, fmt.Errorf("%w; it cannot be moved to dead: %w", bad, err))
	}
	q.list.noteOwnChange(d.inbox, res.Name)
	return out, err
}

// notEnded is the end of a run that decree itself refused or failed.
func (q *job) notEnded(d *dirs, res *Result, err error) (*Result, error) {
	if not, is := errors.AsType[*recorder.NotMadeError](err); is { // it was counted before
		q.u.Attempt = not.Attempt - 1
		if serr := q.saveState(); serr != nil {
			return nil, errors.Join(err, serr)
		}
	}
	if project.StateOf(err) == project.NotStarted || recorder.Unsettled(err) {
		return q.notBegun(d, res, err)
	}
	return nil, &inTreeError{q.u.Record, &project.Error{Kind: project.KindOf(err), Err: err, Advice: project.HintOf(err) + "; or " + giveUp(res.Name)}}
}

// notBegun is notEnded of one whose command was not started. Where nothing but a person's yes lets it begin, such as beside a file
// above capture.max_file, a daemon has nobody to ask: it puts the message aside, and goes on.
func (q *job) notBegun(d *dirs, res *Result, err error) (*Result, error) {
	if !q.serving || !asks(err) || project.StateOf(err) != project.NotStarted {
		return nil, err
	}
	reason := strings.TrimSuffix(err.Error(), "; "+project.NotStarted) + recorder.NamedIn(err)
	if hint := project.HintOf(err); hint != "" {
		reason += "; " + hint
	}
	return q.reject(d, res, &message.Error{Name: res.Name, Reason: reason})
}

// asks says whether any error of err's chain is one that a person's yes ends.
func asks(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if project.Asks(err) {
			return true
		}
	}
	return false
}

// conclude gives a message whose run has ended its place.
func (q *job) conclude(ctx context.Context, d *dirs, res *Result, came []Pending) (*Result, error) {
	run := res.Run
	if run.Record.Status == history.StatusSucceeded {
		return q.accept(d, res, came)
	}
	why, back := "", ""
	if err := q.rec.UnrecordedBack(ctx, run.Record); err != nil {
		why, back = err.Error(), project.HintOf(err)
	} else if run.Record.Status == history.StatusFailed && len(run.Changes) > 0 { // decree could not put it back; a routine's own 125 is its failure like any other
		why, back = strings.Join(run.Notes, "; "), fmt.Sprintf("take it back with 'decree revert %s' (--merge, or path by path), then go on", run.Record.ID)
	}
	if why != "" {
		return nil, &inTreeError{run.Record.ID, &project.Error{Kind: project.Failed,
			Msg:    fmt.Sprintf("%s: record %s could not be put back (%s); the message is still in the inbox, and no other is begun", res.Name, run.Record.ID, why),
			Advice: back + "; or " + giveUp(res.Name)}}
	}
	if err := q.keepMarks(run.Record); err != nil {
		return nil, err
	}
	if err := q.withdraw(d, run.Record.ID, outboxName, came); err != nil {
		return nil, err
	}
	if run.Last.Interrupted != nil {
		return q.interrupted(d, res)
	}
	return q.dead(d, res, howItFailed(run), run.Record)
}

// staysInInbox has a message whose run was interrupted wait where it was. One that the
// routine deleted comes from its record. One that has another text now waits with that, and one that is gone though
// its routine saw an inbox of its own, in a layer, was deleted by a person: then res.Place is "".
func (q *job) staysInInbox(d *dirs, res *Result) error {
	name, err := q.nowCalled(d)
	if res.Place = cmp.Or(name, res.Name); name != "" || err != nil {
		return err
	}
	changed, err := disk.Has(d.inbox, res.Name)
	if err == nil && !changed && res.Record.Isolated != "" {
		res.Place = ""
	}
	if err != nil || changed || res.Place == "" {
		return errors.Join(err, q.tellUnwanted(d, res.Record))
	}
	data, err := q.ofRecord(res.Record.ID)
	if err != nil || data == nil {
		return err
	}
	if res.Place, err = free(d.inbox, res.Name, ""); err != nil {
		return err
	}
	q.list.stale = true
	return putNew(d.inbox, res.Place, data)
}

// over forgets the message. A death before this is written changes nothing: recoverMessage
// then comes to the same end.
func (q *job) over(res *Result) error {
	q.s.over(q.u)
	err := q.saveState()
	q.tell(false, res)
	return err
}

// howItFailed says in words why a run failed.
func howItFailed(run *recorder.RunResult) string {
	last, text := run.Last, ""
	switch {
	case last.NotStarted != nil:
		text = last.NotStarted.Error()
	case last.TimedOut:
		text = "timed out"
	case last.Signal != "":
		text = "ended by " + last.Signal
	default:
		text = fmt.Sprintf("exit status %d", last.ExitCode)
	}
	if n := run.Record.Attempts; n > 1 {
		text += fmt.Sprintf(" in the last of %d attempts", n)
	}
	return text
}

// mostChanges is how often a message may be another one, or have another name, each time when its routine has been found. A person
// saves it once or twice meanwhile; a router that writes into it, or renames it, does so each time.
const mostChanges = 10

// understandAsItIs is understand for a message that may be changed meanwhile: it is read again then.
func (q *job) understandAsItIs(ctx context.Context, d *dirs, name string) (m *message.Message, found *message.Found, err error) {
	for range mostChanges {
		if m, found, err = q.understand(ctx, d, name); !errors.Is(err, errChanged) {
			return m, found, err
		}
		q.changes++
	}
	data, err := readChosen(d.inbox, name)
	if err != nil {
		return nil, nil, err
	}
	q.file = identify(data)
	return nil, nil, q.changedTooOften(name)
}

// changedTooOften is why a message is put aside whose routine cannot be found, as it is another one each time.
func (q *job) changedTooOften(name string) *message.Error {
	reason := fmt.Sprintf("it was changed or renamed %d times, each time while its routine was looked for", mostChanges)
	if q.project().Config.Router != "" {
		reason += "; the config's router must not write into the messages that wait, nor rename them: " + q.project().Config.Router
	}
	return &message.Error{Name: name, Reason: reason}
}

// understand reads a message, completes it and finds its routine. An error with
// *message.Error in its chain is the message's own.
func (q *job) understand(ctx context.Context, d *dirs, name string) (m *message.Message, _ *message.Found, err error) {
	q.file = identity{}
	data, err := readChosen(d.inbox, name)
	if err != nil {
		return nil, nil, err
	}
	q.file = identify(data)
	q.asItCame = q.file
	if m, err = message.Parse(name, data); err != nil {
		return nil, nil, err
	}
	def := message.Defaults{MaxDepth: q.maxDepth(), MaxChain: q.project().Config.MaxChain}
	if _, _, ok := message.NameParts(name, def.MaxDepth); m.Chain == "" && !ok {
		if def.Chain, err = NewChain(q.rec); err != nil {
			return nil, nil, err
		}
		defer func() {
			if err != nil {
				ReturnChain(q.project(), def.Chain)
			}
		}()
	}
	completed, _, err := message.Complete(m, def)
	if err != nil {
		return nil, nil, err
	}
	if err := q.checkInput(completed); err != nil {
		return nil, nil, err
	}
	spec, err := q.readSpec(completed)
	if err != nil {
		return nil, nil, err
	}
	if err := q.lacks(completed, spec); err != nil { // before a router is asked
		return nil, nil, err
	}
	found, err := q.find(ctx, completed, spec)
	if err != nil {
		return nil, nil, cmp.Or(q.lacks(completed, spec), err)
	}
	def.Routine = found.Name
	completed, out, err := message.Complete(m, def)
	if err != nil {
		return nil, nil, err
	}
	if err := q.checkParams(completed, &found.Routine); err != nil {
		return nil, nil, err
	}
	if completed.Isolated == nil && spec != nil {
		completed.Isolated = spec.Isolated
	}
	q.text = out
	return completed, &found, q.write(d, name, data)
}

// readChosen reads a message that was in the inbox when it was chosen.
func readChosen(inbox disk.Dir, name string) ([]byte, error) {
	data, err := project.ReadFile(inbox, name, message.MaxSize)
	if isMissing(err) {
		return nil, errGone
	}
	return data, unusable(name, "the message", err)
}

// checkParams names the parameters that the routine does not declare.
func (q *job) checkParams(m *message.Message, r *message.Routine) error {
	names := r.Undeclared(m)
	if len(names) == 0 {
		return nil
	}
	text := fmt.Sprintf("routine %s declares no parameter %s", r.Name, strings.Join(names, ", "))
	if q.project().Config.StrictParams {
		return &message.Error{Name: m.Name, Reason: text + ", and strict_parameters is on"}
	}
	q.note("%s: %s; it runs without", tree.Quote(m.Name), text)
	return nil
}

// errChanged: the message is not any more what was read of it. errGone: somebody
// has taken it out of the inbox since it was chosen.
var (
	errChanged = errors.New("the message was changed while it was read")
	errGone    = errors.New("the message is not in the inbox any more")
)

// write writes the completed message back, and notes its identity. A router may have
// thought for minutes, and a person saved a better text than data meanwhile.
func (q *job) write(d *dirs, name string, data []byte) error {
	now, err := d.inbox.Stat(name)
	if isMissing(err) {
		return errChanged
	}
	if err != nil {
		return err
	}
	same, err := q.file.isAt(d.inbox, name)
	switch {
	case err != nil:
		return err
	case !same:
		return errChanged
	case !bytes.Equal(q.text, data):
		if err := q.list.look(d.inbox); err != nil {
			return err
		}
		if err := rewrite(d.inbox, name, q.text, now, data); ofFile(err) {
			return fmt.Errorf("%w: %w", errFixed, err)
		} else if isMissing(err) {
			return errGone
		} else if err != nil {
			return err
		}
		q.list.noteOwnChange(d.inbox, "")
	}
	q.file = identify(q.text)
	return nil
}

// checkInput refuses an input_file that a link leads out of the tree, and a spec
// that is not there.
func (q *job) checkInput(m *message.Message) error {
	if m.InputFile == "" {
		return nil
	}
	info, err := disk.StatPath(q.project().Dir, m.InputFile)
	switch {
	case err == nil && info.Kind == disk.Symlink:
		return &message.Error{Name: m.Name, Reason: fmt.Sprintf("input_file %s is a link; it may lead out of the tree", tree.Quote(m.InputFile))}
	case err != nil && (!isMissing(err) || m.Type == message.Spec):
		return &message.Error{Name: m.Name, Reason: fmt.Sprintf("input_file %s: %v", tree.Quote(m.InputFile), err)}
	}
	return nil
}

// find decides on the routine of a message about a spec, or none, and reads it.
func (q *job) find(ctx context.Context, m, spec *message.Message) (found message.Found, err error) {
	name, err := q.routine(ctx, m, spec)
	if err != nil {
		return found, err
	}
	found, err = message.Find(name, OpenRoutines(&q.project().Site).Dirs...)
	return found, unusable(m.Name, "routine "+name, err)
}

// routine decides on the message's routine.
func (q *job) routine(ctx context.Context, m, spec *message.Message) (string, error) {
	routines := OpenRoutines(&q.project().Site)
	choice := message.Choice{Spec: spec, Default: q.project().Config.DefaultRoutine, Known: routines.Known}
	if command := q.project().Config.Router; command != "" {
		choice.Router = func() (string, error) {
			if q.changes >= mostChanges { // by it, so that it is not asked again
				return "", q.changedTooOften(m.Name)
			}
			return q.askRouter(ctx, command, routines, m, spec)
		}
	}
	name, routerErr, err := message.ChooseRoutine(m, choice)
	if bad := new(*message.Error); errors.As(routerErr, bad) {
		return "", *bad
	}
	if routerErr != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	if routerErr != nil {
		q.note("%s: the router chose no routine: %v", m.Name, routerErr)
	}
	return name, err
}

// begin makes it durable that the message is under way, and what is in the inbox beside it.
func (q *job) begin(d *dirs, name string, m *message.Message, isolated bool) error {
	if err := q.list.mark(d.inbox); err != nil {
		return err
	}
	if q.u == nil {
		q.u = &underWay{}
	}
	u := q.u
	u.Name, u.identity, u.ID, u.Chain, u.Seq, u.Depth = name, q.file, m.ID, m.Chain, m.Seq, m.Depth
	u.Isolated, u.Spec, u.SpecSHA256, u.Beside, u.Listed = isolated, "", tree.Hash{}, nil, nil
	if m.Type == message.Spec {
		u.Spec = m.InputFile
		if text, err := readBelow(q.project().Dir, u.Spec, message.MaxSize); err == nil {
			u.SpecSHA256 = tree.Sum(text)
		}
	}
	q.s.unstack(name)
	if u.Partly = len(q.list.known) > maxBefore; u.Partly {
		u.Before = q.list.before(u.Chain)
	} else {
		u.Before = slices.Sorted(maps.Keys(q.list.known))
	}
	if !isolated {
		var err error
		if u.Listed, err = q.listedNow(); err != nil {
			return err
		}
	}
	q.s.beganBeside(u, begunBeside{name, q.asItCame, m.ID})
	if err := q.beginRun(m.ID); err != nil {
		return err
	}
	q.turn.ended(q.number)
	q.began++
	q.number = q.began
	return nil
}

// beginRun makes it durable which record the next run of the message has: wanted, if that is
// free.
func (q *job) beginRun(wanted string) (err error) {
	if q.u.Record, err = q.rec.FreeID(wanted); err != nil {
		return err
	}
	q.u.Attempt, q.u.Stuck = q.u.Spent+1, ""
	if !slices.Contains(q.s.UnderWay, q.u) {
		q.s.UnderWay = append(q.s.UnderWay, q.u)
	}
	return q.saveState()
}

// stillThere gives a message up that was taken away or changed before it was noted as
// being under way: see person.go.
func (q *job) stillThere(d *dirs) (err error) {
	here := false
	err = q.settled(func() (bool, error) {
		here, err = q.u.isAt(d.inbox, q.u.Name)
		return here, err
	})
	if here || err != nil {
		return err
	}
	q.list.stale = true
	q.s.over(q.u)
	return cmp.Or(q.saveState(), errGone)
}

// run has the routine do it in the tree itself.
func (q *job) run(ctx context.Context, d *dirs, m *message.Message, found *message.Found) (*recorder.RunResult, error) {
	o := q.runOptions(d, m, found)
	o.Task = project.InboxDir + "/" + q.u.Name
	return q.rec.Run(ctx, o)
}

// runOptions are those of the message's next run.
func (q *job) runOptions(d *dirs, m *message.Message, found *message.Found) recorder.RunOptions {
	most := q.project().Config.MaxAttempts
	o := recorder.RunOptions{
		ID: q.u.Record, Dir: q.project().Root, Description: describe(m), Outbox: true,
		Stdin: q.o.Stdin, Stdout: q.o.Stdout, Stderr: q.o.Stderr, Env: q.o.Environ,
		Attempts: most, Spent: q.u.Spent, Earlier: q.earlier(),
		Timeout: q.o.Timeout, Grace: q.o.Grace, Signals: q.signals, Ending: q.ending, Yes: q.o.Yes, Unread: true,
		Compose: func(p recorder.Place) (recorder.Composed, error) { return q.commandFor(m, found, p) },
		Attempt: func(n int) error {
			if err := q.reread(); err != nil {
				return err
			}
			q.u.Attempt = n
			q.note("%s: attempt %d of %d has failed, and the next one starts%s", tree.Quote(m.Name), n-1, most, map[bool]string{true: " from a clean tree"}[n == most])
			if err := q.withdrawAttempt(d, n-1); err != nil {
				return err
			}
			return q.saveState()
		},
		FollowsUp: func(inbox disk.Dir, name string) bool {
			return len(q.followUps(inbox, []Pending{{Name: name}})) > 0
		},
	}
	if found.Kind == message.Notebook {
		o.LogCopy = "papermill.log"
	}
	return o
}

// describe is a run's description: what its message is about, and its file.
func describe(m *message.Message) string {
	what := m.Heading()
	switch {
	case m.CronJob != "":
		what = strings.TrimSuffix("cron job "+tree.Quote(m.CronJob)+": "+what, ": ")
	case m.Type == message.Spec:
		what = "spec " + tree.Quote(m.InputFile)
	case what == "" && m.InputFile != "":
		what = tree.Quote(m.InputFile)
	}
	return strings.TrimSpace(what + " " + recorder.OfMessage(m.Name))
}

// earlier tells an attempt of those in earlier records.
func (q *job) earlier() string {
	if q.u.Spent == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("## Earlier attempts\n\n")
	if len(q.u.Reasons) == 0 {
		fmt.Fprintf(&b, "%d were made before decree's own process ended unexpectedly. Their records: %s.\n", q.u.Spent, strings.Join(q.u.Earlier, ", "))
	}
	for _, reason := range q.u.Reasons {
		b.WriteString("\n" + reason + "\n")
	}
	return b.String()
}

// accept ends a message that is done. Each step can be repeated.
func (q *job) accept(d *dirs, res *Result, came []Pending) (*Result, error) {
	if err := q.keepMarks(res.Record); err != nil {
		return nil, err
	}
	if spec := q.u.Spec; spec != "" {
		q.tellEditedSpec()
		if err := q.mark(doneSpec{Spec: spec, SHA256: q.u.SpecSHA256}); err != nil {
			return nil, fmt.Errorf("%s is done, but %s cannot be marked so: %w", res.Name, spec, err)
		}
	}
	if err := passOnInner(q.rec, res.Record); err != nil {
		return nil, err
	}
	joined, err := q.adopt(d, res.Record.ID, came)
	if err != nil {
		return nil, err
	}
	q.s.Last = q.u.Chain
	if len(joined) > 0 {
		q.s.comeFirst(joined...)
		if err := q.saveState(); err != nil { // before the message moves to done: a process that finds it there looks for none
			return nil, err
		}
	}
	if err := q.editedInPlace(d, res.Record.ID); err != nil {
		return nil, err
	}
	if res.Place, err = q.acknowledge(d, res); err != nil {
		return nil, err
	}
	res.Outcome, res.FollowUps = Done, joined
	return res, q.over(res)
}

// editedInPlace puts the file of the message under way into dead where it has another text again, and still its id. Once a person may
// have edited it while it was done, and so it is done as it is now; but a routine that edits its own file with all others does so each time.
// record is that of the text that was done.
func (q *job) editedInPlace(d *dirs, record string) error {
	if q.u.Isolated {
		return nil
	}
	again := slices.Contains(q.s.Edited, q.u.ID)
	q.s.Edited = slices.DeleteFunc(q.s.Edited, func(id string) bool { return id == q.u.ID }) // saved with its end, which may be repeated until then
	if name, err := q.nowCalled(d); name != "" || err != nil {
		return err
	}
	data, err := project.ReadFile(d.inbox, q.u.Name, message.MaxSize)
	if isMissing(err) || ofFile(err) {
		return nil
	}
	if err == nil && q.asItCame.SHA256 == hashOf(data) {
		q.note("%s was saved once more as it came while it was done, and so is done once more; 'decree inbox cancel' ends that", tree.Quote(q.u.Name))
	}
	if err != nil || message.IDOf(q.u.Name, data) != q.u.ID {
		return err
	}
	if !again {
		q.s.Edited = append(q.s.Edited, q.u.ID)
		q.note("%s was edited while it was done, and is done as it is now", tree.Quote(q.u.Name))
		return nil
	}
	return q.acting(func(note noteActs) error {
		if err := note(gone(project.InboxDir, q.u.Name)...); err != nil {
			return err
		}
		t, err := q.takeSame(d, q.u.Name, identify(data))
		if t == nil || err != nil {
			return err
		}
		q.list.stale = true
		reason := func(as string) string {
			return fmt.Sprintf("the text of this message was changed while it was done, for the second time, as by its own routine, and so it is not done again; record %s is of the text that it had\n\ntry it with this text: %s\n", record, RetryCommand(as))
		}
		as, err := moveToDead(t, d.dead, q.u.Name, reason, "", nil)
		if err != nil {
			return err
		}
		q.note("%s was changed while it was done, for the second time, and is not done again; that text is in dead: %s", tree.Quote(q.u.Name), RetryCommand(as))
		return note(cameToDead(d.dead, as)...)
	})
}

// acknowledge moves the message to done. One that the routine deleted comes from
// its record. Another file that has its name now is a message of its own and stays.
func (q *job) acknowledge(d *dirs, res *Result) (place string, err error) {
	err = q.acting(func(note noteActs) error {
		place, err = q.toDone(d, note, res)
		return err
	})
	return place, err
}

// toDone is acknowledge, under the lock of the acts.
func (q *job) toDone(d *dirs, note noteActs, res *Result) (string, error) {
	t, err := q.takeUnderWay(d, note)
	if err != nil {
		return "", err
	}
	if t != nil {
		as, err := t.moveTo(d.done, t.name)
		return path.Join(doneName, as), err
	}
	if as, err := q.nameIn(d.done); as != "" || err != nil {
		return path.Join(doneName, as), err
	}
	data, err := q.ofRecord(res.Record.ID)
	if err != nil {
		return "", err
	}
	as, err := free(d.done, q.u.Name, "")
	if err != nil {
		return "", err
	}
	return path.Join(doneName, as), putNew(d.done, as, data)
}

// takeUnderWay takes the message under way out of the inbox, by the name that it has there by then; nil: it is not there any more. A
// person may rename it, or save another text in its file, in the moment in which it is taken.
func (q *job) takeUnderWay(d *dirs, note noteActs) (t *takenOut, err error) {
	name := q.u.Name
	for t == nil && name != "" && err == nil {
		q.list.stale = q.list.stale || name != q.u.Name
		if name, err = q.u.calledIn(d.inbox); err == nil {
			err = note(gone(project.InboxDir, q.u.Name, name)...)
		}
		if name != "" && err == nil {
			t, err = q.takeSame(d, name, q.u.identity)
		}
	}
	return t, err
}

// takeSame takes a message out of the inbox; nil where its file is another one now, which
// somebody has just saved and which stays. One that cannot be read has no identity.
func (q *job) takeSame(d *dirs, name string, self identity) (*takenOut, error) {
	t, err := q.takeOut(d, name)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil || self.SHA256 == "" {
		return t, err
	}
	if same, err := self.isAt(t.dir, name); !same || err != nil {
		q.list.stale = true
		return nil, errors.Join(err, t.putBack())
	}
	return t, nil
}

// keptOfName is how much free leaves at least of a long name.
const keptOfName = 100

// nameIn is the name that the message under way has in done or in dead, "" if it is
// not there.
func (q *job) nameIn(dir disk.Dir) (string, error) {
	list, err := dir.List()
	if err != nil {
		return "", err
	}
	stem := strings.TrimSuffix(q.u.Name, suffix)
	stem = stem[:min(len(stem), keptOfName)]
	for _, e := range list {
		if !isMessage(e.Name) || !strings.HasPrefix(e.Name, stem) {
			continue
		}
		if found, err := q.u.isAt(dir, e.Name); found || err != nil {
			return e.Name, err
		}
	}
	return "", nil
}

// nowCalled is calledIn of the message under way, as settled finds it.
func (q *job) nowCalled(d *dirs) (name string, err error) {
	err = q.settled(func() (bool, error) {
		name, err = q.u.calledIn(d.inbox)
		return name != "", err
	})
	q.list.stale = q.list.stale || name != "" && name != q.u.Name
	return name, err
}

// settled has find look for the message under way, and once more where it is missing, when no person's command is at work: one that finds too
// late that the message is being done puts it back. It is not for what acting does.
func (q *job) settled(find func() (bool, error)) error {
	found, err := find()
	if found || err != nil {
		return err
	}
	return q.project().HoldActs(func() error {
		_, err := find()
		return err
	})
}

// dead puts a message aside.
func (q *job) dead(d *dirs, res *Result, reason string, rec *history.Record) (*Result, error) {
	text, mark := reason+"\n", ""
	if rec != nil {
		mark = "record: " + rec.ID + "\n"
		text += fmt.Sprintf("\nrecord: %s\nwhat it said: .decree/runs/%s/routine.log\n%s\n", rec.ID, rec.ID, whereItsWorkIs(rec, res.Kept))
	}
	withAdvice := func(as string) string { return text + "\n" + whatNext(rec, as) }
	if rec != nil {
		if err := q.editedInPlace(d, rec.ID); err != nil {
			return nil, err
		}
	}
	as := ""
	err := q.acting(func(note noteActs) (err error) {
		as, err = q.toDead(d, note, res.Name, rec, withAdvice, mark)
		return err
	})
	if err != nil {
		return nil, err
	}
	res.Outcome, res.Reason, res.Record = Dead, firstLine(reason), rec
	res.Place = path.Join(deadName, as)
	return res, q.over(res)
}

// toDead moves the message called name there, and returns its name in dead.
func (q *job) toDead(d *dirs, note noteActs, name string, rec *history.Record, reason func(as string) string, mark string) (as string, err error) {
	t, err := q.takeForDead(d, note, name, rec)
	if err != nil {
		return "", err
	}
	var content []byte
	if t != nil {
		name = t.name
	} else {
		if as, err = q.nameIn(d.dead); err == nil && as == "" {
			content, err = q.ofRecord(rec.ID)
		}
		if err != nil {
			return "", err
		}
	}
	if as != "" { // its routine, or a person, has moved it there
		return as, replace(d.dead, reasonOf(as), []byte(reason(as)))
	}
	if as, err = moveToDead(t, d.dead, name, reason, mark, content); err != nil {
		return "", err
	}
	return as, note(cameToDead(d.dead, as)...)
}

// takeForDead takes a message out of the inbox that goes to dead. rec is of its run, and nil
// is returned where its routine has deleted it; where it was not begun, that is errGone.
func (q *job) takeForDead(d *dirs, note noteActs, name string, rec *history.Record) (*takenOut, error) {
	if rec != nil {
		return q.takeUnderWay(d, note)
	}
	if err := note(gone(project.InboxDir, name)...); err != nil {
		return nil, err
	}
	t, err := q.takeSame(d, name, q.file)
	if err == nil && t == nil {
		err = errGone
	}
	return t, err
}

// whereItsWorkIs says how to look at what the last attempt of a dead message changed. kept: that could not be put back.
func whereItsWorkIs(rec *history.Record, kept bool) string {
	switch {
	case kept:
		return "what it changed stays in the tree: decree diff " + rec.ID
	case rec.Isolated == "":
		return "what it changed, put back since: decree diff " + rec.ID
	case rec.Draft == nil:
		return "it changed nothing"
	}
	return "what it changed, in a draft: decree diff " + rec.ID
}

// whatNext says how to go on with the dead message called as: with its draft published it would do the work twice.
func whatNext(rec *history.Record, as string) string {
	if rec == nil || rec.Draft == nil {
		return "try it again: " + RetryCommand(as) + "\n"
	}
	return fmt.Sprintf("either try it again, from the beginning: %s\nor publish it nevertheless, which leaves nothing to retry: decree publish %s\n", RetryCommand(as), rec.ID)
}

// RetryCommand is what a person types to have the dead message called name tried again. It
// can be pasted into bash, zsh and ksh, and shown on a terminal, whatever the name is.
func RetryCommand(name string) string { return inboxCommand("retry", name) }

// cancelCommand is what a person types to give up the message called name, as RetryCommand.
func cancelCommand(name string) string { return inboxCommand("cancel", name) }

func inboxCommand(verb, name string) string {
	word := strings.TrimSuffix(name, suffix)
	command := "decree inbox " + verb + " "
	if strings.HasPrefix(word, "-") {
		command += "-- "
	}
	return command + tree.ShellWord(word)
}

// ofRecord is the message as the run's record holds it, or as this process knows it where a run
// beside it has deleted that; a later process has lost it then.
func (q *job) ofRecord(id string) ([]byte, error) {
	f, err := q.rec.History().OpenFile(id, messageFile)
	if isMissing(err) {
		if q.text == nil {
			q.note("%s was deleted, and in .decree/runs/%s too: its text is lost", q.u.Name, id)
		}
		return q.text, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	return b.Bytes(), err
}
