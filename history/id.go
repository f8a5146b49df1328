package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An id is <chain>-<seq>: a chain is YYYYMMDDHHmmss in UTC and a two-digit
// counter of the second, seq is a number without leading zeros.

const (
	chainForm   = "20060102150405"
	chainDigits = len(chainForm) + 2
)

// ParseID takes an id apart; ok is false for anything that is not one.
func ParseID(id string) (chain string, seq int, ok bool) {
	if len(id) < chainDigits+2 || id[chainDigits] != '-' || !digits(id[:chainDigits]) {
		return "", 0, false
	}
	s := id[chainDigits+1:]
	if !digits(s) || len(s) > 9 || s[0] == '0' && len(s) > 1 {
		return "", 0, false
	}
	seq, _ = strconv.Atoi(s)
	return id[:chainDigits], seq, true
}

// IsID says whether a text is the id of a record.
func IsID(text string) bool {
	_, _, ok := ParseID(text)
	return ok
}

// FormatID puts an id together.
func FormatID(chain string, seq int) string { return chain + "-" + strconv.Itoa(seq) }

func digits(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// key is a record's place in the order: at, then chain, then seq as a number.
type key struct {
	// at is the start in ns. Where the clock had been set back it is 1 more than that
	// of the record before: records stand in the order in which they were made.
	at    int64
	chain string
	seq   int
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.at, o.at), strings.Compare(k.chain, o.chain), cmp.Compare(k.seq, o.seq))
}

// Compare orders records as they were made: by start in nanoseconds unless the clock
// was set back in between, then chain, then seq as a number.
func Compare(a, b *Record) int { return recordKey(a).compare(recordKey(b)) }

func recordKey(r *Record) key { return key{cmp.Or(r.order, r.Started.UnixNano()), r.Chain, r.Seq} }

// levelled is how far the clock may be behind the newest record's start before it is
// taken to have been set: up to then a new record starts right after that one.
const levelled = time.Minute

// NewID returns the id and start time of a record that begins now. The start is what
// the clock says; a clock that is a little behind the newest record is levelled: at
// least that record's start and 1 ns. One that is further behind was set back, which
// is noted. A second whose hundred ids are given takes the next one's. In a layer the
// id of the layer's run is given, though nothing else there may tell it: what lies in that run's directory is its own.
func (h *History) NewID() (id string, started time.Time, err error) {
	ids, err := h.ids()
	if err != nil {
		return "", time.Time{}, err
	}
	removed, err := h.removedIDs()
	if err != nil {
		return "", time.Time{}, err
	}
	started = h.start(ids)
	used := taken(append(ids, removed...))
	for second := started.Truncate(time.Second); ; second = second.Add(time.Second) {
		text := second.Format(chainForm)
		for n := used[text]; n < 100; n++ {
			id := fmt.Sprintf("%s%02d-0", text, n)
			if id == h.p.Layer {
				continue
			}
			if foreign, err := h.hasRunEntry(id); err != nil || !foreign {
				return id, started, err
			}
		}
	}
}

// start is when a record begins that is made now, after those of ids.
func (h *History) start(ids []key) time.Time {
	now := h.now().UTC().Round(0)
	if len(ids) == 0 {
		return now
	}
	newest := slices.MaxFunc(ids, key.compare)
	before := time.Unix(0, newest.at).UTC()
	if now.After(before) {
		return now
	}
	// The order says no more than that the clock has been ahead at some time.
	if r, err := h.Get(FormatID(newest.chain, newest.seq)); err == nil {
		before = r.Started
	}
	switch behind := before.Sub(now); {
	case behind < 0:
		return now
	case behind <= levelled:
		return before.Add(1)
	default:
		h.noteClock(behind, before)
		return now
	}
}

// noteClock says once that the clock was set back.
func (h *History) noteClock(behind time.Duration, before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.note == nil || h.clockNoted {
		return
	}
	h.clockNoted = true
	h.note(fmt.Sprintf("the clock is %s behind the start of the newest record, %s: either it was ahead then, or it is wrong now; the records keep their order, with the times that the clock gave",
		SetBack(behind), before.In(h.now().Location()).Format("2006-01-02 15:04:05")))
}

// SetBack says in words how far a clock was set back.
func SetBack(d time.Duration) string {
	if days := d.Round(time.Hour) / (24 * time.Hour); days > 1 {
		return fmt.Sprintf("%d days", days)
	}
	return d.Round(time.Second).String()
}

// removedIDs are the ids of records that were removed. What is still there may name them, as a
// publish names its draft, so they are not given again. Their place in the order is not known.
func (h *History) removedIDs() ([]key, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	list := make([]key, 0, len(l.given))
	for _, id := range l.given {
		if chain, seq, ok := ParseID(id); ok {
			list = append(list, key{chain: chain, seq: seq})
		}
	}
	return list, nil
}

// Given says whether id is that of a record of the log, or of one that was removed.
func (h *History) Given(id string) (bool, error) {
	l, err := h.readOn()
	if err != nil {
		return false, err
	}
	_, known := l.where(id)
	return known || slices.Contains(l.given, id), nil
}

// taken returns, for each second that has ids, the counter after the highest that
// is given. An id counts even if its record is damaged or removed: it must not be given twice.
func taken(ids []key) map[string]int {
	used := make(map[string]int, len(ids))
	for _, k := range ids {
		second := k.chain[:len(chainForm)]
		n, _ := strconv.Atoi(k.chain[len(chainForm):])
		used[second] = max(used[second], n+1)
	}
	return used
}
