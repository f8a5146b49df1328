// Package worktree changes a user's files, and is the only package that does.
//
// A [Plan] is a list of steps, each from one state of a path to another. [Tree.Move]
// makes all of them or none, and nothing that anybody wrote is lost on the way:
//
//  1. check: every path is in its From state, by hash; all that are not are
//     named in one [ConflictError], and nothing was changed
//  2. keep: what will be displaced is in the store, flushed
//  3. stage: every new content lies in .decree/tmp/txn-<id>/ under a slot name,
//     with its mode, owner and attributes, hashed while it was written, flushed
//  4. journal: <journals>/<id>.journal, flushed; from here on [Tree.Recover] can
//     finish or take back
//  5. move: what stands where another kind must come goes first, then
//     directories from the top down, files by exchange with their staged
//     content, deletes by renaming away, directories from the bottom up, modes
//  6. flush the directories, hash every path again, mark the journal done, empty the
//     slots, have the owner close its record (it may need their room), clean up
//
// What an exchange or a rename took out of the tree is hashed once more: if it
// is not what was checked in 1, somebody wrote in between, their bytes go back
// to where they were and so does everything else.
//
// Whether a transaction is being taken back after an error or by a later
// process, the same code does it, and it believes only what it sees: each path
// and each slot holds the old state, the new one, nothing, or something else.
// Something else is somebody's work: it is left alone and named.
//
// A slot is the place of a step's content outside the tree: "s<n>" holds what
// is to come in (and, after an exchange, what came out), "d<n>" what was
// renamed away; n is the step's number. Where .decree is on another device than
// the target, slots lie in the nearest directory above it that stays, with the
// prefix ".decree-txn-<id>-".
//
// Paths are walked by directory handles that never follow a link, so nothing
// outside the root is reached, and nothing in .git or .decree, also not by
// another spelling of these names on a file system that folds case. There a plan may
// give a path another spelling: the one that goes, goes first, and which of the two is
// there the directory's listing tells.
//
// The package does not lock, plan, or record: its callers do. It restores no
// times: a restored file is newer than what was built from the undone one.
package worktree
