package tui

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"decree/plan"
	"decree/planner"
	"decree/project"
	"decree/tree"
	"decree/view"
)

// span is where a hunk stands in a file: from a line on, so many lines.
type span struct{ start, lines int }

// meets says whether two spans have a line in common, or touch where one has none.
func (a span) meets(b span) bool {
	if a.lines == 0 || b.lines == 0 {
		return a.start <= b.start+b.lines && b.start <= a.start+a.lines
	}
	return a.start < b.start+b.lines && b.start < a.start+a.lines
}

// hunkSpans are where the hunks of a section stand, on the new side or the old one.
func (d *document) hunkSpans(i int, newSide bool) ([]span, error) {
	sec := d.section(i)
	rows, sections, _, _ := d.state()
	if i+1 < sections {
		rows = d.section(i + 1).row
	}
	var out []span
	for at := sec.row; at < rows && len(out) < sec.hunks; at += windowRows {
		lines, err := d.lines(at, min(windowRows, rows-at))
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if l.kind == '@' {
				out = append(out, spanOf(l.text, newSide))
			}
		}
	}
	return out, nil
}

// spanOf reads "@@ -1,2 +3,4 @@".
func spanOf(head string, newSide bool) (s span) {
	fields := strings.Fields(head)
	if len(fields) < 3 {
		return s
	}
	text := fields[1][1:]
	if newSide {
		text = fields[2][1:]
	}
	start, lines, has := strings.Cut(text, ",")
	s.start, _ = strconv.Atoi(start) // the document was written by decree
	if s.lines = 1; has {
		s.lines, _ = strconv.Atoi(lines)
	}
	return s
}

// planMarked plans with what is marked in a record's diff. Its hunks are counted in that diff, a
// plan's in its own: each is looked for by the lines of the tree that it is about.
func (e *engine) planMarked(ctx context.Context, q planner.Request, doc *document, chosen marks) (*planner.Planned, error) {
	if len(chosen) == 0 {
		return e.plans.Plan(ctx, q)
	}
	byHunk := slices.ContainsFunc(chosen.paths(), func(p tree.Path) bool { return !chosen[p][whole] })
	if !byHunk || !choosesHunks(q.Operation) {
		for _, path := range chosen.paths() {
			q.Marks = append(q.Marks, planner.Mark{Path: path})
		}
		return e.plans.Plan(ctx, q)
	}
	q.Paths = chosen.paths() // what is edited elsewhere is in nobody's way
	all, err := e.plans.Plan(ctx, q)
	if err != nil {
		return nil, err
	}
	there, err := e.planSpans(ctx, all.ID, chosen)
	if err != nil {
		return nil, err
	}
	if q.Marks, err = translate(doc, chosen, there, q.Operation == "revert"); err != nil {
		return nil, err
	}
	q.Of = all.ID
	return e.plans.Plan(ctx, q)
}

// choosesHunks says whether an operation asks about hunks.
func choosesHunks(operation string) bool {
	return operation == "revert" || operation == "apply" || operation == "publish"
}

// planSpans are where the hunks of the chosen paths stand in the files as they are.
func (e *engine) planSpans(ctx context.Context, id string, chosen marks) (map[tree.Path]map[int]span, error) {
	out := map[tree.Path]map[int]span{}
	err := e.plans.Pieces(ctx, id, func(p *plan.Piece) error {
		if chosen[p.Path] == nil || p.Hunk == 0 {
			return nil
		}
		if out[p.Path] == nil {
			out[p.Path] = map[int]span{}
		}
		h := p.Sections[0].Hunks[0]
		out[p.Path][p.Hunk] = span{h.OldStart, h.OldLines}
		return nil
	})
	return out, err
}

// translate turns marks in a record's diff into marks in a plan. A revert finds in the tree what the
// record left, an apply or publish what it began with.
func translate(doc *document, chosen marks, there map[tree.Path]map[int]span, newSide bool) ([]planner.Mark, error) {
	var out []planner.Mark
	_, sections, _, _ := doc.state()
	for i := range sections {
		path := doc.section(i).path
		on := chosen[path]
		if len(on) == 0 {
			continue
		}
		if on[whole] {
			out = append(out, planner.Mark{Path: path})
			continue
		}
		spans, err := doc.hunkSpans(i, newSide)
		if err != nil {
			return nil, err
		}
		mark := planner.Mark{Path: path}
		for n, s := range there[path] {
			if slices.ContainsFunc(spansOf(on, spans), s.meets) {
				mark.Hunks = append(mark.Hunks, n)
			}
		}
		if slices.Sort(mark.Hunks); len(mark.Hunks) == 0 {
			return nil, &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf("the marked hunks of %s are not in the files as they are", view.ShownPath(path)),
				Advice: "take the marks away, and mark what the plan shows"}
		}
		out = append(out, mark)
	}
	return out, nil
}

func spansOf(on map[int]bool, spans []span) (out []span) {
	for n := range on {
		if n >= 1 && n <= len(spans) {
			out = append(out, spans[n-1])
		}
	}
	return out
}
