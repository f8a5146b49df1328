package patch

import (
	"bytes"
	"slices"
)

// Merge makes the section's change (with reverse, takes it back) in a content that has
// been edited since. Each hunk's lines on the side it starts from, context included, must
// stand exactly once in cur, at whatever lines, and are replaced by those of the other
// side. Where they do not, where two hunks would touch the same lines, or where the change
// is not one of text lines in a file that exists on both sides, the error is a
// *[ConflictError]. A changed mode alone leaves cur as it is.
func (s *Section) Merge(cur []byte, reverse bool) ([]byte, error) {
	switch {
	case s.Op == OpMode:
		return cur, nil
	case s.Op != OpModify:
		return nil, &ConflictError{Path: s.Path, Reason: "a " + string(s.Op) + " cannot be merged"}
	case s.kind() == Symlink:
		return nil, &ConflictError{Path: s.Path, Reason: "a symlink cannot be merged"}
	case s.Binary:
		return nil, &ConflictError{Path: s.Path, Reason: "a binary file cannot be merged"}
	}
	places := make([]place, 0, len(s.Hunks))
	for i := range s.Hunks {
		p, reason := locate(cur, &s.Hunks[i], reverse)
		if reason != "" {
			return nil, s.conflict(i, reason)
		}
		p.hunk = i
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(a, b place) int { return a.at - b.at })
	var out []byte
	at := 0
	for _, p := range places {
		if p.at < at {
			return nil, s.conflict(p.hunk, "its lines are also those of another hunk")
		}
		out = append(append(out, cur[at:p.at]...), p.new...)
		at = p.at + p.n
	}
	return append(out, cur[at:]...), nil
}

func (s *Section) conflict(i int, reason string) error {
	return &ConflictError{Path: s.Path, Hunk: i + 1, Header: s.Hunks[i].Header(), Reason: reason}
}

// place is where a hunk goes: n bytes at at are replaced by new.
type place struct {
	hunk, at, n int
	new         []byte
}

// locate finds the hunk's lines in cur, or says why it cannot.
func locate(cur []byte, h *Hunk, reverse bool) (place, string) {
	gone, come := byte('-'), byte('+')
	if reverse {
		gone, come = '+', '-'
	}
	var old, new []byte
	for l := range h.Lines() {
		if l.Kind != come {
			old = append(old, l.Text...)
		}
		if l.Kind != gone {
			new = append(new, l.Text...)
		}
	}
	at, reason := findOnce(cur, old)
	if reason != "" {
		return place{}, reason
	}
	// Without its '\n' a line can only be the file's last; and what follows the file's
	// last line would otherwise be joined to it.
	if at+len(old) < len(cur) && len(new) > 0 && new[len(new)-1] != '\n' {
		return place{}, "its last line no longer ends the file"
	}
	return place{at: at, n: len(old), new: new}, ""
}

// findOnce returns where the whole lines of block stand in cur, if that is at one place.
func findOnce(cur, block []byte) (at int, reason string) {
	const none, twice = "its lines are not there", "its lines stand there more than once"
	if len(block) == 0 {
		if len(cur) > 0 {
			return 0, "it has no lines to find its place by"
		}
		return 0, ""
	}
	if block[len(block)-1] != '\n' {
		at = len(cur) - len(block)
		if at < 0 || !bytes.HasSuffix(cur, block) || at > 0 && cur[at-1] != '\n' {
			return 0, none
		}
		return at, ""
	}
	// Whole lines: each occurrence is at the start or behind a '\n'.
	at = -1
	if bytes.HasPrefix(cur, block) {
		at = 0
	}
	needle := append([]byte{'\n'}, block...)
	for from := 0; from < len(cur); {
		i := bytes.Index(cur[from:], needle)
		if i < 0 {
			break
		}
		if at >= 0 {
			return 0, twice
		}
		at = from + i + 1
		from = at
	}
	if at < 0 {
		return 0, none
	}
	return at, ""
}
