package capture

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unsafe"

	"decree/disk"
	"decree/tree"
)

// maxEntries keeps the offsets in a block within 32 bits.
const maxEntries = 16 << 20

// listing is the names of one directory, in the order the system gave them. Its room is
// used again for each directory of a worker.
type listing []listed

type listed struct {
	name string
	kind disk.Kind
	as   kind  // what the walk takes it for
	old  int32 // its record in the cached block, -1: none
}

func (l *listing) read(h disk.Dir) error {
	*l = (*l)[:0]
	ents, err := h.List()
	for _, e := range ents {
		*l = append(*l, listed{name: e.Name, kind: e.Kind, old: -1})
	}
	return err
}

// ruleFlags are the flags of a block that say which ignore files are listed. That they are plain files is seen when
// they are opened.
func (l *listing) ruleFlags() (flags uint32) {
	for i := range *l {
		for _, f := range ruleNames {
			if e := &(*l)[i]; e.name == f.name && e.kind != disk.Directory {
				flags |= f.flag
			}
		}
	}
	return flags
}

// order is the listing's order by names, as numbers of its entries.
func (l *listing) order() []uint32 {
	ents := *l
	order := make([]uint32, len(ents))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return compareNames(ents[a].name, ents[a].as.isDir(), ents[b].name, ents[b].as.isDir())
	})
	return order
}

// matches says whether the names and kinds are those of b: in the order of the listing
// that b was made from, so that nothing needs to be sorted or searched.
func (l *listing) matches(b block) bool {
	if b.count() != len(*l) {
		return false
	}
	for i := range *l {
		e := &(*l)[i]
		j := b.perm(i)
		if string(b.name(j)) != e.name || !b.kind(j).fits(e.kind) {
			return false
		}
	}
	return true
}

// relist makes a new block from the listing: sorts it, finds each name in the old block,
// and takes over what stands there.
func (k *worker) relist(n *node, h disk.Dir) error {
	total := 0
	ents := k.list
	for i := range ents {
		if err := k.classify(n, h, &ents[i]); err != nil {
			return err
		}
		total += len(ents[i].name)
	}
	order := ents.order()
	if len(ents) > maxEntries || total > maxEntries*16 {
		return &UnreadableError{rootName(n.path), errors.New("too many entries")}
	}
	buf := newBlock(len(ents), total)
	j := 0
	for i, at := range order {
		e := &ents[at]
		if i > 0 && ents[order[i-1]].name == e.name {
			e.as = kNone // a name can be listed twice while others are renamed
		}
		le.PutUint32(buf.rec(int(at))[rPerm:], uint32(i))
		buf.setName(i, e.name, e.as)
		if n.old == nil {
			continue
		}
		for j < n.old.count() && compareNames(n.old.name(j), n.old.kind(j).isDir(), e.name, e.as.isDir()) < 0 {
			j++
		}
		if j < n.old.count() && string(n.old.name(j)) == e.name && n.old.kind(j).isDir() == e.as.isDir() {
			e.old = int32(j)
			takeOver(buf, i, n.old, j)
		}
	}
	flags := k.list.ruleFlags()
	if k.start.trusts(&n.info) {
		flags |= flagOld
	}
	buf.setListing(&n.info, n.print, flags)
	k.adopt(n, buf, order)
	return nil
}

// adopt makes buf the node's block.
func (k *worker) adopt(n *node, buf block, order []uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf, n.relisted = buf, true
	n.oldOf = make([]int32, len(order))
	n.kinds = make([]kind, len(order))
	for i, at := range order {
		n.kinds[i] = buf.kind(i)
		j := k.list[at].old
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
	copy(b.rec(i)[rGroup:], old.rec(j)[rGroup:])
	copy(b.hash(i), old.hash(j))
}

// classify says what a listed name stands for.
func (k *worker) classify(n *node, h disk.Dir, e *listed) error {
	if e.kind == disk.Unknown {
		in, err := h.Stat(e.name)
		if err != nil && !absent(err) {
			return &UnreadableError{n.path.Join(e.name), bare(err)}
		}
		e.kind = in.Kind // Unknown if it vanished: kNone
	}
	e.as = kindOfListed(e.kind)
	always, err := isAlways(h, e.name)
	if err != nil {
		return &UnreadableError{n.path.Join(e.name), bare(err)}
	}
	if always {
		e.as = leftOut(e.as)
		return nil
	}
	if len(n.path)+1+len(e.name) >= tree.MaxPath {
		return &UnreadableError{n.path.Join(e.name), errors.New("path too long")}
	}
	if n.rules == nil || e.as == kNone {
		return nil
	}
	path := k.fullPath(n, e.name)
	// Match keeps nothing of the path.
	if n.rules.Match(unsafe.String(&path[0], len(path)), e.as == kDir).Ignored {
		e.as = leftOut(e.as)
	}
	return nil
}

// isAlways says whether a name is .git or .decree, which are never recorded, also where
// the file system takes another spelling for the same entry.
func isAlways(h disk.Dir, name string) (bool, error) {
	switch name {
	case ".git", ".decree":
		return true, nil
	}
	if name[0] != '.' {
		return false, nil
	}
	plain := strings.TrimRight(strings.ToLower(strings.Map(ascii, name)), ". ")
	if plain != ".git" && plain != ".decree" {
		return false, nil
	}
	return disk.IsSpelling(h, name, plain)
}

// ascii drops what is beyond ASCII: some file systems ignore such characters.
func ascii(r rune) rune {
	if r > unicode.MaxASCII {
		return -1
	}
	return r
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
	if !n.relisted {
		return i
	}
	return int(n.oldOf[i])
}
