package patch

import "math"

// myers finds where the shortest way from one sequence to another can be cut, in linear
// space: Myers' O(ND) search from both ends at once ("An O(ND) Difference Algorithm and
// Its Variations", 1986, section 4b), which stops where the two meet, or when either has
// looked a bounded number of edits ahead. The bound shrinks with the work done, so that
// texts that have nothing in common but their words cost time linear in their lines.
type myers struct {
	fwd, bwd []int32 // per diagonal: how far the search has come, as an index into a
	steps    int64   // points looked at so far, in all searches
}

// The bounds on the edits that one search looks ahead from each end, and the steps after
// which the next one holds.
const (
	aheadFirst = 1024
	aheadLater = 256
	aheadLast  = 64
	stepsFirst = 100e6
	stepsLater = 1000e6
)

func (y *myers) ahead() int {
	switch {
	case y.steps < stepsFirst:
		return aheadFirst
	case y.steps < stepsLater:
		return aheadLater
	}
	return aheadLast
}

// crossing is what a search found: the block can be cut into the parts before (a0,b0),
// between it and (a1,b1), and behind that. If exact, the middle part is empty and the cut
// is on a shortest way.
type crossing struct {
	a0, b0, a1, b1 int32
	exact          bool
}

const (
	unreachedFwd = -1
	unreachedBwd = math.MaxInt32 / 2
)

// search looks for a crossing of a and b, both not empty, which neither begin nor end with
// a common line.
func (y *myers) search(a, b []int32) crossing {
	ahead := min(y.ahead(), len(a)+len(b))
	if need := 2*ahead + 5; len(y.fwd) < need {
		y.fwd, y.bwd = make([]int32, need), make([]int32, need)
	}
	s := &searching{
		a: a, b: b,
		n: int32(len(a)), m: int32(len(b)),
		fwd: y.fwd, bwd: y.bwd,
		origin: int32(ahead + 2),
	}
	s.delta = s.n - s.m
	defer func() { y.steps += s.steps }()
	return s.run(ahead)
}

// searching is one search. Diagonal k holds the points with x-y == k; the forward search
// starts on diagonal 0, the backward one on delta. Both arrays are centred on their start.
type searching struct {
	a, b     []int32
	n, m     int32
	delta    int32
	fwd, bwd []int32
	origin   int32
	fLo, fHi int32 // diagonals that the forward search has points on
	bLo, bHi int32
	steps    int64
}

func (s *searching) f(k int32) *int32 { return &s.fwd[k+s.origin] }
func (s *searching) g(k int32) *int32 { return &s.bwd[k-s.delta+s.origin] }

func (s *searching) run(ahead int) crossing {
	s.bLo, s.bHi = s.delta, s.delta
	*s.f(0), *s.g(s.delta) = 0, s.n
	for range ahead {
		if c, ok := s.forward(); ok {
			return c
		}
		if c, ok := s.backward(); ok {
			return c
		}
	}
	return s.furthest()
}

// widen moves the ends of a range of diagonals by one edit, inward where the block ends.
func (s *searching) widen(lo, hi *int32, at func(int32) *int32, unreached int32) {
	if *lo > -s.m {
		*lo--
		*at(*lo - 1) = unreached
	} else {
		*lo++
	}
	if *hi < s.n {
		*hi++
		*at(*hi + 1) = unreached
	} else {
		*hi--
	}
}

// forward makes one more edit in the forward search; true if it met the backward one.
func (s *searching) forward() (crossing, bool) {
	s.widen(&s.fLo, &s.fHi, s.f, unreachedFwd)
	meets := s.delta&1 != 0
	for k := s.fHi; k >= s.fLo; k -= 2 {
		x := max(*s.f(k - 1)+1, *s.f(k + 1))
		y := x - k
		s.steps += int64(1 - x)
		for x < s.n && y < s.m && s.a[x] == s.b[y] {
			x++
			y++
		}
		s.steps += int64(x)
		*s.f(k) = x
		if meets && s.bLo <= k && k <= s.bHi && *s.g(k) <= x {
			return s.exactAt(x, y)
		}
	}
	return crossing{}, false
}

// backward makes one more edit in the backward search; true if it met the forward one.
func (s *searching) backward() (crossing, bool) {
	s.widen(&s.bLo, &s.bHi, s.g, unreachedBwd)
	meets := s.delta&1 == 0
	for k := s.bHi; k >= s.bLo; k -= 2 {
		x := min(*s.g(k - 1), *s.g(k + 1)-1)
		y := x - k
		s.steps += int64(1 + x)
		for x > 0 && y > 0 && s.a[x-1] == s.b[y-1] {
			x--
			y--
		}
		s.steps -= int64(x)
		*s.g(k) = x
		if meets && s.fLo <= k && k <= s.fHi && x <= *s.f(k) {
			return s.exactAt(x, y)
		}
	}
	return crossing{}, false
}

func (s *searching) exactAt(x, y int32) (crossing, bool) {
	if x < 0 || y < 0 || x > s.n || y > s.m || x+y == 0 || x == s.n && y == s.m {
		// No cut at all would be searched again for ever.
		return crossing{}, false
	}
	return crossing{x, y, x, y, true}, true
}

// furthest cuts where the two searches have come when they may look no further: at the
// point of each that has most lines behind it. If the two contradict each other, the one
// with more counts.
func (s *searching) furthest() crossing {
	fx, fy := int32(0), int32(0)
	for k := s.fHi; k >= s.fLo; k -= 2 {
		x, y := s.inside(*s.f(k), k)
		if x+y > fx+fy {
			fx, fy = x, y
		}
	}
	gx, gy := s.n, s.m
	for k := s.bHi; k >= s.bLo; k -= 2 {
		x, y := s.inside(*s.g(k), k)
		if x+y < gx+gy {
			gx, gy = x, y
		}
	}
	switch {
	case fx <= gx && fy <= gy:
		return crossing{fx, fy, gx, gy, false}
	case fx+fy >= s.n-gx+s.m-gy:
		return crossing{fx, fy, s.n, s.m, false}
	}
	return crossing{0, 0, gx, gy, false}
}

// inside moves a point along its diagonal into the block, should it lie outside.
func (s *searching) inside(x, k int32) (int32, int32) {
	x = min(max(x, 0, k), s.n, s.m+k)
	return x, x - k
}
