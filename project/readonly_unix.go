//go:build unix

package project

import (
	"errors"
	"syscall"
)

// readOnly says whether err comes from a file system that is mounted read-only.
func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
