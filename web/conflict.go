package web

import (
	"maps"
	"slices"
	"strings"

	"decree/plan"
	"decree/planner"
	"decree/tree"
	"decree/view"
)

// mostConflicts is how many of the paths that are in the way of something are named.
const mostConflicts = 20

// conflict is a path that is in the way, with the addresses of the diffs of both sides.
type conflict struct {
	Path, Reason string
	Edits        string // what was edited since; "": it is not known of which record
	Change       string // what the record changed
	By           string // the candidate of the same race whose publish changed it; "": it is not known who did
}

// conflicts are paths that are in the way of something.
type conflicts struct {
	List []conflict
	More int // that are not in the list
}

// conflictsOf are the paths that are in the way of an operation on a record; "": it is not known which.
func (s *Server) conflictsOf(operation, ref string, items []plan.Item) (out conflicts) {
	// What is to be taken back was left by the record; what is to be brought begins with what was before it.
	expected := ref
	if operation != "revert" && operation != "undo" {
		expected = "before:" + ref
	}
	shown := items[:min(len(items), mostConflicts)]
	for _, it := range shown {
		c := conflict{Path: view.ShownPath(it.Path), Reason: it.Reason}
		if ref != "" {
			c.Edits, c.Change = s.compareLink(it.Path, expected, "now"), s.compareLink(it.Path, "before:"+ref, ref)
		}
		out.List = append(out.List, c)
	}
	out.More = len(items) - len(shown)
	return out
}

// wayOut is a button that goes another way out of a conflict than to merge.
type wayOut struct {
	Key, Word, Does string
	Fields          []field
}

// field is one of the hidden ones of a form.
type field struct{ Name, Value string }

// waysOf are the ways beside the merge, whose plan is on the page.
func waysOf(refused *planner.ConflictError) (out []wayOut) {
	for _, w := range refused.Ways() {
		if w.Merge != nil {
			continue
		}
		form := formOf(w.Request)
		way := wayOut{Key: w.Key, Word: capital(w.Does), Does: capital(w.Words)}
		for _, name := range slices.Sorted(maps.Keys(form)) {
			for _, value := range form[name] {
				way.Fields = append(way.Fields, field{name, value})
			}
		}
		out = append(out, way)
	}
	return out
}

// capital is a text as a sentence begins.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// inTheWay are the paths for which a request was refused.
func (s *Server) inTheWay(q planner.Request, refused *planner.ConflictError) conflicts {
	ref := q.Ref
	if ref == "" && refused.Merge != nil && len(refused.Merge.Records) == 1 {
		ref = refused.Merge.Records[0]
	}
	if rec, err := s.reader.Get(); err == nil && ref != "" { // "last" is another one soon
		if at, err := s.Resolve(rec, ref); err == nil {
			ref = at.Record.ID
		}
	}
	return s.conflictsOf(q.Operation, ref, refused.Items)
}

// compareLink is the address of the difference between two states of a path.
func (s *Server) compareLink(path tree.Path, from, to string) string {
	return s.fileLink(path) + "?a=" + urlPath(from) + "&b=" + urlPath(to) + "#compared"
}

// refusal is what the page of a conflict shows that nothing can merge away.
type refusal struct {
	view.Failure
	*shownPlan
}
