package patch

import (
	"errors"
	"strconv"

	"decree/jsonread"
	"decree/tree"
)

// ParseFacts reads the JSON of a "# decree:" line into a Section that has nothing else. A
// diff that two readers can understand differently must not be understood at all, which
// is why jsonread reads it.
func ParseFacts(data []byte) (*Section, error) {
	s := &Section{}
	hasPath := false
	err := jsonread.Object(data, func(name string, v *jsonread.Value) error {
		switch name {
		case "path":
			hasPath = true
			s.Path = tree.Path(unquoted(v))
		case "op":
			s.Op = Op(v.Text())
		case "old":
			s.Old = entryOf(v)
		case "new":
			s.New = entryOf(v)
		case "binary":
			s.Binary = v.Bool()
		case "store":
			s.Stored = v.Bool()
		case "shared":
			s.Shared = v.Bool()
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case data[len(data)-1] != '}': // a CR, as in a diff that a mail program has converted
		return nil, errors.New("something follows the JSON object")
	case !hasPath:
		return nil, errors.New("no path")
	}
	if reason := s.checkFacts(); reason != "" {
		return nil, errors.New(reason)
	}
	return s, nil
}

// checkFacts returns what is wrong with a section's facts, or "".
func (s *Section) checkFacts() string {
	if pathErr := new(tree.PathError); errors.As(s.Path.Check(), &pathErr) {
		return pathErr.Reason
	}
	switch s.Op {
	case OpCreate, OpDelete, OpModify, OpMode, OpMkdir, OpRmdir, OpDirMode:
	case "":
		return "no op"
	default:
		return "unknown op " + strconv.Quote(tree.Clip(string(s.Op)))
	}
	if s.Old == nil && s.New == nil {
		return "neither old nor new"
	}
	return s.fault()
}

// unquoted reads a string that Quote wrote.
func unquoted(v *jsonread.Value) string {
	raw, err := tree.Unquote(v.Text())
	if err != nil {
		v.Fail(err)
	}
	return raw
}

// entryOf reads one side's facts. A directory's has a mode, and its owner where that is recorded.
func entryOf(v *jsonread.Value) *tree.Entry {
	if v.Null() {
		v.Expected("an object")
	}
	e := &tree.Entry{}
	var mode, sum, size, target bool
	v.Members(func(name string, m *jsonread.Value) {
		switch name {
		case "mode":
			mode = true
			ok := false
			if e.Mode, ok = tree.ParseMode(m.Text()); !ok {
				m.Expected("a mode in octal")
			}
		case "size":
			size = true
			if e.Size = m.Int(); e.Size < 0 {
				m.Expected("a whole number")
			}
		case "sha256":
			sum = true
			if err := e.SHA256.UnmarshalText(m.Bytes()); err != nil {
				m.Expected("64 lower-case hex digits")
			}
		case "type":
			if kind := m.Text(); kind != "symlink" {
				m.Fail(errors.New("unknown type " + strconv.Quote(tree.Clip(kind))))
			}
			e.Type = tree.Symlink
		case "target":
			target = true
			e.Target = unquoted(m)
		case "owner":
			ok := false
			if e.Owner, ok = tree.ParseOwner(m.Text()); !ok {
				m.Expected("an owner as two numbers")
			}
		}
	})
	if !sum && e.Type == tree.Regular {
		e.Type = tree.Dir
	}
	if reason := incoherent(e, mode, sum, size, target); reason != "" {
		v.Fail(errors.New(reason))
	}
	return e
}

// incoherent is what is wrong with the facts of a side as a whole, or "". The flags say which
// of them it has.
func incoherent(e *tree.Entry, mode, sum, size, target bool) string {
	switch {
	case !mode:
		return "entry without mode"
	case sum != size:
		return "entry with one of size and sha256"
	case target != (e.Type == tree.Symlink):
		return "target and type disagree"
	case !sum && e.Type == tree.Symlink:
		return "symlink without sha256"
	case e.Type == tree.Symlink && e.Mode != tree.SymlinkMode:
		return "mode of a symlink is not 777"
	case e.Owner.Known && !e.MayOwn():
		return "an owner is only for what has set-user-ID or set-group-ID, or whose group may more than others"
	}
	return ""
}
