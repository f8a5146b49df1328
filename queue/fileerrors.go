package queue

import (
	"errors"
	"fmt"
	"io/fs"
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
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, project.ErrTooLarge) || errors.Is(err, syscall.ENAMETOOLONG) || disk.OtherKind(err)
}

// unlessNoFile is nil where there is no file that can be used, and err else.
func unlessNoFile(err error) error {
	if isMissing(err) || ofFile(err) {
		return nil
	}
	return err
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
func (q *job) pass(d *dirs, name string, reason error) error {
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
