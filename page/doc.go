// Package page draws what the HTML faces show, the pages of a server and a report alike: a
// diff, the facts of a record, its files, a log, a plot, and the stylesheet of all of them.
// It writes HTML and decides nothing: who may see it, and what stands around it, is the caller's.
//
// Texts of the tree are data. They are escaped for HTML, and what could act on who reads
// them (C0, C1, controls of the direction of writing) and bytes that are no UTF-8 are shown as
// octal escapes, spelled as on a terminal. Nothing has a style attribute or a script, so that
// a policy with the stylesheet alone is enough.
//
// Diffs and logs are written while they are read, line by line: memory stays the same, however
// long they are. Colours are bounded: what is too long for them stays plain, and is whole.
//
// The tokens of a line and the numbers of a plot have no HTML in them; a terminal draws the same ones.
package page
