package history

// While one process reads, another may remove records: what the reader's copy of the log
// says is then gone from the store.

// outdated reads the log again where it is not the one that was read, and says
// whether that was so.
func (h *History) outdated() bool {
	h.mu.Lock()
	l := h.log
	h.mu.Unlock()
	if l == nil || l.current(h.p.Store) {
		return false
	}
	h.Refresh()
	return true
}

// Gone says whether id, a record that the log had, is not in it any more.
func (h *History) Gone(id string) (bool, error) {
	h.outdated()
	is, err := h.Recorded(id)
	return !is, err
}
