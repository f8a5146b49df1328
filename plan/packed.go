package plan

import (
	"slices"

	"decree/worktree"
)

// Packed are the steps of a plan on their way, and what the plan has to have of them again.
type Packed struct {
	*worktree.Packed
	items bool // the plan had one for each step
}

// Pack lets go of the steps, of the bytes that they bring, and of the items that say no more
// than a step does: of very many paths the packed steps take a fraction of the room. Until
// Unpack the plan is of no use. The error is the one that moving the steps would give.
func (p *Plan) Pack() (Packed, error) {
	packed, err := worktree.Pack(p.Steps)
	if err != nil {
		return Packed{}, err
	}
	all, steps := len(p.Items), p.Steps
	p.Items = slices.DeleteFunc(p.Items, func(it Item) bool {
		for len(steps) > 0 && steps[0].Path < it.Path {
			steps = steps[1:]
		}
		says := it.Verdict != Move || it.Reason != "" || it.Writing != nil || len(it.Later) > 0
		return !says && len(steps) > 0 && steps[0].Path == it.Path
	})
	out := Packed{packed, len(p.Items) < all}
	p.Items, p.Steps = slices.Clone(p.Items), nil
	return out, nil
}

// Unpack gives the plan its steps and items again, without the bytes. The packed steps are
// of no use any more.
func (p *Plan) Unpack(packed Packed) {
	others := p.Items
	p.Steps = make([]worktree.Step, 0, packed.Len())
	if packed.items {
		p.Items = make([]Item, 0, packed.Len()+len(others))
	}
	for s := range packed.Take() {
		p.Steps = append(p.Steps, s)
		if !packed.items {
			continue
		}
		for len(others) > 0 && others[0].Path < s.Path {
			p.Items, others = append(p.Items, others[0]), others[1:]
		}
		if len(others) > 0 && others[0].Path == s.Path {
			p.Items, others = append(p.Items, others[0]), others[1:]
		} else {
			p.Items = append(p.Items, Item{Path: s.Path, From: s.From, To: s.To, Verdict: Move, stage: planned})
		}
	}
	if packed.items {
		p.Items = append(p.Items, others...)
	}
}

// Stored lets go of what the steps bring, the diffs above all, since the store has it by now.
func (p *Plan) Stored() {
	for i := range p.Items {
		p.Items[i].content = nil
	}
	for i := range p.Steps {
		p.Steps[i].Content = nil
	}
}
