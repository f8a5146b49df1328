package layer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"decree/disk"
)

// nameWatch has the system tell which names in a directory are made, taken away or given to something else, whoever does it. It is
// safe for concurrent use.
type nameWatch struct {
	events *os.File

	mu      sync.Mutex
	touched map[string]bool // nil: not all of them are known
}

// mostNames is how many names are remembered.
const mostNames = 1 << 15

const nameEvents = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO

// watchNames begins to watch dir, until stop; nil where the system cannot tell, or where another machine may change dir.
func watchNames(dir disk.Dir) *nameWatch {
	at, ok := disk.FD(dir)
	if !ok || !dir.FileSystem().Steady {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &nameWatch{events: os.NewFile(uintptr(fd), "inotify"), touched: map[string]bool{}}
	if _, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", at), nameEvents|unix.IN_ONLYDIR); err != nil {
		w.stop()
		return nil
	}
	go w.watch()
	return w
}

// watch reads what there is before the system forgets it.
func (w *nameWatch) watch() {
	raw, err := w.events.SyscallConn()
	if err == nil {
		_ = raw.Read(func(fd uintptr) (done bool) { w.read(int(fd)); return false })
	}
}

// read reads all that the system has to tell by now.
func (w *nameWatch) read(fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil || n < unix.SizeofInotifyEvent:
			w.touched = nil
			return
		}
		w.note(buf[:n])
	}
}

// note notes the names of events. One that has none says that not all were told, or that the directory is gone.
func (w *nameWatch) note(events []byte) {
	for len(events) >= unix.SizeofInotifyEvent && w.touched != nil {
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[unix.SizeofInotifyEvent-4:]))
		name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:size], []byte{0})
		if w.touched[string(name)] = true; len(name) == 0 || len(w.touched) > mostNames {
			w.touched = nil
		}
		events = events[size:]
	}
}

// untouched says whether it is known that what name is in the directory has not changed since the watch began.
func (w *nameWatch) untouched(name string) bool {
	if w == nil {
		return false
	}
	raw, err := w.events.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { w.read(int(fd)) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return err == nil && w.touched != nil && !w.touched[name]
}

func (w *nameWatch) stop() {
	if w != nil {
		_ = w.events.Close()
	}
}
