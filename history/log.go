package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"unsafe"

	"decree/disk"
	"decree/project"
)

const (
	logFile = "records.jsonl"
	foldMin = 1 << 20 // a smaller log is not worth folding
)

// log is records.jsonl as it was when it was read. It does not change once it is read.
type log struct {
	rows    []row          // the last line of each id that is not gone, in order
	byID    map[string]int // index into rows
	gone    []row          // removed records whose run directories may still be there
	damaged int            // lines that are none
	unknown [][]byte       // whole JSON objects of a form that is not known: they are kept
	size    int64          // of the file
	dead    int64          // bytes of lines that count no more
	torn    bool           // the last line has no end
	ino     uint64
}

// row is one record of the log.
type row struct {
	key  key
	gone bool
	line []byte // without its newline
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
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Not mapped: a mapping would have to outlive every line in use.
	data := make([]byte, st.Size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l.ino = st.Ino
	l.scan(data[:n])
	return l, nil
}

// scan takes the lines of data.
func (l *log) scan(data []byte) {
	const usual = 1 << 10 // bytes of a line
	l.size = int64(len(data))
	l.rows = make([]row, 0, len(data)/usual)
	l.byID = make(map[string]int, len(data)/usual)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			l.torn = true
			break
		}
		l.take(data[:end])
		data = data[end+1:]
	}
	l.settle()
}

// settle takes the removed ones out and puts the rest in order.
func (l *log) settle() {
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

// take puts one line in the place of an earlier one of its id.
func (l *log) take(b []byte) {
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
	r := row{key: k, line: b, gone: gone}
	if gone {
		l.dead += int64(len(b)) + 1
	}
	// What a removed record has left is in its last line.
	i, known := l.byID[r.id()]
	if !known {
		l.byID[r.id()] = len(l.rows)
		l.rows = append(l.rows, r)
		return
	}
	if !l.rows[i].gone {
		l.dead += int64(len(l.rows[i].line)) + 1
	}
	l.rows[i] = r
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

// id is a view of the line, whose bytes never change.
func (r row) id() string {
	b := r.line[len(linePrefix):]
	return unsafe.String(unsafe.SliceData(b), chainDigits+1+bytes.IndexByte(b[chainDigits+1:], '"'))
}

// where is the index of id's row.
func (l *log) where(id string) (int, bool) {
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

func (r row) parse() (*line, error) {
	l, err := parseLine(r.line)
	return l, r.fault(err)
}

func (r row) head() (*line, error) {
	l, err := parseHead(r.line)
	return l, r.fault(err)
}

func (r row) record() (*Record, error) {
	rec, err := parseRecord(r.line)
	return rec, r.fault(err)
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
		buf = append(append(buf, r.line...), '\n')
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
