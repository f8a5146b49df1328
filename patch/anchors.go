package patch

import (
	"cmp"
	"slices"
	"sort"
)

// anchor is a line of a and a line of b that are to stay as one.
type anchor struct{ a, b int32 }

// unique returns the lines that the block has exactly once on each side, as far as they
// stand in the same order there: the longest such run. m.seen is filled for the block.
func (m *matcher) unique(k block) []anchor {
	var found []anchor
	for i := k.a0; i < k.a1; i++ {
		if s := m.seen[m.a[i]]; s.a > 0 && s.b > 0 {
			found = append(found, anchor{i, s.b - 1})
		}
	}
	return increasing(found)
}

// increasing returns the longest part of anchors, which are in order of a, that is in
// order of b too, by patience sorting: tails holds for each length the anchor with the
// smallest b that such a part can end with.
func increasing(anchors []anchor) []anchor {
	tails := make([]int32, 0, 64)
	before := make([]int32, len(anchors))
	for i, an := range anchors {
		n := len(tails)
		// In most texts the next one simply follows.
		if n > 0 && anchors[tails[n-1]].b > an.b {
			n = sort.Search(n, func(j int) bool { return anchors[tails[j]].b > an.b })
		}
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, int32(i))
		} else {
			tails[n] = int32(i)
		}
	}
	if len(tails) == 0 {
		return nil
	}
	out := make([]anchor, len(tails))
	for n, i := len(tails)-1, tails[len(tails)-1]; n >= 0; n, i = n-1, before[i] {
		out[n] = anchors[i]
	}
	return out
}

// runLengths are the lengths of the runs of lines that are tried as anchors where no
// single line is unique. The first that gives any is taken; longer ones are for texts with
// long repeated parts.
var runLengths = []int{8, 64}

// uniqueRuns is like unique for runs of lines: it returns the first line of each run that
// the block has exactly once on each side, in their longest increasing run.
func (m *matcher) uniqueRuns(k block) []anchor {
	for _, n := range runLengths {
		a := runSums(m.a[k.a0:k.a1], n)
		b := runSums(m.b[k.b0:k.b1], n)
		var found []anchor
		inBoth(a, b, runSum.hash, func(x, y runSum) {
			an := anchor{k.a0 + x.at, k.b0 + y.at}
			// Equal sums of different runs are possible, if hardly ever.
			if m.a[an.a] == m.b[an.b] {
				found = append(found, an)
			}
		})
		if len(found) > 0 {
			slices.SortFunc(found, func(x, y anchor) int { return int(x.a - y.a) })
			return increasing(found)
		}
	}
	return nil
}

// runSum is the hash of the run of lines at an index.
type runSum struct {
	sum uint64
	at  int32
}

func (r runSum) hash() uint64 { return r.sum }

// runSums returns the hashes of all runs of n lines, n a power of two, that occur once, in
// order of the hashes.
func runSums(ids []int32, n int) []runSum {
	if len(ids) < n {
		return nil
	}
	sums := make([]uint64, len(ids))
	for i, id := range ids {
		sums[i] = mix(uint64(id) + 1)
	}
	for w := 1; w < n; w *= 2 {
		for i := range len(sums) - w {
			sums[i] = mix(sums[i]*0x9e3779b97f4a7c15 + sums[i+w])
		}
		sums = sums[:len(sums)-w]
	}
	return once(sums)
}

// once returns the sums that occur once.
func once(sums []uint64) []runSum {
	all := make([]runSum, len(sums))
	for i, s := range sums {
		all[i] = runSum{s, int32(i)}
	}
	slices.SortFunc(all, func(x, y runSum) int { return cmp.Compare(x.sum, y.sum) })
	return onlyOnce(all, runSum.hash)
}

// onlyOnce keeps of list, which is in order of its hashes, what has one that no other has.
func onlyOnce[T any](list []T, sum func(T) uint64) []T {
	kept := list[:0]
	for i := 0; i < len(list); {
		j := i + 1
		for j < len(list) && sum(list[j]) == sum(list[i]) {
			j++
		}
		if j == i+1 {
			kept = append(kept, list[i])
		}
		i = j
	}
	return kept
}

// inBoth calls f with what has the same hash in a and in b, both from onlyOnce.
func inBoth[T any](a, b []T, sum func(T) uint64, f func(a, b T)) {
	for len(a) > 0 && len(b) > 0 {
		switch x, y := sum(a[0]), sum(b[0]); {
		case x < y:
			a = a[1:]
		case x > y:
			b = b[1:]
		default:
			f(a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
}

// mix spreads the bits of x (the finaliser of MurmurHash3).
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
