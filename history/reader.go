package history

import (
	"io"
	"time"

	"decree/tree"
)

// Reader looks at the records of a project and has no method that changes them. It is
// safe for concurrent use. Its methods are those of History with the same names.
type Reader struct{ h *History }

// Reader is h for those who only look.
func (h *History) Reader() Reader { return Reader{h} }

func (r Reader) List(o ListOptions) (*Listing, error) { return r.h.List(o) }

func (r Reader) Get(id string) (*Record, error) { return r.h.Get(id) }

func (r Reader) Resolve(ref string, loc *time.Location) (Ref, error) { return r.h.Resolve(ref, loc) }

func (r Reader) ResolveAll(ref string, loc *time.Location) ([]Ref, error) {
	return r.h.ResolveAll(ref, loc)
}

func (r Reader) Ends() (short func(id string) string, err error) { return r.h.Ends() }

func (r Reader) Labels() (map[string]string, error) { return r.h.Labels() }

func (r Reader) LabelsOf() (map[string][]string, error) { return r.h.LabelsOf() }

func (r Reader) Foreign(id string) (bool, error) { return r.h.Foreign(id) }

func (r Reader) ListOpen() ([]*Opened, []Damage, error) { return r.h.ListOpen() }

func (r Reader) CutManifests() ([]Damage, error) { return r.h.CutManifests() }

func (r Reader) Past(o PastOptions, each func(Moment) bool) (warnings []string, err error) {
	return r.h.Past(o, each)
}

func (r Reader) EachEntry(each func(path tree.Path, e tree.Entry)) error { return r.h.EachEntry(each) }

func (r Reader) OpenFile(id, name string) (io.ReadCloser, error) { return r.h.OpenFile(id, name) }

func (r Reader) ReadRun(id string) (*Record, error) { return r.h.ReadRun(id) }

func (r Reader) ReadAudit(each func(*Operation) error) (*AuditReport, error) {
	return r.h.ReadAudit(each)
}

func (r Reader) WriteManifestAfter(rec *Record, w io.Writer) error {
	return r.h.WriteManifestAfter(rec, w)
}
