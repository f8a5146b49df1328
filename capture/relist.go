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
	if len(ents) > maxEntries || total > maxEntries*16 {
		return &UnreadableError{rootName(n.path), errors.New("too many entries")}
	}
	buf := newBlock(len(ents), total)
	j := 0
	for i, at := range order {
		e := &ents[at]
		name := k.list.name(int(at))
		if i > 0 && string(k.list.name(int(order[i-1]))) == string(name) {
			e.as = kNone // a name can be listed twice while others are renamed
		}
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
	copy(b.rec(i)[rGroup:], old.rec(j)[rGroup:])
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
	always, err := isAlways(h, k.list.cname(i))
	if err != nil {
		return &UnreadableError{join(n.path, name), bare(err)}
	}
	if always {
		e.as = leftOut(e.as)
		return nil
	}
	if len(n.path)+1+len(name) >= tree.MaxPath {
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

// isAlways says whether a name is .git or .decree, which are never recorded, also where
// the file system takes another spelling for the same entry.
func isAlways(h handle, cname []byte) (bool, error) {
	switch string(cname[:len(cname)-1]) {
	case ".git", ".decree":
		return true, nil
	}
	if cname[0] != '.' {
		return false, nil
	}
	plain := strings.ToLower(strings.Map(ascii, string(cname[:len(cname)-1])))
	if plain != ".git" && plain != ".decree" {
		return false, nil
	}
	var here, own disk.Info
	for name, in := range map[string]*disk.Info{string(cname): &here, plain + "\x00": &own} {
		if err := h.stat([]byte(name), in); err != nil {
			if absent(err) {
				err = nil
			}
			return false, err
		}
	}
	return here.SameFile(own) && here.Kind == own.Kind, nil
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
	if !n.fresh {
		return i
	}
	return int(n.oldOf[i])
}
