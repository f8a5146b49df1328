package project

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"

	"decree/disk"
)

// readOwnLog opens a log in OwnLogs; nil where there is none.
func (s *Site) readOwnLog(name string) (disk.File, error) {
	own, err := s.Store.OpenDir(OwnLogs)
	var log disk.File
	if err == nil {
		defer own.Close()
		log, err = own.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return log, err
}

// eachLine calls each for the lines of a log in OwnLogs from a place on, with the place of
// each. A line that a death has torn is passed over.
func eachLine[T any](s *Site, name string, from int64, each func(at int64, line T)) error {
	log, err := s.readOwnLog(name)
	if log == nil {
		return err
	}
	defer log.Close()
	if _, err := log.Seek(from, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(log, 1<<16)
	for at := from; ; {
		data, n, err := readLine(lines)
		var line T
		if err == nil && json.Unmarshal(data, &line) == nil {
			each(at, line)
		}
		at += n
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mostLine is more than any line of these logs has: one may hold a message, of at most 16 MiB, in base64.
const mostLine = 32 << 20

// readLine returns the next line, and how long it is: empty where it is none that decree has written. Such a one takes no memory, as
// it may be as long as the file.
func readLine(r *bufio.Reader) (line []byte, n int64, err error) {
	bad := false
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		bad = bad || n > mostLine || bytes.IndexByte(part, 0) >= 0 // no JSON has a NUL, and a hole in a file is made of them
		if bad {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, n, err
		}
	}
}
