// Package message reads and completes messages (tasks in markdown files with optional
// YAML front matter), reads routines (the scripts and notebooks that do them) and says
// when a cron expression is due. It is pure: bytes and small readers come in, bytes go
// out; it touches no file, starts no process and reads no clock.
//
// # A message
//
//	---
//	chain: 2026112107015900
//	seq: 0
//	id: 2026112107015900-0
//	type: task
//	routine: develop
//	target_branch: next      # any other field is a parameter
//	---
//	The body: what is to be done.
//
// Everything before the body is optional. The front matter begins in the first line with
// "---" alone (a byte-order mark may stand before it) and ends at the next line that is
// "---" alone; what follows is the body, byte for byte, whatever it holds. A file whose
// first line is another one is all body. Lines end in LF or CRLF.
//
// Scalars stay text: 0123 is "0123", true is "true", a date is as written, an empty value
// is "". A list or a mapping as a parameter becomes compact JSON with its scalars as
// strings; where a known field has one it is an error. An input_file whose name is no text
// stands between quotes of its own, as in a manifest: '"specs/a\nb.spec.md"'. Anchors, aliases, merge keys and
// tags but !!str are refused, as is a key that stands twice.
//
// [Complete] fills in what a message leaves open and returns its bytes. It changes the
// lines of the fields it sets and nothing else: comments, the order of fields, line
// endings and the body stay. A complete message comes back as it was.
//
// # What it does not do
//
// It does not run, queue or move anything, and it does not look for files: package queue
// does. Shell and Python are not parsed beyond the assignments of a routine's head.
package message
