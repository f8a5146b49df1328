// Package cmd is decree's command line: it reads arguments and environment,
// calls the recorder, and says to people or to programs what came of it.
//
// It is the only package that prints, exits, colours, asks, or reads the
// environment. Everything of the outside world enters through one Env, so a
// test runs the whole program with a fixed clock, user and home directory.
//
// What goes where: what was asked for goes to stdout; notes, summaries,
// questions, progress and errors go to stderr, and -q leaves only the errors of
// these. `decree run` prints nothing of its own on stdout. Paths are quoted as
// in the manifest, so that a newline in a name cannot fake a line.
//
// Rules for the terminal: colour only where the stream is a terminal, NO_COLOR
// is empty and TERM is not "dumb"; a pager for log and diff only where stdout
// is a terminal; progress bars only on a terminal and only after a second;
// questions only where stdin and stderr are terminals.
//
// Each command is a verb in a file of its own: its flags, help and examples
// are data, from which `--help`, docs/cli.md, the man page and the shell
// completions are made.
package cmd
