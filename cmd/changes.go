package cmd

import (
	"decree/tree"
	"decree/view"
)

// How the changes of a tree are told, whether a plan, a status or a summary is about them.

// addChanges adds a line a change, at most so many where most is not 0.
func (t *table) addChanges(changes []tree.Change, most int) {
	for i, c := range changes {
		if most > 0 && i == most {
			t.add("  and " + count(len(changes)-i, "path") + " more")
			return
		}
		t.add("  "+view.ChangeWord(c.Old, c.New), changedPath(c))
	}
}

// changedPath is a change's path, with a slash behind a directory's.
func changedPath(c tree.Change) string {
	if ofDir(c) {
		return shownPath(c.Path) + "/"
	}
	return shownPath(c.Path)
}

// ofDir says whether a change ends in a directory, or takes one away.
func ofDir(c tree.Change) bool {
	if c.New == nil {
		return c.Old.IsDir()
	}
	return c.New.Type == tree.Dir
}

// pathsIn counts changes: "2 paths and 1 directory".
func pathsIn(changes []tree.Change) string {
	dirs := 0
	for _, c := range changes {
		if ofDir(c) {
			dirs++
		}
	}
	switch files := len(changes) - dirs; {
	case dirs == 0:
		return count(files, "path")
	case files == 0:
		return count(dirs, "directory")
	default:
		return count(files, "path") + " and " + count(dirs, "directory")
	}
}

// renames are the created files that have the content of a deleted one, with its path,
// and those deleted ones. An empty file is nobody's earlier self.
func renames(changes []tree.Change) (from map[tree.Path]tree.Path, moved map[tree.Path]bool) {
	gone := map[tree.Hash][]tree.Path{}
	for _, c := range changes {
		if c.New == nil && c.Old.Type == tree.Regular && c.Old.Size > 0 {
			gone[c.Old.SHA256] = append(gone[c.Old.SHA256], c.Path)
		}
	}
	from, moved = map[tree.Path]tree.Path{}, map[tree.Path]bool{}
	for _, c := range changes {
		if c.Old != nil || !c.New.IsFile() || len(gone[c.New.SHA256]) == 0 {
			continue
		}
		old := gone[c.New.SHA256][0]
		gone[c.New.SHA256] = gone[c.New.SHA256][1:]
		from[c.Path], moved[old] = old, true
	}
	return from, moved
}
