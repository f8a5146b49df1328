package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"decree/disk"
	"decree/project"
)

// Damage is a record, or an open record, that cannot be read.
type Damage struct {
	ID  string
	Err error
}

// Listing is the history as a reader sees it.
type Listing struct {
	Records []*Record // newest first; open ones among them

	Damaged []Damage // left out: run.json is cut, not JSON or another record's
	Newer   []Damage // left out: written by a newer decree
	Unknown int      // lines of the log that this decree does not understand, left out
	Foreign []string // left out: in .decree/runs alone, this store has never seen them
	Missing []string // listed from the store's copy: .decree/runs has no such directory
	Edited  []string // listed from the store's copy: run.json says something else
}

// Warnings says in one line each what is wrong, naming at most ten records.
func (l *Listing) Warnings() []string {
	var out []string
	add := func(ids []string, format string) {
		if len(ids) > 0 {
			out = append(out, fmt.Sprintf(format, some(ids)))
		}
	}
	add(damageNames(l.Damaged), "left out, damaged: %s; 'decree doctor --repair' restores what the store has a copy of")
	add(damageNames(l.Newer), "left out, written by a newer decree: %s")
	if l.Unknown > 0 {
		out = append(out, "left out: "+unknownLines(l.Unknown))
	}
	if n := len(l.Missing); n > 0 {
		out = append(out, fmt.Sprintf("%s missing from .decree/runs: %s; 'decree doctor --repair' brings them back", records(n), some(l.Missing)))
	}
	add(l.Edited, "run.json differs from the store's copy, which is the one used: %s")
	return out
}

func records(n int) string {
	if n == 1 {
		return "1 record is"
	}
	return fmt.Sprintf("%d records are", n)
}

func unknownLines(n int) string {
	return fmt.Sprintf("%s of %s that this decree cannot read; a newer decree may have written them, and they are kept", countedLines(n), logFile)
}

func countedLines(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}

func damageNames(list []Damage) []string {
	var out []string
	for _, d := range list {
		reason := strings.TrimPrefix(d.Err.Error(), ".decree/runs/"+d.ID+"/")
		out = append(out, fmt.Sprintf("%s (%s)", d.ID, reason))
	}
	return out
}

func some(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// ListOptions narrow a listing. With a Limit the warnings are about the records
// that it came upon: what lies behind the last one is not looked at.
type ListOptions struct {
	Limit int                // at most that many, the newest; 0: all
	Keep  func(*Record) bool // nil: all; it must be safe for concurrent use
	// Known leaves out what is Foreign, so that a short list of a long history need not look for it.
	Known bool
	// Of has a list of few not cost what the whole history does: only records whose line in the log has one of the marks
	// are looked at, and nothing is told of others. Keep decides all the same; an open record has no line. None: all.
	Of []Mark
	// Before leaves out that record and what came after it; nil: none.
	Before *Record
}

// Empty says whether nothing was recorded here yet; what is Foreign does not count.
func (h *History) Empty() (bool, error) {
	list, err := h.List(ListOptions{Limit: 1, Known: true})
	return err == nil && len(list.Records) == 0, err
}

// List returns the records: those of the log and the open ones.
func (h *History) List(o ListOptions) (out *Listing, err error) {
	for range 5 {
		out, err = h.listNow(o)
		if err != nil || len(out.Damaged)+len(out.Missing)+len(out.Edited)+len(out.Foreign) == 0 || !h.CatchUp() {
			break
		}
		// Another process wrote meanwhile: what is amiss may be what it removed or changed.
	}
	if err == nil && len(out.Missing) > 0 {
		built := h.Built()
		out.Missing = slices.DeleteFunc(out.Missing, func(id string) bool { return built(id) || h.hasRunJSON(id) })
	}
	return out, err
}

// hasRunJSON says whether a record has a run.json in .decree/runs, sound or not.
func (h *History) hasRunJSON(id string) bool {
	_, _, err := h.readRun(id)
	return !errors.Is(err, fs.ErrNotExist)
}

func (h *History) listNow(o ListOptions) (*Listing, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	late := &Listing{}
	var names *runNames
	if !o.Known {
		if names, err = h.runNames(l); err != nil {
			return nil, err
		}
		if late.Foreign, err = h.foreignOf(names); err != nil {
			return nil, err
		}
	}
	strays, err := h.openRecords(l, late)
	if err != nil {
		return nil, err
	}
	k, err := h.looker(l, names)
	if err != nil {
		return nil, err
	}
	defer k.close()
	k.keep, k.of = o.keeps(), o.Of
	out := &Listing{Foreign: late.Foreign, Unknown: len(l.unknown)}
	out.gather(k, l.before(o.Before), o.Limit, strays)
	out.Damaged = append(out.Damaged, late.Damaged...)
	out.Newer = append(out.Newer, late.Newer...)
	return out, nil
}

// Each inspected record of the log is in one of these states.
const (
	sound    uint8 = iota // run.json is what was written with the line, or says the same
	missing               // no run.json
	edited                // another record's content
	damaged               // see damage
	newer                 // see damage
	unparsed              // the line itself cannot be decoded
)

type runState struct {
	state uint8
	err   error
}

// inspect looks at the run.json of every row.
func (h *History) inspect(l *log, names *runNames) ([]runState, error) {
	k, err := h.looker(l, names)
	if err != nil {
		return nil, err
	}
	defer k.close()
	states := make([]runState, len(l.rows))
	parallel(len(l.rows), func(from, to int) {
		for i := from; i < to; i++ {
			states[i] = k.state(i, l.rows[i])
		}
	})
	return states, nil
}

// inspectRow trusts a run.json whose size and mtime are those of the line, and
// reads any other.
func (h *History) inspectRow(runs disk.Dir, r row, there bool, kind disk.Kind) runState {
	if !there {
		return runState{state: missing}
	}
	if kind != disk.Directory && kind != disk.Unknown {
		return h.compareRun(r) // a link, which stat would follow: opening it says so
	}
	switch same, err := r.asWritten(runs); {
	case errors.Is(err, fs.ErrNotExist):
		return runState{state: missing}
	case err == nil && same:
		return runState{}
	}
	return h.compareRun(r)
}

// asWritten says whether the row's run.json has the size and mtime that it was written with.
func (r row) asWritten(runs disk.Dir) (bool, error) {
	st, err := statRun(runs, r.id())
	if err != nil || st.Kind != disk.Regular {
		return false, err
	}
	v, ok := r.runFile()
	return ok && v == (fileStat{st.Size, st.Mtime}), nil
}

func (h *History) compareRun(r row) runState {
	is, data, err := h.readRun(r.id())
	var tooNew *NewerError
	switch {
	case errors.As(err, &tooNew):
		return runState{newer, err}
	case errors.Is(err, fs.ErrNotExist):
		return runState{state: missing}
	case err != nil:
		return runState{damaged, err}
	}
	rec, err := r.record()
	if err != nil {
		return lineState(err)
	}
	if !bytes.Equal(data, rec.JSON(nil)) && !(bytes.Equal(data, is.JSON(nil)) && is.beforeConversion(rec)) {
		return runState{state: edited}
	}
	return runState{}
}

// beforeConversion says whether r is rec as a decree wrote it before the store was
// converted: its tree ids were the hashes of manifests.
func (r *Record) beforeConversion(rec *Record) bool {
	if !r.ManifestSHA256.IsZero() || r.Before != rec.ManifestSHA256 {
		return false
	}
	r.Before, r.After, r.ManifestSHA256 = rec.Before, rec.After, rec.ManifestSHA256
	return bytes.Equal(r.JSON(nil), rec.JSON(nil))
}

// lineState is the state of a row whose line cannot be decoded.
func lineState(err error) runState {
	if errors.As(err, new(*NewerError)) {
		return runState{newer, err}
	}
	return runState{unparsed, err}
}

// Newer are the ids of the records of the log that a newer decree wrote.
func (h *History) Newer() (map[string]bool, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil {
		return nil, err
	}
	k, err := h.looker(l, names)
	if err != nil {
		return nil, err
	}
	defer k.close()
	out := map[string]bool{}
	for i, s := range k.look(0, len(l.rows)) {
		if s.state == newer {
			out[l.rows[i].id()] = true
		}
	}
	return out, nil
}

// lineFile reads the "file" field that append wrote.
func lineFile(b []byte) (v fileStat, ok bool) {
	const mark = `,"file":[`
	i := bytes.Index(b[:min(len(b), 128)], []byte(mark))
	if i < 0 {
		return fileStat{}, false
	}
	first, rest, ok := bytes.Cut(b[i+len(mark):], []byte(","))
	second, _, closed := bytes.Cut(rest, []byte("]"))
	size, sizeErr := strconv.ParseInt(string(first), 10, 64)
	mtime, mtimeErr := strconv.ParseInt(string(second), 10, 64)
	return fileStat{size, mtime}, ok && closed && sizeErr == nil && mtimeErr == nil
}

// parallel calls f with parts of 0..n, on as many goroutines as pay off.
func parallel(n int, f func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), 4, n/64+1)
	if workers <= 1 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { f(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}

// openRecords reads the open records that the log lacks, in order.
func (h *History) openRecords(l *log, out *Listing) ([]*Record, error) {
	ids, err := h.unended(l)
	if err != nil {
		return nil, err
	}
	var list []*Record
	for _, id := range ids {
		r, err := h.stray(id)
		var tooNew *NewerError
		switch {
		case errors.As(err, &tooNew):
			out.Newer = append(out.Newer, Damage{id, err})
		case errors.Is(err, fs.ErrNotExist) && !h.HasRun(id): // it ended meanwhile
		case err != nil:
			out.Damaged = append(out.Damaged, Damage{id, err})
		default:
			list = append(list, r)
		}
	}
	slices.SortFunc(list, Compare)
	return list, nil
}

// looker looks at rows: at the run.json of each and at its line.
type looker struct {
	h     *History
	l     *log
	names *runNames
	runs  disk.Dir // nil: there is no .decree/runs
	keep  func(*Record) bool
	of    []Mark
}

// looker looks at the rows of l; names are what lies in .decree/runs, nil where that is asked of each row.
func (h *History) looker(l *log, names *runNames) (*looker, error) {
	runs, err := h.runsIfAny()
	return &looker{h: h, l: l, names: names, runs: runs}, err
}

func (k *looker) close() {
	if k.runs != nil {
		k.runs.Close()
	}
}

// state is how the run.json of row i stands.
func (k *looker) state(i int, r row) runState {
	if k.runs == nil {
		return runState{state: missing}
	}
	there, kind := k.names.at(i, r, k.runs)
	return k.h.inspectRow(k.runs, r, there, kind)
}

func (k *looker) want(r *Record) bool { return k.keep == nil || k.keep(r) }

// looked is what there is to a row: its record, nil if that is damaged or not wanted.
type looked struct {
	runState
	rec *Record
}

// look returns what there is to the rows from..to.
func (k *looker) look(from, to int) []looked {
	out := make([]looked, to-from)
	parallel(to-from, func(a, b int) {
		for i := a; i < b; i++ {
			out[i] = k.row(from+i, k.l.rows[from+i])
		}
	})
	return out
}

func (k *looker) row(i int, r row) (l looked) {
	if len(k.of) > 0 && !slices.ContainsFunc(k.of, func(m Mark) bool { return bytes.Contains(r.line, m) }) {
		return l
	}
	if l.runState = k.state(i, r); l.state == damaged || l.state == newer || l.state == unparsed {
		return l
	}
	rec, err := r.record()
	switch {
	case err != nil:
		l.runState = lineState(err)
	case k.want(rec):
		l.rec = rec
	}
	return l
}

// gather merges the first rows, so many as all says, with the stray records, newest first, until there are
// limit (0: no limit). A short list need not look at a long history.
func (out *Listing) gather(k *looker, all, limit int, strays []*Record) {
	step := max(all, 1)
	if limit > 0 {
		step = max(64, limit)
	} else {
		limit = all + len(strays)
		out.Records = make([]*Record, 0, limit)
	}
	for end := all; len(out.Records) < limit && (end > 0 || len(strays) > 0); {
		from := max(0, end-step)
		part := k.look(from, end)
		out.name(k.l.rows[from:end], part)
		for i := len(part) - 1; i >= 0; i-- {
			if r := part[i].rec; r != nil {
				strays = takeStrays(&out.Records, strays, r, k.want)
				out.Records = append(out.Records, r)
			}
		}
		if end = from; end == 0 {
			strays = takeStrays(&out.Records, strays, nil, k.want)
		}
	}
	out.Records = out.Records[:min(limit, len(out.Records))]
}

// name puts those rows that something is wrong with before the later ones.
func (out *Listing) name(rows []row, part []looked) {
	var bad, newerOnes []Damage
	var gone, other []string
	for i, p := range part {
		switch p.state {
		case damaged, unparsed:
			bad = append(bad, Damage{rows[i].id(), p.err})
		case newer:
			newerOnes = append(newerOnes, Damage{rows[i].id(), p.err})
		case missing:
			gone = append(gone, rows[i].id())
		case edited:
			other = append(other, rows[i].id())
		}
	}
	out.Damaged, out.Newer = append(bad, out.Damaged...), append(newerOnes, out.Newer...)
	out.Missing, out.Edited = append(gone, out.Missing...), append(other, out.Edited...)
}

// takeStrays appends the strays that are newer than r (nil: all), newest first.
func takeStrays(out *[]*Record, strays []*Record, r *Record, want func(*Record) bool) []*Record {
	for len(strays) > 0 {
		s := strays[len(strays)-1]
		if r != nil && Compare(s, r) < 0 {
			break
		}
		if want(s) {
			*out = append(*out, s)
		}
		strays = strays[:len(strays)-1]
	}
	return strays
}

// line returns the decoded log line of id, nil if the log has none.
func (h *History) line(id string) (*line, error) {
	r, known, err := h.row(id)
	if !known {
		return nil, err
	}
	return r.parse()
}

// row returns the row of id in the log, if that has one.
func (h *History) row(id string) (r row, known bool, err error) {
	l, err := h.readOn()
	if err != nil {
		return r, false, err
	}
	i, known := l.where(id)
	if known {
		r = l.rows[i]
	}
	return r, known, nil
}

// Recorded says whether the log has the record: its end was acknowledged.
func (h *History) Recorded(id string) (bool, error) {
	_, known, err := h.row(id)
	return known, err
}

// Get returns the record id: the log's copy if it has one, else the open
// record's draft, else run.json.
func (h *History) Get(id string) (*Record, error) {
	l, err := h.line(id)
	if err != nil {
		return nil, err
	}
	if l != nil {
		return l.record, h.refuseNewer(id)
	}
	r, err := h.stray(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &project.Error{Kind: project.NotFound, Msg: "no record " + id, Advice: "'decree log' lists the records"}
	}
	return r, err
}

// refuseNewer looks whether run.json was written by a newer decree: then the
// store's copy is not the record any more. One that is as it was written with the line was not.
func (h *History) refuseNewer(id string) error {
	if h.runAsWritten(id) {
		return nil
	}
	_, _, err := h.readRun(id)
	if newer, ok := errors.AsType[*NewerError](err); ok {
		return newer
	}
	return nil // damage of another kind is the listing's to name
}

// runAsWritten says whether the run.json of a record of the log has the size and mtime that it
// was written with.
func (h *History) runAsWritten(id string) bool {
	r, known, _ := h.row(id)
	if !known {
		return false
	}
	runs, err := h.runsIfAny()
	if runs == nil || err != nil {
		return false
	}
	defer runs.Close()
	same, err := r.asWritten(runs)
	return err == nil && same
}

// Newest calls each for the records that can be read, open ones too, newest
// first, until it returns false. It reads no more of them than it must.
func (h *History) Newest(each func(*Record) bool) error {
	for id, err := range h.backward(func(key) bool { return true }) {
		if err != nil {
			return err
		}
		r, err := h.Get(id)
		gone := err != nil && (errors.Is(err, fs.ErrNotExist) || project.KindOf(err) == project.NotFound)
		if gone || errors.As(err, new(*NewerError)) || errors.As(err, new(*LineError)) {
			continue // gone meanwhile, or the listing's to name
		}
		if err != nil {
			return err
		}
		if !each(r) {
			return nil
		}
	}
	return nil
}

// EndedBefore says whether o had ended before rec began, as far as its end and its place in the order both tell: where the clock was
// set back meanwhile, times alone say nothing.
func EndedBefore(o, rec *Record) bool {
	return !o.Ended.IsZero() && o.Ended.Before(rec.Started) && recordKey(o).at < rec.Started.UnixNano()
}

// Since calls each for the records that may have been made since rec began, newest first, and for those inside
// of runs that come among them.
func (h *History) Since(rec *Record, each func(*Record)) error {
	return h.Newest(func(o *Record) bool {
		if EndedBefore(o, rec) && o.Inside == "" {
			return false
		}
		if o.ID != rec.ID {
			each(o)
		}
		return true
	})
}
