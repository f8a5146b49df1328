// Package store keeps bytes by their SHA-256: every content that a record names.
//
// The promise: what Flush acknowledged is durable and comes back bit for bit or as an
// error that names what is damaged; nothing is ever returned that its hash does not
// match. Objects live in append-only packs, many to a file, compressed together in
// blocks; the index only says where, and can be made again from the packs alone.
//
//	<store>/packs/00000001.pack   blocks, appended to until 256 MiB, then the next number
//	<store>/index                 sorted entries, mapped
//	<store>/index.log             what came since, appended by each Flush, folded when large
//
// All numbers are little-endian. Files are 0600, directories 0700, whatever the umask.
//
// # Pack
//
//	"decree pack 1\n" 0 0, 16 random bytes (the pack's identity), then blocks:
//
//	 0  magic "\xdcDBLOCK\n"
//	 8  u32 header length, entries included
//	12  u32 raw length: of all entries together
//	16  u32 stored length: of the payload
//	20  u32 count of entries
//	24  u32 flushed: how much of this pack was durable when the block was written
//	28  u32 CRC-32C of the payload
//	32  u32 method: 0 as it is, 1 zstd
//	36  u32 CRC-32C of the block's offset in the pack (u32), of bytes 0 to 36 and of the entries
//	40  entries: hash [32]; uvarint length<<1 | list; for a list also uvarint size of the content
//	    payload
//
// The checksum holds the offset, so that a pack kept inside a pack, as somebody's file,
// is never taken for blocks of the outer one. Raw length is at most 16 MiB: that bounds
// what a hostile block can make a reader allocate.
//
// A content above 8 MiB is cut by content into chunks of about 1 MiB, each an object of
// its own, and a list of them stands under the content's hash: its entry is marked, so
// that no content can pose as a list. A list is the chunks in order: hash [32],
// u32 length. A length that is a multiple of the chunk's own says that the chunk comes
// that many times in a row: 4 GiB of zeros take one line.
//
// # What is torn, what is damaged
//
// A block that does not hold together is a torn tail if it lies beyond all that was
// acknowledged: the next Writer cuts it. It is damage if the index log or a later block's
// "flushed" shows that it was durable once: then it stays, is reported, and the blocks
// behind it are found by their magic. A place that the disk cannot read (EIO) is damage too; in what may
// be a torn tail nobody knows, so nothing is cut there and the next block begins another pack.
//
// # Index
//
// Each entry of the index is 48 bytes: hash [32], u32 pack, u32 offset of the block, u16
// position in the block, 6 bytes size with the list mark on top. The base begins with a
// 64-byte header (magic "decree index 1\n" 0, generation [16], u64 entries, u32 bits,
// u32 packs, 12 bytes 0, u32 CRC-32C of header and pack rows), the rows of the packs it
// covers (u32 number, identity [16], u64 length covered, u32 1 if it is being taken away), 2^bits+1 u32 bucket
// starts, 2^bits u32 bucket checksums, and the entries sorted by hash. A bucket is checked
// when it is first used, so opening reads nothing that grows with the objects, and a
// flipped bit or a lost page is noticed and answered by a scan of the packs.
// The log begins with magic "decree log 1\n" 0 0 0 and the generation of its base. Each
// Flush appends u32 magic, u32 entries, u32 packs, pack rows, entries, u32 CRC-32C.
//
// The index is never the truth: it says up to where it covers which pack, and what lies
// beyond is scanned.
//
// # States
//
// An open Store is in one of three states:
//
//	state    what it goes by                         it comes here                      it leaves
//	loaded   the index, of packs that are there      Open; another process has          to scanned, when an object is
//	                                                 written, or taken a pack away      not found; a Writer begins
//	scanned  the index, and the blocks behind what   from loaded                        to loaded, when another process
//	         it covers                                                                  has written, or a Writer failed
//	doubted  the packs alone, scanned whole          a checksum, row or place of the    a Flush or Compact writes the
//	                                                 index is wrong; Rebuild            index anew
//
// Within these, "proven" says that the rows of the index were compared with the packs, which
// a Writer does as it begins and a reader when it first misses an object; a pack is "leaving" when a
// compaction has copied what lived in it and could not remove it yet: it is none of the
// packs, unless the index is doubted.
//
// An object that is put is in one of these:
//
//	claimed   its bytes are in a batch of the Writer, its place is pending; this Store reads it there
//	placed    its block is in the pack: an error of the Writer cuts it off again, a death leaves
//	          it for the next Writer, or tears it
//	durable   Flush has flushed the pack, and then logged the place: it stays, and other
//	          processes see it
//
// # What it does not do
//
// It locks nothing: one Writer at a time is the caller's duty (the project's lock).
// Readers need no lock and never write. It knows no references: what is alive is what
// the caller of Compact says.
package store
