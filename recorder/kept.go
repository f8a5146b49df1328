package recorder

import (
	"errors"
	"fmt"
	"sync"

	"decree/disk"
	"decree/project"
)

// ErrGone says that a tree or its store is not where it was when its Reader was opened.
var ErrGone = errors.New("was moved or deleted while its records were looked at here")

// KeptReader opens a Reader when it is first asked for, tries that again until it works, and then keeps
// it for all, as long as the tree and its store stay where they are. It is safe for concurrent use.
type KeptReader struct {
	open func() (*Reader, error)

	mu     sync.Mutex
	reader *Reader
	left   []*Reader // of what is not there any more; somebody may still look at it
}

// KeepReader returns the Reader that open is to open.
func KeepReader(open func() (*Reader, error)) *KeptReader { return &KeptReader{open: open} }

// Get is the Reader, or why it cannot be opened. Where the tree was moved or deleted meanwhile, and no other
// one is in its place, ErrGone is in the error's chain.
func (k *KeptReader) Get() (*Reader, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reader != nil && k.reader.isInPlace() {
		return k.reader, nil
	}
	if k.reader != nil {
		k.left = append(k.left, k.reader)
		k.reader = nil
	}
	r, err := k.open()
	if err == nil {
		k.reader = r
	} else if n := len(k.left); n > 0 {
		err = goneError(k.left[n-1].Project())
	}
	return r, err
}

// isInPlace says whether the root and the store are still the directories that were opened.
func (r *Reader) isInPlace() bool {
	p := &r.project.Site
	return isAt(p.Disk, p.Root, p.Dir) && (p.Store == nil || isAt(p.Disk, p.StorePath, p.Store))
}

// isAt says whether a directory is the one at a path.
func isAt(d disk.Disk, path string, dir disk.Dir) bool {
	was, err := dir.Self()
	if err != nil {
		return false
	}
	at, err := d.OpenSearch(path)
	if err != nil {
		return false
	}
	defer at.Close()
	is, err := at.Self()
	return err == nil && is.SameFile(was)
}

func goneError(p *project.Site) error {
	what := p.Root
	if isAt(p.Disk, p.Root, p.Dir) {
		what = "the store of " + p.Root + ", " + p.StorePath + ","
	}
	return (&project.Error{Kind: project.NotFound, Err: fmt.Errorf("%s %w", what, ErrGone)}).Unchanged().
		Hintf("put it back, or end this server and start it again where the tree is now")
}

// Opened is the Reader; nil as long as it is not open.
func (k *KeptReader) Opened() *Reader {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reader
}

// Close closes what was opened. Nobody may use it any more.
func (k *KeptReader) Close() error {
	var err error
	for _, r := range append(k.left, k.Opened()) {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	return err
}
