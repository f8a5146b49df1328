// Package history keeps the records: what they are called, in which order they
// stand, where they lie, which trees they saw and what was done with them.
//
// A record is in two places. The one that counts is the store:
//
//	records.jsonl    one line a record, and of what else changed records (see The log below)
//	open/<id>.json   a record that has begun and not ended
//	labels.json      {"version":1,"labels":{"<name>":"<id>"}}
//	audit.jsonl      one line an operation, chained by hash
//
// The other, for people and their tools, is the run directory .decree/runs/<id>/
// with run.json and the files that formats.md lists. What is missing or damaged
// there can be written again from the store. What is there and was never in the
// store is foreign: it has no place in the order, no part in ids, and is found by
// its whole id alone.
//
// # The log
//
// records.jsonl is only appended to, and no line changes what an earlier one says. What a
// record is now follows from folding the later lines over its own: a revert's line says
// that it has undone others, and these lines stay. run.json shows that, written
// again when it is another, and by a repair.
//
// A record's line is one JSON object whose fields stand in this order,
// so that ids and times are found without decoding the rest:
//
//	{"id":"<chain>-<seq>","at":<place in the order>,"file":[<size>,<mtime in ns>],
//	 "effects":[...],"trees":["<before>","<after>"],"files":{"changes.diff":"<sha256>",...},"record":{run.json}}
//
// effects, where there are any, are what the record changes about records before it. Each has
// the id, and of the rest what is other than before: status with undone_by, files with
// their new hashes, and file:
//
//	{"id":"...","status":"undone","undone_by":"<id>","files":{"changes.diff":"<sha256>"},"file":[<size>,<mtime>]}
//
// An operation that is no record and changes some has a line of its own:
//
//	{"op":"forget","effects":[...]}     files were written without what is forgotten
//	{"op":"repair","effects":[...]}     run.json files were written again: their file
//	{"op":"compact","given":"<id> <id>...","effects":[...]}    the log was written anew: what lines
//	                                    that went had said, and the ids of removed records
//
// at is the start in ns, or 1 more than the at of the record before, or than the start of an open one, where the
// clock had been set back by then: records stand in the order in which they were made, and
// their times are what the clock said.
//
// file is what stat says of the run.json that was written with the line: while
// it is so, run.json need not be read. A removed record is {"id":...,"at":...,"gone":true}: its
// id is not given again.
// Earlier versions wrote a record's line again where its status changed: the last one counts.
// A line is appended with one write and flushed. A torn last line is no line;
// the next writer ends it with "!", so that it never becomes one. When most of the file
// are lines of removed records it is written anew without them, the others as they are.
//
// # How a record ends
//
// Whatever it is of, by End alone. A death, or an error, leaves one of these states, and
// the next command that writes calls End again, or Abandon:
//
//	open        open/<id>.json is there and no line: it has not ended
//	recorded    its line is in the log: it counts, and so does what it did to others
//	shown       its run directory is in place, and the run.json of the others
//	ended       labels and the audit have it, and open/<id>.json is gone
//
// # Trees
//
// A tree is kept as the objects of its directories (see package tree), which records
// share. Every record has its trees whole, reverts and applies too: theirs are what the
// record before left, with the paths that they touched as these were and as they became.
//
// # Closures
//
// Closure names all that a record needs of the store, of whatever kind it is. What is freed,
// what is checked, and what a record takes go by it alone. What is freed is in no closure of
// a record, of an open one either, in no journal of a transaction, and was stored before the
// oldest open record began: what a run, or whatever is open, stores while others may free
// space stays until it ends.
//
// All methods that write need the project's lock and may not be used by two
// goroutines at once; reading needs no lock and never blocks.
package history
