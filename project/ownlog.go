package project

import (
	"bufio"
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
		data, err := lines.ReadBytes('\n')
		var line T
		if err == nil && json.Unmarshal(data, &line) == nil {
			each(at, line)
		}
		at += int64(len(data))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
