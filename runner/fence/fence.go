// Package fence keeps a command's writes to a few places, and the command from the network.
// The process that is to become the command sets it for itself (see package gate) and for
// all that it starts, for good; no privilege is needed for the first.
//
// Writes are kept by Landlock: what lies outside of the places can be read and executed, but
// nothing there can be made, written, emptied, renamed or deleted. Landlock has no word on
// modes, owners, times and attributes, on handles that are open already, on what servers do
// that are asked through a socket; and it takes away what set-user-ID programs would gain
// (no_new_privs) and mounting. So this is a fence against accidents, and no sandbox.
//
// The network is kept away by a network namespace that has nothing but a loopback of its
// own, up, so that programs that talk among themselves by localhost still work. Who may not
// make one gets a user namespace for it.
//
// On other systems than Linux nothing of this is there: Kernel is 0 and Attr returns
// errors.ErrUnsupported.
package fence

import "errors"

// A Fence is what a command is kept to; the zero Fence is none.
type Fence struct {
	// Write are the only places, files and directories with all below them, that can be
	// written; nil: all are. What is not there is passed over.
	Write []string
	NoNet bool
}

// IsZero says whether there is no fence.
func (f Fence) IsZero() bool { return f.Write == nil && !f.NoNet }

// An Error says which step a system refused, and why.
type Error struct {
	Step string // "make a network namespace"
	Err  error
}

func (e *Error) Error() string { return e.Step + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// A Hold is what a fence of writes holds.
type Hold string

// The holds, as run.json has them.
const (
	Whole  Hold = "landlock"
	Partly Hold = "partly"
	None   Hold = "none"
)

// HoldOf is what a fence of writes holds with version abi of Landlock, of a kernel that has
// none 0; lacks says what is missing, and why.
func HoldOf(abi int) (hold Hold, lacks string) {
	switch {
	case abi <= 0:
		return None, "this system has no Landlock, which Linux has from 5.13 on, unless it was left out when it was built or booted (lsm=)"
	case abi == 1: // it would forbid every rename from one directory to another
		return None, "the Landlock of this kernel cannot allow that files move between directories, as Linux from 5.19 on can"
	case abi == 2:
		return Partly, "a command can still empty files anywhere (truncate), which Linux from 6.2 on prevents"
	}
	return Whole, ""
}

// Words are what Parse takes; none for the zero Fence.
func (f Fence) Words() []string {
	if f.IsZero() {
		return nil
	}
	kept := ""
	switch {
	case f.NoNet && needsUsers():
		kept = noNetAsUser
	case f.NoNet:
		kept = noNet
	}
	return append([]string{kept}, f.Write...)
}

const noNet, noNetAsUser = "no net", "no net, in a user namespace"

// Parse is the opposite of Words. With users the process was given a user namespace for it.
func Parse(words []string) (f Fence, users bool, err error) {
	if len(words) == 0 {
		return f, false, nil
	}
	switch words[0] {
	case "":
	case noNet, noNetAsUser:
		f.NoNet, users = true, words[0] == noNetAsUser
	default:
		return f, false, &Error{"read what to fence", errors.New(words[0])}
	}
	if len(words) > 1 {
		f.Write = words[1:]
	}
	return f, users, nil
}
