package history

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"decree/disk"
	"decree/project"
)

// Side says which of the states that a record observed is meant.
type Side int

const (
	Unsaid Side = iota // the REF does not say: what is meant is the command's affair
	Before             // the record's manifest
	After              // what a run left
)

func (s Side) String() string { return [...]string{"", "before", "after"}[s] }

// Ref is what a REF resolved to.
type Ref struct {
	ID   string
	Side Side      // said by @TIME only
	Time time.Time // what @TIME was understood as
	Part bool      // a beginning or end of the id was given
}

// ErrNoRecord is in the chain of every error that says that a REF names no
// record, or more than one.
var ErrNoRecord = errors.New("no such record")

// Resolve finds the one record that ref names: an id, a chain or a unique
// beginning or end of one, a label, latest, last, last~N, or @TIME as seen from the
// present in loc. Open records are found by id, but last and @TIME pass them over
// unless they are the newest observed state. An error is of kind NotFound, or
// Usage for a TIME that cannot be read.
func (h *History) Resolve(ref string, loc *time.Location) (Ref, error) {
	switch {
	case ref == "":
		return Ref{}, refError(ref, "a REF cannot be empty", "'decree log' lists the records")
	case ref[0] == '@':
		return h.resolveTime(ref[1:], loc)
	case ref == latest:
		return h.resolveLatest()
	case ref == "last":
		return h.resolveLast(ref, 0)
	case strings.HasPrefix(ref, "last~"):
		n, err := strconv.Atoi(ref[len("last~"):])
		if err != nil || !digits(ref[len("last~"):]) {
			return Ref{}, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%q: last~ needs a number", clip(ref)), Advice: "last~1 is the record before the last"}
		}
		return h.resolveLast(ref, n)
	case '0' <= ref[0] && ref[0] <= '9' && digits(strings.Replace(ref, "-", "", 1)):
		return h.resolvePart(ref)
	}
	return h.resolveLabel(ref)
}

// ResolveAll is Resolve where a chain may mean all its records: they come in
// their order. Any other REF gives one.
func (h *History) ResolveAll(ref string, loc *time.Location) ([]Ref, error) {
	if len(ref) != chainDigits || !digits(ref) {
		r, err := h.Resolve(ref, loc)
		return []Ref{r}, err
	}
	keys, err := h.sortedKeys()
	if err != nil {
		return nil, err
	}
	var out []Ref
	for _, k := range keys {
		if k.chain == ref {
			out = append(out, Ref{ID: FormatID(k.chain, k.seq)})
		}
	}
	if len(out) == 0 {
		return nil, h.noSuch(ref)
	}
	return out, nil
}

// SplitRange takes A..B apart; ok is false when s holds no "..".
func SplitRange(s string) (a, b string, ok bool, err error) {
	a, b, ok = strings.Cut(s, "..")
	if ok && (a == "" || b == "" || strings.Contains(b, "..")) {
		return "", "", true, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%q is not a range", clip(s)), Advice: "write A..B with a record on either side, such as last~3..last"}
	}
	return a, b, ok, nil
}

// Range returns the ids of all records from a to b, both included, oldest first.
func (h *History) Range(a, b string) ([]string, error) {
	keys, err := h.sortedKeys()
	if err != nil {
		return nil, err
	}
	from, to := -1, -1
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = FormatID(k.chain, k.seq)
		if ids[i] == a {
			from = i
		}
		if ids[i] == b {
			to = i
		}
	}
	switch {
	case from < 0:
		return nil, h.noSuch(a)
	case to < 0:
		return nil, h.noSuch(b)
	case from > to:
		return nil, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("%s..%s: the second record is older than the first", a, b), Advice: fmt.Sprintf("write %s..%s", b, a)}
	}
	return ids[from : to+1], nil
}

func (h *History) sortedKeys() ([]key, error) {
	keys, err := h.ids()
	if err != nil {
		return nil, err
	}
	if !slices.IsSortedFunc(keys, key.compare) {
		slices.SortFunc(keys, key.compare)
	}
	return keys, nil
}

// refError says why ref finds no record.
func refError(ref, reason, advice string) error {
	return &project.Error{Kind: project.NotFound, Err: noRecord{fmt.Sprintf("no record %q: %s", clip(ref), reason)}, Advice: advice}
}

// noRecord is an [ErrNoRecord] with a text of its own.
type noRecord struct{ text string }

func (e noRecord) Error() string { return e.text }

func (e noRecord) Is(target error) bool { return target == ErrNoRecord }

func (h *History) noSuch(ref string) error {
	return refError(ref, "no id begins or ends like this", "'decree log' lists the records")
}

// matching returns the ids that part names, in order: those that begin or end with
// it, and those whose chain does.
func (h *History) matching(part string) ([]string, error) {
	keys, err := h.sortedKeys()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, k := range keys {
		if k.named(part) {
			out = append(out, FormatID(k.chain, k.seq))
		}
	}
	return out, nil
}

// named says whether part is a beginning or an end of the id or of its chain. It
// builds no id for most of ten thousand.
func (k key) named(part string) bool {
	chain, seq, hasSeq := strings.Cut(part, "-")
	if !hasSeq {
		return strings.HasPrefix(k.chain, part) || strings.HasSuffix(k.chain, part) || strings.HasSuffix(strconv.Itoa(k.seq), part)
	}
	return chain == k.chain && strings.HasPrefix(strconv.Itoa(k.seq), seq) ||
		strings.HasSuffix(k.chain, chain) && strconv.Itoa(k.seq) == seq
}

func (h *History) resolvePart(ref string) (Ref, error) {
	ids, err := h.matching(ref)
	if err != nil {
		return Ref{}, err
	}
	switch {
	case len(ids) == 1 || slices.Contains(ids, ref):
		if len(ids) > 1 {
			return Ref{ID: ref}, nil
		}
		return Ref{ID: ids[0], Part: ids[0] != ref}, nil
	case len(ids) == 0:
		if foreign, err := h.foreign(); err != nil || slices.Contains(foreign, ref) {
			return Ref{ID: ref}, err
		}
		return Ref{}, h.noSuch(ref)
	}
	return Ref{}, &AmbiguousError{Ref: ref, Candidates: ids}
}

// minEnd is how long an end of an id is at least where one is shown: shorter ones
// would soon be another record's too.
const minEnd = 4

// Ends returns a function that shortens an id to an end that names no other record; an
// id that no record has stays as it is.
func (h *History) Ends() (short func(id string) string, err error) {
	keys, err := h.sortedKeys()
	if err != nil {
		return nil, err
	}
	var names, chains []string  // the names backwards: an end of one is a beginning here
	records := map[string]int{} // by chain
	for _, k := range keys {
		records[k.chain]++
		chains = append(chains, k.chain)
		names = append(names, reversed(k.chain), reversed(FormatID(k.chain, k.seq)))
	}
	slices.Sort(names)
	slices.Sort(chains)
	names = slices.Compact(names)
	return func(id string) string {
		full := id
		if chain := strings.TrimSuffix(id, "-0"); records[chain] == 1 {
			full = chain // a chain of one record is as good as its id
		}
		i, found := slices.BinarySearch(names, reversed(full))
		if !found {
			return id
		}
		name, n := names[i], minEnd
		for _, next := range []int{i - 1, i + 1} {
			if next >= 0 && next < len(names) {
				n = max(n, common(name, names[next])+1)
			}
		}
		for ; n < len(name); n++ {
			part := reversed(name[:n])
			at, _ := slices.BinarySearch(chains, part)
			if begins := at < len(chains) && strings.HasPrefix(chains[at], part); !begins && part[0] != '-' {
				return part
			}
		}
		return id
	}, nil
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// common is how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// AmbiguousError says that several ids begin or end with what was given.
type AmbiguousError struct {
	Ref        string
	Candidates []string // in order
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is the beginning or end of %d ids: %s", e.Ref, len(e.Candidates), some(e.Candidates))
}

// Is makes it an ErrNoRecord too.
func (e *AmbiguousError) Is(target error) bool { return target == ErrNoRecord }

// Category is NotFound.
func (e *AmbiguousError) Category() project.Kind { return project.NotFound }

// Hint is the next step to take.
func (e *AmbiguousError) Hint() string { return "write more of the id" }

func (h *History) resolveLabel(name string) (Ref, error) {
	all, err := h.Labels()
	if err != nil {
		return Ref{}, err
	}
	id, ok := all[name]
	if !ok {
		if id, err := h.resolveDraft(name); err != nil || id != "" {
			return Ref{ID: id}, err
		}
		return Ref{}, refError(name, "it is neither an id, nor a label, nor a time", didYouMean(name, all)+"'decree log' lists the records, 'decree label' the labels")
	}
	if _, err := h.Get(id); err != nil {
		return Ref{}, refError(name, "the label is on record "+id+", which no longer exists", fmt.Sprintf("'decree label %s REF' moves it to another record", name))
	}
	return Ref{ID: id}, nil
}

// didYouMean asks about the label that is nearest to name, in front of other advice; "" where none is near.
func didYouMean(name string, all map[string]string) string {
	near := nearest(name, slices.Sorted(maps.Keys(all)))
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? ", near)
}

// nearest returns the name that is at most two edits away from s, "" if none is.
func nearest(s string, names []string) string {
	best, most := "", 3
	for _, n := range names {
		if len(s) > 64 {
			break
		}
		if d := edits(s, n); d < most && d < max(len(s), 2) {
			best, most = n, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// resolveLatest finds the newest record, which may be a turn that is open.
func (h *History) resolveLatest() (Ref, error) {
	last, err := h.resolveLast(latest, 0)
	open, _, lerr := h.ListOpen()
	if lerr != nil {
		return Ref{}, lerr
	}
	for _, o := range open { // oldest first
		closed, cerr := h.Recorded(o.Record.ID)
		if cerr != nil {
			return Ref{}, cerr
		}
		if o.Record.Reason == Turn && !closed && (err != nil || o.Record.ID > last.ID) {
			last, err = Ref{ID: o.Record.ID}, nil
		}
	}
	return last, err
}

// resolveLast finds the n-th newest ended record that can be read.
func (h *History) resolveLast(ref string, n int) (Ref, error) {
	seen := 0
	for id, err := range h.backward(func(key) bool { return true }) {
		if err != nil {
			return Ref{}, err
		}
		if pass, err := h.passedOver(id); err != nil {
			return Ref{}, err
		} else if pass {
			continue
		}
		if seen == n {
			return Ref{ID: id}, nil
		}
		seen++
	}
	switch seen {
	case 0:
		return Ref{}, refError(ref, "there are none yet", firstRecord)
	case 1:
		return Ref{}, refError(ref, "there is only one", "'decree log' lists the records")
	}
	return Ref{}, refError(ref, fmt.Sprintf("there are only %d", seen), "'decree log' lists the records")
}

const firstRecord = "'decree run -- COMMAND' or 'decree checkpoint' makes one"

// passedOver says whether the record is none that last means: it has not ended (the log
// has no line of it, and what there is says so), or it is no state of the tree.
func (h *History) passedOver(id string) (bool, error) {
	done, err := h.Recorded(id)
	if err != nil {
		return false, err
	}
	r, err := h.Get(id)
	if err != nil {
		if done {
			err = nil // whoever uses it is told
		}
		return false, err
	}
	return !done && r.Status == StatusOpen || r.Isolated != "", nil
}

// backward yields the ids of the records that can be read, newest first, those
// whose key want takes. It looks at no more run.json files than it must.
func (h *History) backward(want func(key) bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		l, err := h.readOn()
		var strays []*Record
		if err == nil {
			strays, err = h.openRecords(l, &Listing{})
		}
		if err != nil {
			yield("", err)
			return
		}
		runs, err := h.runs()
		if err == nil {
			defer runs.Close()
		}
		for i := len(l.rows) - 1; i >= 0 || len(strays) > 0; {
			if k := len(strays) - 1; k >= 0 && (i < 0 || recordKey(strays[k]).compare(l.rows[i].key) > 0) {
				if want(recordKey(strays[k])) && !yield(strays[k].ID, nil) {
					return
				}
				strays = strays[:k]
				continue
			}
			if want(l.rows[i].key) && h.readable(runs, l.rows[i]) && !yield(l.rows[i].id(), nil) {
				return
			}
			i--
		}
	}
}

// readable says whether the listing would show the row.
func (h *History) readable(runs disk.Dir, r row) bool {
	if runs == nil {
		return true
	}
	st, err := runs.Stat(r.id())
	switch h.inspectRow(runs, r, !errors.Is(err, fs.ErrNotExist), st.Kind).state {
	case damaged, newer, unparsed:
		return false
	}
	return true
}
