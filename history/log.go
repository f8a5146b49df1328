package history

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"unsafe"

	"decree/disk"
	"decree/project"
)

const (
	logFile    = "records.jsonl"
	compactMin = 1 << 20 // a smaller log is not worth it
)

// log is records.jsonl as it was when it was read. It does not change once it is read.
type log struct {
	rows    []row          // the records that are not gone, in order
	byID    map[string]int // index into rows
	gone    []row          // removed records whose run directories may still be there
	given   []string       // the ids of removed records, also of those in gone, as they were removed
	broken  brokenLines    // those that nobody has written so, which are kept as evidence; not those that a death cut off
	cut     *key           // of the record before the first line that a death cut off; nil: none was
	unknown [][]byte       // whole JSON objects of a form that is not known: they are kept
	size    int64          // of the file
	dead    int64          // bytes of lines that do not count any more
	torn    bool           // the last line has no end
	last    []byte         // the last line that has one; nil where it is not held
	ino     uint64
}

// row is one record of the log: its line, which never changes, and what later lines
// say of it.
type row struct {
	key   key
	gone  bool
	line  []byte  // without its newline
	at    int64   // where it begins in the file
	later *effect // nil: nothing
}

// readLog reads the log in store; a missing one is empty. was is the log as it was read
// before, or nil: where the file has only grown since, only its new lines are read.
func readLog(store disk.Dir, was *log) (*log, error) {
	l := &log{}
	f, err := store.Open(logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	more, err := was.continued(f, st)
	switch {
	case err != nil:
		return nil, err
	case more && st.Size == was.size:
		return was, nil
	case more:
		l = was.clone()
	}
	l.ino = st.Ino
	if err := l.read(f, st.Size); err != nil {
		return nil, err
	}
	return l, nil
}

// continued says whether the file is the one that l was read from, with nothing but more
// lines behind. The last line is compared too: one that was read, and could not be made
// durable, is cut off again by its writer, and another one may be in its place.
func (l *log) continued(f disk.File, st disk.Info) (bool, error) {
	if l == nil || l.torn || l.ino != st.Ino || st.Size < l.size || len(l.last) == 0 {
		return false, nil
	}
	end := make([]byte, len(l.last)+1)
	if _, err := f.ReadAt(end, l.size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(end[:len(l.last)], l.last) && end[len(l.last)] == '\n', nil
}

// clone is a copy that can take more lines.
func (l *log) clone() *log {
	c := *l
	c.rows, c.byID, c.gone = slices.Clone(l.rows), maps.Clone(l.byID), slices.Clone(l.gone)
	c.unknown, c.broken.parts = slices.Clone(l.unknown), slices.Clone(l.broken.parts)
	c.given = slices.Clip(l.given)
	return &c
}

// sortRows takes the rows of removed records out and puts the rest in order.
func (l *log) sortRows() {
	was := len(l.rows)
	l.rows = slices.DeleteFunc(l.rows, func(r row) bool {
		if r.gone && bytes.IndexByte(r.line[len(linePrefix):], '{') >= 0 {
			l.gone = append(l.gone, r)
		}
		return r.gone
	})
	byKey := func(a, b row) int { return a.key.compare(b.key) }
	if sorted := slices.IsSortedFunc(l.rows, byKey); sorted && len(l.rows) == was {
		return
	} else if !sorted {
		slices.SortFunc(l.rows, byKey)
	}
	clear(l.byID)
	for i := range l.rows {
		l.byID[l.rows[i].id()] = i
	}
}

// take takes in one line, which begins at at in the file: a record's, an operation's, or one that is kept though it is not understood.
func (l *log) take(b []byte, at int64) {
	k, gone, err := lineKey(b)
	if err == nil {
		if gone && !endsGone(b) { // another line has become a part of it
			l.broken.add(at, b)
			b = bytes.TrimSuffix((&line{key: k, gone: true, left: true}).append(nil), []byte("\n"))
		}
		l.put(row{key: k, line: b, at: at, gone: gone})
		if changesOthers(b) {
			if e, err := parseHead(b); err == nil { // else it is told when the record is read
				l.change(e.effects)
			}
		}
		return
	}
	if bytes.HasPrefix(b, []byte(opPrefix)) {
		if e, err := parseOp(b); err == nil {
			l.change(e.effects)
			if len(e.given) > 0 { // they have those of all lines before
				l.given = e.given
			}
			return
		}
	}
	if len(b) > 0 && b[0] == '{' && json.Valid(b) {
		l.unknown = append(l.unknown, b)
		return
	}
	l.takeDamaged(part{at, int64(len(b)) + 1}, bytes.HasSuffix(b, []byte(tornMark)))
}

// takeDamaged takes in a line that is none: a death has torn it, or else it is kept.
func (l *log) takeDamaged(p part, torn bool) {
	if torn {
		l.cutOff()
		l.dead += p.size
	} else if p.size > 1 { // an empty one is nothing
		l.broken.addPart(p)
	}
}

// tornMark ends a line that has no end, as a death leaves it.
const tornMark = "!"

// cutOff notes where a line without an end comes.
func (l *log) cutOff() {
	if l.cut != nil {
		return
	}
	l.cut = &key{}
	if n := len(l.rows); n > 0 {
		*l.cut = l.rows[n-1].key
	}
}

// change notes with the records before it what an operation says of them.
func (l *log) change(effects []*effect) {
	for _, e := range effects {
		i, known := l.byID[e.id]
		if !known || l.rows[i].gone {
			continue
		}
		l.rows[i].later = l.rows[i].later.with(e)
	}
}

// put takes a record's line. Earlier versions wrote a second one where a status changed:
// it counts instead of the first.
func (l *log) put(r row) {
	if r.gone {
		l.dead += int64(len(r.line)) + 1
	}
	// What a removed record has left is in its last line.
	before := len(l.gone)
	l.gone = slices.DeleteFunc(l.gone, func(o row) bool { return o.key.seq == r.key.seq && o.key.chain == r.key.chain })
	i, known := l.byID[r.id()]
	if r.gone && len(l.gone) == before && !(known && l.rows[i].gone) {
		l.given = append(l.given, r.id())
	}
	if !known {
		l.byID[r.id()] = len(l.rows)
		l.rows = append(l.rows, r)
		return
	}
	if was := l.rows[i].line; !l.rows[i].gone {
		l.dead += int64(len(was)) + 1
		if beginsAnother(was[1:]) { // which nobody would see any more
			l.broken.add(l.rows[i].at, was)
		}
	}
	l.rows[i] = r
}

// follow sets the place in the order of a record that is open: the one that the log has for
// it, or else behind all others, also where the clock was set back.
func (l *log) follow(r *Record) {
	r.order = 0
	at := r.Started.UnixNano()
	if i, known := l.where(r.ID); known {
		at = l.rows[i].key.at
	} else if n := len(l.rows); n > 0 {
		at = max(at, l.rows[n-1].key.at+1)
	}
	if at != r.Started.UnixNano() {
		r.order = at
	}
}

// id shares the line's bytes, which never change.
func (r row) id() string {
	b := r.line[len(linePrefix):]
	return unsafe.String(unsafe.SliceData(b), chainDigits+1+bytes.IndexByte(b[chainDigits+1:], '"'))
}

// where is the index of id's row.
func (l *log) where(id string) (int, bool) {
	i, ok := l.byID[id]
	return i, ok
}

// parse decodes the line and applies what later ones say of it.
func (r row) parse() (*line, error) { return r.decoded(parseLine) }

// head is parse without the record.
func (r row) head() (*line, error) { return r.decoded(parseHead) }

func (r row) decoded(parse func([]byte) (*line, error)) (*line, error) {
	l, err := parse(r.line)
	if err == nil {
		err = r.later.apply(l)
	}
	return l, r.fault(err)
}

func (r row) record() (*Record, error) {
	if r.later != nil {
		l, err := r.parse()
		if err != nil {
			return nil, err
		}
		return l.record, nil
	}
	rec, err := parseRecord(r.line)
	return rec, r.fault(err)
}

// runFile is what stat says of the run.json that was written last.
func (r row) runFile() (v fileStat, ok bool) {
	if r.later != nil && r.later.file != (fileStat{}) {
		return r.later.file, true
	}
	return lineFile(r.line)
}

func (r row) fault(err error) error {
	var newer *NewerError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &newer):
		return &NewerError{Path: logFile + ": record " + r.id(), Version: newer.Version}
	}
	return &LineError{ID: r.id(), Err: err}
}

// LineError says that the log's line of a record cannot be decoded. The listing
// leaves the record out and names it; the others are as good as before.
type LineError struct {
	ID  string
	Err error
}

func (e *LineError) Error() string { return logFile + ": record " + e.ID + ": " + e.Err.Error() }

func (e *LineError) Unwrap() error { return e.Err }

// Hint is where to look next.
func (e *LineError) Hint() string {
	return fmt.Sprintf("its files are in .decree/runs/%s unless they were deleted; where 'decree gc' cannot go on beside it 'decree doctor --repair' sets it aside", e.ID)
}

// current says whether the file is still the one that was read.
func (l *log) current(store disk.Dir) bool {
	st, err := store.Stat(logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l.size == 0
	}
	return err == nil && st.Size == l.size && st.Ino == l.ino
}

// appendLines adds lines with one write and flushes them: they are all there
// when it returns without error. The log must be read again afterwards. A new one has its
// name flushed before it has a line: who finds lines need not ask whether their writer came so far.
func (l *log) appendLines(store disk.Dir, lines []*line) error {
	var buf []byte
	if l.torn {
		buf = append(buf, tornMark+"\n"...)
	}
	for _, e := range lines {
		buf = e.append(buf)
	}
	f, err := store.OpenWrite(logFile, project.PrivateFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if l.size == 0 {
		if err := cmp.Or(f.Chmod(project.PrivateFile), store.Sync()); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(buf, l.size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		// What is not known to be durable must not count for the next process. Where the
		// file cannot be cut either, a line that is there whole counts for the recovery.
		_ = f.Truncate(l.size)
	}
	return err
}

// givenKept is how many ids of removed records a compaction keeps, the last that were
// removed. Older ones are of a time that only a wrong clock comes to again.
const givenKept = 10_000

// mostlyDead says whether more than half of the file would go with compact.
func (l *log) mostlyDead() bool { return l.size > compactMin && l.dead > l.size/2 }

// compact writes the lines of the records that are not gone into a new file in the log's
// place, as they are, and behind them what the others have said of these.
func (l *log) compact(store disk.Dir) error {
	return l.rewrite(store, l.writeLive)
}

// rewrite puts a new file in the log's place, with what write writes, whose errors its Flush has, and the damaged lines behind
// it. A death before the rename leaves the old one as it was.
func (l *log) rewrite(store disk.Dir, write func(*bufio.Writer)) error {
	return disk.Replace(store, logFile, disk.Replacement{Perm: project.PrivateFile, Flush: true}, func(f disk.File) error {
		w := bufio.NewWriterSize(f, logBlock)
		write(w)
		if err := w.Flush(); err != nil {
			return err
		}
		return l.copyParts(store, l.broken.parts, f)
	})
}

func (l *log) writeLive(w *bufio.Writer) {
	for _, r := range slices.Concat(l.gone, l.rows) {
		writeLine(w, r.line)
	}
	for _, b := range l.unknown {
		writeLine(w, b)
	}
	rest := &line{op: opCompact, given: l.given[max(0, len(l.given)-givenKept):]}
	for _, r := range l.rows {
		if r.later != nil {
			rest.effects = append(rest.effects, r.later)
		}
		if len(rest.effects) == effectsOfALine {
			_, _ = w.Write(rest.append(w.AvailableBuffer()))
			rest = &line{op: opCompact}
		}
	}
	if len(rest.effects) > 0 || len(rest.given) > 0 {
		_, _ = w.Write(rest.append(w.AvailableBuffer()))
	}
}

func writeLine(w *bufio.Writer, text []byte) {
	_, _ = w.Write(text)
	_ = w.WriteByte('\n')
}

// effectsOfALine is how many records a line of a compaction speaks of, so that none comes near to mostLine.
const effectsOfALine = 10_000

// HasRecords says whether a project's store has records, without reading them.
func HasRecords(p *project.Site) bool {
	st, err := p.Store.Stat(logFile)
	return err == nil && st.Size > 0
}
