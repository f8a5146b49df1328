//go:build !linux

package overlay

import (
	"errors"
	"os"
	"syscall"
)

// Attr returns errors.ErrUnsupported.
func (m *Mount) Attr(*syscall.SysProcAttr) error { return errors.ErrUnsupported }

// Enter returns errors.ErrUnsupported.
func Enter(words []string) error {
	if _, err := parse(words); err != nil {
		return err
	}
	return errors.ErrUnsupported
}

// Open returns errors.ErrUnsupported.
func (*Mount) Open() (*os.File, error) { return nil, errors.ErrUnsupported }
