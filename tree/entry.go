package tree

import (
	"fmt"
	"strconv"
	"strings"
)

// Type says what a path is.
type Type uint8

// The kinds of path that a tree is made of; the zero Type is a regular file.
const (
	Regular Type = iota
	Symlink
	Dir
)

// String returns "file", "symlink" or "directory", for messages.
func (t Type) String() string {
	switch t {
	case Regular:
		return "file"
	case Symlink:
		return "symlink"
	case Dir:
		return "directory"
	}
	return "type " + strconv.Itoa(int(t))
}

// SymlinkMode is the mode of every symlink's entry: systems differ in what they report.
const SymlinkMode = 0o777

// ModeMask holds the mode bits that an Entry can have.
const ModeMask = 0o7777

// SpecialBits are set-user-ID and set-group-ID.
const SpecialBits = 0o6000

// Owner is whose a file is. Its GID is 4294967295, which is nobody's, where an access
// control list says what the group's bits mean. Known is false for files whose owner nobody asked for.
type Owner struct {
	UID, GID uint32
	Known    bool
}

// String returns the owner as changes.diff and manifest.json write it: "0:0".
func (o Owner) String() string { return fmt.Sprintf("%d:%d", o.UID, o.GID) }

// ParseOwner is the inverse of [Owner.String] and accepts nothing else.
func ParseOwner(s string) (o Owner, ok bool) {
	uid, gid, _ := strings.Cut(s, ":")
	u, uerr := strconv.ParseUint(uid, 10, 32)
	g, gerr := strconv.ParseUint(gid, 10, 32)
	o = Owner{UID: uint32(u), GID: uint32(g), Known: true}
	if uerr != nil || gerr != nil || o.String() != s {
		return Owner{}, false
	}
	return o, true
}

// Entry is the facts of one path.
//
// SHA256 and Size are those of the content; for a symlink, those of the target's text; for
// a directory, zero. Mode is the permission bits with setuid, setgid and sticky (07777) as
// Unix numbers them; for a symlink always 0777. Target is the text of a symlink, else "".
// Owner is that of a file or directory with one of [SpecialBits], or whose group may what others may
// not and is not the usual one, else unknown: to give such a mode to another's file, or to
// our own in the place of another's, would hand out rights.
type Entry struct {
	SHA256 Hash
	Size   int64
	Mode   uint32
	Type   Type
	Target string
	Owner  Owner
}

// IsFile reports whether e is a regular file.
func (e *Entry) IsFile() bool { return e != nil && e.Type == Regular }

// IsDir reports whether e is a directory.
func (e *Entry) IsDir() bool { return e != nil && e.Type == Dir }

// Special reports whether e is a file that runs with its owner's or group's rights.
func (e *Entry) Special() bool { return e.IsFile() && e.Mode&SpecialBits != 0 }

// GroupOnly are the rights, among the group's bits of the mode of a file or a directory, that others do not have.
func (e *Entry) GroupOnly() uint32 {
	if e == nil || e.Type == Symlink {
		return 0
	}
	return e.Mode & 0o070 &^ (e.Mode << 3)
}

// MayOwn reports whether a record may say whose e is.
func (e *Entry) MayOwn() bool { return e.Special() || e.GivesGroup() || e.GroupOnly() != 0 }

// GivesGroup reports whether e is a directory whose group is that of what is made in it.
func (e *Entry) GivesGroup() bool { return e.IsDir() && e.Mode&SpecialBits != 0 }

// Same reports whether e and o are the same state of a path: type, hash and size are
// equal, and the mode too, except for symlinks, whose mode is never compared. Owners are
// compared where both are known, of files with one of [SpecialBits]: older records have none.
func (e Entry) Same(o Entry) bool {
	return e.Type == o.Type && e.SHA256 == o.SHA256 && e.Size == o.Size &&
		(e.Mode == o.Mode || e.Type == Symlink) &&
		(e.Owner == o.Owner || !e.Owner.Known || !o.Owner.Known || !e.Special())
}

// SameEntry is Same of two states of a path, of which nil is that nothing is there.
func SameEntry(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Same(*b)
}

// FormatMode returns mode as manifest.json and changes.diff write it: the bits of 07777 in
// octal without a leading zero ("644", "4755", "0").
func FormatMode(mode uint32) string { return strconv.FormatUint(uint64(mode&ModeMask), 8) }

// ParseMode is the inverse of [FormatMode] and accepts nothing else.
func ParseMode(s string) (mode uint32, ok bool) {
	if s == "" || len(s) > 4 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '7' {
			return 0, false
		}
		mode = mode<<3 | uint32(s[i]-'0')
	}
	return mode, true
}
