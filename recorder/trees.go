package recorder

import (
	"crypto/sha256"
	"io"

	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/tree"
)

// keep makes a captured tree outlive the process, and then the cache the current one: in
// this order, since the cache says what need not be stored again.
func (r *Recorder) keep(x *writeSession, res *capture.Result) error {
	if err := x.w.Flush(); err != nil {
		return err
	}
	return res.Commit()
}

// partial is the manifest of what some paths were: what a revert's record holds. It is
// written whenever it is needed, since of very many paths it is long.
func partial(changes []tree.Change) (f history.RunFile, sum tree.Hash, files int, size int64, err error) {
	for _, c := range changes {
		if e := c.Old; e != nil && e.Type != tree.Dir {
			files, size = files+1, size+e.Size
		}
	}
	f = history.RunFile{Name: "manifest.json", Write: func(w io.Writer) error {
		return manifest.Encode(w, history.OneSide(changesInMemory(changes), oldSide), true)
	}}
	h := sha256.New()
	err = f.Write(h)
	h.Sum(sum[:0])
	return f, sum, files, size, err
}

func oldSide(c tree.Change) *tree.Entry { return c.Old }

func newSide(c tree.Change) *tree.Entry { return c.New }

// recordOfSameTree is the newest record when its run directory may hold the manifest.json of the
// same tree, and that file's hash; "" otherwise.
func (r *Recorder) recordOfSameTree(id tree.Hash) (string, tree.Hash) {
	ref, err := r.history.Resolve("last", r.opt.Location)
	if err != nil {
		return "", tree.Hash{}
	}
	rec, err := r.history.Get(ref.ID)
	if err != nil || rec.Before != id || rec.Partial() || rec.ManifestSHA256.IsZero() {
		return "", tree.Hash{}
	}
	return rec.ID, rec.ManifestSHA256
}
