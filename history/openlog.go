package history

import (
	"bufio"
	"fmt"
	"io"

	"decree/project"
)

// OpenLogs is a directory of the store: logs of what open records name beside themselves,
// one line after the other. Several runs of a process share one, so that each writes only
// what has changed since the one before.
const OpenLogs = project.OwnLogs

// OpenLog says which part of a log is an open record's own: the first bytes.
type OpenLog struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// EachLine calls each for the lines of a log that are an open record's own; o may be nil.
// An error of each ends it. One that is shorter is an error.
func (h *History) EachLine(o *OpenLog, each func(line []byte) error) error {
	if o == nil {
		return nil
	}
	dir, err := h.p.Store.OpenDir(OpenLogs)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, err := dir.Open(o.File)
	if err != nil {
		return err
	}
	defer f.Close()
	var done int64
	lines := bufio.NewReaderSize(io.LimitReader(f, o.Bytes), 1<<20)
	for done < o.Bytes {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("%s/%s ends after %d of %d bytes (%w)", OpenLogs, o.File, done, o.Bytes, err)
		}
		done += int64(len(line))
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}
