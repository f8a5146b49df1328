package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"decree/disk"
)

// The log is read in blocks, and a line is held whole only where it may be one that decree has written: of one that is long
// and has a NUL in it, as a hole in the file gives one, or that is longer than any, is only known where it is.
const (
	logBlock = 1 << 20
	longLine = 1 << 20  // no JSON has a NUL; a shorter line is held all the same, as it may say whose it was
	mostLine = 64 << 20 // a record is a fourth of that at most, as its run.json is
)

// held says whether a line of these bytes, or one that begins with them, is held.
func held(b []byte) bool {
	return len(b) <= longLine || len(b) <= mostLine && bytes.IndexByte(b, 0) < 0
}

// lineScan takes a log's lines from its bytes as they come. Its line begins at the log's size.
type lineScan struct {
	*log
	begun  []byte // of the line, what was read of it
	beyond int64  // of a line that is not held: the bytes that were read of it
	end    byte   // the last one of them
}

// read takes the lines of the file from where l ends up to size.
func (l *log) read(f disk.File, size int64) error {
	const usual, most = 1 << 10, 64 << 20 // bytes of a line, and of a file that has lines everywhere
	if l.byID == nil {
		n := min(size, most) / usual
		l.rows, l.byID = make([]row, 0, n), make(map[string]int, n)
	}
	s := &lineScan{log: l}
	// Not mapped: a mapping would have to outlive every line in use.
	for at := l.size; at < size; {
		if n := s.hole(f, at, size); n > 0 {
			s.pass(n, 0)
			at += n
			continue
		}
		data := make([]byte, min(logBlock, size-at))
		n, err := f.ReadAt(data, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		s.feed(data[:n])
		at += int64(n)
		if n < len(data) {
			break // it was cut off meanwhile
		}
	}
	s.finish()
	return nil
}

// hole is how long the hole is that begins at at, where nothing but the end of a line is looked for, which no hole has.
func (s *lineScan) hole(f disk.File, at, size int64) int64 {
	if s.beyond == 0 {
		return 0
	}
	if until, hole, ok := disk.Extent(f, at, logBlock); ok && hole {
		return min(until, size) - at
	}
	return 0
}

// feed takes the next bytes.
func (s *lineScan) feed(data []byte) {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			s.begin(data)
			return
		}
		s.line(data[:end])
		data = data[end+1:]
	}
}

// begin takes bytes of a line that goes on behind them.
func (s *lineScan) begin(b []byte) {
	if s.beyond == 0 {
		if s.begun = append(s.begun, b...); held(s.begun) {
			return
		}
		b, s.begun = s.begun, nil
	}
	s.pass(int64(len(b)), b[len(b)-1])
}

// pass takes n bytes of a line that is not held.
func (s *lineScan) pass(n int64, last byte) { s.beyond, s.end = s.beyond+n, last }

// line takes the rest of a line, without its newline.
func (s *lineScan) line(b []byte) {
	if s.begun != nil {
		b, s.begun = append(s.begun, b...), nil
	}
	if s.beyond > 0 || !held(b) {
		if len(b) > 0 {
			s.pass(int64(len(b)), b[len(b)-1])
		}
		p := part{s.size, s.beyond + 1}
		s.size, s.last, s.beyond = s.size+p.size, nil, 0
		s.takeDamaged(p, s.end == tornMark[0])
		return
	}
	at := s.size
	s.size, s.last = at+int64(len(b))+1, b
	s.take(b, at)
}

// finish ends the scan: what has begun has no end.
func (s *lineScan) finish() {
	if n := int64(len(s.begun)) + s.beyond; n > 0 {
		s.size, s.torn = s.size+n, true
		s.cutOff()
	}
	s.sortRows()
}

// brokenLines are damaged lines: where they are in the file, with their newlines.
type brokenLines struct {
	n     int
	parts []part
}

// part is a part of the file.
type part struct{ at, size int64 }

// add adds a line that is held.
func (b *brokenLines) add(at int64, line []byte) { b.addPart(part{at, int64(len(line)) + 1}) }

func (b *brokenLines) addPart(p part) {
	b.n++
	if n := len(b.parts); n > 0 && b.parts[n-1].at+b.parts[n-1].size == p.at {
		b.parts[n-1].size += p.size
		return
	}
	b.parts = append(b.parts, p)
}

// copyParts appends parts of the log's file to another one as they are: a hole stays a hole.
func (l *log) copyParts(store disk.Dir, parts []part, to disk.File) error {
	if len(parts) == 0 {
		return nil
	}
	f, err := store.Open(logFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Ino != l.ino {
		return errors.Join(err, fmt.Errorf("%s: %w", logFile, disk.ErrReplaced))
	}
	for _, p := range parts {
		for at, end := p.at, p.at+p.size; at < end; {
			until, hole, ok := disk.Extent(f, at, logBlock)
			if !ok {
				until = end
			}
			n := min(until, end) - at
			if hole {
				_, err = to.Seek(n, io.SeekCurrent)
			} else {
				_, err = io.Copy(to, io.NewSectionReader(f, at, n))
			}
			if err != nil {
				return err
			}
			at += n
		}
	}
	return nil
}
