// Package report writes what a record did, or what differs between two, or a whole session or race,
// for somebody who has no decree: one HTML page that needs nothing else, or Markdown for a comment.
//
// The page has no script, loads nothing and says so in a policy of its own; all that comes from the tree
// is shown as text. Diffs are written while they are read, and compared with the recorded hash on the
// way: a report of a damaged record is an error. Of a very long diff the first lines are drawn and the
// rest is there as plain text; of a long log the beginning and the end.
//
// The Markdown is short: what it was, the files, how it is proven, and the beginning of the diff.
package report
