package capture

import (
	"errors"
	"io/fs"
	"slices"
	"unsafe"

	"decree/disk"
	"decree/tree"
)

// look compares records lo to hi with what stat says, and gives those that must be read
// to readers.
func (k *worker) look(n *node, lo, hi int) {
	err := k.lookAt(n, lo, hi)
	k.served(n)
	if err != nil {
		k.fail(n.path, err)
		return
	}
	k.done(n)
}

func (k *worker) lookAt(n *node, lo, hi int) error {
	if k.failed.Load() || lo == hi {
		return nil
	}
	if k.facts == factsNone {
		return nil
	}
	h, done, err := k.use(n)
	if err != nil {
		return k.lostHandle(n, err, span(lo, hi))
	}
	defer done()
	b := n.present()
	k.reads = k.reads[:0]
	looked := int64(0)
	var in disk.Info
	for i := lo; i < hi; i++ {
		kd := n.listedKind(i)
		if kd != kFile && kd != kLink {
			continue
		}
		looked++
		if kd == kFile && k.facts == factsAll && (k.req.Full || !b.trusted(i)) {
			k.reads = append(k.reads, int32(i)) // reading it tells all that stat would
			continue
		}
		name := b.name(i)
		// Stat keeps nothing of the name.
		in, err = h.Stat(unsafe.String(&name[0], len(name)))
		if err == nil && in.Kind == diskKind(kd) && b.known(i, kd, &in) && !k.req.Full && k.stored(b, i, kd) {
			k.notice(n, b, i, in.Size) // a link is never that long
			continue
		}
		if err := k.differs(n, h, i, &in, err); err != nil {
			return err
		}
		b = n.present()
	}
	k.files.Add(looked)
	k.pushReads(n)
	return nil
}

// notice names a large file.
func (k *worker) notice(n *node, b block, i int, size int64) {
	if size > LargeFile {
		k.large = append(k.large, Large{join(n.path, b.name(i)), size})
	}
}

func diskKind(k kind) disk.Kind {
	if k == kLink {
		return disk.Symlink
	}
	return disk.Regular
}

// stored says that the store has the bytes that the cache vouches for.
func (k *worker) stored(b block, i int, kd kind) bool {
	return !k.req.CheckStore || kd == kLink || k.req.Store == nil || k.req.Store.Has(Hash(b.hash(i)))
}

// differs deals with a record that the cache does not vouch for, given what stat said.
func (k *worker) differs(n *node, h disk.Dir, i int, in *disk.Info, statErr error) error {
	path := func() tree.Path { return join(n.path, n.present().name(i)) }
	switch {
	case absent(statErr):
		n.change(func(b block) { b.setKind(i, kNone) })
		return nil
	case statErr != nil:
		return k.unreadFile(n, i, path(), statErr)
	}
	switch in.Kind {
	case disk.Regular:
		if k.facts == factsStat {
			if k.tooLarge(n, i, in) {
				k.leaveLarge(n, i, in.Size)
			}
			n.change(func(b block) { b.setFacts(i, kFile, in, false) })
			return nil
		}
		k.reads = append(k.reads, int32(i))
	case disk.Symlink:
		return k.link(n, h, i, in)
	case disk.Directory:
		k.becameDir(n, i)
	default:
		n.change(func(b block) { b.setKind(i, kSpecial) })
		k.special = append(k.special, path())
	}
	return nil
}

// becameDir goes into a directory that was something else when it was listed.
func (k *worker) becameDir(n *node, i int) {
	n.change(func(b block) { b.setKind(i, kDir) })
	n.mu.Lock()
	n.resort = true
	n.mu.Unlock()
	c := k.child(n, n.present(), i)
	c.was, c.object = ref{}, Hash{}
	k.keepFor(n, 1)
	n.pending.Add(1)
	k.push([]job{{node: c}})
}

// link records a symlink. Reading it is atomic, so it needs no second look.
func (k *worker) link(n *node, h disk.Dir, i int, in *disk.Info) error {
	b := n.present()
	target, err := h.Readlink(string(b.name(i)))
	if errors.Is(err, fs.ErrInvalid) || bareInvalid(err) || absent(err) {
		*in, err = h.Stat(string(b.name(i))) // replaced between the two looks
		if err == nil && in.Kind == disk.Symlink {
			target, err = h.Readlink(string(b.name(i)))
		} else {
			return k.differs(n, h, i, in, err)
		}
	}
	if err != nil {
		return k.unreadFile(n, i, join(n.path, b.name(i)), err)
	}
	sum := tree.Sum([]byte(target))
	in.Size = int64(len(target))
	old := k.trusts(in, h)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.buf == nil && n.old.kind(i) == kLink && n.old.sameFacts(i, kLink, in) && string(n.old.target(i)) == target && n.old.trusted(i) == old {
		return nil
	}
	nb := n.block()
	nb.setFacts(i, kLink, in, old)
	copy(nb.hash(i), sum[:])
	n.target(i, target)
	return nil
}

// pushReads puts the files that must be read on the stack, in pieces.
func (k *worker) pushReads(n *node) {
	if len(k.reads) == 0 {
		return
	}
	all := slices.Clone(k.reads)
	k.jobs = k.jobs[:0]
	for len(all) > 0 {
		m := min(readBatch, len(all))
		k.jobs = append(k.jobs, job{node: n, read: all[:m:m]})
		all = all[m:]
	}
	k.keepFor(n, len(k.jobs))
	n.pending.Add(int32(len(k.jobs)))
	k.push(k.jobs)
}

// lostHandle deals with a directory that could not be opened again for some of its
// records: it vanished or was replaced while the walk was in it.
func (k *worker) lostHandle(n *node, err error, which []int32) error {
	if exhausted(err) {
		return exhaustion(n.path, err)
	}
	if !absent(err) && !disk.OtherKind(err) && !k.req.AfterRun && !k.req.SkipUnreadable {
		return &UnreadableError{rootName(n.path), bare(err)}
	}
	gone := absent(err) || disk.OtherKind(err)
	if !gone {
		k.missed = append(k.missed, rootName(n.path))
	}
	n.change(func(b block) {
		for _, i := range which {
			if kd := b.kind(int(i)); gone && (kd == kFile || kd == kLink) {
				b.setKind(int(i), kNone)
			} else if kd == kFile || kd == kLink {
				k.keepOld(n, b, int(i))
			}
		}
	})
	return nil
}

func span(lo, hi int) []int32 {
	all := make([]int32, 0, hi-lo)
	for i := lo; i < hi; i++ {
		all = append(all, int32(i))
	}
	return all
}
