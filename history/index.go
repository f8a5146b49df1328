package history

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"unsafe"

	"decree/disk"
	"decree/project"
)

// records.idx saves the reading of a long log: where the line of each record
// begins, and what must be known of all of them to find one. It is a cache, and
// is not flushed: it names the log file and how much of it it covers, what was
// appended since is read, each line is compared with its row when it is used,
// and an index that is cut, of another file or of another form is not used.
//
//	magic "dindex1\n", then little-endian 8-byte numbers: inode of the log, bytes covered, bytes dead,
//	lines damaged, the stamp of .decree/runs (inode, mtime, ctime), number of rows, number of gone rows;
//	a row: start in ns, offset, bytes, size and mtime of run.json, seq, 16 bytes chain;
//	CRC-32C of all that
const (
	indexFile  = "records.idx"
	indexMagic = "dindex1\n"
	indexMin   = 128 << 10 // a smaller log needs none
	indexHead  = len(indexMagic) + 9*8
	indexRow   = 6*8 + chainDigits
	maxIndex   = 1 << 30
)

// runsStamp is .decree/runs at a moment when it held the rows' directories and
// nothing else: any entry made or removed changes its times.
type runsStamp struct {
	ino          uint64
	mtime, ctime int64
}

func stampOf(d disk.Dir) runsStamp {
	st, err := d.Self()
	if err != nil || st.Ino == 0 {
		return runsStamp{}
	}
	return runsStamp{st.Ino, st.Mtime, st.Ctime}
}

var indexSum = crc32.MakeTable(crc32.Castagnoli)

// readIndex fills l from the index file and says whether it could.
func (l *log) readIndex(store disk.Dir, f disk.File, st disk.Info) bool {
	b, err := project.ReadFile(store, indexFile, maxIndex)
	if err != nil || len(b) < indexHead+4 || string(b[:len(indexMagic)]) != indexMagic {
		return false
	}
	body := b[:len(b)-4]
	if binary.LittleEndian.Uint32(b[len(body):]) != crc32.Checksum(body, indexSum) {
		return false
	}
	n := numbers{body[len(indexMagic):]}
	ino, covered, dead, bad := uint64(n.next()), n.next(), n.next(), n.next()
	runs := runsStamp{uint64(n.next()), n.next(), n.next()}
	rows, gone := n.next(), n.next()
	if ino != st.Ino || covered < 0 || covered > st.Size || rows < 0 || gone < 0 || rows+gone != int64(len(n.b)/indexRow) || len(n.b)%indexRow != 0 {
		return false
	}
	x := &log{covered: covered, dead: dead, damaged: int(bad), runs: runs}
	all := make([]row, 0, rows+gone)
	for range rows + gone {
		r, ok := n.row(f, covered)
		if !ok {
			return false
		}
		all = append(all, r)
	}
	// The last line stands where it should, so the log was not written anew under the same inode.
	if len(all) > 0 {
		if _, err := slices.MaxFunc(all, func(a, b row) int { return int(a.off - b.off) }).bytes(); err != nil {
			return false
		}
	}
	x.rows, x.gone = all[:rows:rows], all[rows:]
	for i := range x.gone {
		x.gone[i].gone = true
	}
	l.rows, l.gone, l.covered, l.dead, l.damaged, l.runs = x.rows, x.gone, x.covered, x.dead, x.damaged, x.runs
	l.size = covered
	return true
}

// numbers is a run of 8-byte numbers.
type numbers struct{ b []byte }

func (n *numbers) next() int64 {
	v := binary.LittleEndian.Uint64(n.b)
	n.b = n.b[8:]
	return int64(v)
}

func (n *numbers) row(f disk.File, covered int64) (row, bool) {
	r := row{file: f}
	r.key.at, r.off, r.n, r.size, r.mtime, r.key.seq = n.next(), n.next(), int(n.next()), n.next(), n.next(), int(n.next())
	r.key.chain = unsafe.String(unsafe.SliceData(n.b), chainDigits)
	n.b = n.b[chainDigits:]
	if !digits(r.key.chain) || r.key.seq < 0 || r.key.seq > maxSeq || r.off < 0 || r.n < 0 || r.off > covered || int64(r.n) > covered-r.off {
		return r, false
	}
	return r, true
}

// saveIndex writes the index file where that saves something. What goes wrong
// costs the next process a reading, so no error is returned.
func (h *History) saveIndex() {
	l, err := h.rows()
	if err != nil || l.size < indexMin || l.torn || len(l.unknown) > 0 {
		return
	}
	stamp := h.stamp(l)
	if l.covered == l.size && l.runs == stamp {
		return
	}
	b := append(make([]byte, 0, indexHead+(len(l.rows)+len(l.gone))*indexRow+4), indexMagic...)
	for _, v := range []int64{int64(l.ino), l.size, l.dead, int64(l.damaged), int64(stamp.ino), stamp.mtime, stamp.ctime, int64(len(l.rows)), int64(len(l.gone))} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	for _, r := range slices.Concat(l.rows, l.gone) {
		size, mtime, _ := r.runFile()
		for _, v := range []int64{r.key.at, r.off, int64(r.n), size, mtime, int64(r.key.seq)} {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		b = append(b, r.key.chain...)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, indexSum))
	_ = project.ReplaceFile(h.p.Store, indexFile, b, project.PrivateFile, false)
}

// stamp is that of .decree/runs if it holds the rows' directories and nothing
// else, else zero.
func (h *History) stamp(l *log) runsStamp {
	runs, err := h.runs()
	if err != nil {
		return runsStamp{}
	}
	defer runs.Close()
	// Taken before the look: what comes after it changes the times again.
	s := stampOf(runs)
	names, err := h.runNames(l)
	if err != nil || len(names.others) > 0 {
		return runsStamp{}
	}
	for i := range l.rows {
		if there, kind := names.at(i); !there || kind != disk.Directory {
			return runsStamp{}
		}
	}
	return s
}
