// Package gate starts a command in two steps: first a process that waits, in its
// group, session and directory, with its streams; then, in that process, the command.
// Between the two the caller can note which process it will be. If the caller dies
// there, the process ends too and the command is never executed: so no command runs
// that nobody has noted.
//
// The process that waits is this same program, told by its name: it waits in this
// package's init, before main and most other packages. It holds one end of a
// socket pair:
//
//	process -> caller   1 byte, once it waits; or why its mount could not be made
//	caller -> process   1 byte: execute; the end of the stream: exit
//	process -> caller   the end of the stream, since the handle closes when the
//	                    command is executed; else execve's errno, in decimal
//
// Its environment is the command's, each entry with a "." before it: GODEBUG and the
// like are meant for the command, and must not make the process that waits speak.
package gate
