package cmd

import (
	"decree/tree"
	"decree/view"
)

// What people read is escaped as what programs read is, by view.
var (
	oneLine      = view.OneLine
	manifestPath = view.Path
	shownPath    = view.ShownPath
	shownQuoted  = view.ShownQuoted
	quoteWord    = tree.ShellWord
	commandLine  = tree.ShellWords
)
