package patch

import (
	"errors"
	"fmt"

	"decree/tree"
)

// ErrStored is what Forward and Reverse return for a section without contents: its bytes
// are in the store, under the hashes of its entries.
var ErrStored = errors.New("the contents are in the store")

// SyntaxError says that a diff is malformed, and where.
type SyntaxError struct {
	Line   int    // counted from 1
	Reason string // what is wrong with it
	Text   string // the line as it stands there, shortened; "" at the end of the file
}

// Error returns "line N: reason: text".
func (e *SyntaxError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d: %s: %q", e.Line, e.Reason, e.Text)
}

// MismatchError says that a content is not the one a section was made for.
type MismatchError struct {
	Path   tree.Path
	Line   int // the first differing line of the content, counted from 1; 0: no single line
	Reason string
}

// Error returns "path: reason", with the line of the content where there is one.
func (e *MismatchError) Error() string { return tree.Quote(e.Path) + ": " + e.Because() }

// About is the path.
func (e *MismatchError) About() tree.Path { return e.Path }

// Because is the reason without the path.
func (e *MismatchError) Because() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return e.Reason
}
