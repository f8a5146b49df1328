package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"

	"decree/disk"
)

const (
	logName  = "index.log"
	logMagic = "decree log 1\n\x00\x00\x00"
	logHead  = 32
	logMark  = 0x474f4c44 // begins a Flush's batch
)

// readLog gives the log's entries to add and its pack rows to cover, if it
// belongs to gen. It returns the length up to which the log is sound, 0 if it
// is no log of that base or cannot be read: what a torn or damaged batch held is found by the
// scan of what the sound ones do not cover.
func readLog(dir disk.Dir, gen generation, cover func(coverage), add func(entry)) (int64, error) {
	f, err := dir.Open(logName)
	if absent(err) || unreadable(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || st.Size < logHead || st.Size > maxLog {
		return 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, st.Size), readBlock)
	head := make([]byte, logHead)
	if _, err := io.ReadFull(in, head); err != nil {
		return 0, unlessUnreadable(err)
	}
	if string(head[:16]) != logMagic || generation(head[16:32]) != gen {
		return 0, nil
	}
	at := int64(logHead)
	for {
		b, err := nextBatch(in, st.Size-at)
		if err != nil {
			return at, unlessUnreadable(err)
		}
		n := readBatch(b, cover, add)
		if n == 0 {
			return at, nil
		}
		at += int64(n)
	}
}

// readBlock is how much of the log is read at once.
const readBlock = 64 << 10

// unlessUnreadable is the error of a read, but for one of a place that the disk cannot read, or where the log ends since.
func unlessUnreadable(err error) error {
	if unreadable(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// nextBatch reads the bytes of the next batch of a log that has so many left. What begins like none takes no memory.
func nextBatch(in *bufio.Reader, left int64) ([]byte, error) {
	head, err := in.Peek(batchHead)
	if err != nil || binary.LittleEndian.Uint32(head) != logMark {
		return nil, err
	}
	entries, rows := batchCounts(head)
	length := batchBody(entries, rows) + 4
	if length > left {
		return nil, nil
	}
	b := make([]byte, length)
	_, err = io.ReadFull(in, b)
	return b, err
}

// batchHead is the length of a batch's mark and of its numbers of entries and rows.
const batchHead = 12

func batchCounts(b []byte) (entries, rows int64) {
	return int64(binary.LittleEndian.Uint32(b[4:])), int64(binary.LittleEndian.Uint32(b[8:]))
}

// batchBody is the length of a batch without its checksum.
func batchBody(entries, rows int64) int64 { return batchHead + rows*rowLen + entries*entryLen }

// readBatch returns the batch's length, 0 if it does not hold together.
func readBatch(b []byte, cover func(coverage), add func(entry)) int {
	le := binary.LittleEndian
	if len(b) < batchHead || le.Uint32(b) != logMark {
		return 0
	}
	entries, rows := batchCounts(b)
	body := batchBody(entries, rows)
	if body+4 > int64(len(b)) || crc32.Checksum(b[:body], castagnoli) != le.Uint32(b[body:]) {
		return 0
	}
	at := b[batchHead:body]
	for ; rows > 0; rows-- {
		cover(readRow(at))
		at = at[rowLen:]
	}
	for ; len(at) > 0; at = at[entryLen:] {
		add(readEntry(at))
	}
	return int(body) + 4
}

// appendLog writes one batch at end, the log's sound length, and returns the
// new one. end 0 begins the log anew for gen.
func appendLog(dir disk.Dir, end int64, gen generation, rows []coverage, count int, at func(int) *entry) (int64, error) {
	buf := make([]byte, 0, logHead+16+len(rows)*rowLen+count*entryLen)
	if end == 0 {
		buf = append(append(buf, logMagic...), gen[:]...)
	}
	start := len(buf)
	if count > 0 || len(rows) > 0 {
		le := binary.LittleEndian
		buf = le.AppendUint32(buf, logMark)
		buf = le.AppendUint32(buf, uint32(count))
		buf = le.AppendUint32(buf, uint32(len(rows)))
		for _, r := range rows {
			buf = appendRow(buf, r)
		}
		for i := range count {
			buf = appendEntry(buf, at(i))
		}
		buf = le.AppendUint32(buf, crc32.Checksum(buf[start:], castagnoli))
	}
	f, err := openLog(dir)
	if err != nil {
		return end, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && st.Size != end {
		err = f.Truncate(end)
	}
	if err == nil {
		_, err = f.WriteAt(buf, end)
	}
	if err != nil {
		return end, err
	}
	return end + int64(len(buf)), nil
}

// openLog opens the log for writing, made with mode 0600 where there is none.
func openLog(dir disk.Dir) (disk.File, error) {
	f, err := disk.CreateFile(dir, logName, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	f, err = dir.OpenWrite(logName, 0o600)
	if errors.Is(err, disk.ErrOwner) { // it is made anew from the packs
		if err = dir.Remove(logName); err == nil {
			return disk.CreateFile(dir, logName, 0o600)
		}
	}
	return f, err
}

// maxLog is more than any writer lets the log grow to; above it the log is not believed.
const maxLog = 256 << 20
