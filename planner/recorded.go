package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"decree/history"
	"decree/patch"
	"decree/plan"
	"decree/project"
	"decree/recorder"
	"decree/tree"
	"decree/view"
)

// A record's own diff and a plan part the same change in other places: the files may have been edited since, and
// a merge leaves out what is there already. What was marked in the one is found in the other by the lines of the
// tree that it is about.

// ofRecord is Plan where hunks are marked in the diff of the record. A conflict offers to merge these hunks alone.
func (p *Planner) ofRecord(ctx context.Context, q Request) (*Planned, error) {
	whole := q.inPaths()
	all, err := p.Plan(ctx, whole)
	if conflict, ok := errors.AsType[*ConflictError](err); ok {
		conflict.Request = q
		if m := conflict.Merge; m != nil {
			merging := q
			merging.Merge, merging.Markers = m.Request.Merge, m.Request.Markers
			if conflict.Merge, err = p.ofRecord(ctx, merging); err != nil {
				return nil, err
			}
		}
		return nil, conflict
	}
	if err != nil {
		return nil, err
	}
	err = p.open(ctx, false, func(rec *recorder.Recorder) (err error) {
		q.Marks, err = p.translate(ctx, rec, q, all)
		return err
	})
	if err != nil {
		return nil, err
	}
	q.Of, q.OfRecord = all.ID, false
	return p.Plan(ctx, q)
}

// inPaths is the request about all of the paths of which something is marked.
func (q Request) inPaths() Request {
	paths := q.markedPaths()
	q = q.whole()
	q.Paths = paths
	return q
}

// lineRange is where something stands in a file: from a line on, counted from 0, up to another one.
type lineRange struct{ from, to int }

// meets says whether two ranges have a line in common, or touch where one has none.
func (a lineRange) meets(b lineRange) bool {
	if a.from == a.to || b.from == b.to {
		return a.from <= b.to && b.from <= a.to
	}
	return a.from < b.to && b.from < a.to
}

func meetAny(list []lineRange, of []lineRange) bool {
	return slices.ContainsFunc(list, func(a lineRange) bool { return slices.ContainsFunc(of, a.meets) })
}

// changedLines are the places of a hunk at which lines come or go, on the old side of its diff or the new one.
func changedLines(h *patch.Hunk, newSide bool) (out []lineRange) {
	at := begins(h.OldStart, h.OldLines)
	if newSide {
		at = begins(h.NewStart, h.NewLines)
	}
	open := false
	for line := range h.Lines() {
		if line.Kind == ' ' {
			at, open = at+1, false
			continue
		}
		if !open {
			out, open = append(out, lineRange{at, at}), true
		}
		if (line.Kind == '+') == newSide {
			at++
			out[len(out)-1].to = at
		}
	}
	return out
}

// begins is the first line of a hunk on a side, counted from 0: with no lines its start is the line before.
func begins(start, lines int) int {
	if lines == 0 {
		return start
	}
	return start - 1
}

// translate turns marks in a record's diff into marks in a plan of the same paths. A revert finds in the tree what
// the record left, an apply or publish what it began with.
func (p *Planner) translate(ctx context.Context, rec *recorder.Recorder, q Request, all *Planned) ([]Mark, error) {
	at, err := rec.History().Resolve(q.refs()[0], rec.Now().Location())
	if err != nil {
		return nil, err
	}
	newSide := q.Operation == revert
	recorded, err := recordedHunks(rec, at.ID, q.markedPaths(), newSide)
	if err != nil {
		return nil, err
	}
	if q.Merge || q.Force { // the files may be others than those that the record's lines are counted in
		record, err := rec.History().Get(at.ID)
		if err != nil {
			return nil, err
		}
		if err := moved(ctx, rec, recorder.Point{Record: record, After: newSide}, recorded); err != nil {
			return nil, err
		}
	}
	there, err := p.plannedHunks(ctx, rec, all)
	if err != nil {
		return nil, err
	}
	var out []Mark
	for _, m := range q.Marks {
		if len(m.Hunks) > 0 {
			if m.Hunks, err = chosen(m, recorded[m.Path], there[m.Path]); err != nil {
				return nil, err
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// chosen are the hunks of a plan that bring what is marked of a path.
func chosen(m Mark, recorded [][]lineRange, there map[int][]lineRange) (hunks []int, err error) {
	var wanted, others []lineRange
	missing := 0
	for i, h := range recorded {
		if slices.Contains(m.Hunks, i+1) {
			wanted = append(wanted, h...)
			if !meetsOneOf(there, h) {
				missing++
			}
		} else {
			others = append(others, h...)
		}
	}
	for n, h := range there {
		switch {
		case !meetAny(h, wanted):
		case meetAny(h, others):
			return nil, markError("what is marked of %s and what is not are one hunk in the files as they are", m.Path)
		default:
			hunks = append(hunks, n)
		}
	}
	if slices.Contains(m.Hunks, 0) { // the mode
		if there[0] != nil {
			hunks = append(hunks, 0)
		} else {
			missing++
		}
	}
	slices.Sort(hunks)
	switch {
	case len(hunks) == 0:
		return nil, markError("the marked hunks of %s are not in the files as they are", m.Path)
	case missing > 0:
		return nil, markError("not all of the marked hunks of %s are in the files as they are", m.Path)
	}
	return hunks, nil
}

// meetsOneOf says whether any of a plan's hunks has something of a recorded one.
func meetsOneOf(there map[int][]lineRange, recorded []lineRange) bool {
	for _, h := range there {
		if meetAny(h, recorded) {
			return true
		}
	}
	return false
}

func markError(format string, path tree.Path) error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf(format, view.ShownPath(path)),
		Advice: "take the marks away, and mark what the plan shows"}
}

// recordedHunks are where the hunks of a record's diff change the paths.
func recordedHunks(rec *recorder.Recorder, id string, paths []tree.Path, newSide bool) (map[tree.Path][][]lineRange, error) {
	diff, err := rec.History().OpenFile(id, history.ChangesFile)
	if err != nil {
		return nil, err
	}
	defer diff.Close()
	out := map[tree.Path][][]lineRange{}
	err = patch.EachSection(diff, paths, func(sec *patch.Section) error {
		for i := range sec.Hunks {
			out[sec.Path] = append(out[sec.Path], changedLines(&sec.Hunks[i], newSide))
		}
		return nil
	})
	return out, err
}

// plannedHunks are where the hunks of a plan change the files as they are.
func (p *Planner) plannedHunks(ctx context.Context, rec *recorder.Recorder, all *Planned) (map[tree.Path]map[int][]lineRange, error) {
	out := map[tree.Path]map[int][]lineRange{}
	_, err := operations[all.Request.Operation](ctx, rec, attempt{Request: all.Request, exclude: all.Request.Exclude, dryRun: true, choose: func(piece *plan.Piece) (plan.Answer, error) {
		if out[piece.Path] == nil {
			out[piece.Path] = map[int][]lineRange{}
		}
		lines := []lineRange{}
		for _, sec := range piece.Sections {
			for i := range sec.Hunks {
				lines = append(lines, changedLines(&sec.Hunks[i], false)...)
			}
		}
		out[piece.Path][piece.Hunk] = lines
		return plan.Yes, nil
	}})
	return out, err
}

// moved puts ranges to where they stand in the files as they are now. Of lines that are no longer there it is the
// place between those that are.
func moved(ctx context.Context, rec *recorder.Recorder, from recorder.Point, of map[tree.Path][][]lineRange) error {
	paths := slices.Collect(maps.Keys(of))
	diff := recorder.Piped(func(w io.Writer) error {
		_, err := rec.Diff(ctx, w, recorder.DiffOptions{From: from, To: recorder.Point{Now: true}, Paths: paths})
		return err
	})
	defer func() { _ = diff.Close() }()
	return patch.EachSection(diff, paths, func(sec *patch.Section) error {
		stay := staying(sec.Hunks)
		for _, hunk := range of[sec.Path] {
			for i, r := range hunk {
				hunk[i] = lineRange{behind(stay, r.from), before(stay, r.to)}
			}
		}
		return nil
	})
}

// kept are lines that stay: n of them, from line old of the one side and line now of the other.
type kept struct{ old, now, n int }

// staying are the lines that the hunks of a section leave as they are, in order.
func staying(hunks []patch.Hunk) (out []kept) {
	old, now := 0, 0
	for i := range hunks {
		h := &hunks[i]
		n := begins(h.OldStart, h.OldLines) - old
		out = append(out, kept{old, now, n})
		old, now = old+n, now+n
		for line := range h.Lines() {
			switch line.Kind {
			case ' ':
				out = append(out, kept{old, now, 1})
				old, now = old+1, now+1
			case '-':
				old++
			default:
				now++
			}
		}
	}
	return append(out, kept{old, now, math.MaxInt32})
}

// behind is the line after the last one that stays of those before a line.
func behind(stay []kept, line int) (now int) {
	for _, k := range stay {
		if k.old < line && k.n > 0 {
			now = k.now + min(k.n, line-k.old)
		}
	}
	return now
}

// before is the first line that stays of a line and those after it.
func before(stay []kept, line int) int {
	i := slices.IndexFunc(stay, func(k kept) bool { return k.old+k.n > line })
	return stay[i].now + max(0, line-stay[i].old)
}
