package recorder

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"decree/history"
	"decree/patch"
	"decree/project"
	"decree/tree"
)

// While a turn is open, others work in the same tree: another session of an agent, a run, the
// user. Each changed path is attributed by what the agents' tools have reported:
//
//   - only one session's tools have named it: the change is that session's;
//   - both sessions' tools have named it, or neither's and both ran commands: it is shared;
//   - nobody has named it, and no tool ran that may change anything: it is the user's.
//
// What a session without a turn changed, since its prompt was not recorded, counts as the user's.
// Otherwise no record would have it.

// agentReport is a line of the log of agents' reports, with its place in the log.
type agentReport struct {
	project.AgentReport
	at int64
}

func (r *Reader) readAgentReports() (list []agentReport, err error) {
	err = r.project.EachAgentReport(func(at int64, t project.AgentReport) { list = append(list, agentReport{t, at}) })
	return list, err
}

// sentReport says whether the turn's session has sent a report.
func (t *openTurn) sentReport(l agentReport) bool { return t.from(l.Session, l.Process) }

// sessionEnded says whether a report since a turn's prompt says that its session has ended.
func (b *activity) sessionEnded(t *openTurn) bool {
	return slices.ContainsFunc(b.reports, func(l agentReport) bool { return l.End && l.at >= t.note.From && t.sentReport(l) })
}

// hasToolReport says whether there is a report of a tool of a turn's session since its prompt.
func (b *activity) hasToolReport(t *openTurn) bool {
	return slices.ContainsFunc(b.reports, func(l agentReport) bool { return !l.End && l.at >= t.note.From && t.sentReport(l) })
}

// pathSet is the paths that reports have named, and the directories above them.
type pathSet struct{ paths, above map[tree.Path]bool }

func newPathSet() pathSet { return pathSet{map[tree.Path]bool{}, map[tree.Path]bool{}} }

func (n pathSet) add(path tree.Path) {
	n.paths[path] = true
	for up := path.Parent(); up != "" && !n.above[up]; up = up.Parent() {
		n.above[up] = true
	}
}

// has says whether a change is of a named path. A directory that is made or deleted with a named path counts too.
func (n pathSet) has(c tree.Change) bool {
	return n.paths[c.Path] || n.above[c.Path] && ofDirectory(c.Old) && ofDirectory(c.New)
}

func ofDirectory(e *tree.Entry) bool { return e == nil || e.Type == tree.Dir }

// attribution is what is known of who changed what while a turn was open.
type attribution struct {
	mine, theirs, recorded toolWork // recorded is the part of theirs that has a record
	open                   []openWork
	closed                 []*history.Record // of others, newest first
	overlaps               []string          // the records of others
	tools                  []string
}

// openWork is what another turn's tools have named, which is still open.
type openWork struct {
	turn *openTurn
	toolWork
}

// toolWork is what tools have named. any says that one ran that may have changed any path.
type toolWork struct {
	pathSet
	any bool
}

func newToolWork() toolWork { return toolWork{pathSet: newPathSet()} }

func (w *toolWork) addReport(l agentReport) {
	w.any = w.any || l.Any
	for _, path := range l.Paths {
		w.add(tree.Path(path))
	}
}

// changeOwner is whose a change is.
type changeOwner uint8

const (
	byTurn changeOwner = iota
	byTurnAndOthers
	byOthers
	byUser
)

func (o *attribution) of(c tree.Change) changeOwner {
	mine, theirs, recorded := o.mine.has(c), o.theirs.has(c), o.recorded.has(c)
	if !mine && !theirs {
		mine, theirs, recorded = o.mine.any, o.theirs.any, o.recorded.any
	}
	switch {
	case mine && theirs:
		return byTurnAndOthers
	case mine:
		return byTurn
	case recorded:
		return byOthers
	}
	return byUser
}

// attributionOf finds out who worked in the tree while a turn was open, which ends now.
func (r *Recorder) attributionOf(t *openTurn) (*attribution, error) {
	o := &attribution{mine: newToolWork(), theirs: newToolWork(), recorded: newToolWork()}
	told, err := r.readAgentReports()
	if err != nil {
		return nil, err
	}
	near, err := r.turnsBeside(t, o)
	if err != nil {
		return nil, err
	}
	tools := map[string]bool{}
	for _, l := range near.during(t, told) {
		near.notSilent(l)
		switch {
		case t.sentReport(l):
			o.mine.addReport(l)
			if l.Tool != "" {
				tools[l.Tool] = true
			}
		case near.inside(l):
			o.mine.addReport(l)
		case near.around(l): // this turn's work is a part of theirs, whatever they have reported
		case anySent(near.others, l):
			o.recorded.addReport(l)
			for i := range o.open {
				if o.open[i].turn.sentReport(l) {
					o.open[i].addReport(l)
				}
			}
			fallthrough
		default:
			o.theirs.addReport(l)
		}
	}
	o.tools = slices.Sorted(maps.Keys(tools))
	if len(tools) == 0 {
		tells, err := r.tellsTools(t.Record.Actor.Agent, told)
		if err != nil {
			return nil, err
		}
		if !tells || t.Record.Turn.Continues != "" {
			o.mine.any = true // this agent's tools never report, or nothing was noted since its turn was closed
		}
	}
	if !o.recorded.any {
		o.recorded.any, err = r.anyUnreported(near, told)
		o.theirs.any = o.theirs.any || o.recorded.any
	}
	for i := range o.open {
		o.open[i].any = o.open[i].any || near.silent[o.open[i].turn]
	}
	return o, err
}

// tellsTools says whether the tools of an agent report: now, or in one of the last turns.
func (r *Reader) tellsTools(agent string, told []agentReport) (tells bool, err error) {
	if slices.ContainsFunc(told, func(l agentReport) bool { return l.Agent == agent }) {
		return true, nil
	}
	err = r.recent(func(rec *history.Record) bool {
		tells = rec.Turn != nil && rec.Actor.Agent == agent && len(rec.Turn.Tools) > 0
		return !tells
	})
	return tells, err
}

// during are the reports of tools that worked while a turn was open: those since its prompt, and
// those of other sessions' tools that were working at the prompt.
func (b *concurrentTurns) during(t *openTurn, told []agentReport) (list []agentReport) {
	var atWork []agentReport
	for _, l := range told {
		switch {
		case l.End:
		case l.at >= t.note.From:
			list = append(list, l)
		case l.After:
			if i := slices.IndexFunc(atWork, l.sameTool); i >= 0 {
				atWork = slices.Delete(atWork, i, i+1)
			}
		case anySent(b.others, l):
			atWork = append(atWork, l)
		}
	}
	return append(atWork, list...)
}

// sameTool says whether two reports can be of the beginning and the end of the same tool's work.
func (l agentReport) sameTool(o agentReport) bool {
	return l.Session == o.Session && sameProcess(l.Process, o.Process) && l.Tool == o.Tool && slices.EqualFunc(l.Paths, o.Paths, bytes.Equal)
}

// concurrentTurns are the turns that were open at some time while a given one was.
type concurrentTurns struct {
	inner, outer, others []*openTurn
	silent               map[*openTurn]bool // those of others whose tools have not reported
}

func anySent(list []*openTurn, l agentReport) bool {
	return slices.ContainsFunc(list, func(t *openTurn) bool { return t.sentReport(l) })
}

func (b *concurrentTurns) inside(l agentReport) bool { return anySent(b.inner, l) }

func (b *concurrentTurns) around(l agentReport) bool { return anySent(b.outer, l) }

func (b *concurrentTurns) notSilent(l agentReport) {
	maps.DeleteFunc(b.silent, func(t *openTurn, _ bool) bool { return t.sentReport(l) })
}

// anyUnreported says whether one of the others may have changed anything without a report: it is
// of an agent whose tools never report.
func (r *Reader) anyUnreported(b *concurrentTurns, told []agentReport) (bool, error) {
	for t := range b.silent {
		if tells, err := r.tellsTools(t.Record.Actor.Agent, told); err != nil || !tells {
			return err == nil, err
		}
	}
	return false, nil
}

// turnsBeside finds the turns, and the other records that changed the tree, while t was open. The
// diffs of runs and moves name what those changed.
func (r *Recorder) turnsBeside(t *openTurn, o *attribution) (*concurrentTurns, error) {
	open, err := r.openTurns()
	if err != nil {
		return nil, err
	}
	b := &concurrentTurns{silent: map[*openTurn]bool{}}
	closed, err := r.closedSince(t)
	if err != nil {
		return nil, err
	}
	all := open
	for _, rec := range closed {
		all = append(all, &openTurn{Opened: &history.Opened{Record: rec}})
	}
	inside := map[string]string{t.Record.ID: t.Record.Inside}
	for _, other := range all {
		inside[other.Record.ID] = other.Record.Inside
	}
	for _, other := range all {
		rec := other.Record
		switch {
		case rec.ID == t.Record.ID || rec.Isolated != "":
		case madeInside(inside, rec.ID, t.Record.ID):
			b.inner = append(b.inner, other)
		case madeInside(inside, t.Record.ID, rec.ID):
			b.outer = append(b.outer, other)
		case rec.Reason == history.Turn:
			o.overlaps = append(o.overlaps, rec.ID)
			b.others = append(b.others, other)
			b.silent[other] = true
			if rec.Status == history.StatusOpen {
				o.open = append(o.open, openWork{other, newToolWork()})
			} else {
				o.closed = append(o.closed, rec)
			}
		case !rec.DiffSHA256.IsZero() && rec.Status != history.StatusReverted:
			o.overlaps = append(o.overlaps, rec.ID)
			changes, err := r.history.StoredChanges(rec)
			if err != nil && !lostContents(err) {
				return nil, err
			}
			o.closed = append(o.closed, rec)
			for _, c := range changes {
				o.theirs.add(c.Path)
				o.recorded.add(c.Path)
			}
		}
	}
	slices.Sort(o.overlaps)
	return b, nil
}

// closedSince are the records that ended while a turn was open, newest first. Where the record before
// the prompt is not known, since it could not be read, was pruned, or there was none, times and the order decide.
func (r *Recorder) closedSince(t *openTurn) (closed []*history.Record, err error) {
	_, err = r.history.Get(t.note.After)
	unknown := err != nil
	err = r.history.Newest(func(rec *history.Record) bool {
		if rec.Status == history.StatusOpen {
			return true
		}
		if rec.ID == t.note.After || unknown && history.EndedBefore(rec, t.Record) {
			return false
		}
		closed = append(closed, rec)
		return true
	})
	return closed, err
}

// madeInside says whether one record was made inside another, directly or not.
func madeInside(inside map[string]string, id, outer string) bool {
	for n := 0; inside[id] != "" && n <= len(inside); n++ {
		if id = inside[id]; id == outer {
			return true
		}
	}
	return false
}

// attributed is the changes that were made while a turn was open, by whose they are. It does not
// have what only another session changed.
type attributed struct {
	turn   []tree.Change // in byte order
	shared map[tree.Path]bool
	user   []tree.Change
}

// attribute finds out whose the changes are that were made while a turn was open, and notes in its
// record who else was working.
func (r *Recorder) attribute(t *openTurn, changes []tree.Change) (a attributed, err error) {
	o, err := r.attributionOf(t)
	if err != nil {
		return a, err
	}
	t.Record.Turn.Overlaps, t.Record.Turn.Tools = o.overlaps, o.tools
	a.shared = map[tree.Path]bool{}
	var known *recordedWork
	for _, c := range changes {
		owner := o.of(c)
		if owner == byOthers {
			if known == nil {
				if known, err = r.workOf(o.closed); err != nil {
					return a, err
				}
			}
			rest, err := r.beyond(t, c, o, known)
			if err != nil {
				return a, err
			}
			switch {
			case rest == nil:
				continue
			case o.mine.any: // perhaps by a command of this turn's
				owner = byTurnAndOthers
			default:
				owner, c = byUser, *rest
			}
		}
		switch owner {
		case byUser:
			a.user = append(a.user, c)
		case byTurnAndOthers:
			a.shared[c.Path] = true
			a.turn = append(a.turn, c)
		case byTurn:
			a.turn = append(a.turn, c)
		}
	}
	return a, nil
}

// recordedWork is what records say of the paths that they changed: how the first of them found each and how the last one left it, and what
// of it was changed between them, by nobody whom they tell of.
type recordedWork struct {
	first, last map[tree.Path]recordedState
	between     map[tree.Path]tree.Change
}

// recordedState is how a record that changed a path found it, or left it.
type recordedState struct {
	by *history.Record
	is *tree.Entry
}

// differs says whether a path was changed after one record had left it, and before another one that began later found it.
func (s recordedState) differs(later recordedState) bool {
	return history.EndedBefore(s.by, later.by) && !tree.SameEntry(s.is, later.is)
}

// workOf reads records, newest first.
func (r *Recorder) workOf(records []*history.Record) (*recordedWork, error) {
	w := &recordedWork{map[tree.Path]recordedState{}, map[tree.Path]recordedState{}, map[tree.Path]tree.Change{}}
	for _, rec := range records {
		if rec.DiffSHA256.IsZero() {
			continue
		}
		changes, err := r.history.StoredChanges(rec)
		if err != nil && !lostContents(err) {
			return nil, err
		}
		for _, c := range changes {
			first, changed := w.first[c.Path]
			left := recordedState{rec, c.New}
			if !changed {
				w.last[c.Path] = left
			}
			if changed && left.differs(first) {
				gap, more := w.between[c.Path]
				if !more {
					gap = tree.Change{Path: c.Path, New: first.is}
				}
				gap.Old = c.New
				w.between[c.Path] = gap
			}
			if !changed || history.Compare(rec, first.by) < 0 {
				w.first[c.Path] = recordedState{rec, c.Old}
			}
		}
	}
	return w, nil
}

// beyond is what of a change in a turn's time, of a path that others' tools have named, is in none of their records: it was made before the
// first of them began, between two of them, or after the last had ended. Nil: nothing. What an open turn has named is in its record by its end.
func (r *Recorder) beyond(t *openTurn, c tree.Change, o *attribution, known *recordedWork) (rest *tree.Change, err error) {
	add := func(was, is *tree.Entry) {
		if rest == nil {
			rest = &tree.Change{Path: c.Path, Old: was}
		}
		rest.New = is
	}
	first, changed := known.first[c.Path]
	last := known.last[c.Path]
	gap, between := known.between[c.Path]
	after := last.is
	for _, w := range o.open {
		if !w.any && !w.has(c) {
			continue
		}
		after = c.New
		old, err := r.history.FindEntry(w.turn.Record.Before, c.Path)
		if lostContents(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		found := recordedState{w.turn.Record, old}
		if last.by != nil && last.differs(found) {
			if !between {
				gap = tree.Change{Path: c.Path, Old: last.is}
			}
			gap.New, between = old, true
		}
		if !changed || history.Compare(first.by, found.by) >= 0 {
			first, changed = found, true
		}
	}
	if !changed {
		return &c, nil
	}
	if history.Compare(first.by, t.Record) > 0 && !tree.SameEntry(c.Old, first.is) {
		add(c.Old, first.is)
	}
	if between {
		add(gap.Old, gap.New)
	}
	if !tree.SameEntry(after, c.New) {
		add(after, c.New)
	}
	return rest, nil
}

// withUsers adds what the user changed while a turn was open to what had changed before its
// prompt.
func (r *Recorder) withUsers(ctx context.Context, x *writeSession, t *openTurn, user []tree.Change) error {
	if len(user) == 0 {
		return nil
	}
	out, err := r.withEdits(ctx, x, t.note.Files[history.OutsideFile], user)
	if err != nil {
		return err
	}
	t.note.Files = out.stored(nil)
	return out.mark(t.Record)
}

// withEdits stores the outside.diff of a record with edits that were made since its start. found is the diff that it
// had; zero: none.
func (r *Recorder) withEdits(ctx context.Context, x *writeSession, found tree.Hash, edits []tree.Change) (*outside, error) {
	all := map[tree.Path]tree.Change{}
	if !found.IsZero() {
		data, err := r.object(found)
		if err != nil {
			return nil, err
		}
		err = history.Facts(bytes.NewReader(data), func(s *patch.Section) bool {
			c, twice := all[s.Path] // where the kind changes, the second section has the new entry
			if !twice {
				c = tree.Change{Path: s.Path, Old: s.Old}
			}
			c.New = s.New
			all[s.Path] = c
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return r.keepDiff(ctx, x, changesInMemory(joined(all, edits)), nil, nil)
}
