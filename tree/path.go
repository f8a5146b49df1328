package tree

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// Path is where something of a tree is: the components from the root on, with '/' between
// them, as raw bytes on every system; "" is the root. It says nothing of the place of the
// root: a path of the operating system is a string. Most functions take a Path that was
// checked: see [Path.Check].
type Path string

// Parent returns the directory that p is in, "" at the top.
func (p Path) Parent() Path { return p[:max(strings.LastIndexByte(string(p), '/'), 0)] }

// Name returns the last component of p.
func (p Path) Name() string { return string(p[strings.LastIndexByte(string(p), '/')+1:]) }

// Join returns the path of name, one component or several, in the directory p.
func (p Path) Join(name string) Path {
	if p == "" {
		return Path(name)
	}
	return p + "/" + Path(name)
}

// Components returns the names on the way to p; of the root it is one empty name.
func (p Path) Components() iter.Seq[string] { return strings.SplitSeq(string(p), "/") }

// Below says whether p is in the directory dir, at any depth.
func (p Path) Below(dir Path) bool {
	return dir == "" && p != "" || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// Within says whether p is one of these paths or below one; no paths means all.
func (p Path) Within(paths ...Path) bool {
	return len(paths) == 0 || slices.ContainsFunc(paths, func(of Path) bool { return p == of || p.Below(of) })
}

// Compare orders paths by their bytes.
func (p Path) Compare(q Path) int { return strings.Compare(string(p), string(q)) }

// MaxPath is the length in bytes that a path in a tree stays below.
const MaxPath = 4 * 4096

// PathError says why a path cannot be one of a tree.
type PathError struct {
	Path   Path
	Reason string
}

// Error returns "path: reason", the path quoted as in the manifest.
func (e *PathError) Error() string { return Clip(Quote(e.Path)) + ": " + e.Reason }

// Check returns a *[PathError] unless p can be a path of a tree: relative to the root,
// '/' between the components, clean (no "." or "..", no double or trailing '/'), without
// NUL, shorter than [MaxPath] bytes, and with no component that is .git or .decree, which
// are not decree's to change at any depth.
func (p Path) Check() error {
	if reason := p.fault(); reason != "" {
		return &PathError{Path: p, Reason: reason}
	}
	return nil
}

func (p Path) fault() string {
	switch {
	case p == "":
		return "empty path"
	case len(p) >= MaxPath:
		return "path too long"
	case p[0] == '/':
		return "absolute path"
	case strings.IndexByte(string(p), 0) >= 0:
		return "NUL byte in path"
	}
	for c := range p.Components() {
		switch c {
		case "..":
			return `".." in path`
		case ".git", ".decree":
			return "path in " + c
		}
	}
	if p == "." || path.Clean(string(p)) != string(p) {
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
