package history

import (
	"bytes"
	"errors"
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

// log is records.jsonl as it was when it was read: an index over its lines. It
// does not change once it is read.
type log struct {
	rows    []row          // the last line of each id that is not gone, in order
	byID    map[string]int // index into rows
	gone    []row          // removed records that still keep trees that others rest on
	damaged int            // lines that are none
	size    int64          // of the file
	dead    int64          // bytes of lines that count no more
	torn    bool           // the last line has no end
	ino     uint64
}

type row struct {
	key  key
	id   string
	line []byte
	gone bool
}

// readLog reads the log in store; a missing one is empty.
func readLog(store disk.Dir) (*log, error) {
	l := &log{byID: map[string]int{}}
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
	// Not mapped: a mapping would have to outlive every line in use, and the
	// log of ten thousand records is read in three milliseconds.
	data := make([]byte, st.Size)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	l.ino, data = st.Ino, data[:n]
	l.index(data)
	return l, nil
}

func (l *log) index(data []byte) {
	const usual = 1 << 10 // bytes of a line
	l.size = int64(len(data))
	l.byID = make(map[string]int, len(data)/usual)
	l.rows = make([]row, 0, len(data)/usual)
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			l.torn = true
			break
		}
		l.take(data[:end])
		data = data[end+1:]
	}
	n := len(l.rows)
	l.rows = slices.DeleteFunc(l.rows, func(r row) bool {
		if r.gone && bytes.IndexByte(r.line[len(linePrefix):], '{') >= 0 {
			l.gone = append(l.gone, r)
		}
		return r.gone
	})
	byKey := func(a, b row) int { return a.key.compare(b.key) }
	sorted := slices.IsSortedFunc(l.rows, byKey)
	if sorted && len(l.rows) == n {
		return
	}
	if !sorted {
		slices.SortFunc(l.rows, byKey)
	}
	l.byID = make(map[string]int, len(l.rows))
	for i := range l.rows {
		l.byID[l.rows[i].id] = i
	}
}

// take puts one line in the place of an earlier one of its id.
func (l *log) take(b []byte) {
	k, gone, err := lineKey(b)
	if err != nil {
		l.damaged++
		l.dead += int64(len(b)) + 1
		return
	}
	id := unsafe.String(unsafe.SliceData(b[len(linePrefix):]), chainDigits+1+bytes.IndexByte(b[len(linePrefix)+chainDigits+1:], '"'))
	i, known := l.byID[id]
	if !known {
		i = len(l.rows)
		l.byID[id] = i
		l.rows = append(l.rows, row{})
	}
	if old := l.rows[i].line; old != nil && !l.rows[i].gone {
		l.dead += int64(len(old)) + 1
	}
	l.rows[i] = row{key: k, id: id, line: b, gone: gone}
	if gone {
		l.dead += int64(len(b)) + 1
	}
}

// find returns the decoded line of id, nil if there is none.
func (l *log) find(id string) (*line, error) {
	i, ok := l.byID[id]
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
	if err == nil {
		return nil
	}
	return &project.Error{Kind: project.Failed, Msg: logFile + ": record " + r.id, Err: err}
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
	if _, err := f.WriteAt(buf, l.size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if l.size == 0 {
		return store.Sync()
	}
	return nil
}

// mostlyDead says whether folding would free more than half of the file.
func (l *log) mostlyDead() bool { return l.size > foldMin && l.dead > l.size/2 }

// fold writes the lines that count into a new file in the log's place. A death
// before the rename leaves the old one as it was.
func (l *log) fold(store disk.Dir) error {
	const tmp = logFile + ".new"
	if err := store.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := project.CreateFile(store, tmp, project.PrivateFile)
	if err != nil {
		return err
	}
	err = l.writeLive(f)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = store.Rename(tmp, store, logFile)
	}
	if err != nil {
		_ = store.Remove(tmp)
		return err
	}
	return store.Sync()
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
	_, err := w.Write(buf)
	return err
}
