// Package ignorefile decides which paths of a tree ignore files leave out, as
// gitignore(5) and git itself do.
//
// A file is parsed once (Parse) and entered in the directory it lies in
// (Rules.Enter), which gives the rules in force there: an immutable chain from
// the directory up to the root that any number of walkers share. Rules.Match
// asks the chain about one path. Deeper files win over upper ones, later lines
// over earlier ones, and a rule that begins with ! takes a path back.
//
// # Syntax
//
// Lines end with LF or CR LF; a UTF-8 byte-order mark in front is skipped. Blank
// lines and lines beginning with # hold no rule. Trailing spaces are dropped
// unless a backslash stands before them. A line ends at a NUL byte, as in git.
//
//	name      matches the last component at any depth
//	/name a/b a slash in front or in the middle: matches from the file's directory
//	name/     directories only
//	!rule     takes back what earlier rules excluded
//	* ?       any bytes, any byte, but never a slash
//	**/a      a at any depth; a/** everything below a; a/**/b any depth between
//	[a-z]     one byte of a set: ranges, [!x] and [^x], \ escapes, [:alpha:] and the like
//	\x        x itself
//
// A malformed rule (a set that does not end, an unknown [:class:], a backslash at
// the end) matches nothing. Bytes are compared, not characters, and case counts.
//
// In one place git before 2.52 errs and this package does not: directly behind a
// literal, ** is an ordinary * ("a**/b" is "a*/b").
//
// # Cost
//
// Plain names, "*suffix" rules and anchored plain paths are found in hash tables,
// whatever their number; other rules are tried one by one, newest first, and cost
// at most the product of the path's and the rule's lengths, without recursion.
//
// # What it leaves to others
//
// The package touches no file system. That nothing below an excluded directory
// comes back is the walker's part: it does not descend. So is what is always left out,
// such as .git.
package ignorefile
