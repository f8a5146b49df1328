package capture

import (
	"errors"
	"io/fs"
	"slices"
	"unsafe"

	"decree/disk"
	"decree/patch"
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
	if n.parent != nil && k.excluded(&n.info) {
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
func (k *worker) openNode(n *node) (handle, error) {
	if n.parent == nil {
		h := rootHandle(k.req)
		in, err := h.self()
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
	h, err := up.openDir(n.cname)
	done()
	if err != nil {
		return nil, err
	}
	in, err := h.self()
	if err != nil {
		h.close()
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
	if n.parent == nil || exhausted(err) {
		return &UnreadableError{rootName(n.path), bare(err)}
	}
	if absent(err) {
		k.drop(n, kNone)
		return nil
	}
	if otherKind(err) {
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
	if err := up.stat(n.cname, &n.info); absent(err) {
		k.drop(n, kNone)
	} else if err != nil {
		return &UnreadableError{n.path, bare(err)}
	}
	return nil
}

func rootName(path string) string {
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
	var in disk.Info
	k.reads = k.reads[:0]
	if err := k.differs(p, h, n.slot, &in, h.stat(n.cname, &in)); err != nil {
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
func (k *worker) names(n *node, h handle) (listed bool, listErr, err error) {
	steady := n.old != nil && !k.req.Full && n.old.flags()&flagOld != 0 && n.old.sameListing(&n.info) && k.steady(n.info.Dev, h)
	if steady {
		flags := n.old.flags()
		if err := k.ruleset(n, h, flags&flagGit != 0, flags&flagDec != 0); err != nil {
			return false, nil, err
		}
		if n.print == n.old.rules() {
			return false, nil, nil
		}
	}
	if err := h.list(&k.list); err != nil {
		return false, err, nil
	}
	if !steady {
		hasGit, hasDec := k.list.ruleFiles()
		if err := k.ruleset(n, h, hasGit, hasDec); err != nil {
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

// steady remembers what the file systems are.
func (k *worker) steady(dev uint64, h handle) bool {
	s, ok := k.steadyDev[dev]
	if !ok {
		s = h.steady()
		k.steadyDev[dev] = s
	}
	return s
}

// ruleFiles says which ignore files are listed. That they are plain files is seen when
// they are opened.
func (l *listing) ruleFiles() (git, dec bool) {
	for i := range l.ents {
		if n := l.name(i); len(n) >= len(gitName) && n[0] == '.' {
			git = git || string(n) == gitName && l.ents[i].kind != disk.Directory
			dec = dec || string(n) == decName && l.ents[i].kind != disk.Directory
		}
	}
	return git, dec
}

// matches says whether the names and kinds are those of b: in the order of the listing
// that b was made from, so that nothing needs to be sorted or searched.
func (l *listing) matches(b block) bool {
	if b.count() != len(l.ents) {
		return false
	}
	for i := range l.ents {
		j := b.perm(i)
		if string(b.cname(j)) != string(l.cname(i)) || !b.kind(j).fits(l.ents[i].kind) {
			return false
		}
	}
	return true
}

// relist makes a new block from the listing: sorts it, finds each name in the old block,
// and takes over what stands there.
func (k *worker) relist(n *node, h handle) error {
	total := 0
	for i := range k.list.ents {
		e := &k.list.ents[i]
		if err := k.classify(n, h, i); err != nil {
			return err
		}
		total += int(e.len)
	}
	ents := k.list.ents
	order := make([]uint32, len(ents))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return compareNames(k.list.name(int(a)), ents[a].as.isDir(), k.list.name(int(b)), ents[b].as.isDir())
	})
	buf := newBlock(len(ents), total)
	j := 0
	for i, at := range order {
		e := &ents[at]
		name := k.list.name(int(at))
		le.PutUint32(buf.rec(int(at))[rPerm:], uint32(i))
		buf.setName(i, name, e.as)
		if n.old == nil {
			continue
		}
		for j < n.old.count() && compareNames(n.old.name(j), n.old.kind(j).isDir(), name, e.as.isDir()) < 0 {
			j++
		}
		if j < n.old.count() && string(n.old.name(j)) == string(name) && n.old.kind(j).isDir() == e.as.isDir() {
			e.old = int32(j)
			takeOver(buf, i, n.old, j)
		}
	}
	flags := uint32(0)
	if k.start.trusts(&n.info) {
		flags = flagOld
	}
	git, dec := k.list.ruleFiles()
	if git {
		flags |= flagGit
	}
	if dec {
		flags |= flagDec
	}
	buf.setListing(&n.info, n.print, flags)
	k.adopt(n, buf, order)
	return nil
}

// adopt makes buf the node's block.
func (k *worker) adopt(n *node, buf block, order []uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf, n.fresh = buf, true
	n.oldOf = make([]int32, len(order))
	n.kinds = make([]kind, len(order))
	for i, at := range order {
		n.kinds[i] = buf.kind(i)
		j := k.list.ents[at].old
		n.oldOf[i] = j
		if j >= 0 && buf.kind(i) == kLink && n.old.kind(int(j)) == kLink {
			n.target(i, string(n.old.target(int(j))))
		}
	}
}

// takeOver copies the facts of record j of old to record i of b, if both are of one kind.
func takeOver(b block, i int, old block, j int) {
	if b.kind(i) != old.kind(j) || b.kind(i) != kFile && b.kind(i) != kLink {
		return
	}
	copy(b.rec(i)[rFlags:rPerm], old.rec(j)[rFlags:rPerm])
	copy(b.hash(i), old.hash(j))
}

// classify says what a listed name stands for.
func (k *worker) classify(n *node, h handle, i int) error {
	e := &k.list.ents[i]
	name := k.list.name(i)
	if e.kind == disk.Unknown {
		var in disk.Info
		if err := h.stat(k.list.cname(i), &in); err != nil && !absent(err) {
			return &UnreadableError{join(n.path, name), bare(err)}
		}
		e.kind = in.Kind // Unknown if it vanished: kNone
	}
	e.as = kindOfListed(e.kind)
	if string(name) == ".git" || string(name) == ".decree" {
		e.as = leftOut(e.as)
		return nil
	}
	if len(n.path)+1+len(name) >= patch.MaxPath {
		return &UnreadableError{join(n.path, name), errors.New("path too long")}
	}
	if n.rules == nil || e.as == kNone {
		return nil
	}
	path := k.fullPath(n, name)
	// Match keeps nothing of the path.
	if n.rules.Match(unsafe.String(&path[0], len(path)), e.as == kDir).Ignored {
		e.as = leftOut(e.as)
	}
	return nil
}

func kindOfListed(d disk.Kind) kind {
	switch d {
	case disk.Regular:
		return kFile
	case disk.Directory:
		return kDir
	case disk.Symlink:
		return kLink
	case disk.Special:
		return kSpecial
	}
	return kNone
}

func leftOut(as kind) kind {
	if as == kDir {
		return kIgnoredDir
	}
	if as == kNone {
		return kNone
	}
	return kIgnored
}

// oldRecord returns the record of the cached block that record i of the new one goes
// back to, -1 for none.
func (n *node) oldRecord(i int) int {
	if n.old == nil {
		return -1
	}
	if !n.fresh {
		return i
	}
	return int(n.oldOf[i])
}

// listedKind returns what record i was listed as. The record itself may be changed any
// moment by those who look at what it stands for.
func (n *node) listedKind(i int) kind {
	if n.fresh {
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
	c.cname = append([]byte(nil), b.cname(i)...)
	c.pending.Store(1)
	if j := n.oldRecord(i); j >= 0 {
		switch n.old.kind(j) {
		case kDir:
			c.was = n.old.child(j)
		case kIgnoredDir:
			c.joined = true
		}
	}
	c.joined = c.joined || n.joined
	return c
}

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
		err := h.stat(b.cname(i), &in)
		if err == nil && in.Kind == disk.Regular && in.Size > LargeFile {
			k.large = append(k.large, Large{join(n.path, b.name(i)), in.Size})
		}
		if err == nil && in.Kind == diskKind(kd) && b.known(i, kd, &in) && !k.req.Full && k.stored(b, i, kd) {
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
func (k *worker) differs(n *node, h handle, i int, in *disk.Info, statErr error) error {
	path := func() string { return join(n.path, n.present().name(i)) }
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
	c.was = ref{}
	k.keepFor(n, 1)
	n.pending.Add(1)
	k.push([]job{{node: c}})
}

// link records a symlink. Reading it is atomic, so it needs no second look.
func (k *worker) link(n *node, h handle, i int, in *disk.Info) error {
	b := n.present()
	target, err := h.readlink(b.cname(i))
	if errors.Is(err, fs.ErrInvalid) || bareInvalid(err) || absent(err) {
		err = h.stat(b.cname(i), in) // replaced between the two looks
		if err == nil && in.Kind == disk.Symlink {
			target, err = h.readlink(b.cname(i))
		} else {
			return k.differs(n, h, i, in, err)
		}
	}
	if err != nil {
		return k.unreadFile(n, i, join(n.path, b.name(i)), err)
	}
	sum := patch.Sum([]byte(target))
	in.Size = int64(len(target))
	old := k.start.trusts(in)
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
	if exhausted(err) || !absent(err) && !otherKind(err) && !k.req.AfterRun && !k.req.SkipUnreadable {
		return &UnreadableError{rootName(n.path), bare(err)}
	}
	gone := absent(err) || otherKind(err)
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
