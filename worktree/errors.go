package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"decree/tree"
)

// LinkError is returned for a path with a symbolic link above its last
// component: what lies behind a link is not the tree's.
type LinkError struct {
	Path tree.Path // the path that was asked for
	At   tree.Path // the component of it that is a link
}

// About is the path.
func (e *LinkError) About() tree.Path { return e.Path }

func (e *LinkError) Error() string {
	return fmt.Sprintf("%s: %s is a symbolic link", tree.Quote(e.Path), tree.Quote(e.At))
}

// SpecialError is returned for a path that is a socket, a pipe or a device.
type SpecialError struct{ Path tree.Path }

// About is the path.
func (e *SpecialError) About() tree.Path { return e.Path }

func (e *SpecialError) Error() string {
	return tree.Quote(e.Path) + ": neither file, directory nor symbolic link"
}

// ForbiddenError is returned for a path that is another spelling of .git or .decree,
// which Is names, on a file system that folds case or ignores some characters; and for a
// directory that is a store: then Is is "".
type ForbiddenError struct {
	Path tree.Path
	Is   string
}

// About is the path.
func (e *ForbiddenError) About() tree.Path { return e.Path }

func (e *ForbiddenError) Error() string { return tree.Quote(e.Path) + ": " + e.reason() }

func (e *ForbiddenError) reason() string {
	if e.Is == "" {
		return "a store of decree, which is never moved"
	}
	return "another spelling of " + e.Is
}

// badStep is the error for a step that no tree can take: nothing was changed.
func badStep(path tree.Path, reason string) error { return tree.At(path, errors.New(reason)) }

// Conflict is a path that is not as the plan has it, or that cannot be moved.
type Conflict struct {
	Path   tree.Path
	Reason string
}

// Why only the owner of a path or of its directory, or root, can have it moved.
const (
	shutDir  = "its directory belongs to another user and cannot be written"
	sticky   = "it belongs to another user, in a directory with the sticky bit, where only its owner may remove it"
	othersOn = "its mode cannot be changed: it belongs to another user"
)

// OfAnother says whether the path, or its directory, is another user's to change.
func (c Conflict) OfAnother() bool {
	return c.Reason == shutDir || c.Reason == sticky || c.Reason == othersOn
}

// ConflictError lists all conflicts, in byte order of their paths. Nothing was changed.
type ConflictError struct{ Conflicts []Conflict }

// About is the path, of one conflict alone.
func (e *ConflictError) About() tree.Path {
	if len(e.Conflicts) != 1 {
		return ""
	}
	return e.Conflicts[0].Path
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	for i, c := range e.Conflicts {
		if i == 3 && len(e.Conflicts) > 4 {
			fmt.Fprintf(&b, "; and %d more", len(e.Conflicts)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s: %s", tree.Quote(c.Path), c.Reason)
	}
	return b.String()
}

// MismatchError says that a content is not the one that its hash promised.
type MismatchError struct {
	Path       tree.Path
	Want, Have tree.Hash
}

// About is the path.
func (e *MismatchError) About() tree.Path { return e.Path }

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: content is %s, should be %s", tree.Quote(e.Path), e.Have, e.Want)
}

// Left is a path that was not taken back, and why.
type Left struct {
	Path   tree.Path
	Reason string
}

// Error is returned by Move and Recover when a transaction did not come to its end.
type Error struct {
	Phase string    // check, keep, stage, journal, move, verify
	Path  tree.Path // "" where no single path is the cause
	Err   error
	// Moved says that the tree had been changed when it happened, or may be by the next Recover:
	// the journal could not be removed.
	Moved bool
	// RolledBack says that nothing of the transaction is in the tree, either
	// because it was taken back or because nothing was ever moved.
	RolledBack bool
	// Left are the paths that are not in their From state. What another has
	// written meanwhile stands; after a disk's error the journal is kept, and
	// the next Recover goes on.
	Left []Left
}

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Error() string {
	err := e.Err
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if e.Path != "" {
		err = tree.At(e.Path, err)
	}
	text := err.Error()
	switch {
	case !e.Moved:
		return text + " (" + e.Phase + "); " + e.LeftIn()
	case e.RolledBack:
		text += "; " + e.LeftIn()
	}
	for i, l := range e.Left {
		if i == 3 && len(e.Left) > 4 {
			text += fmt.Sprintf("; and %d more", len(e.Left)-i)
			break
		}
		text += fmt.Sprintf("; left as it is: %s: %s", tree.Quote(l.Path), l.Reason)
	}
	if !e.RolledBack && len(e.Left) == 0 {
		text += "; " + e.LeftIn()
	}
	return text + " (" + e.Phase + ")"
}

// LeftIn is the state in which the tree is left.
func (e *Error) LeftIn() string {
	switch {
	case !e.Moved:
		return "nothing was changed"
	case e.RolledBack:
		return "everything was taken back"
	}
	return "not taken back"
}

// JournalError is returned for a journal that is damaged or of a newer version.
// It was not acted on.
type JournalError struct {
	ID     string
	Reason string
	Newer  bool   // a newer version wrote it: it stays where it is
	Kept   string // the name it was set aside under; "" while it is where it was
}

func (e *JournalError) Error() string {
	text := "journal " + e.ID + ": " + e.Reason
	if e.Kept != "" {
		text += "; set aside as " + e.Kept
	}
	return text
}

var (
	// errNoDir says that a path's parent is missing or no directory, so that
	// nothing is at the path.
	errNoDir = errors.New("no such directory")
	// ErrStranger is the cause of a rollback because somebody else wrote meanwhile.
	ErrStranger = errors.New("written by another process while it was moved")
	errBusy     = errors.New("it keeps changing while it is read")
)
