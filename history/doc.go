// Package history keeps the records: what they are called, in which order they
// stand, where they lie, which trees they saw and what was done with them.
//
// A record is in two places. The one that counts is the store:
//
//	records.jsonl    one line a record, the last line of an id wins (see Log lines below)
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
// # Log lines
//
// A line of records.jsonl is one JSON object whose fields stand in this order,
// so that ids and times are found without decoding the rest:
//
//	{"id":"<chain>-<seq>","at":<place in the order>,"file":[<size>,<mtime in ns>],
//	 "trees":["<before>","<after>"],"files":{"changes.diff":"<sha256>",...},"record":{run.json}}
//
// at is the start in ns, or 1 more than the at of the record before where the clock
// had been set back by then: records stand in the order in which they were made, and
// their times are what the clock said.
//
// file is what stat says of the run.json that was written with the line: while
// it is so, run.json need not be read. A removed record is {"id":...,"at":...,"gone":true}.
// A line is appended with one write and flushed. A torn last line is no line;
// the next writer ends it with "!", so that it never becomes one, and the file
// is written anew when most of it is of the past.
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
// what is checked, and what a record takes go by it alone.
//
// All methods that write need the project's lock and may not be used by two
// goroutines at once; reading needs no lock and never blocks.
package history
