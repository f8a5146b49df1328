package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
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
	add(damageNames(l.Damaged), "left out, damaged: %s; 'decree doctor --repair' writes again what the store has")
	add(damageNames(l.Newer), "left out, written by a newer decree: %s")
	if n := len(l.Missing); n > 0 {
		out = append(out, fmt.Sprintf("%s missing from .decree/runs: %s; 'decree doctor --repair' brings them back", records(n), some(l.Missing)))
	}
	add(l.Edited, "run.json differs from the store's copy, which counts: %s")
	return out
}

func records(n int) string {
	if n == 1 {
		return "1 record is"
	}
	return fmt.Sprintf("%d records are", n)
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

// ListOptions narrow a listing. The warnings are about all records in any case.
type ListOptions struct {
	Limit int                // at most that many, the newest; 0: all
	Keep  func(*Record) bool // nil: all; it must be safe for concurrent use
}

// List returns the records: those of the log, of .decree/runs and the open ones.
func (h *History) List(o ListOptions) (*Listing, error) {
	l, err := h.rows()
	if err != nil {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil {
		return nil, err
	}
	states, err := h.inspect(l, names)
	if err != nil {
		return nil, err
	}
	out := &Listing{}
	good := out.sort(l, states)
	strays, err := h.strayRecords(l, names, out)
	if err != nil {
		return nil, err
	}
	out.decode(good, o, strays)
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
	states := make([]runState, len(l.rows))
	runs, err := h.runs()
	if errors.Is(err, fs.ErrNotExist) {
		for i := range states {
			states[i].state = missing
		}
		return states, nil
	}
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	parallel(len(l.rows), func(from, to int) {
		for i := from; i < to; i++ {
			there, kind := names.at(i)
			states[i] = h.inspectRow(runs, l.rows[i], there, kind)
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
	st, err := statRun(runs, r.id)
	if errors.Is(err, fs.ErrNotExist) {
		return runState{state: missing}
	}
	if err == nil && st.Kind == disk.Regular {
		if size, mtime, ok := r.runFile(); ok && st.Size == size && st.Mtime == mtime {
			return runState{}
		}
	}
	return h.compareRun(r)
}

func (h *History) compareRun(r row) runState {
	_, data, err := h.readRun(r.id)
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
		return runState{unparsed, err}
	}
	if !bytes.Equal(data, rec.JSON(nil)) {
		return runState{state: edited}
	}
	return runState{}
}

// lineFile reads the "file" field that append wrote.
func lineFile(b []byte) (size, mtime int64, ok bool) {
	const mark = `,"file":[`
	i := bytes.Index(b[:min(len(b), 128)], []byte(mark))
	if i < 0 {
		return 0, 0, false
	}
	s := scan{data: b[i+len(mark)-1:]}
	var n []int64
	err := s.array(func(raw []byte) {
		v := value{raw: raw}
		n = append(n, v.number())
	})
	if err != nil || len(n) != 2 {
		return 0, 0, false
	}
	return n[0], n[1], true
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

// sort puts each row where it belongs and returns those that are listed.
func (out *Listing) sort(l *log, states []runState) []row {
	good := make([]row, 0, len(l.rows))
	for i, s := range states {
		r := l.rows[i]
		switch s.state {
		case damaged, unparsed:
			out.Damaged = append(out.Damaged, Damage{r.id, s.err})
			continue
		case newer:
			out.Newer = append(out.Newer, Damage{r.id, s.err})
			continue
		case missing:
			out.Missing = append(out.Missing, r.id)
		case edited:
			out.Edited = append(out.Edited, r.id)
		}
		good = append(good, r)
	}
	return good
}

// strayRecords reads the records that the log lacks.
func (h *History) strayRecords(l *log, names *runNames, out *Listing) ([]*Record, error) {
	ids, err := h.strays(l, names)
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
		case errors.Is(err, fs.ErrNotExist) && !h.hasRunDir(id): // it ended meanwhile
		case err != nil:
			out.Damaged = append(out.Damaged, Damage{id, err})
		default:
			list = append(list, r)
		}
	}
	slices.SortFunc(list, Compare)
	return list, nil
}

func (h *History) hasRunDir(id string) bool {
	d, err := h.OpenRun(id)
	if err != nil {
		return false
	}
	d.Close()
	return true
}

// decode merges rows with the stray records, newest first, and decodes as many
// as are wanted.
func (out *Listing) decode(rows []row, o ListOptions, strays []*Record) {
	want := func(r *Record) bool { return o.Keep == nil || o.Keep(r) }
	limit := o.Limit
	if limit <= 0 {
		limit = len(rows) + len(strays)
	}
	for end := len(rows); len(out.Records) < limit && (end > 0 || len(strays) > 0); {
		// A chunk at a time: a short list need not decode a long history.
		from := max(0, end-max(64, limit))
		part, bad := decodePart(rows[from:end], want)
		out.Damaged = append(out.Damaged, bad...)
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == nil {
				continue
			}
			strays = takeStrays(&out.Records, strays, part[i], want)
			out.Records = append(out.Records, part[i])
		}
		if end = from; end == 0 {
			strays = takeStrays(&out.Records, strays, nil, want)
		}
	}
	out.Records = out.Records[:min(limit, len(out.Records))]
}

// decodePart decodes rows; what is not wanted or damaged is nil.
func decodePart(rows []row, want func(*Record) bool) (part []*Record, bad []Damage) {
	rows = loadRows(rows)
	part = make([]*Record, len(rows))
	errs := make([]error, len(rows))
	parallel(len(rows), func(a, b int) {
		for i := a; i < b; i++ {
			r, err := rows[i].record()
			if err != nil {
				errs[i] = err
			} else if want(r) {
				part[i] = r
			}
		}
	})
	for i, err := range errs {
		if err != nil {
			bad = append(bad, Damage{rows[i].id, err})
		}
	}
	return part, bad
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
	l, err := h.rows()
	if err != nil {
		return nil, err
	}
	return l.find(id)
}

// Recorded says whether the log has the record: its end was acknowledged.
func (h *History) Recorded(id string) (bool, error) {
	l, err := h.rows()
	if err != nil {
		return false, err
	}
	_, ok := l.where(id)
	return ok, nil
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
// store's copy is not the record any more.
func (h *History) refuseNewer(id string) error {
	_, _, err := h.readRun(id)
	var newer *NewerError
	if errors.As(err, &newer) {
		return newer
	}
	return nil // damage of another kind is the listing's to name
}
