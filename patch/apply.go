package patch

import (
	"bytes"
	"decree/tree"
	"fmt"
)

// Forward returns the content after the change, given the one before it. Hunks are applied
// at their lines and nowhere else, each context and removed line is compared, and both
// contents must have the hashes of their entries: anything else is a *[MismatchError].
//
// A file that did not exist has no content (old must be empty), one that no longer exists
// gives nil; a directory has none on either side. A Stored section gives [ErrStored]. The
// result may share memory with old or with the section.
func (s *Section) Forward(old []byte) (new []byte, err error) {
	return s.apply(old, false)
}

// Reverse returns the content before the change, given the one after it: Forward with the
// sides exchanged.
func (s *Section) Reverse(new []byte) (old []byte, err error) {
	return s.apply(new, true)
}

func (s *Section) apply(from []byte, reverse bool) ([]byte, error) {
	fromEntry, toEntry, data := s.Old, s.New, s.NewData
	if reverse {
		fromEntry, toEntry, data = s.New, s.Old, s.OldData
	}
	if err := s.checkSide(from, fromEntry, "before"); err != nil {
		return nil, err
	}
	switch {
	case toEntry == nil || toEntry.Type == tree.Dir:
		return nil, nil
	case s.Op == OpMode:
		return from, nil
	case s.Stored:
		return nil, ErrStored
	case s.Binary:
		from = data
	default:
		var err error
		if from, err = s.applyHunks(from, toEntry.Size, reverse); err != nil {
			return nil, err
		}
	}
	if err := s.checkSide(from, toEntry, "after"); err != nil {
		return nil, err
	}
	return from, nil
}

// checkSide returns a *MismatchError unless data is the content of e.
func (s *Section) checkSide(data []byte, e *tree.Entry, when string) error {
	if e == nil || e.Type == tree.Dir {
		if len(data) > 0 {
			return &MismatchError{Path: s.Path, Reason: "there is a content where there should be none"}
		}
		return nil
	}
	sum := tree.Sum(data)
	if int64(len(data)) == e.Size && sum == e.SHA256 {
		return nil
	}
	// Where a hunk tells the line, that is of more use than two hashes.
	if _, err := s.applyHunks(data, int64(len(data)), e == s.New); err != nil && when == "before" {
		return err
	}
	if int64(len(data)) != e.Size {
		return &MismatchError{Path: s.Path, Reason: fmt.Sprintf("%d bytes %s, not %d", len(data), when, e.Size)}
	}
	return &MismatchError{Path: s.Path, Reason: fmt.Sprintf("sha256 %s %s, not %s", sum, when, e.SHA256)}
}

// applyHunks replaces each hunk's one side by the other.
func (s *Section) applyHunks(from []byte, size int64, reverse bool) ([]byte, error) {
	// The size is the diff's claim; what the contents and hunks hold bounds it.
	to := make([]byte, 0, min(size, int64(len(from)+len(s.Raw))))
	at := 0 // lines of from that are behind us
	for i := range s.Hunks {
		h := &s.Hunks[i]
		start, gone, come := h.oldFrom(), byte('-'), byte('+')
		if reverse {
			start, gone, come = h.newFrom(), '+', '-'
		}
		kept, rest, ok := cutLines(from, start-at)
		if !ok {
			return nil, &MismatchError{Path: s.Path, Line: start + 1, Reason: "the file ends before this line"}
		}
		to, from, at = append(to, kept...), rest, start
		for l := range h.Lines() {
			if l.Kind != come {
				line, rest := cutLine(from)
				if len(line) == 0 {
					return nil, &MismatchError{Path: s.Path, Line: at + 1, Reason: "the file ends before this line"}
				}
				if !bytes.Equal(line, l.Text) {
					return nil, &MismatchError{Path: s.Path, Line: at + 1, Reason: "the diff has another line there"}
				}
				from = rest
				at++
			}
			if l.Kind != gone {
				to = append(to, l.Text...)
			}
		}
	}
	return append(to, from...), nil
}

// cutLines splits data behind its n-th line; false if it has fewer.
func cutLines(data []byte, n int) (head, rest []byte, ok bool) {
	rest = data
	for range n {
		if len(rest) == 0 {
			return nil, nil, false
		}
		_, rest = cutLine(rest)
	}
	return data[:len(data)-len(rest)], rest, true
}

// Part returns the content after those of a text section's hunks alone that take says yes
// to, given the content before it, which must be the entry's. Its entry is the caller's to
// make.
func (s *Section) Part(old []byte, take func(i int) bool) ([]byte, error) {
	if err := s.checkSide(old, s.Old, "before"); err != nil {
		return nil, err
	}
	some := *s
	some.Hunks = nil
	for i := range s.Hunks {
		if take(i) {
			some.Hunks = append(some.Hunks, s.Hunks[i])
		}
	}
	return some.applyHunks(old, int64(len(old)), false)
}
