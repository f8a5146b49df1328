// Package project finds the root of a tree, the project's identity and the
// place of its store, reads its config and holds its lock.
//
// The root is --root, else the nearest directory upwards from the working
// directory that holds .decree or .git, else the working directory; the home
// directory and / are passed over and need --root.
//
// A project's identity is `.decree/project.json`:
//
//	{"version":1,"id":"<32 hex>","store":"<base>"}
//
// and its store is the directory <base>/<id>, whose `store.json` remembers the root:
//
//	{"version":1,"id":"<32 hex>","root":"<path>","dev":66306,"ino":1835023,"born":1763769600123456789,"fs":9223372036854775807}
//
// born (when the directory was made, in nanoseconds since 1970) and fs (the id of its file
// system) are left out where the system does not know them. They tell a root from that of
// another disk which is mounted at the same place later.
//
// A project.json is believed only if its store remembers this root, so that a
// file that came with a foreign tree cannot point decree at anything. A root
// that moved is followed; a copy gets an id of its own; a tree that lost its
// .decree is given back to the store that remembers it. The place of a store is
// decided once: another one asked for later, or one that is missing, is an
// error, never a silent second store.
//
// Opening for reading writes nothing. Everything that is written goes through
// the handles of package disk; the store's directories are 0700 and its files
// 0600 whatever the umask.
package project
