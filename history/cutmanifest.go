package history

import (
	"errors"
	"io/fs"
)

// manifestEnd is how every manifest.json ends, and none does before its end.
const manifestEnd = "\n}\n"

var errCut = errors.New("manifest.json is cut off")

// CutManifests returns those of the newest records whose plain manifest.json has
// lost its end. It reads the last bytes of as many files as are kept plain.
func (h *History) CutManifests() (cut []Damage, err error) {
	n := 0
	err = h.Newest(func(r *Record) bool {
		if h.isCut(r.ID) {
			cut = append(cut, Damage{r.ID, errCut})
		}
		n++
		return n < PlainManifests
	})
	return cut, err
}

// isCut says whether the file is there and does not end as it should.
func (h *History) isCut(id string) bool {
	dir, err := h.OpenRun(id)
	if err != nil {
		return false
	}
	defer dir.Close()
	f, err := dir.Open(manifestJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return false // it lies in the store alone
	}
	if err != nil {
		return true
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size < int64(len(manifestEnd)) {
		return true
	}
	var end [len(manifestEnd)]byte
	_, err = f.ReadAt(end[:], info.Size-int64(len(end)))
	return err != nil || string(end[:]) != manifestEnd
}
