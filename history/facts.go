package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"decree/patch"
)

// Fact is one "# decree:" line of a changes.diff.
type Fact struct {
	Path     string // raw
	Op       string // create, delete, modify, mode, mkdir, rmdir, dirmode
	Old, New Side256
}

// Side256 is what a Fact says of one side; the zero value: nothing there, or a directory.
type Side256 struct {
	SHA256 patch.Hash
	Size   int64
	Mode   string
	Type   string
}

const factMark = "# decree: "

// maxFact bounds a fact's line: two targets and a path, all octal-quoted.
const maxFact = 1 << 20

// Facts calls each for the facts of a changes.diff in their order, until it
// returns false. It looks at the "# decree:" lines alone: content cannot stand
// at the beginning of a line, since every line of a hunk begins with ' ', '+',
// '-' or '\'. It is for histories of a path; to revert, package patch reads the
// whole.
func Facts(r io.Reader, each func(Fact) bool) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		b, err := in.ReadSlice('\n')
		whole := bytes.HasPrefix(b, []byte(factMark))
		var long []byte
		for errors.Is(err, bufio.ErrBufferFull) {
			if whole && len(long) < maxFact {
				long = append(long, b...)
			}
			b, err = in.ReadSlice('\n')
		}
		if whole {
			b = append(long, b...)
			f, ferr := parseFact(bytes.TrimSpace(b[len(factMark):]))
			if ferr != nil {
				return fmt.Errorf("changes.diff:%d: %w", n, ferr)
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

type factJSON struct {
	Path string        `json:"path"`
	Op   string        `json:"op"`
	Old  *factSideJSON `json:"old"`
	New  *factSideJSON `json:"new"`
}

type factSideJSON struct {
	SHA256 *patch.Hash `json:"sha256"`
	Size   int64       `json:"size"`
	Mode   string      `json:"mode"`
	Type   string      `json:"type"`
}

func (s *factSideJSON) side() Side256 {
	if s == nil {
		return Side256{}
	}
	out := Side256{Size: s.Size, Mode: s.Mode, Type: s.Type}
	if s.SHA256 != nil {
		out.SHA256 = *s.SHA256
	}
	return out
}

func parseFact(b []byte) (Fact, error) {
	var j factJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return Fact{}, err
	}
	path, err := patch.Unquote(j.Path)
	if err == nil {
		err = patch.CheckPath(path)
	}
	if err != nil {
		return Fact{}, err
	}
	return Fact{Path: path, Op: j.Op, Old: j.Old.side(), New: j.New.side()}, nil
}

// Touches says whether record id changed path or something below it, by its
// changes.diff. A record without one changed nothing.
func (h *History) Touches(r *Record, path string) (bool, error) {
	if r.DiffSHA256.IsZero() {
		return false, nil
	}
	f, err := h.OpenFile(r.ID, "changes.diff")
	if err != nil {
		return false, err
	}
	defer f.Close()
	found := false
	err = Facts(f, func(f Fact) bool {
		found = path == "" || f.Path == path || strings.HasPrefix(f.Path, path+"/")
		return !found
	})
	return found, err
}
