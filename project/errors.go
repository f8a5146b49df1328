package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"decree/disk"
	"decree/tree"
)

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
	State  string // in which state things are left, such as Unchanged; "" where it is not said
	Advice string // the hint: what to do next
	Err    error  // the cause
	// Asks says that the user's yes, in answer to a question or as --yes, lets it go on.
	Asks bool
}

// The states that are said most.
const (
	Unchanged  = "nothing was changed"
	NotStarted = "the command was not started"
)

// Error is the message, its cause and the state, without the hint.
func (e *Error) Error() string {
	text := e.Msg
	switch {
	case e.Err != nil && e.Msg == "":
		text = e.Err.Error()
	case e.Err != nil:
		text += ": " + e.Err.Error()
	}
	if e.State != "" {
		text += "; " + e.State
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// LeftIn is the state in which things are left, or "".
func (e *Error) LeftIn() string { return e.State }

// Asked says whether the user's yes lets it go on.
func (e *Error) Asked() bool { return e.Asks }

// Hint is the next step to take, or "".
func (e *Error) Hint() string { return e.Advice }

// Hintf sets the next step to take.
func (e *Error) Hintf(format string, args ...any) *Error {
	e.Advice = fmt.Sprintf(format, args...)
	return e
}

// Unchanged says that nothing was changed.
func (e *Error) Unchanged() *Error {
	e.State = Unchanged
	return e
}

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
	type hinting interface {
		error
		Hint() string
	}
	return outermost(err, hinting.Hint)
}

// StateOf is the state of the outermost error of err's chain that says in which one
// things are left, else "". It is part of err's text.
func StateOf(err error) string {
	type leaving interface {
		error
		LeftIn() string
	}
	return outermost(err, leaving.LeftIn)
}

// outermost is the first text that is not "" which an error of err's chain gives.
func outermost[E error](err error, text func(E) string) string {
	for err != nil {
		var e E
		if !errors.As(err, &e) {
			return ""
		}
		if s := text(e); s != "" {
			return s
		}
		err = errors.Unwrap(e)
	}
	return ""
}

// Unmoved is err with [Unchanged] as its state, unless it says one already.
func Unmoved(err error) error {
	if err == nil || StateOf(err) != "" {
		return err
	}
	return &Error{Kind: KindOf(err), Err: err, State: Unchanged}
}

// LeftIn is err with another state in which things are left than the one that it says itself: of a part of an operation
// that knows nothing of the rest.
func LeftIn(err error, state, advice string) error {
	e := &Error{Kind: KindOf(err), Err: err}
	if inner := (*Error)(nil); errors.As(err, &inner) {
		own := *inner
		e = &own
	}
	e.State, e.Advice = state, advice
	return e
}

// Asks says whether the user's yes, in answer to a question or as --yes, lets the
// operation go on that err refuses.
func Asks(err error) bool {
	var e interface {
		error
		Asked() bool
	}
	return errors.As(err, &e) && e.Asked()
}

// ErrNoProject is in the chain of Open's error when a command that only reads
// finds neither a project.json nor a store that remembers the root.
var ErrNoProject = errors.New("no decree project")

// UnmappedAdvice says what helps where err is the kernel's answer to a change of a file whose user or group has no number in the user
// namespace of its file system, or by such a user; "" for other errors.
func UnmappedAdvice(err error) string {
	if !errors.Is(err, syscall.EOVERFLOW) {
		return ""
	}
	return "a user or group has no number in this container or mount: work outside of it, or have it map everybody whose files the tree has"
}

// RightsAdvice says what gives .decree back to its user where err is that something in
// it may not be written, as an immutable file; "" for other errors.
func RightsAdvice(err error) string {
	if advice := UnmappedAdvice(err); advice != "" {
		return advice
	}
	if advice := SealedAdvice(err); advice != "" {
		return advice
	}
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(pe.Err, fs.ErrPermission) {
		return ""
	}
	before, _, inside := strings.Cut(pe.Path, "/"+dirName+"/")
	if !inside {
		return ""
	}
	return fmt.Sprintf("make %s your own again ('chmod -R u+rwX', 'sudo chown -R', 'sudo chattr -R -i')", before+"/"+dirName)
}

// ModeAdvice says what lets the user in where err is that something of his, or in a directory of his, may not
// be opened, since the owner's own rights were taken away; "" for other errors.
func ModeAdvice(err error) string {
	var pe *fs.PathError
	if !errors.As(err, &pe) || !errors.Is(pe.Err, syscall.EACCES) || !filepath.IsAbs(pe.Path) {
		return ""
	}
	at := filepath.Clean(pe.Path)
	if advice := modeAdvice(at, map[disk.Kind]uint32{disk.Directory: 0o700, disk.Regular: 0o600}); advice != "" {
		return advice
	}
	if _, err := statAt(at); err == nil && pe.Op == "open" {
		return "" // what is there may be opened in a directory that may not be written
	}
	return modeAdvice(filepath.Dir(at), map[disk.Kind]uint32{disk.Directory: 0o300})
}

// modeAdvice asks what is at a path for rights, and the directories above for that of passing them: these
// first, as what is below one that keeps the user out cannot be seen.
func modeAdvice(at string, rights map[disk.Kind]uint32) string {
	up := filepath.Dir(at)
	if up == at {
		return ""
	}
	if advice := modeAdvice(up, map[disk.Kind]uint32{disk.Directory: 0o100}); advice != "" {
		return advice
	}
	in, err := statAt(at)
	if err != nil || int(in.UID) != os.Geteuid() || in.Mode&rights[in.Kind] == rights[in.Kind] {
		return ""
	}
	return fmt.Sprintf("it is yours, and its mode, %o, keeps you out: 'chmod u+rwX %s'", in.Mode, tree.ShellWord(at))
}

// statAt is lstat of an absolute path.
func statAt(at string) (disk.Info, error) {
	dir, err := disk.OS.OpenSearch(filepath.Dir(at))
	if err != nil {
		return disk.Info{}, err
	}
	defer dir.Close()
	return dir.Stat(filepath.Base(at))
}

// unlessAbsent drops the errors that say that there is nothing of this user's.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil
	}
	return err
}
