package recorder

import (
	"slices"

	"decree/layer"
	"decree/tree"
)

// onOneBase has the paths of a layer that was entered, in byte order, tell of one tree what they
// were. Of the recorded ones that is known from the draft, of the others it is what the tree has by
// now, where a directory may have been renamed, or something else may have come to its place.
// The draft's base counts; what the tree has instead a publish finds in its way.
func onOneBase(touched []layer.Touched, recorded map[tree.Path]bool) []layer.Touched {
	return baseAbove(baseBelow(touched, recorded), recorded)
}

// baseBelow has nothing been there below what the draft's base has no directory at. What the tree
// has there by now, and the layer hides, the draft does not delete.
func baseBelow(touched []layer.Touched, recorded map[tree.Path]bool) []layer.Touched {
	noDir := map[tree.Path]bool{} // true: nor is it known what was there
	var out []layer.Touched
	for _, t := range touched {
		if noBase, below := lowestAbove(noDir, t.Path); below {
			t.Old, t.NoBase = nil, noBase
			if t.New == nil {
				continue
			}
		}
		if recorded[t.Path] && !t.Old.IsDir() {
			noDir[t.Path] = t.NoBase
		}
		out = append(out, t)
	}
	return out
}

// baseAbove has a directory been at a path below which the draft's base has something. Where the
// layer has one, too, nothing is to be told of it. Where it has none any more, what was below
// went with it, and it is not known what it was.
func baseAbove(touched []layer.Touched, recorded map[tree.Path]bool) []layer.Touched {
	is, wasDir, gone := map[tree.Path]bool{}, map[tree.Path]bool{}, map[tree.Path]bool{}
	for _, t := range touched {
		is[t.Path] = true
	}
	for i, t := range slices.Backward(touched) { // what is below comes first
		switch {
		case recorded[t.Path] && t.Old != nil, wasDir[t.Path] && t.New.IsDir():
			for up := t.Path.Parent(); up != "" && !wasDir[up]; up = up.Parent() {
				if wasDir[up] = true; is[up] {
					break
				}
			}
		case wasDir[t.Path] && !t.Old.IsDir():
			gone[t.Path], touched[i].NoBase = true, true
		}
	}
	return slices.DeleteFunc(touched, func(t layer.Touched) bool {
		if recorded[t.Path] {
			_, below := lowestAbove(gone, t.Path)
			return below
		}
		return wasDir[t.Path] && !t.Old.IsDir() && t.New.IsDir()
	})
}

// lowestAbove is what is said of the next path above path of which something is.
func lowestAbove(said map[tree.Path]bool, path tree.Path) (is, found bool) {
	for path != "" && !found {
		path = path.Parent()
		is, found = said[path]
	}
	return is, found
}
