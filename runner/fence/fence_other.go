//go:build !linux

package fence

import (
	"errors"
	"syscall"
)

// Kernel is 0: there is no Landlock.
func Kernel() int { return 0 }

// Attr returns errors.ErrUnsupported where the network is to be kept away.
func (f Fence) Attr(*syscall.SysProcAttr) error {
	if f.NoNet {
		return errors.ErrUnsupported
	}
	return nil
}

func needsUsers() bool { return false }

// Unplug does nothing.
func (Fence) Unplug() error { return nil }

// Enclose does nothing.
func (Fence) Enclose() error { return nil }
