// Package tree has the facts of a path (its [Entry], its [Hash], how it is quoted and
// checked) and the state of a tree as a set of hashes: one object a directory, named
// by the SHA-256 of its bytes. A subdirectory is in its parent's object by its own
// object's name, so that the root's object names the whole tree: that is the tree id. Two
// trees share the objects of all directories that are the same in both, a comparison goes
// down only where names differ, and applying changes makes new objects along the touched
// paths alone.
//
// # The directory object
//
// An object begins with the seven bytes "dtree2\n" and a byte, its level. Level 0 holds
// entries, up to the object's end, in byte order of their names, each name once:
//
//	head byte   1 file, 2 symlink, 3 directory; plus 4 if the mode follows;
//	            plus 8 if the owner follows
//	uvarint     length of the name, 1 to 16383
//	name        any bytes but '/' and NUL; not ".", "..", ".git" or ".decree"
//	uvarint     if 4 is set, the mode: the bits of 07777. A file's is else 644, a
//	            directory's 755, and that is never spelled out; a symlink has none
//	2 uvarint   if 8 is set, user and group: those of what has set-user-ID or
//	            set-group-ID, or whose group may what others may not and is not the
//	            usual one, where they are known. Group 4294967295, which is nobody's,
//	            says that it has an access control list
//
// and then, for a file, a uvarint with its size and the 32 bytes of its content's SHA-256;
// for a symlink, a uvarint with the length of its target, 1 to 65536, and the target; for
// a directory the 32 bytes of its object's name. Uvarints are those of encoding/binary in
// their shortest form. An empty directory is an object without entries. The root's own
// mode is nowhere: it is not part of the tree.
//
// # Large directories
//
// Entries are cut into several objects where the names say so. The digest of a name is its
// CRC-32C, multiplied by 2654435761 modulo 2^32. On level n an object ends behind its
// 512th entry, and behind an entry, its 8th or a later one, whose name's digest, rotated
// left by 3(n mod 6) bits, is below 2^29: one name in 8. So an object has 15 entries on
// average, a changed content moves no cut, and a new name moves at most the cuts around it.
//
// If that gives one object, it is the directory's. Else their names stand in objects of
// level 1, which are cut in the same manner, and so on up to the level that has one object,
// which is the directory's. An entry of a level above 0 is
//
//	uvarint, name   the last name in the object of the level below
//	32 bytes        that object's name
//
// Equal directories have equal objects, whatever led to them. The decoder takes only what
// the encoder writes, cuts included.
//
// # What is damaged
//
// An object that is missing or malformed is a [DamagedError], which names the directory.
// A [Reader] with Skip goes on with all else.
//
// The package touches no file system and no store: objects come from a [Source] and go to
// a [Sink].
package tree
