package history

// ReadRun reads a record's run.json as it lies in .decree/runs, whatever the
// store's copy says.
func (h *History) ReadRun(id string) (*Record, error) {
	r, _, err := h.readRun(id)
	return r, err
}
