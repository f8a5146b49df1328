//go:build !linux

package userns

import (
	"errors"
	"syscall"
)

// Attr returns errors.ErrUnsupported.
func Attr(*syscall.SysProcAttr, ...uintptr) error { return errors.ErrUnsupported }

// Drop returns errors.ErrUnsupported.
func Drop() error { return errors.ErrUnsupported }

// Read finds no settings.
func Read() Policy { return Policy{} }
