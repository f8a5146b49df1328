package recorder

import (
	"maps"
	"slices"

	"decree/tree"
)

// joined are the changes of an earlier time with those of a later one. What was done in between is in neither, so that they need not fit one tree: a
// file of the earlier time can be a directory in the later one. Of what was before the earlier ones tell, of what is after the later ones;
// what they then forbid is left out.
func joined(earlier map[tree.Path]tree.Change, later []tree.Change) []tree.Change {
	all, late := maps.Clone(earlier), map[tree.Path]bool{}
	for _, c := range later {
		if before, both := all[c.Path]; both {
			c.Old = before.Old
		}
		all[c.Path], late[c.Path] = c, true
	}
	for path, c := range all {
		_, early := earlier[path]
		for up := path.Parent(); up != ""; up = up.Parent() {
			a, is := all[up]
			if !is {
				continue
			}
			if _, upEarly := earlier[up]; c.Old != nil && !a.Old.IsDir() && early && !upEarly {
				a.Old = dirThere(a.New)
			}
			if c.New != nil && !a.New.IsDir() && late[path] && !late[up] {
				a.New = dirThere(a.Old)
			}
			all[up] = a
		}
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b tree.Change) int { return a.Path.Compare(b.Path) })
	return fitting(list)
}

// dirThere is a directory of which no more is known than what other, its state at another time, tells.
func dirThere(other *tree.Entry) *tree.Entry {
	if other.IsDir() {
		return other
	}
	return &tree.Entry{Type: tree.Dir, Mode: 0o755}
}

// fitting makes a list of changes, in byte order of their paths, fit one tree before and one after: below what is no directory there is nothing. What
// is no change then is left out.
func fitting(list []tree.Change) []tree.Change {
	notBefore, notAfter := map[tree.Path]bool{}, map[tree.Path]bool{}
	out := list[:0:0]
	for _, c := range list {
		if hidden, _ := lowestAbove(notBefore, c.Path); hidden {
			c.Old = nil
		}
		if hidden, _ := lowestAbove(notAfter, c.Path); hidden {
			c.New = nil
		}
		notBefore[c.Path], notAfter[c.Path] = !c.Old.IsDir(), !c.New.IsDir()
		if tree.SameEntry(c.Old, c.New) {
			continue
		}
		out = append(out, c)
	}
	return out
}
