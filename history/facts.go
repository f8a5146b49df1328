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
	Old, New *patch.Entry
	Stored   bool // the contents are in the store alone
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

	Store bool `json:"store"`
}

type factSideJSON struct {
	SHA256 *patch.Hash `json:"sha256"`
	Size   int64       `json:"size"`
	Mode   string      `json:"mode"`
	Type   string      `json:"type"`
	Target string      `json:"target"`
	Owner  string      `json:"owner"`
}

// entry is a side as a manifest's entry; dir says that the fact is of a directory.
func (s *factSideJSON) entry(dir bool) (*patch.Entry, error) {
	if s == nil {
		return nil, nil
	}
	mode, ok := patch.ParseMode(s.Mode)
	if !ok {
		return nil, fmt.Errorf("%q is not a file mode", clip(s.Mode))
	}
	out := &patch.Entry{Size: s.Size, Mode: mode}
	if s.SHA256 != nil {
		out.SHA256 = *s.SHA256
	}
	if out.Owner, ok = patch.ParseOwner(s.Owner); !ok && s.Owner != "" {
		return nil, fmt.Errorf("%q is not an owner, UID:GID", clip(s.Owner))
	}
	switch {
	case dir:
		out.Type = patch.Dir
	case s.Type == "symlink":
		target, err := patch.Unquote(s.Target)
		if err != nil {
			return nil, err
		}
		out.Type, out.Target = patch.Symlink, target
	}
	return out, nil
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
	f := Fact{Path: path, Op: j.Op, Stored: j.Store}
	dir := j.Op == string(patch.OpMkdir) || j.Op == string(patch.OpRmdir) || j.Op == string(patch.OpDirMode)
	if f.Old, err = j.Old.entry(dir); err != nil {
		return Fact{}, err
	}
	f.New, err = j.New.entry(dir)
	return f, err
}

// contents calls each for the contents that the fact names.
func (f *Fact) contents(each func(patch.Hash)) {
	for _, e := range []*patch.Entry{f.Old, f.New} {
		if e != nil && e.Type == patch.Regular {
			each(e.SHA256)
		}
	}
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
