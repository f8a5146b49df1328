package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"decree/tree"
)

// absent says that the name vanished.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// exhausted says that the machine is at its end, not the file: that must never pass for
// a file that cannot be read.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// exhaustion is the error of a walk that the machine could not go on with.
func exhaustion(path tree.Path, err error) error {
	return fmt.Errorf("%s: %w", tree.Quote(rootName(path)), bare(err))
}
