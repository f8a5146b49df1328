package recorder

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"decree/history"
	"decree/project"
	"decree/tree"
)

// OpenDiff opens what a record changed, its changes.diff, or with history.OutsideFile what it found
// changed. Its hash is compared while it is read: what is damaged has been read when that is found
// out, and the end is an error then and not io.EOF. The error of a file that is not there is
// fs.ErrNotExist.
func (r *Reader) OpenDiff(rec *history.Record, name string) (io.ReadCloser, error) {
	f, err := r.History().OpenFile(rec.ID, name)
	if err != nil {
		return nil, err
	}
	// As revert does, it goes by the run.json that lies beside it.
	if plain, err := r.History().ReadRun(rec.ID); err == nil {
		rec = plain
	}
	want := rec.DiffSHA256
	if name == history.OutsideFile {
		found, _ := rec.Outside()
		want = found.SHA256
	}
	return &checkedDiff{ReadCloser: f, sum: sha256.New(), want: want, path: ".decree/runs/" + rec.ID + "/" + name}, nil
}

// checkedDiff compares the hash of what was read at the end.
type checkedDiff struct {
	io.ReadCloser
	sum  hash.Hash
	want tree.Hash // zero: not known
	path string
}

func (d *checkedDiff) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.sum.Write(p[:n]) //nolint:errcheck // a hash takes everything
	if errors.Is(err, io.EOF) && !d.want.IsZero() && tree.Hash(d.sum.Sum(nil)) != d.want {
		err = &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s: not what was recorded", d.path),
			Advice: "'decree doctor --repair' writes it again from the store"}
	}
	return n, err
}
