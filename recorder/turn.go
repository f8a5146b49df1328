package recorder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"decree/agent"
	"decree/capture"
	"decree/history"
	"decree/project"
	"decree/runner"
	"decree/tree"
)

// A turn of a coding agent is a record that is open from the prompt to the answer. Nobody
// holds a lease for it, and nothing is locked meanwhile: its open record has the tree at the
// prompt and says which process the agent is, and a recovery leaves it alone. Agents do not
// always say that they have answered, so that a turn is closed by whatever shows first
// that it is over: its end event, the next prompt or the end of its session, a command that
// moves the tree; and, once the agent's process is gone, another session or a checkpoint.

// TurnEvent is an event of a coding agent's session.
type TurnEvent struct {
	agent.Event
	Process project.Holder // the agent's; PID 0: not known
	// Proxied: it was read along between an editor and the agent, before the agent has it.
	Proxied bool
	// TranscriptSize is that of the transcript now, in bytes.
	TranscriptSize int64
}

// extraTurn is the place of a turnNote in an open record.
const extraTurn = "turn"

// turnNote is what tells an open turn from others, and whether its agent still lives.
type turnNote struct {
	Agent project.Holder `json:"agent"`
	// Proxied: what the agent's own hooks tell of a prompt in it is told already.
	Proxied bool   `json:"proxied,omitempty"`
	ID      string `json:"id,omitempty"`    // the agent's own id of the turn
	Prompt  []byte `json:"prompt"`          // the hash of the whole prompt, which is no object of the store
	From    int64  `json:"from,omitempty"`  // where the log of what agents tell went on
	After   string `json:"after,omitempty"` // the newest record before it
	Born    int64  `json:"born,omitempty"`  // decreeBorn
	// Files are those of the record's directory that the store has already: outside.diff.
	Files map[string]tree.Hash `json:"files,omitempty"`
}

func sumOfPrompt(e TurnEvent) []byte { sum := tree.Sum([]byte(e.Prompt)); return sum[:] }

// noteOf is the note of an open turn.
func noteOf(o *history.Opened) (n turnNote) {
	_ = json.Unmarshal(o.Extra[extraTurn], &n) // else nothing is known of its agent
	return n
}

// openTurn is a turn that is not closed.
type openTurn struct {
	*history.Opened
	note turnNote
}

// openTurns are the turns that are not closed, oldest first.
func (r *Reader) openTurns() (list []*openTurn, err error) {
	open, _, err := r.history.ListOpen()
	if err != nil {
		return nil, err
	}
	for _, o := range open {
		if o.Record.Reason != history.Turn {
			continue
		}
		if closed, err := r.history.Recorded(o.Record.ID); err != nil || closed {
			if err != nil {
				return nil, err
			}
			continue // by a process that died before it removed the open record
		}
		list = append(list, &openTurn{o, noteOf(o)})
	}
	return list, nil
}

// agentLives says whether the process of an agent may still work; host is this machine's name.
func agentLives(h project.Holder, host string) bool {
	switch {
	case h.PID == 0 || h.Host != host:
		return true // nothing shows that it does not
	case h.Boot != runner.BootID():
		return false
	}
	return runner.Lives(runner.Ancestor{PID: h.PID, StartTime: h.Born})
}

// sameProcess says whether two notes are of one process.
func sameProcess(a, b project.Holder) bool {
	return a.PID != 0 && a.PID == b.PID && a.Host == b.Host && a.Boot == b.Boot && a.Born == b.Born
}

// ofSession says whether an event is of the turn's session.
func (t *openTurn) ofSession(e TurnEvent) bool { return t.from(e.Session, e.Process) }

// from says whether what a process of an agent told in a session is of the turn's session.
// Where one of them does not know its session, the agent's process says it.
func (t *openTurn) from(session string, process project.Holder) bool {
	if s := t.Record.Actor.Session; s != "" && session != "" {
		return s == clipID(session)
	}
	return sameProcess(t.note.Agent, process)
}

// isOf says whether an event that ends a turn means this one.
func (t *openTurn) isOf(e TurnEvent) bool {
	return t.ofSession(e) && (t.note.ID == "" || e.Turn == "" || t.note.ID == clipID(e.Turn))
}

// begunBy says whether a prompt is the one that the turn began with: the same agent sent
// it twice, or has the hooks of two agents, or a proxy before it has told it already. Of one
// agent it is another's in another session, and the next one once the turn's tools have worked.
func (r *Recorder) begunBy(b activity, t *openTurn, e TurnEvent) bool {
	if t.note.Proxied && !e.Proxied && r.descent(t.note.Agent) >= 0 && (sameProcess(t.note.Agent, e.Process) || t.ofSession(e)) {
		return true // in other words than the editor's, perhaps
	}
	if t.note.ID != "" && e.Turn != "" && t.Record.Actor.Agent == e.Agent {
		return t.ofSession(e) && t.note.ID == clipID(e.Turn)
	}
	if !bytes.Equal(t.note.Prompt, sumOfPrompt(e)) {
		return false
	}
	if t.Record.Actor.Agent == clipID(e.Agent) && (t.Record.Actor.Session != "" && e.Session != "" && !t.ofSession(e) || b.hasToolReport(t)) {
		return false
	}
	return sameProcess(t.note.Agent, e.Process) || r.descent(t.note.Agent) >= 0 || t.note.Agent.PID == 0 && t.ofSession(e)
}

// mostID bounds an id of an agent's, and mostPrompt what is kept of a prompt, in characters.
const (
	mostID     = 200
	mostPrompt = 200
)

func clipID(id string) string { return firstRunes(id, mostID) }

// clipPrompt is what is kept of a prompt, and how long it was, in bytes, if that is not all of it.
func clipPrompt(e agent.Event) (kept string, size int64) {
	text := strings.TrimSpace(e.Prompt)
	kept = firstRunes(text, mostPrompt)
	if kept != firstRunes(text, mostPrompt+1) {
		size = max(e.PromptSize, int64(len(e.Prompt)))
	}
	return kept, size
}

func firstRunes(text string, most int) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*most+4)], "\uFFFD")
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

// actAs has what is recorded until back is called be of the session of an event.
func (r *Recorder) actAs(e TurnEvent) (back func()) {
	usual := r.opt.Actor
	r.opt.Actor.Agent, r.opt.Actor.Session, r.opt.Actor.Model = clipID(e.Agent), clipID(e.Session), clipID(e.Model)
	return func() { r.opt.Actor = usual }
}

// recordEvent has do record what an event is about, in the name of its agent, with the lock
// taken. What retention frees then waits until all is recorded: it ends the writer, and takes
// what no record names yet.
func (r *Recorder) recordEvent(ctx context.Context, e TurnEvent, do func(context.Context, *writeSession, TurnEvent) (*history.Record, error)) (*history.Record, error) {
	defer r.actAs(e)()
	x, err := r.enter(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	open := len(x.activity.turns)
	rec, err := do(ctx, x, e)
	switch {
	case err != nil:
		r.auditFailure(opRecord, err)
	case rec != nil && (rec.Status != history.StatusOpen || len(x.activity.turns) < open): // a turn has ended
		r.retain(ctx, x, history.Turn)
	}
	return rec, err
}

// BeginSession records the tree as a session of an agent finds it. It returns nil where
// that is recorded already: a turn of this session is open, or the newest record is of this
// session and nothing has changed since.
func (r *Recorder) BeginSession(ctx context.Context, e TurnEvent) (*history.Record, error) {
	defer r.actAs(e)()
	x, err := r.enter(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	err = r.closeTurns(ctx, x, func(t *openTurn) bool { return x.activity.sessionEnded(t) || !t.ofSession(e) && r.over(x, t) })
	if err != nil || slices.ContainsFunc(x.activity.turns, func(t *openTurn) bool { return t.ofSession(e) }) {
		return nil, err
	}
	rec, err := r.checkpoint(ctx, x, CheckpointOptions{Label: history.SessionLabel, unasked: true, again: r.repeats(e)}, history.Auto)
	if rec == nil && err != nil {
		r.auditFailure(opRecord, err)
	}
	return rec, err
}

// repeats says of the newest record and the present tree whether a session's beginning is
// recorded by it.
func (r *Recorder) repeats(e TurnEvent) func(newest *history.Record, now tree.Hash) bool {
	return func(newest *history.Record, now tree.Hash) bool {
		a := newest.Actor
		return treeAfter(newest) == now && e.Session != "" && a.Session == clipID(e.Session) && a.Agent == clipID(e.Agent)
	}
}

// over says whether an open turn is over though no event has closed it: its session has
// ended, or its agent is gone.
func (r *Recorder) over(x *writeSession, t *openTurn) bool {
	return x.activity.sessionEnded(t) || !r.alive(t.note.Agent)
}

// BeginTurn opens a turn: the tree is recorded as its prompt finds it. A prompt that is
// told again gives the turn that is open already.
func (r *Recorder) BeginTurn(ctx context.Context, e TurnEvent) (*history.Record, error) {
	return r.recordEvent(ctx, e, r.beginTurn)
}

func (r *Recorder) beginTurn(ctx context.Context, x *writeSession, e TurnEvent) (*history.Record, error) {
	for _, t := range x.activity.turns {
		if r.begunBy(x.activity, t, e) {
			return t.Record, nil
		}
	}
	if err := r.closeTurns(ctx, x, func(t *openTurn) bool { return t.ofSession(e) || r.over(x, t) }); err != nil {
		return nil, err
	}
	t, err := r.turnFrom(ctx, x, e)
	if err != nil {
		return nil, &BeginError{err}
	}
	return t.Record, r.openTurn(t)
}

// turnFrom records the tree as a prompt finds it, and what the end of its turn will be compared with.
func (r *Recorder) turnFrom(ctx context.Context, x *writeSession, e TurnEvent) (*openTurn, error) {
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", afterRun: true})
	if err != nil {
		return nil, err
	}
	defer res.Close()
	out, err := r.observeOutside(ctx, x, res, nil)
	if err != nil {
		return nil, err
	}
	rec, err := r.newTurn(x, e)
	if err != nil {
		return nil, err
	}
	rec.Unrecorded, rec.Files, rec.Bytes, rec.Before = res.Unrecorded, res.Files, res.Bytes, res.Tree
	extra := map[string]json.RawMessage{}
	if err := cmp.Or(r.noteMounts(rec), out.mark(rec), r.noteOwn(x, extra)); err != nil {
		return nil, err
	}
	left, err := r.lookLeftOut(ctx)
	if err == nil {
		err = noteLeft(left, extra)
	}
	if err != nil {
		return nil, err
	}
	if err := r.keep(x, res); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	note := turnNote{Agent: e.Process, Proxied: e.Proxied, ID: clipID(e.Turn), Prompt: sumOfPrompt(e), Born: r.decreeBorn(), Files: out.stored(nil)}
	last, err := r.lastKnown()
	if err != nil {
		return nil, err // else all that ever ended would count as having worked beside it
	}
	if last.newest != nil {
		note.After = last.newest.ID
	}
	note.From, err = r.project.AgentReportsSize()
	return &openTurn{Opened: &history.Opened{Record: rec, Rules: rules(res), Extra: extra}, note: note}, err
}

// noteOwn stores the user's own files in .decree, and notes them for the end of a turn. In a turn that is part of a run in place that
// one sees to them: it knows the message that it does.
func (r *Recorder) noteOwn(x *writeSession, extra map[string]json.RawMessage) error {
	if slices.ContainsFunc(x.activity.leases, func(l project.Lease) bool { return !l.Holder.Isolated && r.descent(l.Holder) >= 0 }) {
		return nil
	}
	own, err := r.ownFiles(x, true)
	if err != nil {
		return err
	}
	return own.note(extra)
}

// newTurn is the record of a turn that begins now.
func (r *Recorder) newTurn(x *writeSession, e TurnEvent) (*history.Record, error) {
	id, started, err := r.history.NewID()
	if err != nil {
		return nil, err
	}
	rec := &history.Record{
		ID: id, Chain: id[:16], Reason: history.Turn, Status: history.StatusOpen, Started: started,
		Actor: r.opt.Actor, Inside: r.aroundTurn(x.activity, e), Origin: r.origin(), Turn: &history.TurnFacts{},
	}
	if rec.Actor.Turn, err = r.nextTurn(x.activity.turns); err != nil {
		return nil, err
	}
	if e.Transcript != "" {
		rec.Turn.Transcript = history.Transcript{Path: e.Transcript, Offset: e.TranscriptSize}
	}
	if r.project.Config.Agents.Prompts {
		rec.Turn.Prompt, rec.Turn.PromptSize = clipPrompt(e.Event)
	}
	if rec.Turn.Prompt == "" {
		rec.Description = strings.TrimSuffix(fmt.Sprintf("Turn %d of %s", rec.Actor.Turn, oneWord(rec.Actor.Agent)), " of ")
	}
	return rec, nil
}

// oneWord keeps a text that came from outside from breaking a line.
func oneWord(text string) string { return strings.Join(strings.Fields(text), " ") }

// nextTurn is the number of the project's next turn: above those that are open, the newest
// record's, and all that have a label.
func (r *Recorder) nextTurn(open []*openTurn) (n int, err error) {
	for _, t := range open {
		n = max(n, t.Record.Actor.Turn)
	}
	err = r.history.Newest(func(rec *history.Record) bool {
		if rec.Reason == history.Turn {
			n = max(n, rec.Actor.Turn)
		}
		return false
	})
	if err != nil {
		return 0, err
	}
	labels, err := r.history.Labels()
	for name := range labels {
		if of, ok := history.TurnOfLabel(name); ok {
			n = max(n, of)
		}
	}
	return n + 1, err
}

// aroundTurn is the record that a new turn is inside: the nearest run, or another
// agent's turn, whose process the hook descends from. Turns of one process are beside
// each other.
func (r *Recorder) aroundTurn(b activity, e TurnEvent) string {
	b.turns = slices.DeleteFunc(slices.Clone(b.turns), func(t *openTurn) bool { return sameProcess(t.note.Agent, e.Process) })
	return r.nearest(b)
}

// openTurn writes the open record, from which on there is a turn, and its label.
func (r *Recorder) openTurn(t *openTurn) (err error) {
	if t.Extra[extraTurn], err = json.Marshal(t.note); err != nil {
		return err
	}
	label := history.LabelOfTurn(t.Record.Actor.Turn)
	t.Effects.Labels = map[string]string{label: t.Record.ID}
	if err := r.history.Begin(t.Opened); err != nil {
		return &BeginError{err}
	}
	if err := r.history.SetLabel(label, t.Record.ID); err != nil {
		r.note("turn %d has no label yet: %v; it gets one when it ends", t.Record.Actor.Turn, err)
	}
	return nil
}

// EndTurn closes the turn that an event says has ended: one of kind SessionEnd says that
// the agent is gone without having answered. It returns nil where there is
// nothing to record.
func (r *Recorder) EndTurn(ctx context.Context, e TurnEvent) (*history.Record, error) {
	return r.recordEvent(ctx, e, r.endTurn)
}

func (r *Recorder) endTurn(ctx context.Context, x *writeSession, e TurnEvent) (*history.Record, error) {
	by := history.EndedByEvent
	if e.Kind == agent.SessionEnd {
		by = history.EndedByOther
	}
	for _, t := range slices.Backward(x.activity.turns) {
		if t.isOf(e) {
			t.Record.Turn.Stop = clipID(e.Stop)
			return t.Record, r.closeTurn(ctx, x, t, by)
		}
	}
	if slices.ContainsFunc(x.activity.turns, func(t *openTurn) bool { return t.ofSession(e) }) {
		return nil, nil // the session is at its next turn already
	}
	last, err := r.lastTurn(e)
	if err != nil || last == nil || last.Turn.EndedBy != history.EndedByOther {
		return nil, err
	}
	return r.continueTurn(ctx, x, e, last)
}

// AfterTool records the tree as a tool of an open turn has left it. It returns nil where no
// turn of the session is open.
func (r *Recorder) AfterTool(ctx context.Context, e TurnEvent) (*history.Record, error) {
	defer r.actAs(e)()
	x, err := r.enter(ctx, besideRuns)
	if err != nil {
		return nil, err
	}
	defer x.close()
	for _, t := range x.activity.turns {
		if t.ofSession(e) {
			x.activity.inside = t.Record.ID
			what := "After " + oneWord(firstRunes(e.Tool, mostID))
			return r.checkpoint(ctx, x, CheckpointOptions{Description: what, unasked: true}, history.Auto)
		}
	}
	return nil, nil
}

// recent calls more for the newest 200 records, the newest first, as long as it returns true.
func (r *Reader) recent(more func(*history.Record) bool) error {
	n := 0
	return r.history.Newest(func(rec *history.Record) bool {
		n++
		return more(rec) && n < 200
	})
}

// lastTurn is the newest turn of an event's session, nil for none.
func (r *Recorder) lastTurn(e TurnEvent) (last *history.Record, err error) {
	err = r.recent(func(rec *history.Record) bool {
		if rec.Reason == history.Turn && rec.Turn != nil && e.Session != "" && rec.Actor.Session == clipID(e.Session) {
			last = rec
		}
		return last == nil
	})
	return last, err
}

// continueTurn records what a turn's agent did after the turn had been closed.
func (r *Recorder) continueTurn(ctx context.Context, x *writeSession, e TurnEvent, last *history.Record) (*history.Record, error) {
	res, err := r.observe(ctx, x, captureOptions{phase: "recording", afterRun: true, unlimited: true})
	if err != nil {
		return nil, &BeginError{err}
	}
	defer res.Close()
	since, err := r.sinceLast(ctx, res)
	if err != nil {
		return nil, err
	}
	changes, err := collected(since.changes)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	rec, err := r.newTurn(x, e)
	if err != nil {
		return nil, &BeginError{err}
	}
	if err := r.noteMounts(rec); err != nil {
		return nil, &BeginError{err}
	}
	rec.Before, rec.Turn.Continues = treeAfter(since.last), last.ID
	rec.Files, rec.Bytes, rec.Unrecorded = since.last.Files, since.last.Bytes, res.Unrecorded
	rec.Turn.Prompt, rec.Turn.PromptSize, rec.Description = last.Turn.Prompt, last.Turn.PromptSize, last.Description
	t := &openTurn{note: turnNote{Agent: e.Process, After: since.last.ID}, Opened: &history.Opened{Record: rec, Effects: history.Effects{Labels: map[string]string{history.LabelOfTurn(rec.Actor.Turn): rec.ID}}}}
	return rec, r.recordTurn(ctx, x, t, history.EndedByEvent, res, changes)
}

// closeTurns closes the open turns that are over, the newest first, so that one inside
// another ends before it.
func (r *Recorder) closeTurns(ctx context.Context, x *writeSession, over func(*openTurn) bool) error {
	open, err := r.openTurns()
	if err != nil || len(open) == 0 {
		return err
	}
	for _, t := range slices.Backward(open) {
		if !over(t) {
			continue
		}
		if err := r.closeTurn(ctx, x, t, history.EndedByOther); err != nil {
			return fmt.Errorf("turn %s is not closed: %w", t.Record.ID, err)
		}
	}
	return x.activity.addTurns(r)
}

// closeAllTurns closes the open turns before what moves the tree and is no agent's work, which is recorded before it, and says
// whether there were any.
func (r *Recorder) closeAllTurns(ctx context.Context, x *writeSession) (closed bool, err error) {
	err = r.closeTurns(ctx, x, func(*openTurn) bool { closed = true; return true })
	return closed, err
}

// CloseTurns closes the turns that are open, as what moves the tree does before it looks. Within Hold it has everything
// planned over what will be there, and over the records that will be the newest.
func (r *Recorder) CloseTurns(ctx context.Context, op string) error {
	x, err := r.enterToMove(ctx, op)
	if err == nil {
		x.close()
	}
	return err
}

// closeTurnsIn closes the turns inside a run whose command has ended.
func (r *Recorder) closeTurnsIn(ctx context.Context, x *writeSession, run string) error {
	return r.closeTurns(ctx, x, func(t *openTurn) bool { return t.Record.Inside == run })
}

// closeTurn closes a turn: what has changed since its prompt is recorded as its work, and what was deleted of .decree is written again.
func (r *Recorder) closeTurn(ctx context.Context, x *writeSession, t *openTurn, by history.EndedBy) error {
	words, err := r.bringDeleted(t.Opened)
	for _, w := range words {
		r.note("%s", w)
	}
	if err != nil {
		return err
	}
	now, err := r.observe(ctx, x, captureOptions{phase: "comparing", frozen: frozenRules(t.Opened), afterRun: true, unlimited: true})
	if err != nil {
		return err
	}
	defer now.Close()
	changes, err := r.since(t.Record.Before, now)
	if err != nil && !lostContents(err) {
		return err
	}
	if err == nil {
		err = r.recordTurn(ctx, x, t, by, now, changes)
	}
	if !lostContents(err) {
		return err
	}
	r.note("turn %s is closed without what the store has lost: %v; 'decree verify %s' names it", t.Record.ID, err, t.Record.ID)
	rec := *t.Record
	rec.Status, rec.Turn.EndedBy = history.StatusSucceeded, by
	return r.end(&ending{Record: &rec, effects: t.Effects, build: []history.RunFile{}})
}

// recordTurn ends a turn's record with what changed until now.
func (r *Recorder) recordTurn(ctx context.Context, x *writeSession, t *openTurn, by history.EndedBy, now *capture.Result, changes []tree.Change) error {
	rec := t.Record
	changes, err := collected(readable(changesInMemory(changes), rec.Unrecorded, now.Unrecorded))
	if err != nil {
		return err
	}
	whose, err := r.attribute(t, changes)
	if err == nil {
		err = r.withUsers(ctx, x, t, whose.user)
	}
	if err != nil {
		return err
	}
	diff, err := r.keepDiff(ctx, x, changesInMemory(fitting(whose.turn)), whose.shared, nil)
	if err != nil {
		return err
	}
	if err := r.keep(x, now); err != nil {
		return err
	}
	if err := r.noteMounted(rec, changesInMemory(whose.turn)); err != nil {
		return err
	}
	if err := r.noteRenamed(rec, t.Opened, changesInMemory(whose.turn)); err != nil {
		return err
	}
	rec.After, rec.DiffSHA256, rec.Changes = now.Tree, diff.SHA256, diff.Changes
	rec.Unrecorded = unrecordedPaths(rec.Unrecorded, now.Unrecorded)
	rec.Status, rec.Turn.EndedBy = history.StatusSucceeded, by
	manifest, sum, err := r.manifestFile(rec.Before, func(w io.Writer) error { return r.history.WriteManifest(rec, w) })
	if err != nil {
		return err
	}
	rec.ManifestSHA256 = sum
	end := &ending{Record: rec, Files: map[string]tree.Hash{diffFile: diff.SHA256}, effects: t.Effects}
	maps.Copy(end.Files, t.note.Files)
	end.build = []history.RunFile{manifest, diff.fileOf(r, diffFile)}
	if found, ok := rec.Outside(); ok {
		end.build = (&outside{Outside: found}).files(r, end.build...)
	}
	return r.end(end)
}

// HooksLog is what hooks of coding agents could not record since the newest turn, a line each.
func (r *Reader) HooksLog() ([]string, error) {
	r.catchUp()
	var after time.Time
	err := r.recent(func(rec *history.Record) bool {
		if rec.Reason == history.Turn {
			after = rec.Started
		}
		return after.IsZero()
	})
	if err != nil {
		return nil, err
	}
	return r.project.HooksLog(after)
}

// UnrecordedHooks says in a line what a HooksLog, which is not empty, is about.
func UnrecordedHooks(lines []string) string {
	what := "1 event of an agent was not recorded: "
	if len(lines) > 1 {
		what = fmt.Sprintf("%d events of agents were not recorded, the last: ", len(lines))
	}
	return what + lines[len(lines)-1]
}
