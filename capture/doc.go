// Package capture finds out what a tree is: it walks it, compares every file with the
// stat cache, reads and stores what is new, and gives the tree as a manifest.
//
// # What is recorded
//
// Regular files, symlinks and directories, but for those that ignore rules leave out,
// .git and .decree at any depth, and every store, wherever it lies: the directories of
// Request.Exclude, and those named by 32 hex digits that hold a store.json. Names are opened from
// directory handles, one component at a time, and no link is followed. Sockets, pipes
// and devices are listed in Result.Special.
//
// Ignore files (.gitignore, .decreeignore) are read as plain files, stored, and listed in
// Result.Rules. A later walk can be given them as Request.Frozen: it then reads none from
// the tree. Rules from outside of the tree (Request.Outer) count below all of these, and are
// frozen with them.
//
// # When a file is read
//
// A file counts as unchanged, and is not read, when its size, mtime, ctime, inode, device
// and mode are those of the cache, and both times lay before the start of the cached
// reading by more than the file system's tick: a change within a tick of the reading
// could have left the times as they were. On a file system without a change time of its
// own (FAT) every file is read each time. Request.Full reads every file.
//
// A file that changes while it is read is read again, three times. What cannot be read is
// an error before a run; after it, or with SkipUnreadable, it is listed in
// Result.Unrecorded. Nothing is guessed: a vanished file is absent, and an error of the
// store or a lack of descriptors never passes for a file that cannot be read.
//
// # The cache
//
// The file "cache" is an append-only log of blocks, one a directory, each holding the
// names, facts and hashes of its entries and where the blocks of its subdirectories lie
// (see block and cache). A walk carries the cached block of a directory along, so nothing
// is ever searched. A directory whose names came in the same order as when its block was
// written needs no sorting either, and on local file systems, where its times tell that
// no name changed, no listing. What changed is appended, with the ancestors. All blocks
// hang on checksums from the commit slot down; whatever is not as it was written is found
// when it is used, and then the whole tree is read again.
//
// The cache is never truth: losing it costs a rehash. It is also the result: manifest and
// Entries are streamed from its blocks, so memory does not grow with the tree beyond the
// mapped file.
//
// # The walk
//
// Several workers take jobs from one stack. Open directories are bounded; those beyond are
// opened again when needed. The result does not depend on the scheduling: lists are
// sorted, and one tree gives one sequence of bytes.
//
// The package changes nothing in the tree, but for a file that it makes and removes in
// .decree to read the file system's clock, where the cache lies on another one.
package capture
