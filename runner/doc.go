// Package runner executes one attempt of a command and says how it ended.
//
// The command runs as it would without decree: its arguments arrive as they are,
// no shell stands between, its standard input is decree's own, its output passes
// through byte for byte and, on the way, into a log. It keeps these promises:
//
//   - The command leads a process group of its own. What is left of the group
//     when the command has ended is ended too (TERM, a grace, KILL) and named, so
//     that the caller can look at the tree without anybody still writing into it.
//   - Run does not return before the command has ended, and it always returns
//     after that: a daemon that holds the output open does not keep it.
//   - The user's terminal is left as it was found.
//
// # Terminals
//
// How the command is attached depends on which of stdin, stdout and stderr are
// terminals:
//
//   - stdin and stdout; or stdout or stderr, with no pipe among the other
//     streams: one pseudo-terminal takes the place of all that are terminals. The
//     command is in a session of its own with it as the controlling terminal; the
//     user's terminal is in raw mode, so that every key, Ctrl-C and Ctrl-Z
//     included, is the command's. Streams that are no terminals stay plain. On Linux
//     a process of decree's leads the session and has the command as its child, in a
//     group of its own: the system does not stop groups all of whose parents are in
//     other sessions, so without it an editor's Ctrl-Z would do nothing.
//   - stdout or stderr, with a pipe among the others ("decree run -- make | less"):
//     the output that goes to the terminal goes through a pseudo-terminal, but keys
//     are left where they are, since another program of the pipeline may want them.
//   - stdin alone: the command gets the terminal itself.
//   - none: plain streams.
//
// In the last three the command's group becomes the terminal's foreground group: at
// once when stdin is the only terminal and there is no pipe, otherwise when the
// command first reads the terminal and is stopped for it. A stop of the command
// by job control stops decree's job as well, and its going on resumes both.
//
// # Processes
//
// On Linux the group's members are found in /proc, zombies left out, and with a
// controlling pseudo-terminal the whole session counts as the group, since a shell
// with job control makes a group for each job. Elsewhere it is the process group
// alone. Processes that left the group are not ended; on Linux those that still
// work in the root or hold the output are named. They are recognised by the
// DECREE_RUN_ID they inherited.
//
// # Overlays
//
// With Command.Overlay the command's process mounts an overlay before the command is
// executed in it (see decree/layer/overlay). Then everybody who sees that mount is of the
// command's group, whatever sessions and namespaces he has made, and KillMounted finds
// them by the mount's name after this process has died.
//
// The package prints nothing, reads no environment variable and makes no files. It
// does not repeat attempts. On Windows it builds; everything returns
// errors.ErrUnsupported.
package runner
