package history

import (
	"io"

	"decree/jsonread"
	"decree/tree"
)

// work is what a record says of a draft's changes, where they became others after its run
// had ended: somebody has worked in the layer again.
type work struct {
	changes    Changes
	bytes      int64
	manifest   tree.Hash
	unrecorded []tree.Path
	noBase     []tree.Path
	git        int
	outdated   map[string][]tree.Path
}

// apply makes r say the same; nil is nothing.
func (w *work) apply(r *Record) {
	if w == nil {
		return
	}
	r.Changes, r.Bytes, r.ManifestSHA256, r.Unrecorded = w.changes, w.bytes, w.manifest, w.unrecorded
	if r.Draft != nil {
		d := *r.Draft
		d.NoBase, d.Git, d.Outdated = w.noBase, w.git, w.outdated
		r.Draft = &d
	}
}

func (w *work) append(dst []byte) []byte {
	to := compact(dst)
	to.value("changes", w.changes.append)
	to.number("bytes", w.bytes)
	to.hash("manifest_sha256", w.manifest)
	to.paths("unrecorded", w.unrecorded)
	to.paths("no_base", w.noBase)
	to.number("git", int64(w.git))
	if len(w.outdated) > 0 {
		to.value("outdated", (&Draft{Outdated: w.outdated}).appendOutdated)
	}
	return to.end()
}

func workOf(v *jsonread.Value) *work {
	w := &work{}
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "changes":
			w.changes = changesOf(m)
		case "bytes":
			w.bytes = m.Int()
		case "manifest_sha256":
			w.manifest = hashOf(m)
		case "unrecorded":
			w.unrecorded = pathsOf(m)
		case "no_base":
			w.noBase = pathsOf(m)
		case "git":
			w.git = int(m.Int())
		case "outdated":
			w.outdated = outdatedOf(m)
		}
	})
	return w
}

// RenewDraft gives the record of a draft another changes.diff, the object diff, with what r
// says of it: its counts, its paths that could not be read or have no base, the hash of its
// manifest, and the state of the draft. All else of r is the record's own. The line of the
// log is the moment at which this counts; what follows in the run directory can be repeated.
// The objects must be durable.
func (h *History) RenewDraft(r *Record, diff tree.Hash) error {
	l, err := h.copyOf(r.ID)
	if err != nil {
		return err
	}
	t := &commit{h: h, line: &line{op: opDraft}}
	defer t.drop()
	e := t.line.effect(r.ID)
	e.draft = &Draft{State: r.Draft.State, By: r.Draft.By}
	e.files = map[string]tree.Hash{ChangesFile: diff}
	e.work = &work{r.Changes, r.Bytes, r.ManifestSHA256, r.Unrecorded, r.Draft.NoBase, r.Draft.Git, r.Draft.Outdated}
	if err := e.apply(l); err != nil {
		return err
	}
	if err := t.orNote(r.ID, t.restage(l)); err != nil {
		return err
	}
	if err := t.write(); err != nil {
		return err
	}
	if err := t.orNote(r.ID, h.ReplaceFile(r.ID, ChangesFile, h.copyObject(diff))); err != nil {
		return err
	}
	return t.orNote(r.ID, h.ReplaceFile(r.ID, manifestJSON, func(to io.Writer) error { return h.WriteManifest(l.record, to) }))
}
