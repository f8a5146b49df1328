package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"decree/disk"
	"decree/project"
)

const (
	logFile = "records.jsonl"
	foldMin = 1 << 20 // a smaller log is not worth folding
)

// log is records.jsonl as it was when it was read: an index over its lines. It
// does not change once it is read.
type log struct {
	rows    []row    // the last line of each id that is not gone, in order
	gone    []row    // removed records whose run directories may still be there
	damaged int      // lines that are none
	unknown [][]byte // whole JSON objects of a form that is not known: they are kept
	size    int64    // of the file
	covered int64    // bytes of it that the index file has
	dead    int64    // bytes of lines that count no more
	torn    bool     // the last line has no end
	ino     uint64
	runs    runsStamp // when each row had its run directory, and there was no other

	lookups atomic.Int32
	once    sync.Once
	byID    map[string]int // index into rows; made when it is asked for often
}

// fewLookups are those before which a map of ten thousand rows costs more than it saves.
const fewLookups = 8

// row is one record of the log. Its line is read when it is asked for, if the
// row comes from the index file.
type row struct {
	key   key
	gone  bool
	off   int64 // of the line
	n     int   // its bytes without the newline
	size  int64 // what the line says of run.json, if line is nil
	mtime int64
	line  []byte
	file  disk.File
}

// readLog reads the log in store; a missing one is empty.
func readLog(store disk.Dir) (*log, error) {
	l := &log{}
	f, err := store.Open(logFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	indexed := st.Size >= indexMin && l.readIndex(store, f, st)
	// Not mapped: a mapping would have to outlive every line in use.
	data := make([]byte, st.Size-l.covered)
	n, err := f.ReadAt(data, l.covered)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, err
	}
	if !indexed {
		f.Close() // else the rows read through it; it is closed with them
	}
	l.ino = st.Ino
	l.scan(data[:n])
	return l, nil
}

// scan takes the lines that the index does not cover.
func (l *log) scan(data []byte) {
	const usual = 1 << 10 // bytes of a line
	off := l.covered
	l.size = off + int64(len(data))
	if len(data) == 0 {
		return
	}
	l.runs = runsStamp{}
	if l.rows == nil {
		l.rows = make([]row, 0, len(data)/usual)
	}
	byID := make(map[string]int, len(l.rows)+len(data)/usual)
	for i := range l.rows {
		byID[l.rows[i].id()] = i
	}
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			l.torn = true
			break
		}
		l.take(byID, data[:end], off)
		data, off = data[end+1:], off+int64(end)+1
	}
	l.settle()
}

// settle takes the removed ones out and puts the rest in order.
func (l *log) settle() {
	l.rows = slices.DeleteFunc(l.rows, func(r row) bool {
		if r.gone && bytes.IndexByte(r.line[len(linePrefix):], '{') >= 0 {
			l.gone = append(l.gone, r)
		}
		return r.gone
	})
	byKey := func(a, b row) int { return a.key.compare(b.key) }
	if !slices.IsSortedFunc(l.rows, byKey) {
		slices.SortFunc(l.rows, byKey)
	}
}

// take puts one line in the place of an earlier one of its id.
func (l *log) take(byID map[string]int, b []byte, off int64) {
	k, gone, err := lineKey(b)
	if err != nil && len(b) > 0 && b[0] == '{' && json.Valid(b) {
		l.unknown = append(l.unknown, b)
		return
	}
	if err != nil {
		l.damaged++
		l.dead += int64(len(b)) + 1
		return
	}
	id := unsafe.String(unsafe.SliceData(b[len(linePrefix):]), chainDigits+1+bytes.IndexByte(b[len(linePrefix)+chainDigits+1:], '"'))
	// What a removed record has left is in its last line.
	l.gone = slices.DeleteFunc(l.gone, func(r row) bool { return r.key.seq == k.seq && r.key.chain == k.chain })
	i, known := byID[id]
	if !known {
		i = len(l.rows)
		byID[id] = i
		l.rows = append(l.rows, row{})
	} else if !l.rows[i].gone {
		l.dead += int64(l.rows[i].n) + 1
	}
	l.rows[i] = row{key: k, line: b, gone: gone, off: off, n: len(b)}
	if gone {
		l.dead += int64(len(b)) + 1
	}
}

// follow gives a record its place: the one that it has, else behind all others.
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

func (r row) id() string { return FormatID(r.key.chain, r.key.seq) }

// where is the index of id's row.
func (l *log) where(id string) (int, bool) {
	if l.lookups.Add(1) <= fewLookups {
		chain, seq, ok := ParseID(id)
		i := slices.IndexFunc(l.rows, func(r row) bool { return r.key.seq == seq && r.key.chain == chain })
		return i, ok && i >= 0
	}
	l.once.Do(func() {
		l.byID = make(map[string]int, len(l.rows))
		for i := range l.rows {
			l.byID[l.rows[i].id()] = i
		}
	})
	i, ok := l.byID[id]
	return i, ok
}

// find returns the decoded line of id, nil if there is none.
func (l *log) find(id string) (*line, error) {
	i, ok := l.where(id)
	if !ok {
		return nil, nil
	}
	return l.rows[i].parse()
}

// bytes is the row's line. One that is not of the row's record is damaged.
func (r row) bytes() ([]byte, error) {
	if r.line != nil {
		return r.line, nil
	}
	b := make([]byte, r.n)
	if _, err := r.file.ReadAt(b, r.off); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if k, _, err := lineKey(b); err != nil || k != r.key {
		return nil, errLine
	}
	return b, nil
}

// loadRows returns rows with their lines, read at once where they lie together.
func loadRows(rows []row) []row { return new(lineBuffer).load(rows) }

// lineBuffer holds the lines of the rows that were loaded last.
type lineBuffer struct {
	data []byte
	rows []row
}

// load is loadRows; what it returns is good until the next call.
func (p *lineBuffer) load(rows []row) []row {
	var from, to, sum int64 = 1<<63 - 1, 0, 0
	for _, r := range rows {
		if r.line == nil {
			from, to, sum = min(from, r.off), max(to, r.off+int64(r.n)), sum+int64(r.n)
		}
	}
	if sum == 0 || to-from > 2*sum {
		return rows
	}
	p.data = slices.Grow(p.data[:0], int(to-from))[:to-from]
	p.rows = append(p.rows[:0], rows...)
	read := false
	for i, r := range p.rows {
		if r.line != nil {
			continue
		}
		if !read {
			if _, err := r.file.ReadAt(p.data, from); err != nil && !errors.Is(err, io.EOF) {
				return rows // each row will say so itself
			}
			read = true
		}
		b := p.data[r.off-from:][:r.n]
		if k, _, err := lineKey(b); err == nil && k == r.key {
			p.rows[i].line = b
		}
	}
	return p.rows
}

func (r row) parse() (l *line, err error) {
	b, err := r.bytes()
	if err == nil {
		l, err = parseLine(b)
	}
	return l, r.fault(err)
}

func (r row) head() (l *line, err error) {
	b, err := r.bytes()
	if err == nil {
		l, err = parseHead(b)
	}
	return l, r.fault(err)
}

func (r row) record() (rec *Record, err error) {
	b, err := r.bytes()
	if err == nil {
		rec, err = parseRecord(b)
	}
	return rec, r.fault(err)
}

// runFile is what the line says of run.json.
func (r row) runFile() (size, mtime int64, ok bool) {
	if r.file != nil { // it comes from the index file
		return r.size, r.mtime, true
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
	return fmt.Sprintf("its files are in .decree/runs/%s unless they were deleted; no other record is affected", e.ID)
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
// when it returns without error. The log must be read again afterwards.
func (l *log) appendLines(store disk.Dir, lines []*line) error {
	var buf []byte
	if l.torn {
		buf = append(buf, "!\n"...)
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
		if err := f.Chmod(project.PrivateFile); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(buf, l.size)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && l.size == 0 {
		err = store.Sync()
	}
	if err != nil {
		// What is not known to be durable must not count for the next process. Where
		// even this fails, a line that stands is a whole one, and recovery goes by it.
		_ = f.Truncate(l.size)
	}
	return err
}

// mostlyDead says whether folding would free more than half of the file.
func (l *log) mostlyDead() bool { return l.size > foldMin && l.dead > l.size/2 }

// fold writes the lines that count into a new file in the log's place.
func (l *log) fold(store disk.Dir) error {
	return l.rewrite(store, func(f disk.File) error { return l.writeLive(f) })
}

// rewrite puts a new file in the log's place. A death before the rename leaves the old
// one as it was.
func (l *log) rewrite(store disk.Dir, write func(disk.File) error) error {
	return disk.Replace(store, logFile, disk.Replacement{Perm: project.PrivateFile, Flush: true}, write)
}

func (l *log) writeLive(w io.Writer) error {
	const chunk = 1 << 20
	var buf []byte
	for _, r := range slices.Concat(l.gone, l.rows) {
		b, err := r.bytes()
		if err != nil {
			return r.fault(err)
		}
		buf = append(append(buf, b...), '\n')
		if len(buf) >= chunk {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	for _, b := range l.unknown {
		buf = append(append(buf, b...), '\n')
	}
	_, err := w.Write(buf)
	return err
}
