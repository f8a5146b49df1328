package project

import "errors"

// Kind is what an error means for the one who called: it decides the exit
// status (behaviour.md, Exit codes), which is its value.
type Kind int

const (
	Failed    Kind = 1 // an error of the system, or damage that is no mismatch
	Usage     Kind = 2 // asked for wrongly: a flag, a config, an environment
	NotFound  Kind = 3 // no such record, label, path or project
	Refused   Kind = 4 // a conflict, a held lock: nothing was changed
	Integrity Kind = 5 // a hash does not match, or an object is gone
)

// Error is an error with a kind and, where there is one, the next step to take.
// Packages above use it too; nothing in it is meant for a format.
type Error struct {
	Kind   Kind
	Msg    string // `path: reason`; may be empty when Err says it all
	Advice string // the hint: what to do next
	Err    error  // the cause
}

// Error is the message and its cause, without the hint.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Msg
	case e.Msg == "":
		return e.Err.Error()
	}
	return e.Msg + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Hint is the next step to take, or "".
func (e *Error) Hint() string { return e.Advice }

// Category is the error's kind.
func (e *Error) Category() Kind { return e.Kind }

// KindOf is the kind of the outermost error of err's chain that has one, else Failed.
func KindOf(err error) Kind {
	var c interface {
		error
		Category() Kind
	}
	if errors.As(err, &c) {
		return c.Category()
	}
	return Failed
}

// HintOf is the hint of the outermost error of err's chain that has one, else "".
func HintOf(err error) string {
	for err != nil {
		var h interface {
			error
			Hint() string
		}
		if !errors.As(err, &h) {
			return ""
		}
		if s := h.Hint(); s != "" {
			return s
		}
		err = errors.Unwrap(h)
	}
	return ""
}

// ErrNoProject is in the chain of Open's error when a command that only reads
// finds neither a project.json nor a store that remembers the root.
var ErrNoProject = errors.New("no decree project")
