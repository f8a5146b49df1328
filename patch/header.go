package patch

import (
	"encoding/hex"
	"strconv"

	"decree/tree"
)

// headerName returns prefix+path as the header lines spell it: C-quoted as a whole if
// anything in it is not plain ASCII, or is a space, '"' or '\'.
func headerName(prefix string, path tree.Path) string {
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return string(tree.AppendQuoted(nil, prefix+string(path)))
		}
	}
	return prefix + string(path)
}

// gitMode returns the six octal digits that header lines carry: type and exact mode.
func gitMode(e *tree.Entry) string {
	if e.Type == tree.Symlink {
		return "120000"
	}
	return strconv.FormatUint(uint64(0o100000|e.Mode&tree.ModeMask), 8)
}

// appendEntry appends e as it stands on a "# decree:" line:
//
//	{"mode":"644","size":21,"sha256":"..."}
//	{"mode":"777","size":9,"sha256":"...","type":"symlink","target":"bin/tool2"}
//	{"mode":"4755","size":21,"sha256":"...","owner":"0:0"}
//	{"mode":"755"}                                   a directory
//	{"mode":"2775","owner":"0:50"}                   another one
func appendEntry(dst []byte, e *tree.Entry) []byte {
	mode := e.Mode
	if e.Type == tree.Symlink {
		mode = tree.SymlinkMode
	}
	dst = append(dst, `{"mode":"`...)
	dst = append(dst, tree.FormatMode(mode)...)
	dst = append(dst, '"')
	if e.Type != tree.Dir {
		dst = append(dst, `,"size":`...)
		dst = strconv.AppendInt(dst, e.Size, 10)
		dst = append(dst, `,"sha256":"`...)
		dst = hex.AppendEncode(dst, e.SHA256[:])
		dst = append(dst, '"')
	}
	if e.MayOwn() && e.Owner.Known {
		dst = append(dst, `,"owner":"`...)
		dst = append(dst, e.Owner.String()...)
		dst = append(dst, '"')
	}
	if e.Type == tree.Symlink {
		dst = append(dst, `,"type":"symlink","target":`...)
		dst = tree.AppendJSONString(dst, tree.Quote(e.Target))
	}
	return append(dst, '}')
}
