// Package layer gives a run a view of its own of a directory, the root: the run sees all
// of it and can change all of it, and what it changes lies in a private directory, the
// layer. No byte, mode or time of the root changes.
//
// # The life of a layer
//
//	Choose      which mechanism works here, found out by trying it
//	Make        the layer's directory, and the moment from which changes of the root count
//	Mount       what the command's process needs to work in it
//	Enter       a mark, before another command works in it later; Leave takes it away
//	Changes     what the layer has otherwise than the root
//	MountAside  for who looks at it and may write, but not into it; LeaveAside removes that
//	Remove      all of it
//
// Lock keeps others out. Processes are not this package's: who sees an overlay is found
// by the name of its mount (runner.KillMounted), which is the layer's for as long as it
// lives. A death at any step leaves a directory that Open refuses, or one that is whole;
// Remove takes both. Nothing is flushed but what a run has done in the root's .git, when
// Collect has read it: after a power failure all else of a layer may be torn, and what of it
// must outlive that is stored elsewhere.
//
// # Mechanisms
//
// An overlay is mounted over the root's own path, seen by the command's processes alone
// (see package overlay). The layer has upper, which takes what is written, and work. It
// can serve everybody whose files the root's are, on Linux from 5.11 on, unless a policy
// of the machine forbids it; an upper cannot lie on another overlay, and nothing may be
// mounted below the root.
//
// A clone is a copy of the root below the layer, in clone/tree, that shares its blocks with the
// root where the file system can (btrfs, XFS, APFS); a full copy is made only if the
// caller says so. It has another path than the root. The file names has the inode and the path
// of each thing that was cloned (see cloning.note), each with a NUL behind it.
//
// # Changes
//
// Of an overlay the layer alone is walked: a device 0/0, or an empty file with the
// attribute user.overlay.whiteout, is a deletion; a directory whose attribute
// user.overlay.opaque is "y" hides all that the root has below it; all else is there.
// Of a clone the tree is walked, and what has a change time after the cloning, or another inode
// than was made at its path, was touched.
// What was only copied up, and is as it was, is no change. The ignore files of the root
// are read along the way, and what they leave out, .git and .decree are only counted.
//
// # The base
//
// The root may be edited while the run works. What the root has at a path counts as what
// the run began with only if it has a change time before the layer was made, by more than the
// tick of the file system's clock, and it and each directory above it stand where they stood
// then: nobody can set a change time back, and whatever takes a thing's place changes the
// directory, or, where the file system is known to do that, the thing's own change time (see
// base.stands). In the root itself other programs may make files and remove them all the time: of its names
// the system tells who made the layer which were touched (see nameWatch). Change.Settled looks, and is asked after the content was read. The ignore files
// along the way have to be settled too. What somebody has seen before the edit is asked for as
// ChangeOptions.Known. Of a layer that was entered again, what was touched only then is
// judged by the moment of that. Where the clock was set back since the layer was made nothing
// is settled or known, and all of a clone is compared.
//
// Where the clock is too coarse for that, or no change time is kept, Place.Coarse says so: who makes the layer
// then reads the root before, and gives what was there as Known, and what has the same content as then is the same.
package layer
