package history

import (
	"decree/manifest"
	"decree/patch"
	"decree/tree"
)

// Among calls each for the objects that a history of the picked records alone would need.
// An object may come more than once.
func (h *History) Among(pick func(id string) bool, each func(tree.Hash)) error {
	seen := map[tree.Hash]bool{}
	return h.lines(func(e *line) error {
		if !pick(e.id()) {
			return nil
		}
		for name, sum := range e.files {
			each(sum)
			if err := h.liveDiff(e, name, sum, each); err != nil {
				return err
			}
		}
		for _, id := range e.trees {
			if err := h.Closure(id, seen, each); err != nil {
				return err
			}
		}
		return nil
	})
}

// liveForeign takes what the records name that are in .decree/runs alone, as far as
// that can be read: the log may have lost one of them. They are nobody's that this
// store must answer for, so what is wrong with them stops nothing.
func (h *History) liveForeign(each func(id string, object tree.Hash)) error {
	ids, err := h.foreign()
	for _, id := range ids {
		h.liveOf(id, func(object tree.Hash) { each(id, object) })
	}
	return err
}

func (h *History) liveOf(id string, each func(tree.Hash)) {
	r, _, err := h.readRun(id)
	if err != nil {
		return
	}
	if f, err := h.OpenPlain(id, manifestJSON); err == nil {
		for it, err := range manifest.NewDecoder(f).All() {
			if err == nil && it.Entry.Type == tree.Regular {
				each(it.Entry.SHA256)
			}
		}
		f.Close()
	}
	for _, tree := range []tree.Hash{r.Before, r.After} {
		_ = h.Closure(tree, nil, each)
	}
	if f, err := h.OpenPlain(id, diffName); err == nil {
		_ = Facts(f, func(f *patch.Section) bool {
			factContents(f, each)
			return true
		})
		f.Close()
	}
}
