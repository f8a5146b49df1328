//go:build !linux && !darwin

package runner

import (
	"context"
	"errors"
	"time"
)

// Run returns errors.ErrUnsupported: the system has no process groups.
func Run(context.Context, Command) (Result, error) { return Result{}, errors.ErrUnsupported }

// BootID returns "".
func BootID() string { return "" }

// BootTime is zero: it is not known.
func BootTime() time.Time { return time.Time{} }

// Alive returns errors.ErrUnsupported.
func Alive(Leader) ([]Process, error) { return nil, errors.ErrUnsupported }

// Outside finds none.
func Outside(Leader, string, string) []Process { return nil }

// Kill returns errors.ErrUnsupported.
func Kill(Leader, *uint32, time.Duration) error { return errors.ErrUnsupported }

// A ForeignError is never returned.
type ForeignError struct {
	Owner     uint32
	Processes []Process
}

func (*ForeignError) Error() string { return "" }

// Lineage returns nil.
func Lineage() []Ancestor { return nil }

// KillMounted returns errors.ErrUnsupported.
func KillMounted(string, *uint32, time.Duration) ([]Process, error) {
	return nil, errors.ErrUnsupported
}

// TryNoNet returns errors.ErrUnsupported.
func TryNoNet() error { return errors.ErrUnsupported }

// Caller is not known.
func Caller(string) (Ancestor, bool) { return Ancestor{}, false }

// ProcessAt has no start time.
func ProcessAt(pid int) Ancestor { return Ancestor{PID: pid} }

// Lives returns true: nothing shows that the process is gone.
func Lives(Ancestor) bool { return true }

// Background returns errors.ErrUnsupported.
func Background(string, []string, []string, string) (<-chan error, error) {
	return nil, errors.ErrUnsupported
}
