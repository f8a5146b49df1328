package queue

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"decree/disk"
	"decree/message"
	"decree/project"
	"decree/tree"
)

// ofFile says whether an error is about how one file is (its rights, its kind, its
// size, its name): it comes again at each try, and what needs the file cannot be
// done. Every other error (a full disk, one that fails, no descriptor left) is
// decree's own, and no message is put aside for it.
func ofFile(err error) bool {
	for _, kind := range []error{
		fs.ErrPermission, project.ErrTooLarge, disk.ErrNotRegular,
		syscall.ELOOP, syscall.ENOTDIR, syscall.EISDIR, syscall.ENXIO, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// unusable makes an error about a file that a message needs the message's own.
func unusable(name, what string, err error) error {
	switch {
	case err == nil || !ofFile(err):
		return err
	case errors.Is(err, syscall.ELOOP):
		err = errors.New("it is a link, and decree follows none")
	case errors.Is(err, project.ErrTooLarge):
		err = fmt.Errorf("it is larger than %d MiB", message.MaxSize>>20)
	case errors.Is(err, disk.ErrNotRegular):
		err = errors.New("it is not a regular file")
	case errors.Is(err, fs.ErrPermission):
		err = errors.New("it cannot be read: permission denied")
	}
	return &message.Error{Name: name, Reason: what + ": " + err.Error()}
}

// errFixed says that a message cannot be written back, and so not be moved either.
var errFixed = errors.New("it cannot be completed")

// errPassed says that a message is passed over, and that the next one may be begun.
var errPassed = errors.New("passed over")

// pass leaves a message where it is, for as long as this process lives, because it
// can neither be done nor moved.
func (q *Queue) pass(d *dirs, name string, reason error) error {
	info, err := d.inbox.Stat(name)
	if err != nil {
		return err
	}
	q.passed[name] = info.Ino
	q.note("%s stays in the inbox and is skipped until the next start: %v", tree.Quote(name), reason)
	return errPassed
}

// Passed says how many messages and specs this process could neither do nor put aside.
func (q *Queue) Passed() int { return len(q.passed) }

// specsInReach are the specs that are not processed. Where the directory or the
// list of those processed cannot be read, there are none, and this is told once.
func (q *Queue) specsInReach() ([]string, error) {
	if err := q.markAgain(); err != nil {
		return nil, err
	}
	specs, err := q.specs()
	if !ofFile(err) {
		return slices.DeleteFunc(specs, func(s string) bool { return slices.Contains(q.s.Unmarked, s) }), err
	}
	if dir := q.specDir(); q.passed[dir] == 0 {
		q.passed[dir] = 1
		q.note("no spec of %s is done: %v", dir, err)
	}
	return nil, nil
}

// mark marks a spec as processed. Where the list cannot be written, the store
// remembers it, so that the spec is not done again, and the list has it later.
func (q *Queue) mark(spec string) error {
	err := q.markSpec(spec)
	if !ofFile(err) {
		return err
	}
	if slices.Contains(q.s.Unmarked, spec) {
		return nil
	}
	q.note("%s is done, and not yet marked in %s: %v; decree remembers it", spec, processedFile, err)
	q.s.Unmarked = append(q.s.Unmarked, spec)
	return q.s.write(q.project().Store, true)
}

// markAgain marks what could not be marked before.
func (q *Queue) markAgain() error {
	var left []string
	for _, spec := range q.s.Unmarked {
		if err := q.markSpec(spec); ofFile(err) {
			left = append(left, spec)
		} else if err != nil {
			return err
		}
	}
	if len(left) == len(q.s.Unmarked) {
		return nil
	}
	q.s.Unmarked = left
	return q.s.write(q.project().Store, true)
}
