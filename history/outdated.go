package history

// While one process reads, another may remove records: what the reader's copy of the log
// says is then gone from the store.

// CatchUp makes later calls see what other processes have recorded, and says whether there
// is something. It costs a look at the log's size where there is nothing new.
func (h *History) CatchUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.log == nil || h.log.current(h.p.Store) {
		return false
	}
	h.stale = true
	return true
}

// Gone says whether id, a record that the log had, is not in it any more.
func (h *History) Gone(id string) (bool, error) {
	h.CatchUp()
	is, err := h.Recorded(id)
	return !is, err
}
