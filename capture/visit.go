package capture

import (
	"strings"

	"decree/disk"
	"decree/tree"
)

const (
	// lookBatch is how many records are looked at in one job.
	lookBatch = 1024
	readBatch = 32
)

// visit opens a directory, finds out its names, looks at its files and puts its
// subdirectories on the stack.
func (k *worker) visit(n *node) {
	err := k.visitNode(n)
	if err != nil {
		k.fail(n.path, err)
		return
	}
	k.done(n)
}

func (k *worker) visitNode(n *node) error {
	old, err := k.cache.block(n.was)
	if err != nil {
		return err
	}
	n.old = old
	h, err := k.openNode(n)
	if err != nil {
		return k.unopened(n, err)
	}
	defer k.unuse(n)
	if n.parent != nil && (k.excluded(&n.info) || isStore(n.name, h)) {
		k.drop(n, kExcluded)
		return nil
	}
	listed, listErr, err := k.names(n, h)
	if err != nil {
		return err
	}
	if listErr != nil {
		return k.unopened(n, listErr)
	}
	if listed {
		if err := k.relist(n, h); err != nil {
			return err
		}
	}
	return k.enterRecords(n)
}

// openNode opens the directory from its parent.
func (k *worker) openNode(n *node) (disk.Dir, error) {
	if n.parent == nil {
		h := k.req.Root
		in, err := h.Self()
		if err != nil {
			return nil, err
		}
		n.info = in
		k.opened(n, h)
		return h, nil
	}
	defer k.served(n.parent)
	up, done, err := k.use(n.parent)
	if err != nil {
		return nil, err
	}
	h, err := up.OpenDir(n.name)
	done()
	if err != nil {
		return nil, err
	}
	in, err := h.Self()
	if err != nil {
		h.Close()
		return nil, err
	}
	n.info = in
	k.opened(n, h)
	return h, nil
}

func (w *walk) excluded(in *disk.Info) bool {
	for i := range w.req.Exclude {
		if w.req.Exclude[i].SameFile(*in) {
			return true
		}
	}
	return false
}

// storeMemory is the file by which a store is known; its directory is named by its id.
const storeMemory = "store.json"

// isStore says whether the directory name, which h is, is a store of decree's, of
// whatever project. What it holds has changed by the next record, and going back to it
// would take that project's records away.
func isStore(name string, h disk.Dir) bool {
	if !likeID(name) {
		return false
	}
	in, err := h.Stat(storeMemory)
	return err == nil && in.Kind == disk.Regular
}

func likeID(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// drop ends a node that is not to be recorded; its parent's record becomes one of kind as.
func (k *worker) drop(n *node, as kind) {
	n.dropped = true
	p := n.parent
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.buf == nil && p.old.kind(n.slot) == as {
		return
	}
	p.block().setKind(n.slot, as)
}

// unopened deals with a directory that could not be opened or listed.
func (k *worker) unopened(n *node, err error) error {
	if exhausted(err) {
		return exhaustion(n.path, err)
	}
	if n.parent == nil {
		return &UnreadableError{rootName(n.path), bare(err)}
	}
	if absent(err) {
		k.drop(n, kNone)
		return nil
	}
	if disk.OtherKind(err) {
		return k.becameOther(n)
	}
	if !k.req.AfterRun && !k.req.SkipUnreadable {
		return &UnreadableError{n.path, bare(err)}
	}
	k.missed = append(k.missed, n.path)
	n.buf = nil
	n.empty = !k.req.AfterRun // else what the cache knows of it stands
	up, done, err := k.use(n.parent)
	if err != nil {
		return err
	}
	defer done()
	in, err := up.Stat(n.name)
	if err == nil {
		n.info = in
	} else if absent(err) || !n.modeBefore() {
		k.drop(n, kNone)
	}
	return nil
}

// modeBefore gives a directory that cannot be looked at, as its parent may be listed and
// not searched, the mode that stands with the rest that the cache knows of it. It returns
// false if that is nothing.
func (n *node) modeBefore() bool {
	i := n.parent.oldRecord(n.slot)
	if n.empty || i < 0 || n.parent.old.kind(i) != kDir {
		return false
	}
	n.info.Mode = n.parent.old.mode(i)
	return true
}

func rootName(path tree.Path) tree.Path {
	if path == "" {
		return "."
	}
	return path
}

// becameOther looks again at a directory that was replaced by something else since it
// was listed.
func (k *worker) becameOther(n *node) error {
	p := n.parent
	p.change(func(b block) { b.setKind(n.slot, kFile) })
	p.mu.Lock()
	p.resort = true
	p.mu.Unlock()
	n.dropped = true
	h, done, err := k.use(p)
	if err != nil {
		return k.lostHandle(p, err, []int32{int32(n.slot)})
	}
	defer done()
	in, err := h.Stat(n.name)
	k.reads = k.reads[:0]
	if err := k.differs(p, h, n.slot, &in, err); err != nil {
		return err
	}
	k.pushReads(p)
	return nil
}

// keepFor announces jobs that need the node's handle.
func (k *worker) keepFor(n *node, jobs int) {
	n.hmu.Lock()
	n.todo += jobs
	n.hmu.Unlock()
}

// names finds out the directory's names and rules. It returns false if they are those of
// the cached block, whose records then stand for them. listErr is an error of the
// directory's listing.
func (k *worker) names(n *node, h disk.Dir) (listed bool, listErr, err error) {
	steady := n.old != nil && !k.req.Full && n.old.flags()&flagOld != 0 && n.old.sameListing(&n.info) && k.device(n.info.Dev, h).Steady
	if steady {
		if err := k.ruleset(n, h, n.old.flags()); err != nil {
			return false, nil, err
		}
		if n.print == n.old.rules() {
			return false, nil, nil
		}
	}
	if err := k.list.read(h); err != nil {
		return false, err, nil
	}
	if !steady {
		if err := k.ruleset(n, h, k.list.ruleFlags()); err != nil {
			return false, nil, err
		}
	}
	if n.old == nil || n.print != n.old.rules() || !k.list.matches(n.old) {
		return true, nil, nil
	}
	if k.start.trusts(&n.info) && !n.old.sameListing(&n.info) {
		// The times are new and the names are not: remember the times, so that the
		// next walk need not list.
		n.change(func(b block) { b.setListing(&n.info, n.print, b.flags()|flagOld) })
	}
	return false, nil, nil
}

// device remembers what the file systems are.
func (k *worker) device(dev uint64, h disk.Dir) disk.FileSystem {
	d, ok := k.devices[dev]
	if !ok {
		d = h.FileSystem()
		d.ChangeTimes = d.ChangeTimes || d.TryTimes && k.start.keeps && dev == k.start.dev
		k.devices[dev] = d
	}
	return d
}

// trusts says whether facts vouch for what was just read: they are old enough, and no
// change can come to have the same ones.
func (k *worker) trusts(in *disk.Info, h disk.Dir) bool {
	return k.start.trusts(in) && k.device(in.Dev, h).ChangeTimes
}

// listedKind returns what record i was listed as. The record itself may be changed any
// moment by those who look at what it stands for.
func (n *node) listedKind(i int) kind {
	if n.relisted {
		return n.kinds[i]
	}
	return n.old.kind(i)
}

// enterRecords puts the subdirectories on the stack, then the files, in pieces if they
// are many; a piece's worth is looked at here and now.
func (k *worker) enterRecords(n *node) error {
	b := n.present()
	count := b.count()
	k.jobs = k.jobs[:0]
	for i := range count {
		switch n.listedKind(i) {
		case kDir, kExcluded:
			k.jobs = append(k.jobs, job{node: k.child(n, b, i)})
		case kSpecial:
			k.special = append(k.special, join(n.path, b.name(i)))
		}
	}
	pieces := 0
	for lo := lookBatch; lo < count; lo += lookBatch {
		k.jobs = append(k.jobs, job{node: n, lo: lo, hi: min(lo+lookBatch, count)})
		pieces++
	}
	// The first piece is counted too, for k.look takes itself off the count.
	k.keepFor(n, len(k.jobs)+1)
	n.pending.Add(int32(len(k.jobs) + 1))
	k.push(k.jobs)
	k.look(n, 0, min(lookBatch, count))
	return nil
}

// child makes the node of a subdirectory.
func (k *worker) child(n *node, b block, i int) *node {
	c := &node{parent: n, path: join(n.path, b.name(i)), depth: n.depth + 1, slot: i}
	c.name = c.path.Name()
	c.pending.Store(1)
	if j := n.oldRecord(i); j >= 0 {
		switch n.old.kind(j) {
		case kDir:
			c.was, c.object = n.old.child(j), Hash(n.old.hash(j))
		case kIgnoredDir:
			c.joined = true
		}
	}
	c.joined = c.joined || n.joined
	return c
}
