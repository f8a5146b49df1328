// Package timeline turns the history into rows for people, newest first: what each record
// is (its badge), when it was, what it was about, what it changed, and what has become of it.
// The terminal face, the web face and reports show the same rows in the same words.
//
// What belongs together is one row with the others inside it: the turns of a session of a
// coding agent that nothing came in between of, and the candidates of a race. What was changed
// outside of any record is a row of its own, below the record that found it. A record that cannot
// be read is a row that says so.
//
// It reads records.jsonl, and diffs only where a path is looked for. It writes nothing, prints
// nothing and paints nothing: all texts are escaped for one line by package view.
package timeline
