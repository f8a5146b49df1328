package retention

import (
	"cmp"
	"slices"
)

// rank is who goes first under a cap on the size: what came about by itself
// before what was run, before what somebody asked for.
func rank(reason string) int {
	switch reason {
	case "auto":
		return 0
	case "manual":
		return 2
	case "publish":
		return 3
	}
	return 1
}

// Shrink takes further records while more says that the store is too large. It
// asks more before each, then calls drop with the one that goes; why becomes its
// verdict. What is Fixed stays, and so does what a record that stays needs.
func Shrink(list []Verdict, why string, more func() bool, drop func(id string)) {
	needed := map[string]int{} // by how many records that stay
	var order []*Verdict
	for i := range list {
		v := &list[i]
		if !v.Keep {
			continue
		}
		for _, id := range v.Needs {
			needed[id]++
		}
		if !v.Fixed {
			order = append(order, v)
		}
	}
	slices.SortStableFunc(order, func(a, b *Verdict) int {
		return cmp.Or(cmp.Compare(rank(a.Reason), rank(b.Reason)), a.compare(&b.Record))
	})
	for len(order) > 0 && more() {
		i := slices.IndexFunc(order, func(v *Verdict) bool { return needed[v.ID] == 0 })
		if i < 0 {
			return
		}
		v := order[i]
		order = slices.Delete(order, i, i+1)
		for _, id := range v.Needs {
			needed[id]--
		}
		v.Keep, v.Why = false, []string{why}
		drop(v.ID)
	}
}
