package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Watch tells which names of one directory have changed, so that a large one need not
// be listed again: the kernel queues an event before the system call that caused it
// returns, so what Changed does not name was not changed by any call that had ended
// before. What leaves no event is a write through a memory mapping, or through a hard link
// that lies elsewhere. A nil Watch knows nothing. It is not safe for concurrent use, but
// for Wait beside the others.
type Watch struct {
	events *os.File // of inotify
	buf    []byte
}

// Watched says which changes of its entries a Watch tells of.
type Watched uint32

const (
	// Names: what is made, taken away or given to something else.
	Names Watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	// Entries: these, and those that get another content or mode.
	Entries = Names | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_EXCL_UNLINK
)

// NewWatch begins to watch d. It is errors.ErrUnsupported where not every change makes
// an event: on file systems that other machines write to, and on those that only wrap
// another.
func NewWatch(d Dir, what Watched) (*Watch, error) {
	at, ok := FD(d)
	if !ok || !isLocal(at) {
		return nil, errors.ErrUnsupported
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if _, err := unix.InotifyAddWatch(fd, procPath(at), uint32(what)|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &Watch{events: os.NewFile(uintptr(fd), "inotify"), buf: make([]byte, 64<<10)}, nil
}

// Changed calls each for the names that changed since the last call, some of them more
// than once. all is false when others may have changed too, and the directory has to be
// looked at as a whole; then the watch is of no more use.
func (w *Watch) Changed(each func(name string)) (all bool) {
	if w == nil {
		return false
	}
	raw, err := w.events.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { all = w.read(int(fd), each) })
	}
	return all && err == nil
}

// Wait calls do each time that there may be something for Changed to tell, until Close.
func (w *Watch) Wait(do func()) {
	if raw, err := w.events.SyscallConn(); err == nil {
		_ = raw.Read(func(uintptr) (done bool) { do(); return false })
	}
}

func (w *Watch) read(fd int, each func(name string)) (all bool) {
	for {
		n, err := unix.Read(fd, w.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return true
		case err != nil || n <= 0:
			return false
		}
		for events := w.buf[:n]; len(events) >= unix.SizeofInotifyEvent; {
			mask := binary.NativeEndian.Uint32(events[unsafe.Offsetof(unix.InotifyEvent{}.Mask):])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[unsafe.Offsetof(unix.InotifyEvent{}.Len):]))
			name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:end], []byte{0})
			switch {
			case mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED|unix.IN_UNMOUNT|unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
				return false
			case len(name) > 0:
				each(string(name))
			}
			events = events[end:]
		}
	}
}

// Close ends the watch, which knows nothing any more.
func (w *Watch) Close() {
	if w != nil {
		_ = w.events.Close()
	}
}
