package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"decree/patch"
	"decree/tree"
)

// factReaders are kept: a look at the past of a path reads a diff a record, most of them short.
var factReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}

// Facts calls each for the sections of a changes.diff in their order, without their lines,
// until it returns false. It reads the "# decree:" lines alone, which no content can look
// like: every line of a hunk begins with ' ', '+', '-' or '\'. It is for histories of a
// path; to revert, package patch reads the diff with its lines.
func Facts(r io.Reader, each func(*patch.Section) bool) error {
	in, _ := factReaders.Get().(*bufio.Reader)
	in.Reset(r)
	defer factReaders.Put(in)
	for n := 1; ; n++ {
		b, err := in.ReadSlice('\n')
		isFact := bytes.HasPrefix(b, []byte(patch.FactsPrefix))
		var long []byte
		for errors.Is(err, bufio.ErrBufferFull) {
			if isFact && len(long) < patch.MaxFacts {
				long = append(long, b...)
			}
			b, err = in.ReadSlice('\n')
		}
		if isFact {
			b = append(long, b...)
			f, ferr := patch.ParseFacts(bytes.TrimSpace(b[len(patch.FactsPrefix):]))
			if ferr != nil {
				return fmt.Errorf("changes.diff: %w", &patch.SyntaxError{Line: n, Reason: ferr.Error()})
			}
			if !each(f) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Touches says whether record id changed path or something below it, by its
// changes.diff. A record without one changed nothing.
func (h *History) Touches(r *Record, path tree.Path) (bool, error) {
	if r.DiffSHA256.IsZero() {
		return false, nil
	}
	f, err := h.OpenFile(r.ID, ChangesFile)
	if err != nil {
		return false, err
	}
	defer f.Close()
	found := false
	err = Facts(f, func(f *patch.Section) bool {
		found = path == "" || f.Path == path || f.Path.Below(path)
		return !found
	})
	return found, err
}
