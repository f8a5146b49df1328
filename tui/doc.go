// Package tui is the terminal face: the timeline on the left, the files and the diff of a record
// on the right, and every action planned on screen before it is performed.
//
// Run draws with bubbletea and redraws; Talk is the same as a numbered dialogue of lines, for a
// terminal that cannot be redrawn, a screen reader or a script. Both show what package timeline lists and
// do what package planner plans, so that what they do can be typed as a command, which they name.
//
// A diff is never held whole: see document. Texts of the tree are data: each is made visible
// before it is styled, so that no name, prompt or line of a file can reach the terminal as a
// command. The package reads no environment and opens no project; cmd hands both over.
package tui
