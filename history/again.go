package history

import (
	"decree/manifest"
	"decree/patch"
)

// While one process reads, another may remove records and write anew the trees
// that rested on theirs: what the reader's copy of the log says of a tree is then
// gone from the store, and what the log says now is there.

// outdated reads the log again where it is not the one that was read, and says
// whether that was so.
func (h *History) outdated() bool {
	h.mu.Lock()
	l := h.log
	h.mu.Unlock()
	if l == nil || l.current(h.p.Store) {
		return false
	}
	h.Refresh()
	return true
}

// Gone says whether id, a record that the log had, is not in it any more.
func (h *History) Gone(id string) (bool, error) {
	h.outdated()
	is, err := h.Recorded(id)
	return !is, err
}

// orAgain is entries, or, where they cannot even be begun and the log is another
// one by now, the same tree as that one has it.
func (h *History) orAgain(id patch.Hash, entries manifest.Seq) manifest.Seq {
	return func(yield func(manifest.Item, error) bool) {
		begun := false
		for it, err := range entries {
			if err != nil && !begun && h.outdated() {
				h.rest(id, yield)
				return
			}
			begun = true
			if !yield(it, err) {
				return
			}
		}
	}
}

func (h *History) rest(id patch.Hash, yield func(manifest.Item, error) bool) {
	entries, _, err := h.treeNow(id)
	if err != nil {
		yield(manifest.Item{}, err)
		return
	}
	for it, err := range entries {
		if !yield(it, err) {
			return
		}
	}
}
