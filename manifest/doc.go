// Package manifest is the state of a tree as a list of paths and facts: its text form
// manifest.json, the comparison of two states, and the binary form of earlier stores.
//
// # manifest.json, version 1
//
//	{
//	  "version": 1,
//	  "files": {
//	    "src/main.go": {"sha256": "<64 hex>", "size": 1234, "mode": "644"},
//	    "tool": {"sha256": "<64 hex>", "size": 9, "mode": "777", "type": "symlink", "target": "bin/tool2"}
//	  },
//	  "dirs": {
//	    "empty": "700",
//	    "src": "755"
//	  }
//	}
//
// Files come first, then all directories but the root, each in byte order of the raw
// paths and one a line; an empty section is {}; the last byte is a line feed. A manifest
// of some paths only has the line "partial": true after the version. Paths and targets
// that need it are C-quoted ([tree.Quote]) and that text is then a JSON string; nothing
// is escaped that JSON does not require. One tree is one sequence of bytes, so that the
// SHA-256 over them names the state; the tree id is another one (see package tree).
//
// [Encoder] and [Decoder] stream: their memory does not grow with the tree. The decoder
// takes any JSON spelling of the same content and passes over unknown fields, but it
// refuses what no encoder could have meant: wrong order, duplicates, a file below a file,
// paths that leave the tree, bad digits, a newer version.
//
// # Binary form
//
// [ReadTree] reads what earlier stores have: each path as the length that it shares with
// the one before and the rest, hashes as 32 raw bytes.
//
// The package touches no file system.
package manifest
