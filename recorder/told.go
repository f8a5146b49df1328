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

// Whose change it was. While a turn is open others work in the same tree: another session of
// an agent, a run, the user. What an agent's tools tell decides path by path: a path that one
// session's tools alone have named is that session's; one that both have named, or nobody where
// both ran commands, is shared; and one that nobody has named, where no tool ran that may
// change anything, is the user's. What a session changed that has no turn, since its prompt was
// not recorded, counts as the user's, lest no record has it.

// toldLine is a line of the log of what agents told, with its place.
type toldLine struct {
	project.Told
	at int64
}

func (r *Reader) readTold() (list []toldLine, err error) {
	err = r.project.EachTold(func(at int64, t project.Told) { list = append(list, toldLine{t, at}) })
	return list, err
}

// told says whether a line is of the turn's session.
func (t *openTurn) told(l toldLine) bool { return t.from(l.Session, l.Process) }

// sessionEnded says whether it was told that the session of a turn has ended since.
func (b *ongoing) sessionEnded(t *openTurn) bool {
	return slices.ContainsFunc(b.told, func(l toldLine) bool { return l.End && l.at >= t.note.From && t.told(l) })
}

// toolWorked says whether a tool of a turn's session was told of since its prompt.
func (b *ongoing) toolWorked(t *openTurn) bool {
	return slices.ContainsFunc(b.told, func(l toldLine) bool { return !l.End && l.at >= t.note.From && t.told(l) })
}

// named are paths that were named, and the directories above them.
type named struct{ paths, above map[tree.Path]bool }

func newNamed() named { return named{map[tree.Path]bool{}, map[tree.Path]bool{}} }

func (n named) add(path tree.Path) {
	n.paths[path] = true
	for up := path.Parent(); up != "" && !n.above[up]; up = up.Parent() {
		n.above[up] = true
	}
}

// has says whether a change was named: a directory comes and goes with what is in it.
func (n named) has(c tree.Change) bool {
	return n.paths[c.Path] || n.above[c.Path] && ofDirectory(c.Old) && ofDirectory(c.New)
}

func ofDirectory(e *tree.Entry) bool { return e == nil || e.Type == tree.Dir }

// owners is what is known of who changed what in the time of a turn.
type owners struct {
	mine, theirs, recorded work     // recorded is what of theirs has a record
	overlaps               []string // the records of others
	tools                  []string
}

// work is what tools have named; any: some ran that may have changed anything.
type work struct {
	named
	any bool
}

func newWork() work { return work{named: newNamed()} }

func (w *work) tell(l toldLine) {
	w.any = w.any || l.Any
	for _, path := range l.Paths {
		w.add(tree.Path(path))
	}
}

// owner is whose a change is.
type owner uint8

const (
	own owner = iota
	shared
	others
	users
)

func (o *owners) of(c tree.Change) owner {
	mine, theirs, recorded := o.mine.has(c), o.theirs.has(c), o.recorded.has(c)
	if !mine && !theirs {
		mine, theirs, recorded = o.mine.any, o.theirs.any, o.recorded.any
	}
	switch {
	case mine && theirs:
		return shared
	case mine:
		return own
	case recorded:
		return others
	}
	return users
}

// ownersIn finds out who worked in the tree in the time of a turn, which ends now.
func (r *Recorder) ownersIn(t *openTurn) (*owners, error) {
	o := &owners{mine: newWork(), theirs: newWork(), recorded: newWork()}
	told, err := r.readTold()
	if err != nil {
		return nil, err
	}
	near, err := r.turnsBeside(t, o)
	if err != nil {
		return nil, err
	}
	tools := map[string]bool{}
	for _, l := range near.during(t, told) {
		near.heard(l)
		switch {
		case t.told(l):
			o.mine.tell(l)
			if l.Tool != "" {
				tools[l.Tool] = true
			}
		case near.inside(l):
			o.mine.tell(l)
		case near.around(l): // this turn's work is a part of theirs, whatever they told
		case anyTold(near.others, l):
			o.recorded.tell(l)
			fallthrough
		default:
			o.theirs.tell(l)
		}
	}
	o.tools = slices.Sorted(maps.Keys(tools))
	if len(tools) == 0 {
		tells, err := r.tellsTools(t.Record.Actor.Agent, told)
		if err != nil {
			return nil, err
		}
		if !tells || t.Record.Turn.Continues != "" {
			o.mine.any = true // nothing is ever told of this agent's tools, or nothing was noted of it since its turn was closed
		}
	}
	if !o.recorded.any {
		o.recorded.any, err = r.anySilent(near, told)
		o.theirs.any = o.theirs.any || o.recorded.any
	}
	return o, err
}

// tellsTools says whether the tools of an agent are told of: now, or in one of the last turns.
func (r *Reader) tellsTools(agent string, told []toldLine) (tells bool, err error) {
	if slices.ContainsFunc(told, func(l toldLine) bool { return l.Agent == agent }) {
		return true, nil
	}
	err = r.recent(func(rec *history.Record) bool {
		tells = rec.Turn != nil && rec.Actor.Agent == agent && len(rec.Turn.Tools) > 0
		return !tells
	})
	return tells, err
}

// during are the lines about tools that worked in the time of a turn: those since its prompt, and
// those of others whose tools were at work at it.
func (b *beside) during(t *openTurn, told []toldLine) (list []toldLine) {
	var atWork []toldLine
	for _, l := range told {
		switch {
		case l.End:
		case l.at >= t.note.From:
			list = append(list, l)
		case l.After:
			if i := slices.IndexFunc(atWork, l.sameTool); i >= 0 {
				atWork = slices.Delete(atWork, i, i+1)
			}
		case anyTold(b.others, l):
			atWork = append(atWork, l)
		}
	}
	return append(atWork, list...)
}

// sameTool says whether two lines can be the beginning and the end of a tool's work.
func (l toldLine) sameTool(o toldLine) bool {
	return l.Session == o.Session && sameProcess(l.Process, o.Process) && l.Tool == o.Tool && slices.EqualFunc(l.Paths, o.Paths, bytes.Equal)
}

// beside are the turns that were open for some of the time of one.
type beside struct {
	inner, outer, others []*openTurn
	quiet                map[*openTurn]bool // of others, those of whose tools nothing was told
}

func anyTold(list []*openTurn, l toldLine) bool {
	return slices.ContainsFunc(list, func(t *openTurn) bool { return t.told(l) })
}

func (b *beside) inside(l toldLine) bool { return anyTold(b.inner, l) }

func (b *beside) around(l toldLine) bool { return anyTold(b.outer, l) }

func (b *beside) heard(l toldLine) {
	maps.DeleteFunc(b.quiet, func(t *openTurn, _ bool) bool { return t.told(l) })
}

// anySilent says whether one of the others may have changed anything without telling it: of
// an agent whose tools are never told of.
func (r *Reader) anySilent(b *beside, told []toldLine) (bool, error) {
	for t := range b.quiet {
		if tells, err := r.tellsTools(t.Record.Actor.Agent, told); err != nil || !tells {
			return err == nil, err
		}
	}
	return false, nil
}

// turnsBeside finds the turns, and other records that changed the tree, in the time of t. What runs
// and moves changed, their own diffs name.
func (r *Recorder) turnsBeside(t *openTurn, o *owners) (*beside, error) {
	open, err := r.openTurns()
	if err != nil {
		return nil, err
	}
	b := &beside{quiet: map[*openTurn]bool{}}
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
			b.quiet[other] = true
		case !rec.DiffSHA256.IsZero() && rec.Status != history.StatusReverted:
			o.overlaps = append(o.overlaps, rec.ID)
			changes, err := r.history.StoredChanges(rec)
			if err != nil && !lostContents(err) {
				return nil, err
			}
			for _, c := range changes {
				o.theirs.add(c.Path)
				o.recorded.add(c.Path)
			}
		}
	}
	slices.Sort(o.overlaps)
	return b, nil
}

// closedSince are the records that ended while a turn was open, newest first. Where the newest one could not be read at
// the prompt, was pruned since, or there was none, times and the order tell which.
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

// madeInside says whether one record was made inside another, also inside one that was.
func madeInside(inside map[string]string, id, outer string) bool {
	for n := 0; inside[id] != "" && n <= len(inside); n++ {
		if id = inside[id]; id == outer {
			return true
		}
	}
	return false
}

// attributed are the changes in the time of a turn, by whose they are. What is another's
// alone is in none.
type attributed struct {
	turn   []tree.Change // in byte order
	shared map[tree.Path]bool
	user   []tree.Change
}

// attribute says whose the changes in the time of a turn are, and writes down in its record who
// else was at work.
func (r *Recorder) attribute(t *openTurn, changes []tree.Change) (a attributed, err error) {
	o, err := r.ownersIn(t)
	if err != nil {
		return a, err
	}
	t.Record.Turn.Overlaps, t.Record.Turn.Tools = o.overlaps, o.tools
	a.shared = map[tree.Path]bool{}
	for _, c := range changes {
		switch o.of(c) {
		case users:
			a.user = append(a.user, c)
		case shared:
			a.shared[c.Path] = true
			a.turn = append(a.turn, c)
		case own:
			a.turn = append(a.turn, c)
		}
	}
	return a, nil
}

// withUsers adds what the user changed in the time of a turn to what it found changed
// at its prompt.
func (r *Recorder) withUsers(ctx context.Context, x *writing, t *openTurn, user []tree.Change) error {
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

// withEdits stores the outside.diff of a record with edits that were made since its start. found is the one that it had, or
// zero.
func (r *Recorder) withEdits(ctx context.Context, x *writing, found tree.Hash, edits []tree.Change) (*outside, error) {
	all := map[tree.Path]tree.Change{}
	if !found.IsZero() {
		data, err := r.object(found)
		if err != nil {
			return nil, err
		}
		err = history.Facts(bytes.NewReader(data), func(s *patch.Section) bool {
			c, twice := all[s.Path] // of a change of kind the second section says what it becomes
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
	for _, c := range edits {
		if before, both := all[c.Path]; both {
			c.Old = before.Old
		}
		all[c.Path] = c
	}
	merged := slices.SortedFunc(maps.Values(all), func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	merged = slices.DeleteFunc(merged, func(c tree.Change) bool { return sameEntry(c.Old, c.New) })
	return r.keepDiff(ctx, x, held(merged), nil, nil)
}
