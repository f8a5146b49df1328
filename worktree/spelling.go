package worktree

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"decree/disk"
	"decree/tree"
)

// respelled are the paths that a plan names in two respelled, up to the component
// in which these differ: "Src" and "src" where "Src/a" goes and "src/a" comes. A
// file system that folds names takes them for one; which of them is there only a
// listing tells.
type respelled map[tree.Path]bool

// respelledOf finds them among paths in byte order, those of all file systems: what
// disk.Folded finds alike.
func respelledOf(paths iter.Seq[tree.Path]) respelled {
	alike := likely(paths)
	if len(alike) == 0 {
		return nil
	}
	var out respelled
	first := map[string]tree.Path{}
	for path := range paths {
		folded := disk.Folded(string(path))
		if !alike[maphash.String(foldSeed, folded)] {
			continue
		}
		other, ok := first[folded]
		if !ok {
			first[folded] = path
			continue
		}
		if out == nil {
			out = respelled{}
		}
		out.add(path, other)
	}
	return out
}

var foldSeed = maphash.MakeSeed()

// likely returns the hashes that several of the paths have when folded: so
// little is kept of each, since mostly no two are the same.
func likely(paths iter.Seq[tree.Path]) map[uint64]bool {
	var sums []uint64
	for path := range paths {
		sums = append(sums, maphash.String(foldSeed, disk.Folded(string(path))))
	}
	slices.Sort(sums)
	alike := map[uint64]bool{}
	for i := 1; i < len(sums); i++ {
		if sums[i] == sums[i-1] {
			alike[sums[i]] = true
		}
	}
	return alike
}

// add enters the prefixes of a and b that end in a component that differs.
func (sp respelled) add(a, b tree.Path) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		endA, endB := componentEnd(a, i), componentEnd(b, j)
		if a[i:endA] != b[j:endB] {
			sp[a[:endA]], sp[b[:endB]] = true, true
		}
		i, j = endA+1, endB+1
	}
}

func componentEnd(path tree.Path, from int) int {
	if i := strings.IndexByte(string(path[from:]), '/'); i >= 0 {
		return from + i
	}
	return len(path)
}

// missing says whether path, as it is spelled, is not there: what a look finds at
// it then is another spelling's.
func (sp respelled) missing(h *handles, path tree.Path) (bool, error) {
	for end := 0; len(sp) > 0 && end < len(path); end++ {
		if end = componentEnd(path, end); !sp[path[:end]] {
			continue
		}
		there, err := listed(h, path[:end])
		if err != nil || !there {
			return err == nil, err
		}
	}
	return false, nil
}

// listed says whether the directory above path has just this name.
func listed(h *handles, path tree.Path) (bool, error) {
	d, err := h.dir(path.Parent())
	if goneDir(err) {
		return true, nil // a look at the path says what that means
	}
	if err != nil {
		return false, err
	}
	defer d.release()
	list, err := d.List()
	for _, e := range list {
		if e.Name == path.Name() {
			return true, err
		}
	}
	return false, err
}

// markEarly lets what goes under one spelling go before what comes under another.
func markEarly(steps *stepList) respelled {
	sp := respelledOf(func(yield func(tree.Path) bool) {
		for s := range steps.all() {
			if !yield(s.Path) {
				return
			}
		}
	})
	if len(sp) == 0 {
		return nil
	}
	for s := range steps.all() {
		for end := 0; end < len(s.Path); end++ {
			end = componentEnd(s.Path, end)
			s.early = s.early || s.To == nil && sp[s.Path[:end]]
		}
	}
	return sp
}
