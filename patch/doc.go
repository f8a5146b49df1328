// Package patch writes, reads, applies and reverses changes.diff, version 1: a unified
// diff that patch -p1, git apply and viewers take, with decree's own facts on "# " lines,
// which all of them skip.
//
// A file is the line "# decree changes 1" and one section a changed path, in byte order
// of the raw paths; no change at all is an empty file. A section is
//
//	# decree: {"path":"main.go","op":"modify","old":{...},"new":{...}}
//	diff --git a/main.go b/main.go
//	--- a/main.go
//	+++ b/main.go
//	@@ -1,3 +1,3 @@
//	 ...
//
// where the first line holds the whole facts of both sides (mode, size, SHA-256, link
// target) and what follows is what the tools need: nothing for directories, mode lines
// for a changed mode, hunks for text, and for contents with a NUL byte a "Binary files"
// line with both contents as base64 on "# < " and "# > " lines. Contents above [Limits]
// stand in the store alone ("store":true).
//
// The promise: what [Reader] accepts is exactly what [Writer] could have written, and
// [Section.Forward] and [Section.Reverse] give the other side's bytes or an error. Nothing
// is searched for, guessed or converted; each context and removed line is compared, and
// the hash before and after. [Merge] is the three-way merge, line by line, for what was
// edited since.
//
// Differences are found by lines split at '\n' only. Small ones come from go-udiff's
// lcs.DiffLines, which is trusted up to the 100 edits after which it gives up; larger ones
// are first cut at lines that are unique in both sides. The result is close to minimal and
// the work bounded, whatever the contents.
//
// The package imports nothing of decree's and touches no file system: contents come as
// readers, and what is computed goes to writers or is returned as bytes.
package patch
