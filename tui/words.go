package tui

import (
	"decree/plan"
	"decree/view"
)

// itemLine is a path of a plan and what is in its way.
func itemLine(it plan.Item) string {
	text := view.ShownPath(it.Path)
	if it.Reason != "" {
		text += "  " + clean(it.Reason)
	} else {
		text += "  " + clean(string(it.Verdict))
	}
	return text
}
