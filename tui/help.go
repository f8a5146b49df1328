package tui

import "fmt"

// helpKeys are all keys.
var helpKeys = []struct{ keys, does string }{
	{"j k, arrows", "move; g G to the ends, pgup pgdn by pages"},
	{"enter, esc", "into what is at the cursor, and out"},
	{"tab", "timeline, files, diff"},
	{"space", "among the files: mark the file at the cursor, or take its mark away; in the diff: the hunk. [x] is marked, [-] in part. The cursor stays where it is. r, a, p and R are then about these alone"},
	{"* d", "mark all files, or none; mark the directory of the one at the cursor"},
	{"n N", "in the diff: the next hunk, the one before"},
	{"< >", "long lines sideways, in a diff, a plan and a blame; shift and the arrows too"},
	{"r", "revert: take back what a record changed, or what is marked"},
	{"a", "apply: bring it again"},
	{"R", "restore the files, or what is marked, to before a record; of a checkpoint, to it"},
	{"p x", "publish a draft, or what is marked of it; discard it, or on a race those that wait"},
	{"m o f", "where edits are in the way: merge; go on with the other paths; overwrite the edits"},
	{"u U", "undo the newest change; redo"},
	{"c l", "create a checkpoint; label a record"},
	{"/", "filter: words, reason:run, path:src/, since:yesterday"},
	{"b o", "blame the file; open it in your editor"},
	{"h", "health: space, runs, times and changes as bars"},
	{"Y", "copy the command that does the same"},
	{"q", "quit; ctrl+z suspends"},
}

// helpLines are as many of them as fit.
func (m *model) helpLines(columns, rows int) []string {
	lines := append(wrapped(m.styles.title.Render("Keys")+"  nothing is done before its plan was shown and confirmed with y or enter", columns-2), "")
	for _, h := range helpKeys {
		for i, text := range wrapped(h.does, columns-16) {
			if i > 0 {
				h.keys = ""
			}
			lines = append(lines, " "+m.styles.key.Render(fmt.Sprintf("%-12s", h.keys))+" "+text)
		}
	}
	m.helpTop = max(0, min(m.helpTop, len(lines)-rows))
	return indented(lines[m.helpTop:min(m.helpTop+rows, len(lines))])
}

// helpKey scrolls the help, or leaves it.
func (m *model) helpKey(name string) {
	by := m.stepOf(name)
	m.helpTop += by
	m.help = by != 0
}
