package patch

import (
	"bytes"
	"io"

	"decree/tree"
)

// Op is what happened to a path.
type Op string

// The operations, as "# decree:" lines name them. Create, delete, modify and mode are of
// files and symlinks; a modify may change the mode too. Mkdir, rmdir and dirmode are of
// directories.
const (
	OpCreate  Op = "create"
	OpDelete  Op = "delete"
	OpModify  Op = "modify"
	OpMode    Op = "mode"
	OpMkdir   Op = "mkdir"
	OpRmdir   Op = "rmdir"
	OpDirMode Op = "dirmode"
)

// Limits bound what is written into the diff itself, in bytes. What is above becomes a
// section without contents, whose bytes only the store has. A zero field is its default.
type Limits struct {
	InlineBinary int64 // a side of a binary section; 1 MiB
	InlineText   int64 // a whole text section, which is not the file; 64 MiB
	MaxText      int64 // a side that is looked at as text at all; 256 MiB, at most 1 GiB
}

func (l Limits) withDefaults() Limits {
	if l.InlineBinary == 0 {
		l.InlineBinary = 1 << 20
	}
	if l.InlineText == 0 {
		l.InlineText = 64 << 20
	}
	if l.MaxText == 0 {
		l.MaxText = 256 << 20
	}
	// Offsets into a text are 32 bits wide.
	l.MaxText = min(l.MaxText, 1<<30)
	return l
}

// Content gives the bytes of one side of a file. Open may be called more than once and
// gives the same bytes each time; the Writer closes what it opens.
type Content interface {
	Open() (io.ReadCloser, error)
}

// Bytes is a Content held in memory.
type Bytes []byte

// Open returns a reader of b; it never fails.
func (b Bytes) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

// Change is what happened to one path. Old is nil if it did not exist, New if it no longer
// does. The contents are those of regular files; of symlinks and directories the entries
// say everything, and the contents are nil.
type Change struct {
	Path                   tree.Path
	Old, New               *tree.Entry
	OldContent, NewContent Content
	Shared                 bool // see Section
}

// Stat counts what a Writer has written. Files and symlinks count, directories do not; a
// changed mode is a modification; a path that changed its kind is one deleted and one
// created. Lines are those of text hunks, created and deleted files included.
type Stat struct {
	Created, Modified, Deleted int
	AddedLines, RemovedLines   int64
}

// opOf returns the operation that leads from old to new, "" if they are the same. Both are
// of one kind, or one is nil.
func opOf(old, new *tree.Entry) Op {
	switch {
	case old == nil && new == nil:
		return ""
	case old == nil:
		return either(new.Type == tree.Dir, OpMkdir, OpCreate)
	case new == nil:
		return either(old.Type == tree.Dir, OpRmdir, OpDelete)
	case old.Same(*new):
		return ""
	case old.Type == tree.Dir:
		return OpDirMode
	}
	return either(old.SHA256 == new.SHA256 && old.Size == new.Size, OpMode, OpModify)
}

func either(cond bool, yes, no Op) Op {
	if cond {
		return yes
	}
	return no
}

// count adds one section to s.
func (s *Stat) count(op Op) {
	switch op {
	case OpCreate:
		s.Created++
	case OpDelete:
		s.Deleted++
	case OpModify, OpMode:
		s.Modified++
	}
}
