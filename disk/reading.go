package disk

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// ErrUnreadable says that the disk cannot give a part of what Map has returned.
var ErrUnreadable = fmt.Errorf("mapped file: %w", syscall.EIO)

// Reading calls do, which looks at data that Map has returned. Where that cannot be read, as of a bad sector
// or of a file that was cut short, the system ends the process with SIGBUS; here it ends do, with
// ErrUnreadable. do must hold no lock that it would give back itself, and what it leaves behind must be copies.
func Reading(data []byte, do func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if !faultIn(data, r) {
			panic(r)
		}
		err = ErrUnreadable
	}()
	do()
	return nil
}

// faultIn says whether a panic is that a place of data cannot be read.
func faultIn(data []byte, r any) bool {
	f, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return false
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	return f.Addr() >= from && f.Addr()-from < uintptr(len(data))
}
