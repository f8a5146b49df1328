package history

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// An id is <chain>-<seq>: a chain is YYYYMMDDHHmmss in UTC and a two-digit
// counter of the second, seq is a number without leading zeros.

const (
	chainForm   = "20060102150405"
	chainDigits = len(chainForm) + 2
	maxSeq      = 999999999
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

// key is a record's place in the order: start, then chain, then seq as a number.
type key struct {
	at    int64 // start in ns
	chain string
	seq   int
}

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.at, o.at), strings.Compare(k.chain, o.chain), cmp.Compare(k.seq, o.seq))
}

// Compare orders records by start in nanoseconds, then chain, then seq as a number.
func Compare(a, b *Record) int { return recordKey(a).compare(recordKey(b)) }

func recordKey(r *Record) key { return key{r.Started.UnixNano(), r.Chain, r.Seq} }

// NewID returns the id and start time of a record that begins now. The start is
// at least the newest record's and 1 ns, whatever the clock did; a second whose
// hundred ids are given takes the next one's.
func (h *History) NewID() (id string, started time.Time, err error) {
	used, newest, err := h.taken()
	if err != nil {
		return "", time.Time{}, err
	}
	started = h.now().UTC().Round(0)
	if at := newest + 1; newest != 0 && started.UnixNano() < at {
		started = time.Unix(0, at).UTC()
	}
	for second := started.Truncate(time.Second); ; second = second.Add(time.Second) {
		if n := used[second.Format(chainForm)]; n < 100 {
			return fmt.Sprintf("%s%02d-0", second.Format(chainForm), n), started, nil
		}
	}
}

// NextInChain is NewID for a follow-up of chain: the next seq.
func (h *History) NextInChain(chain string) (id string, started time.Time, err error) {
	_, started, err = h.NewID()
	if err != nil {
		return "", time.Time{}, err
	}
	ids, err := h.ids()
	next := 0
	for _, k := range ids {
		if k.chain == chain && k.seq >= next {
			next = k.seq + 1
		}
	}
	if next > maxSeq {
		return "", time.Time{}, fmt.Errorf("chain %s: no more ids", chain)
	}
	return FormatID(chain, next), started, err
}

// taken returns, for each second that has ids, the counter after the highest
// that is given, and the newest start in ns (0: no record). An id counts even if
// its record is damaged: it must not be given twice.
func (h *History) taken() (used map[string]int, newest int64, err error) {
	ids, err := h.ids()
	if err != nil {
		return nil, 0, err
	}
	used = make(map[string]int, len(ids))
	for _, k := range ids {
		second := k.chain[:len(chainForm)]
		n, _ := strconv.Atoi(k.chain[len(chainForm):])
		used[second] = max(used[second], n+1)
		newest = max(newest, k.at)
	}
	return used, newest, nil
}
