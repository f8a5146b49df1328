package runner

import (
	"errors"
	"io"
	"os"
	"time"

	"decree/layer/overlay"
	"decree/runner/fence"
)

// ErrLog is in the chain of Run's error when the log could not be written. The
// command was not disturbed by it, and the Result is complete.
var ErrLog = errors.New("log not written")

// A Command says what to execute, where, and with which streams.
type Command struct {
	Args []string // the words as typed; Args[0] is looked up in Env's PATH unless it holds a slash
	Dir  string   // the working directory; "" is decree's own. Relative paths of Args[0] and PATH start here
	At   int      // where it is not 0, an open handle of Dir, which is then only its name: nothing can be put in its place. None with Overlay
	Env  []string // the whole environment, "NAME=value"; of two equal names the last counts

	// Overlay, if any, is made for the command; Dir and Args[0] are looked for in it. Where
	// it cannot be made Run's error is an *overlay.Error, and nothing was executed.
	Overlay *overlay.Mount

	// Fence is set for the command. Where it cannot be Run's error is a *fence.Error, and
	// nothing was executed.
	Fence fence.Fence

	// Decree's own streams. A nil Stdin is an empty one, a nil Stdout or Stderr
	// goes to the log alone.
	Stdin, Stdout, Stderr *os.File

	// Apart gives the command a session of its own without a terminal, so that one that
	// asks there fails and does not wait for ever. None of the streams is a terminal then,
	// and several Runs may go on at once.
	Apart bool

	// Unread: the command goes on where nobody reads any more what decree passes on of what it prints, as its log alone has it then.
	// Else its next write fails with a broken pipe, as without decree.
	Unread bool

	// Log receives stdout and stderr in the order they came. Writes are never
	// concurrent, and there are none after Run has returned.
	Log io.Writer

	Timeout time.Duration // 0: none
	Grace   time.Duration // between TERM and KILL; 0: KILL follows at once

	// Signals delivers INT, TERM, HUP and QUIT sent to decree. The first is forwarded to
	// the group, a second one kills it.
	Signals <-chan os.Signal

	// Starting, if not nil, is called with the process that is about to become the
	// command. The command is executed only when it has returned nil; its error is
	// Run's. If this process dies in it, the command is never executed.
	Starting func(Leader) error

	// Root is the absolute path of the tree; processes that left the group and
	// still work in it are named in Result.Outside.
	Root string
}

// An Ancestor is a process that another one descends from, or that one itself.
type Ancestor struct {
	PID       int
	StartTime uint64 // as in Leader; 0 where it is not known
}

// A Leader identifies a command's process group beyond the life of this process
// and this boot.
type Leader struct {
	PID       int    `json:"pid"`
	PGID      int    `json:"pgid"`
	StartTime uint64 `json:"start_time"` // Linux: clock ticks since boot, field 22 of /proc/PID/stat; macOS: microseconds since 1970; elsewhere 0
	BootID    string `json:"boot_id"`    // "" where the system has none
	// Space is the namespace whose numbers PID and PGID are: a container has its own. "" where
	// the system has none, and of an older decree.
	Space string `json:"pid_namespace,omitempty"`
}

// A Process is one that was met when the command had ended.
type Process struct {
	PID  int
	Name string // the system's short name for it; "" where unknown
}

// A Result says how the attempt ended.
type Result struct {
	// ExitCode is the command's own; 128+n when signal n ended it; 124 on a
	// timeout; 126 when it could not be executed, 127 when it was not found;
	// 128+n when decree itself received signal n meanwhile.
	ExitCode int

	Signal      string    // the signal that ended the command ("SIGKILL"), or ""
	TimedOut    bool      //
	Interrupted os.Signal // the first signal that decree received while the command itself was there: the attempt counts as failed
	Late        os.Signal // else the first one after that, which ends the waiting for its group and its output, and nothing more
	NotStarted  error     // why the command could not be executed (126, 127)

	Duration   time.Duration // from the start to the end of the command itself
	Stragglers []Process     // members of the group that had to be ended, by pid
	Survivors  []Process     // those of Stragglers that KILL did not end (another user's, or stuck in the kernel)
	Outside    []Process     // processes that left the group and still work in Root or hold the output (Linux), by pid

	PTY    bool  // a pseudo-terminal was in use
	NoPTY  error // why none was, although there was a terminal; the streams were plain then
	Output error // decree's own stdout or stderr could not be written (a closed pipe is no error)
}

// A File is one whatever its path: its device and inode.
type File struct{ Dev, Ino uint64 }
