package recorder

import (
	"decree/capture"
	"decree/history"
	"decree/manifest"
	"decree/tree"
)

// keep makes a captured tree outlive the process, and then the cache the current one: in
// this order, since the cache says what need not be stored again.
func (r *Recorder) keep(x *writing, res *capture.Result) error {
	if err := x.w.Flush(); err != nil {
		return err
	}
	return res.Commit()
}

// partial is the manifest of some paths: what a revert's record holds.
func partial(changes []tree.Change, side func(tree.Change) *tree.Entry) ([]byte, int, int64, error) {
	var b sliceWriter
	files, size := 0, int64(0)
	for _, c := range changes {
		if e := side(c); e != nil && e.Type != tree.Dir {
			files, size = files+1, size+e.Size
		}
	}
	err := manifest.Encode(&b, history.OneSide(changes, side), true)
	return b, files, size, err
}

type sliceWriter []byte

func (b *sliceWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func oldSide(c tree.Change) *tree.Entry { return c.Old }

func newSide(c tree.Change) *tree.Entry { return c.New }

// twin is the newest record when its run directory may hold the manifest.json of the
// same tree, and that file's hash; "" otherwise.
func (r *Recorder) twin(id tree.Hash) (string, tree.Hash) {
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
