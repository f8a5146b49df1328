//go:build unix

package store

import (
	"syscall"
	"testing"
)

func withUmask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}
