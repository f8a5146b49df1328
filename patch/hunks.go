package patch

// collect turns the marks of the lines that stay into edits.
func collect(sameA, sameB []bool) []edit {
	n := 0
	eachEdit(sameA, sameB, func(edit) { n++ })
	edits := make([]edit, 0, n) // of large texts there are millions
	eachEdit(sameA, sameB, func(e edit) { edits = append(edits, e) })
	return edits
}

func eachEdit(sameA, sameB []bool, f func(edit)) {
	i, j := 0, 0
	for i < len(sameA) || j < len(sameB) {
		if i < len(sameA) && j < len(sameB) && sameA[i] && sameB[j] {
			i++
			j++
			continue
		}
		e := edit{a0: i, b0: j}
		for i < len(sameA) && !sameA[i] {
			i++
		}
		for j < len(sameB) && !sameB[j] {
			j++
		}
		e.a1, e.b1 = i, j
		f(e)
	}
}

// slide moves each edit that only adds or only removes lines up until it touches the edit
// before it, and is joined to it, or else down until it touches the one behind, or as far
// as it goes: the same change in fewer pieces, and where people expect it.
func slide(edits []edit, a, b []int32) []edit {
	out := edits[:0]
	for n := 0; n < len(edits); n++ {
		e := edits[n]
		e = shorten(e, a, b)
		if e.a0 == e.a1 && e.b0 == e.b1 {
			continue
		}
		lowA, lowB := 0, 0
		if len(out) > 0 {
			lowA, lowB = out[len(out)-1].a1, out[len(out)-1].b1
		}
		highA, highB := len(a), len(b)
		if n+1 < len(edits) {
			highA, highB = edits[n+1].a0, edits[n+1].b0
		}
		if up := slideUp(e, a, b, lowA, lowB); up.a0 == lowA && up.b0 == lowB && len(out) > 0 {
			out[len(out)-1].a1, out[len(out)-1].b1 = up.a1, up.b1
			continue
		}
		e = slideDown(e, a, b, highA, highB)
		if n+1 < len(edits) && e.a1 == highA && e.b1 == highB {
			edits[n+1].a0, edits[n+1].b0 = e.a0, e.b0
			continue
		}
		out = append(out, e)
	}
	return out
}

// shorten drops equal lines from the ends of an edit.
func shorten(e edit, a, b []int32) edit {
	for e.a0 < e.a1 && e.b0 < e.b1 && a[e.a0] == b[e.b0] {
		e.a0++
		e.b0++
	}
	for e.a0 < e.a1 && e.b0 < e.b1 && a[e.a1-1] == b[e.b1-1] {
		e.a1--
		e.b1--
	}
	return e
}

// slideUp moves an edit with lines on one side only up, not above the given lines. What is
// above it is common to both sides.
func slideUp(e edit, a, b []int32, lowA, lowB int) edit {
	for e.a0 > lowA && e.b0 > lowB {
		switch {
		case e.a0 == e.a1 && b[e.b0-1] == b[e.b1-1]:
		case e.b0 == e.b1 && a[e.a0-1] == a[e.a1-1]:
		default:
			return e
		}
		e = edit{e.a0 - 1, e.a1 - 1, e.b0 - 1, e.b1 - 1}
	}
	return e
}

// slideDown is slideUp the other way.
func slideDown(e edit, a, b []int32, highA, highB int) edit {
	for e.a1 < highA && e.b1 < highB {
		switch {
		case e.a0 == e.a1 && b[e.b0] == b[e.b1]:
		case e.b0 == e.b1 && a[e.a0] == a[e.a1]:
		default:
			return e
		}
		e = edit{e.a0 + 1, e.a1 + 1, e.b0 + 1, e.b1 + 1}
	}
	return e
}
