// Package queue takes the messages of a project, one by one or several isolated ones at
// once, and has each done by its routine as a recorded run. A message that is done goes to inbox/done, one
// that cannot be done goes to inbox/dead with its reason; none is lost, and none
// is done again once it is in done.
//
// # One message
//
// All of it happens under one hold of the project's lock, which is let go
// between messages, so that other commands get in between:
//
//  1. What a dead process left is recovered, and its message ended or gone on with (below).
//  2. A message is chosen: the follow-ups of the chain just done, then the oldest.
//  3. It is completed, and written back if that changed it. One that cannot be
//     understood goes to dead.
//  4. queue.json in the store says which message is under way, under which record
//     and at which attempt. It is durable before the run begins.
//  5. The run. Its end is a line in the history: from there on the message counts
//     as done, or as failed.
//  6. Done: a spec is marked, follow-ups join the chain, the file moves to done.
//     Failed: the tree is back at the run's manifest, the follow-ups go with the
//     record, the file moves to dead.
//
// A message is put aside for what is wrong with it, its routine or its spec, also
// where these cannot be read. One that cannot even be moved is passed over, and one that
// nothing can be done about now, as no run can be isolated, waits in its place. Errors
// that say nothing of a file (a full disk) end the work, and no message is put aside.
//
// # After a death
//
// queue.json names the message, and the record says how far it came. No record:
// it had not begun. Succeeded: step 6 is done again, each part of which can be
// repeated. Interrupted: the run is taken back, its attempt counts, and the rest
// of the attempts are made in a new record. A file that is not the one that
// queue.json means (by its content, which holds its id) is another message, and one that
// is gone is not done again.
//
// # Several at once
//
// The run of an isolated message changes the tree only when it is published, under the lock.
// So others can begin while its command works: each by a job, with a recorder of its own. Of
// one chain never two are under way, and what changes the tree itself waits for the end of
// all others. queue.json has an entry for each: those whose records have a lease are being
// done, by whatever process; the others were left by dead ones.
//
// # Files that appear meanwhile
//
// What a routine leaves in its outbox is a follow-up, and so is a file that came into
// the inbox during the run and is named <chain>-<seq>.md or has the chain in its front
// matter. Every other one is somebody else's and keeps its name. A file that somebody still has open for writing is left until it is closed
// (Linux tells; elsewhere it has to be unchanged for a second).
//
// The package prints nothing. What happens is told through Options.Tell.
package queue
