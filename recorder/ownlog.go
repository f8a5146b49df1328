package recorder

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"

	"decree/disk"
	"decree/history"
	"decree/project"
)

// The files of large directories are not in the open record of each run, but in a log
// beside it, to which a run adds what changed since the one before in the same process;
// its open record says how far the log was its own. It is <id>.jsonl in history.OpenLogs,
// named after the first run that it was written for. A line is a file as in an open
// record, with "gone" when it was there before and is no more; the last line of a path
// counts.

// ownLine is a line of it.
type ownLine struct {
	ownFile
	Gone bool `json:"gone,omitempty"`
}

// ownLog is the log of this process.
type ownLog struct {
	history.OpenLog
	file  disk.File
	lines int
	stale bool // it is not of the directories that are large now
}

// close lets the log go; it is of no use to a later run.
func (l *ownLog) close() {
	if l.file != nil {
		l.file.Close()
	}
	*l = ownLog{}
}

// goesOn says whether the log can be added to: it is as this process has left it.
// Another process removes it where no record is open.
func (l *ownLog) goesOn(dir disk.Dir) bool {
	if l.file == nil || l.stale {
		return false
	}
	ours, err := l.file.Stat()
	if err != nil || ours.Size != l.Bytes {
		return false
	}
	now, err := dir.Stat(l.File)
	return err == nil && now.SameFile(ours)
}

// logOwn makes durable what the large directories hold as run id begins, and returns
// what its open record says of it, nil for nothing. One log takes the place of another
// when most of its lines are out of date.
func (r *Recorder) logOwn(id string, own ownSet) (_ *history.OpenLog, err error) {
	l := &r.own.log
	if len(own.large) == 0 {
		l.close()
		return nil, nil
	}
	dir, err := project.MakeDir(r.project.Store, history.OpenLogs, project.PrivateDir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	files := 0
	for _, d := range own.large {
		files += len(d.files)
	}
	if l.goesOn(dir) && l.lines < 3*files {
		err = l.add(own.large)
	} else {
		err = l.begin(dir, id, own.large)
		if err == nil {
			err = errors.Join(dir.Sync(), r.project.Store.Sync())
		}
	}
	if err != nil {
		return nil, err
	}
	mark := l.OpenLog
	return &mark, nil
}

// begin writes a log of all files.
func (l *ownLog) begin(dir disk.Dir, id string, large []*largeDir) error {
	l.close()
	l.File = id + ".jsonl"
	err := dir.Remove(l.File) // of a run that was given up
	if err != nil && !isMissing(err) {
		return err
	}
	if l.file, err = disk.CreateFile(dir, l.File, project.PrivateFile); err != nil {
		return err
	}
	for _, d := range large {
		for name := range d.files {
			d.unlogged[name] = true
		}
	}
	return l.add(large)
}

// add writes what has changed since the last line.
func (l *ownLog) add(large []*largeDir) error {
	w := bufio.NewWriterSize(l.file, 1<<20)
	for _, d := range large {
		for _, name := range slices.Sorted(maps.Keys(d.unlogged)) {
			f, there := d.files[name]
			if !there {
				f = ownFile{Path: path.Join(d.at, name)}
			}
			line, err := json.Marshal(ownLine{f.quoted(), !there})
			if err != nil {
				return err
			}
			n, err := w.Write(append(line, '\n'))
			if err != nil {
				return err
			}
			l.Bytes += int64(n)
			l.lines++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	for _, d := range large {
		clear(d.unlogged)
	}
	return nil
}

// ownOf are the user's own files as they were when the open record's run began.
func (r *Reader) ownOf(o *history.Opened) ([]ownFile, error) {
	files, err := decodeOwn(o.Extra[extraOwn])
	if err != nil {
		return nil, err
	}
	more := map[string]ownFile{}
	err = r.history.EachLine(o.Log, func(data []byte) error {
		var line ownLine
		if err := json.Unmarshal(data, &line); err != nil {
			return err
		}
		if f := line.unquoted(); line.Gone {
			delete(more, f.Path)
		} else {
			more[f.Path] = f
		}
		return nil
	})
	for _, at := range slices.Sorted(maps.Keys(more)) {
		files = append(files, more[at])
	}
	return files, err
}

// tidyOwnLogs removes the logs that dead processes have left, where no record is open.
func (r *Recorder) tidyOwnLogs() error {
	dir, err := r.project.Store.OpenDir(history.OpenLogs)
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	open, _, err := r.history.ListOpen()
	if err != nil || slices.ContainsFunc(open, func(o *history.Opened) bool { return o.Record.Reason != history.Turn || o.Extra[extraOwn] != nil }) {
		return err
	}
	if err := r.project.EndActs(); err != nil {
		return err
	}
	list, err := dir.List()
	for _, e := range list {
		if err == nil && e.Name != r.own.log.File && e.Name != project.ActsLog && (e.Name != project.AgentReportsLog || len(open) == 0) && e.Kind != disk.Directory {
			if err = dir.Remove(e.Name); isMissing(err) {
				err = nil
			}
		}
	}
	return err
}
