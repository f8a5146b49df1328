package tui

import (
	"maps"
	"slices"

	"decree/planner"
	"decree/tree"
)

// marks are what is chosen of a diff: whole paths, or hunks of files, counted from 1. A plan takes a directory with all
// below it, so a directory is marked only as long as everything below it is.
type marks map[tree.Path]map[int]bool

// whole stands, among the hunks of a path, for all of it.
const whole = 0

// of is what of a path is marked: of what lies below a marked directory all of it, also where it was read after the
// directory was marked.
func (k marks) of(path tree.Path) map[int]bool {
	for at := path; at != ""; at = at.Parent() {
		if on := k[at]; on[whole] || at == path && on != nil {
			return on
		}
	}
	return nil
}

func (k marks) has(path tree.Path, hunk int) bool {
	on := k.of(path)
	return on[whole] || hunk != whole && on[hunk]
}

// set marks the whole of a path with all that a diff has below it, or takes these marks away.
func (k marks) set(doc *document, path tree.Path, on bool) {
	paths := []tree.Path{path}
	if doc.isDir(path) {
		paths = doc.within(path)
	}
	for _, p := range paths {
		if delete(k, p); on {
			k[p] = map[int]bool{whole: true}
		}
	}
	if !on {
		k.notAbove(path)
	}
}

// notAbove takes the marks of the directories of a path away.
func (k marks) notAbove(path tree.Path) {
	for at := path.Parent(); at != ""; at = at.Parent() {
		delete(k, at)
	}
}

// toggle marks a hunk, or the whole of a path, or takes the mark away.
func (k marks) toggle(doc *document, path tree.Path, hunk, hunks int) {
	on := maps.Clone(k.of(path))
	if hunk == whole || hunks == 1 {
		k.set(doc, path, len(on) == 0)
		return
	}
	if on == nil {
		on = map[int]bool{}
	}
	if on[whole] {
		delete(on, whole)
		for n := range hunks {
			on[n+1] = true
		}
	}
	if on[hunk] {
		delete(on, hunk)
		k.notAbove(path)
	} else {
		on[hunk] = true
	}
	switch len(on) {
	case 0:
		delete(k, path)
	case hunks:
		k[path] = map[int]bool{whole: true}
	default:
		k[path] = on
	}
}

// sign is how much of a path is marked.
func (k marks) sign(path tree.Path) string {
	switch on := k.of(path); {
	case len(on) == 0:
		return "[ ]"
	case on[whole]:
		return "[x]"
	}
	return "[-]"
}

func (k marks) paths() []tree.Path { return slices.Sorted(maps.Keys(k)) }

// requested are marks as a plan takes them.
func (k marks) requested() (out []planner.Mark) {
	for _, path := range k.paths() {
		mark := planner.Mark{Path: path}
		for n := range k[path] {
			if n != whole {
				mark.Hunks = append(mark.Hunks, n)
			}
		}
		slices.Sort(mark.Hunks)
		out = append(out, mark)
	}
	return out
}
