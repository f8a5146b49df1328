package cmd

import "decree/view"

// What people read is escaped as what programs read is, by view.
var (
	oneLine      = view.OneLine
	manifestPath = view.Path
	shownPath    = view.ShownPath
	shownQuoted  = view.ShownQuoted
	quoteWord    = view.Word
	commandLine  = view.CommandLine
)
