package history

import (
	"errors"
	"fmt"
	"io/fs"

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
			return eachContent(o.over(h.keyframe(s)), t.ID, each)
		}
		b, err := h.readObject(s.Object, s.Size)
		if err == nil {
			err = o.add(b)
		}
		if err != nil {
			return treeError(t.ID, err)
		}
	}
	return eachContent(manifest.Of(o.items...), t.ID, each)
}

// liveStrays takes what a record names that is in .decree/runs alone: the log
// lost it, or it was brought here by hand. One whose tree is not to be found is
// an error: its contents would be taken for nobody's.
func (h *History) liveStrays(each func(patch.Hash)) error {
	l, err := h.rows()
	if err != nil {
		return err
	}
	names, err := h.runNames(l)
	if err != nil {
		return err
	}
	for _, id := range names.others {
		if _, err := h.Opened(id); err == nil {
			continue
		}
		if err := h.liveStray(id, each); err != nil {
			return fmt.Errorf("record %s is in .decree/runs alone: %w", id, err)
		}
	}
	return nil
}

func (h *History) liveStray(id string, each func(patch.Hash)) error {
	r, _, err := h.readRun(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no record
	}
	if err != nil {
		return err
	}
	if f, err := h.OpenPlain(id, manifestJSON); err == nil {
		err = eachContent(manifest.NewDecoder(f).All(), r.Before, each)
		f.Close()
		if err != nil {
			return err
		}
	} else if err := h.liveKept(r.Before, each); err != nil {
		return err
	}
	if !r.After.IsZero() && r.After != r.Before {
		if s, err := h.spec(r.After); err == nil && s != nil {
			if err := h.liveKept(r.After, each); err != nil {
				return err
			}
		}
	}
	if r.DiffSHA256.IsZero() {
		return nil
	}
	f, err := h.OpenPlain(id, diffName)
	if err != nil {
		return err
	}
	defer f.Close()
	return Facts(f, func(f Fact) bool {
		f.contents(each)
		return true
	})
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
	return eachContent(entries, id, each)
}
