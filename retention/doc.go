// Package retention decides which records of a history stay and why. It is
// pure: records come by argument, a verdict on each comes back; who asks removes
// them. Nothing depends on the clock: ages count from the newest record.
//
// A record stays if any of these holds, in this order of being named:
//
//   - it is open, labelled, has messages in its outbox though it did not succeed, is the
//     newest of all, the newest publish or the newest restore;
//   - a rule of its reason's policy keeps it: the last n, the newest of each of the
//     last n days, ISO weeks or months that have a record of the reason, in local
//     time, or those not older than an age;
//   - it is an undo that a redo can still take back;
//   - its reason has no policy here, or one that keeps all;
//   - a record that stays needs it to be undone.
//
// A cap on the store's size comes after that and goes by Shrink: what is not
// kept in any case goes, automatic checkpoints first, then runs and what moved
// the tree, then manual checkpoints, then published states, and of each the
// oldest first.
package retention
