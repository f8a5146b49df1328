package layer

import (
	"sync"

	"decree/disk"
)

// nameWatch knows which names in a directory were made, taken away or given to something else since it began, whoever did it. A nil
// one knows nothing. It is safe for concurrent use.
type nameWatch struct {
	watch *disk.Watch

	mu      sync.Mutex
	touched map[string]bool // nil: not all of them are known
}

// mostNames is how many names are remembered.
const mostNames = 1 << 15

// watchNames begins to watch dir, until stop; nil where the system cannot tell, or where another machine may change dir.
func watchNames(dir disk.Dir) *nameWatch {
	if !dir.FileSystem().Steady {
		return nil
	}
	watch, err := disk.NewWatch(dir, disk.Names)
	if err != nil {
		return nil
	}
	w := &nameWatch{watch: watch, touched: map[string]bool{}}
	go watch.Wait(func() { w.untouched("") }) // read before the system forgets it
	return w
}

// untouched says whether it is known that what name is in the directory has not changed since the watch began.
func (w *nameWatch) untouched(name string) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.touched == nil {
		return false
	}
	all := w.watch.Changed(func(name string) { w.touched[name] = true })
	if !all || len(w.touched) > mostNames {
		w.touched = nil
	}
	return w.touched != nil && !w.touched[name]
}

func (w *nameWatch) stop() {
	if w != nil {
		w.watch.Close()
	}
}
