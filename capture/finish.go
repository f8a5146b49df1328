package capture

import (
	"errors"
	"slices"

	"decree/disk"
	"decree/tree"
)

// done counts one piece of work off, and finishes the node, and its parents in turn, once
// nothing is left: a block can only be written when those below it are.
func (k *worker) done(n *node) {
	for n != nil && n.pending.Add(-1) == 0 {
		if k.failed.Load() {
			return
		}
		if err := k.finish(n); err != nil {
			k.fail(n.path, err)
			return
		}
		n = n.parent
	}
}

// finish writes the node's block, if it changed, and tells the parent.
func (k *worker) finish(n *node) error {
	if n.dropped {
		return nil
	}
	at, total, object := n.was, sums{}, n.object
	var err error
	switch {
	case n.empty:
		at, object = ref{}, Hash{}
		err = k.compare(n, nil)
	case n.buf == nil && n.old != nil:
		total = n.old.sums()
		object, err = k.keptObject(n)
	case n.buf != nil:
		if err = k.complete(n); err != nil {
			return err
		}
		total = n.buf.own()
		total.add(n.below)
		if err = k.compare(n, n.buf); err == nil {
			n.buf.seal(total)
			at, err = k.cache.put(n.buf)
		}
		if err == nil {
			object, err = k.objectOf(n.buf)
		}
	}
	if err == nil && object.IsZero() && k.facts == factsAll {
		object, err = k.putObject(tree.Empty())
	}
	if err != nil {
		return err
	}
	owner, err := k.dirOwner(n)
	if err != nil {
		return err
	}
	n.old, n.buf, n.oldOf, n.kinds, n.targets = nil, nil, nil, nil, nil
	if n.parent == nil {
		k.root, k.rootSum, k.rootObject = at, total, object
		return nil
	}
	n.parent.tell(n.slot, n.info.Mode, owner, at, object, total)
	return nil
}

// dirOwner returns what is to be recorded about whose the node's directory is. What stood with
// its old record stands for as long as its times do.
func (k *worker) dirOwner(n *node) (tree.Owner, error) {
	e := tree.Entry{Type: tree.Dir, Mode: n.info.Mode}
	if n.parent == nil || !e.MayOwn() {
		return tree.Owner{}, nil
	}
	if i := n.parent.oldRecord(n.slot); i >= 0 && n.parent.old.kind(i) == kDir && n.parent.old.rec(i)[rFlags]&asked != 0 &&
		(n.info.Ino == 0 || n.old != nil && n.old.flags()&flagOld != 0 && n.old.sameListing(&n.info) && n.parent.old.mode(i) == n.info.Mode) {
		return n.parent.old.entry(i).Owner, nil
	}
	if n.info.Ino == 0 {
		return tree.Owner{}, nil // it cannot be looked at
	}
	h, done, err := k.use(n.parent)
	if absent(err) || disk.OtherKind(err) {
		return tree.Owner{}, nil // the directory above is gone
	}
	if err != nil {
		return tree.Owner{}, err
	}
	defer done()
	return ownerOf(h, n.name, n.info)
}

// tell enters a finished directory in its parent.
func (n *node) tell(slot int, mode uint32, owner tree.Owner, at ref, object Hash, total sums) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.below.add(total)
	if n.buf == nil && n.old.kind(slot) == kDir && n.old.child(slot) == at && n.old.mode(slot) == mode && n.old.entry(slot).Owner == owner && Hash(n.old.hash(slot)) == object {
		return
	}
	n.block().setDir(slot, mode, owner, at, object)
}

// complete brings the block into its final form.
func (k *worker) complete(n *node) error {
	if !n.buf.holds(n.targets) {
		return &UnreadableError{rootName(n.path), errors.New("too many long links")}
	}
	for _, i := range sortedKeys(n.targets) {
		if n.buf.kind(i) == kLink {
			n.buf.setTarget(i, n.targets[i])
		}
	}
	if n.resort {
		n.buf = n.buf.sorted()
	}
	n.buf.oneOfEach()
	for i := range n.buf.count() {
		if n.buf.kind(i) == kNone {
			// What this name is must be found out by the next walk.
			le.PutUint32(n.buf[hFlags:], n.buf.flags()&^flagOld)
			break
		}
	}
	return nil
}

func sortedKeys(m map[int]string) []int {
	keys := make([]int, 0, len(m))
	for i := range m {
		keys = append(keys, i)
	}
	slices.Sort(keys)
	return keys
}

// sorted returns the block with its records in order, after a kind has changed.
func (b block) sorted() block {
	order := make([]int, b.count())
	total := 0
	for i := range order {
		order[i] = i
		total += len(b.name(i))
	}
	slices.SortFunc(order, func(i, j int) int {
		return compareNames(b.name(i), b.kind(i).isDir(), b.name(j), b.kind(j).isDir())
	})
	s := newBlock(len(order), total)
	copy(s[hRules:headerSize], b[hRules:headerSize])
	place := make([]uint32, len(order))
	for i, j := range order {
		place[j] = uint32(i)
		s.setName(i, string(b.name(j)), b.kind(j))
		copy(s.rec(i)[rFlags:rPerm], b.rec(j)[rFlags:rPerm])
		copy(s.rec(i)[rGroup:], b.rec(j)[rGroup:])
		copy(s.hash(i), b.hash(j))
		if b.kind(j) == kLink {
			s.setTarget(i, string(b.target(j)))
		}
	}
	for at := range order {
		le.PutUint32(s.rec(at)[rPerm:], place[b.perm(at)])
	}
	return s
}

// compare notes what joined or left by the rules between the node's old block and the new
// one, nil for none. What else changed is found by comparing the trees.
func (k *worker) compare(n *node, now block) error {
	if k.cache.root.off == 0 {
		return nil
	}
	old, i, j := n.old, 0, 0
	oldCount, count := 0, 0
	if old != nil {
		oldCount = old.count()
	}
	if now != nil {
		count = now.count()
	}
	for i < oldCount || j < count {
		c := 0
		switch {
		case i == oldCount:
			c = 1
		case j == count:
			c = -1
		default:
			c = compareNames(old.name(i), old.kind(i).isDir(), now.name(j), now.kind(j).isDir())
		}
		var err error
		switch {
		case c > 0:
			k.came(n, now, j, n.joined)
			k.appeared(n, now, j)
		case c == 0 && now.kind(j) != kNone:
			err = k.both(n, old, i, now, j)
		default:
			err = k.vanished(n, old, i)
		}
		if err != nil {
			return err
		}
		if c <= 0 {
			i++
		}
		if c >= 0 {
			j++
		}
	}
	return nil
}

// both compares two records of one name.
func (k *worker) both(n *node, old block, i int, now block, j int) error {
	was, is := old.kind(i), now.kind(j)
	switch {
	case was.tracked() == is.tracked():
	case is.tracked():
		k.came(n, now, j, n.joined || was == kIgnored || was == kIgnoredDir)
	default:
		if is == kIgnored || is == kIgnoredDir {
			return k.gone(n, old, i)
		}
	}
	return nil
}

// came notes a path that is new by the rules; what is below it notes itself.
func (k *worker) came(n *node, now block, j int, byRules bool) {
	if byRules && now.kind(j).tracked() {
		k.ruleOnly = append(k.ruleOnly, join(n.path, now.name(j)))
	}
}

// gone notes a path that the rules have taken away, with all below it.
func (k *worker) gone(n *node, old block, i int) error {
	path := join(n.path, old.name(i))
	k.ruleOnly = append(k.ruleOnly, path)
	if old.kind(i) != kDir {
		return nil
	}
	return k.cache.each(old.child(i), string(path), func(path []byte, b block, i int) error {
		k.ruleOnly = append(k.ruleOnly, tree.Path(path))
		return nil
	})
}

// maxLost bounds each of the lists of Result.Lost.
const maxLost = 512

// vanished notes what was left out and went with a name that is not there any more: this itself, or what
// lay below. The root's own entries are not noted: who wants to know of them looks at them.
func (k *worker) vanished(n *node, old block, i int) error {
	if !k.req.AfterRun {
		return nil
	}
	switch old.kind(i) {
	case kIgnored, kIgnoredDir:
		if n.parent != nil {
			k.lose(join(n.path, old.name(i)))
		}
	case kDir:
		return k.cache.descend(old.child(i), string(join(n.path, old.name(i))), func(path []byte, b block, i int) (bool, error) {
			if kd := b.kind(i); kd == kIgnored || kd == kIgnoredDir {
				k.lose(tree.Path(path))
			}
			return true, nil
		})
	}
	return nil
}

// appeared notes a .git that came, deeper than the root's own.
func (k *worker) appeared(n *node, now block, j int) {
	if k.req.AfterRun && n.parent != nil && string(now.name(j)) == ".git" {
		k.repositories = append(k.repositories, join(n.path, now.name(j)))
	}
}

func (w *walk) lose(path tree.Path) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := &w.lostOther
	if name := path.Name(); name == ".git" || name == ".decree" {
		list = &w.lostGit
	}
	if len(*list) == maxLost {
		w.moreLost++
		return
	}
	*list = append(*list, path)
}
