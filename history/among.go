package history

import (
	"decree/manifest"
	"decree/patch"
)

// Among calls each for the objects that a history of the picked records alone
// would need: what Live would name after Remove of the others and Rebase, but
// for the objects of trees that Rebase would write anew. An object may come more
// than once.
func (h *History) Among(pick func(id string) bool, each func(patch.Hash)) error {
	live, _, err := h.heads()
	if err != nil {
		return err
	}
	kept := map[patch.Hash]bool{}
	for _, e := range live {
		for _, t := range e.trees() {
			kept[t.ID] = kept[t.ID] || pick(e.id())
		}
	}
	seen := map[patch.Hash]bool{}
	for _, e := range live {
		if !pick(e.id()) {
			continue
		}
		for name, sum := range e.files {
			each(sum)
			if err := h.liveDiff(e, name, sum, each); err != nil {
				return err
			}
		}
		for _, t := range e.trees() {
			if seen[t.ID] {
				continue
			}
			seen[t.ID] = true
			if err := h.above(t, kept, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// above takes what a tree has beyond the nearest one below it that stays.
func (h *History) above(t *TreeSpec, kept map[patch.Hash]bool, each func(patch.Hash)) error {
	each(t.Object)
	chain, err := h.chain(t.ID)
	if err != nil {
		return err
	}
	o := overlay{seen: map[place]bool{}}
	for _, s := range chain {
		if s.ID != t.ID && kept[s.ID] {
			break
		}
		if s.Base.IsZero() {
			return eachContent(o.over(h.keyframe(s)), t.ID, contents(each))
		}
		b, err := h.readObject(s.Object, s.Size)
		if err == nil {
			err = o.add(b)
		}
		if err != nil {
			return treeError(t.ID, err)
		}
	}
	return eachContent(manifest.Of(o.items...), t.ID, contents(each))
}

// contents is for eachContent where the path does not matter.
func contents(each func(patch.Hash)) func(string, patch.Hash) {
	return func(_ string, sum patch.Hash) { each(sum) }
}

// liveForeign takes what the records name that are in .decree/runs alone, as far as
// that can be read: the log may have lost one of them. They are nobody's that this
// store must answer for, so what is wrong with them stops nothing.
func (h *History) liveForeign(each func(id string, object patch.Hash)) error {
	ids, err := h.foreign()
	for _, id := range ids {
		h.liveOf(id, func(object patch.Hash) { each(id, object) })
	}
	return err
}

func (h *History) liveOf(id string, each func(patch.Hash)) {
	r, _, err := h.readRun(id)
	if err != nil {
		return
	}
	if f, err := h.OpenPlain(id, manifestJSON); err == nil {
		_ = eachContent(manifest.NewDecoder(f).All(), r.Before, contents(each))
		f.Close()
	}
	for _, tree := range []patch.Hash{r.Before, r.After} {
		if s, err := h.spec(tree); err == nil && s != nil {
			_ = h.liveKept(tree, each)
		}
	}
	if f, err := h.OpenPlain(id, diffName); err == nil {
		_ = Facts(f, func(f *patch.Section) bool {
			factContents(f, each)
			return true
		})
		f.Close()
	}
}

func (h *History) liveKept(id patch.Hash, each func(patch.Hash)) error {
	chain, err := h.chain(id)
	if err != nil {
		return err
	}
	for _, s := range chain {
		each(s.Object)
	}
	entries, _, err := h.Tree(id)
	if err != nil {
		return err
	}
	return eachContent(entries, id, contents(each))
}
