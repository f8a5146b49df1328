package history

import (
	"bytes"
	"sort"
)

// Mark is what the lines of certain records have in the log, so that they are found without decoding the others. A
// line of another record may have it, too.
type Mark []byte

// Naming marks the records that have a text as a value: of a session, for a reason, about the record of an id.
func Naming(text string) Mark { return appendText(nil, text) }

// InRace marks the candidates of a race.
func InRace(name string) Mark { return bytes.TrimSuffix(Naming(name+"."), []byte(`"`)) }

// before is the number of rows that come before a record; nil: all.
func (l *log) before(r *Record) int {
	if r == nil {
		return len(l.rows)
	}
	k := recordKey(r)
	return sort.Search(len(l.rows), func(i int) bool { return l.rows[i].key.compare(k) >= 0 })
}

// keeps is Keep and Before.
func (o ListOptions) keeps() func(*Record) bool {
	if o.Before == nil {
		return o.Keep
	}
	return func(r *Record) bool { return Compare(r, o.Before) < 0 && (o.Keep == nil || o.Keep(r)) }
}
