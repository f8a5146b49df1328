package cmd

import (
	"decree/tree"
	"decree/view"
)

// What people read is escaped as what programs read is, by view.
var (
	oneLine     = view.OneLine
	shownQuoted = view.ShownQuoted
	quoteWord   = tree.ShellWord
	commandLine = tree.ShellWords
)

func manifestPath[T ~string](path T) string { return view.Path(path) }

func shownPath[T ~string](path T) string { return view.ShownPath(path) }
