package recorder

import (
	"context"
	"io"
	"slices"

	"decree/history"
	"decree/plan"
	"decree/tree"
)

// Chooser asks which pieces of a plan are wanted. Its error ends the move, with nothing
// changed; nil wants everything.
type Chooser func(*plan.Piece) (plan.Answer, error)

// choose leaves in a plan what is wanted of it.
func (r *Reader) choose(ctx context.Context, p *plan.Plan, t *selection, ask Chooser) error {
	if ask == nil || p.Empty() {
		return nil
	}
	diff := Piped(func(w io.Writer) error { return r.PlanDiff(ctx, w, p) })
	defer func() { _ = diff.Close() }()
	return p.Choose(plan.Choice{Diff: diff, Read: r.tree.Read, Ask: ask}, t.sources)
}

// extraInPart is in a record that a part of a plan became: the paths that it brought in part.
const extraInPart = "in_part"

// partsOf are the paths that a plan moves, but not whole, as names in JSON.
func partsOf(p *plan.Plan) (parts []string) {
	for _, s := range p.Steps {
		if _, is := slices.BinarySearch(p.Passed, s.Path); is {
			parts = append(parts, tree.Quote(s.Path))
		}
	}
	return parts
}

// inPartOf are the paths that a record brought in part.
func inPartOf(rec *history.Record) []tree.Path { return pathsIn(rec, extraInPart) }

// pathsIn are the paths that a field of a record names.
func pathsIn(rec *history.Record, field string) (paths []tree.Path) {
	for _, name := range namesIn(rec, field) {
		if path, err := tree.Unquote(name); err == nil {
			paths = append(paths, tree.Path(path))
		}
	}
	return paths
}

// begun says that the tree has at a path what the last of the records left that moved it in
// part: what is left of that can go on from there.
func (b broughtPaths) begun(path tree.Path, now *tree.Entry) bool {
	at := b[path]
	return at.part && tree.SameEntry(at.is, now)
}

// undoneBy are the records that took back a part of the selected ones.
func (t *selection) undoneBy(d plan.Direction) (ids []string) {
	for _, rec := range t.records {
		if d == plan.Back && rec.UndoneBy != "" {
			ids = append(ids, rec.UndoneBy)
		}
	}
	return ids
}
