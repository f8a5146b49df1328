package recorder

import (
	"sort"

	"decree/manifest"
)

// joinChanges joins two differences of a tree, first and then second, into the one
// from the start to the end: paths that came back to what they were fall out.
// Both, and the result, are in byte order of their paths. Its cost is that of
// the differences, so a run's later attempts never compare whole manifests.
func joinChanges(first, second []manifest.Change) []manifest.Change {
	if len(first) == 0 {
		return second
	}
	at := make(map[string]int, len(first))
	out := append([]manifest.Change(nil), first...)
	for i, c := range out {
		at[c.Path] = i
	}
	for _, c := range second {
		if i, ok := at[c.Path]; ok {
			out[i].New = c.New
			continue
		}
		out = append(out, c)
	}
	kept := out[:0]
	for _, c := range out {
		if !sameEntry(c.Old, c.New) {
			kept = append(kept, c)
		}
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i].Path < kept[j].Path })
	return kept
}

// invert turns a difference round: from its end to its start.
func invert(changes []manifest.Change) []manifest.Change {
	out := make([]manifest.Change, len(changes))
	for i, c := range changes {
		out[i] = manifest.Change{Path: c.Path, Old: c.New, New: c.Old}
	}
	return out
}

func sameEntry(a, b *manifest.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(*b)
}
