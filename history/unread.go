package history

import (
	"errors"
	"fmt"
	"strings"
)

// BrokenError says that a part of the log is not what was written there, so that records are lost.
type BrokenError struct {
	Lines   int      // of which nothing can be read
	Records []string // that the audit has and the log, which lost its end once, has not
}

func (e *BrokenError) Error() string {
	var out []string
	if e.Lines > 0 {
		out = append(out, countedLines(e.Lines)+" of it cannot be read at all, and what was said there is lost")
	}
	if n := len(e.Records); n > 0 {
		out = append(out, fmt.Sprintf("%s missing from it, although %s has them: %s", records(n), auditFile, some(e.Records)))
	}
	return logFile + " is damaged: " + strings.Join(out, "; ")
}

// Unread names what of the log this decree cannot read: records whose lines are damaged, or written by a
// newer decree; then, without an ID, lines that a newer one may have written, and a BrokenError.
func (h *History) Unread() (list []Damage, err error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	for _, r := range l.rows {
		if _, err := r.record(); err != nil {
			list = append(list, Damage{r.id(), err})
		}
	}
	if n := len(l.unknown); n > 0 {
		list = append(list, Damage{"", errors.New(unknownLines(n))})
	}
	broken := &BrokenError{Lines: l.broken.n}
	if broken.Records, err = h.cutOff(l); err != nil {
		return nil, err
	}
	if broken.Lines > 0 || len(broken.Records) > 0 {
		list = append(list, Damage{"", broken})
	}
	return list, nil
}

// Broken is Unread's BrokenError, nil if there is none.
func (h *History) Broken() (*BrokenError, error) {
	list, err := h.Unread()
	for _, d := range list {
		if broken, ok := errors.AsType[*BrokenError](d.Err); ok {
			return broken, err
		}
	}
	return nil, err
}

// cutOff are the records that went with an end of the log. What a death cuts off was never acknowledged; a
// record that was has a line of the audit, which is written after its own. One about a recovery tells nothing:
// it may be of what had not begun, and was dropped.
func (h *History) cutOff(l *log) (lost []string, err error) {
	if l.cut == nil {
		return nil, nil
	}
	known := map[string]bool{}
	for _, r := range l.rows {
		known[r.id()] = true
	}
	for _, id := range l.given {
		known[id] = true
	}
	_, err = h.ReadAudit(func(o *Operation) error {
		if IsID(o.Record) && o.Op != OpRecover && !o.Mistake && o.Time.UnixNano() >= l.cut.at && !known[o.Record] {
			known[o.Record] = true
			lost = append(lost, o.Record)
		}
		return nil
	})
	return lost, err
}
