package patch

import (
	"bytes"
	"iter"
	"strconv"
	"strings"

	"decree/tree"
)

// VersionLine is the first line of a diff that has any section, without its '\n'. Behind it
// the Raw bytes of any of the sections, in order, are a diff again.
const VersionLine = "# decree changes 1"

// FactsPrefix begins the line with the facts of a section, which ParseFacts reads. No content looks like it: every line of a
// hunk begins with ' ', '+', '-' or '\'.
const FactsPrefix = "# decree: "

// MaxFacts bounds such a line, in bytes. Two quoted paths and two targets of the largest size stay far below it.
const MaxFacts = 1 << 20

// The other fixed lines of the format.
const (
	versionPrefix = "# decree changes "
	oldPrefix     = "# < "
	newPrefix     = "# > "
	noNewline     = `\ No newline at end of file`
)

// base64Line is the number of bytes on a full payload line: 76 columns of base64.
const base64Line = 57

// Section is one change of a diff, as [Reader] returns it. A path that changed its kind
// has two, a delete or rmdir and then a create or mkdir.
//
// Old is nil for create and mkdir, New for delete and rmdir. A Binary section has the
// contents in OldData and NewData (empty for an empty side), or, if Stored, nowhere.
// The slices share memory with Raw and must not be written to.
type Section struct {
	Path             tree.Path
	Op               Op
	Old, New         *tree.Entry
	Binary, Stored   bool
	Shared           bool // others changed the path in the same time
	Hunks            []Hunk
	OldData, NewData []byte

	Line         int    // of the "# decree:" line in the diff, counted from 1
	Offset, Size int64  // where the section stands in the diff, in bytes
	Raw          []byte // its bytes as read, from the "# decree:" line on
}

// Hunk is one "@@ -OldStart,OldLines +NewStart,NewLines @@" of a text section. Starts count
// from 1; with no lines on a side, its start is the line before, as diff has it.
type Hunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Body               []byte // the lines below the header as they stand in the diff
}

// HunkLine is one line of a hunk: Kind is ' ', '-' or '+', Text the line with its '\n',
// if it has one.
type HunkLine struct {
	Kind byte
	Text []byte
}

// Lines returns the hunk's lines in order. A line that "\ No newline at end of file"
// follows comes without its '\n'; the marker itself is not returned.
func (h *Hunk) Lines() iter.Seq[HunkLine] {
	return func(yield func(HunkLine) bool) {
		rest := h.Body
		for len(rest) > 0 {
			line, after := cutLine(rest)
			kind, text := line[0], line[1:]
			if len(after) > 0 && after[0] == '\\' {
				text = bytes.TrimSuffix(text, []byte{'\n'})
				_, after = cutLine(after)
			}
			if !yield(HunkLine{kind, text}) {
				return
			}
			rest = after
		}
	}
}

// cutLine splits data behind its first '\n'.
func cutLine(data []byte) (line, rest []byte) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[:i+1], data[i+1:]
	}
	return data, nil
}

// Header returns the hunk's "@@ ... @@" line, without a newline. A count of 1 is left out.
func (h *Hunk) Header() string { return string(h.appendHeader(nil)) }

func (h *Hunk) appendHeader(dst []byte) []byte {
	dst = appendRange(append(dst, "@@ -"...), h.OldStart, h.OldLines)
	dst = appendRange(append(dst, " +"...), h.NewStart, h.NewLines)
	return append(dst, " @@"...)
}

func appendRange(dst []byte, start, n int) []byte {
	dst = strconv.AppendInt(dst, int64(start), 10)
	if n != 1 {
		dst = append(dst, ',')
		dst = strconv.AppendInt(dst, int64(n), 10)
	}
	return dst
}

// appendFacts appends the "# decree:" line.
func (s *Section) appendFacts(dst []byte) []byte {
	dst = append(dst, FactsPrefix+`{"path":`...)
	dst = tree.AppendJSONString(dst, tree.Quote(s.Path))
	dst = append(dst, `,"op":"`...)
	dst = append(dst, s.Op...)
	dst = append(dst, '"')
	if s.Old != nil {
		dst = appendEntry(append(dst, `,"old":`...), s.Old)
	}
	if s.New != nil {
		dst = appendEntry(append(dst, `,"new":`...), s.New)
	}
	if s.Binary {
		dst = append(dst, `,"binary":true`...)
	}
	if s.Stored {
		dst = append(dst, `,"store":true`...)
	}
	if s.Shared {
		dst = append(dst, `,"shared":true`...)
	}
	return append(dst, "}\n"...)
}

// appendHeader appends the lines between the "# decree:" line and the hunks or payload.
// They follow from the facts alone, so the Reader demands exactly these.
func (s *Section) appendHeader(dst []byte) []byte {
	switch s.Op {
	case OpMkdir, OpRmdir, OpDirMode:
		return dst
	}
	a, b := headerName("a/", s.Path), headerName("b/", s.Path)
	if s.Binary {
		return appendLine(dst, "Binary files ", a, " and ", b, " differ")
	}
	dst = appendLine(dst, "diff --git ", a, " ", b)
	switch s.Op {
	case OpCreate:
		dst = appendLine(dst, "new file mode ", gitMode(s.New))
		if s.New.Size == 0 {
			return appendLine(dst, "index 0000000..e69de29")
		}
		a = "/dev/null"
	case OpDelete:
		dst = appendLine(dst, "deleted file mode ", gitMode(s.Old))
		if s.Old.Size == 0 {
			return appendLine(dst, "index e69de29..0000000")
		}
		b = "/dev/null"
	default:
		// A modified symlink repeats its mode: patch needs it to see a link at all.
		if gitMode(s.Old) != gitMode(s.New) || s.Old.Type == tree.Symlink {
			dst = appendLine(dst, "old mode ", gitMode(s.Old))
			dst = appendLine(dst, "new mode ", gitMode(s.New))
		}
		if s.Op == OpMode {
			return dst
		}
	}
	dst = appendLine(dst, "--- ", a)
	return appendLine(dst, "+++ ", b)
}

func appendLine(dst []byte, parts ...string) []byte {
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return append(dst, '\n')
}

// hasHunks reports whether hunks follow the header.
func (s *Section) hasHunks() bool {
	if s.Binary {
		return false
	}
	switch s.Op {
	case OpCreate:
		return s.New.Size > 0
	case OpDelete:
		return s.Old.Size > 0
	}
	return s.Op == OpModify
}

// entryFault returns what is wrong with an entry that is to stand in a diff, or "".
func entryFault(e *tree.Entry) string {
	switch {
	case e.Mode&^tree.ModeMask != 0:
		return "mode has bits beyond 7777"
	case e.Type == tree.Dir && (e.Size != 0 || !e.SHA256.IsZero() || e.Target != ""):
		return "directory with a content"
	case e.Type == tree.Dir:
		return ""
	case e.Type == tree.Regular && e.Target != "":
		return "target without being a symlink"
	case e.Size < 0:
		return "negative size"
	case (e.Size == 0) != (e.SHA256 == tree.EmptySum):
		return "size and sha256 contradict each other"
	case e.Type == tree.Symlink && e.Target == "":
		return "symlink without a target"
	case strings.IndexByte(e.Target, 0) >= 0:
		return "NUL byte in a target"
	case len(e.Target) >= tree.MaxPath:
		return "target too long"
	case e.Type == tree.Symlink && (e.Size != int64(len(e.Target)) || e.SHA256 != tree.Sum([]byte(e.Target))):
		return "size and sha256 are not those of the target"
	case e.Type > tree.Dir:
		return "unknown type"
	}
	return ""
}

// fault returns what is wrong with the facts of s taken together, or "".
func (s *Section) fault() string {
	for _, e := range []*tree.Entry{s.Old, s.New} {
		if e == nil {
			continue
		}
		if reason := entryFault(e); reason != "" {
			return reason
		}
	}
	if s.Old != nil && s.New != nil && s.Old.Type != s.New.Type {
		return "old and new are of different kinds"
	}
	if op := opOf(s.Old, s.New); op == "" {
		return "old and new are the same"
	} else if op != s.Op {
		return "op does not fit old and new, which are a " + string(op)
	}
	switch {
	case s.Stored && !s.Binary:
		return "store without binary"
	case s.Binary && s.Op != OpCreate && s.Op != OpDelete && s.Op != OpModify:
		return "binary on an op without contents"
	case s.Binary && s.kind() == tree.Symlink:
		return "binary symlink"
	}
	return ""
}

// kind returns the type of the path that s is about.
func (s *Section) kind() tree.Type {
	if s.Old != nil {
		return s.Old.Type
	}
	return s.New.Type
}
