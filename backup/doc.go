// Package backup keeps generations of a project somewhere else: it makes, reads, proves, restores
// and rotates them. What a generation is, and in which order it is written:
//
//	<target>/<name>/
//	    decree-backup.json       the marker: {"version":1,"project":"<id>","manifest":"<sha256>"}
//	    manifest.json            the newest generation's, and what is known of the others
//	    current/                 that generation as plain files, where the target is a target.Shelf
//	    archives/<time>.zip      the others; pre-restore-<time>.zip what a restore has replaced
//	    packs/<sha256>.pack      contents, in the format of the store's packs (package store)
//	    packs/<sha256>.idx       the headers of its blocks, in their order, and then the 32 bytes of its hash
//	    proofs.jsonl             what drills have found
//
// Every file that manifest.json lists is a content in the packs, and so are trees and contents of
// files: a generation costs what the packs do not have yet. current/ and the zips show
// files that are not large once more, for people; current/ is flushed by nobody and needs no
// proof, since a reader takes from it what has the hash that manifest.json says, and else what
// the packs have.
//
// One generation is acknowledged by one conditional replacement of manifest.json. Everything
// before that is invisible to readers, and everything after it (the marker, the cleaning up) can
// be repeated by the next backup.
package backup
