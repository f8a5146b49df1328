package tree

import (
	"path"
	"strings"
)

// MaxPath is the length in bytes that a path in a tree stays below.
const MaxPath = 4 * 4096

// PathError says why a path cannot be one of a tree.
type PathError struct {
	Path   string
	Reason string
}

// Error returns "path: reason", the path quoted as in the manifest.
func (e *PathError) Error() string { return Clip(Quote(e.Path)) + ": " + e.Reason }

// CheckPath returns a *[PathError] unless p can be a path of a tree: relative to the root,
// '/' between the components, clean (no "." or "..", no double or trailing '/'), without
// NUL, shorter than [MaxPath] bytes, and with no component that is .git or .decree, which
// are not decree's to change at any depth.
func CheckPath(p string) error {
	if reason := pathFault(p); reason != "" {
		return &PathError{Path: p, Reason: reason}
	}
	return nil
}

func pathFault(p string) string {
	switch {
	case p == "":
		return "empty path"
	case len(p) >= MaxPath:
		return "path too long"
	case p[0] == '/':
		return "absolute path"
	case strings.IndexByte(p, 0) >= 0:
		return "NUL byte in path"
	}
	for c := range strings.SplitSeq(p, "/") {
		switch c {
		case "..":
			return `".." in path`
		case ".git", ".decree":
			return "path in " + c
		}
	}
	if p == "." || path.Clean(p) != p {
		return "path not clean"
	}
	return ""
}

// Clip shortens s for a message.
func Clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
