package capture

import (
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"syscall"

	"decree/disk"
	"decree/tree"
)

// readAttempts is how often a file that changes while it is read is read in all.
const readAttempts = 4

// errChanging says that a file changed each time.
var errChanging = errors.New("changed while it was read")

func bareInvalid(err error) bool { return errors.Is(err, syscall.EINVAL) }

// readFiles reads files of one directory and records their hashes.
func (k *worker) readFiles(n *node, which []int32) {
	err := k.readEach(n, which)
	k.served(n)
	if err != nil {
		k.fail(n.path, err)
		return
	}
	k.done(n)
}

func (k *worker) readEach(n *node, which []int32) error {
	h, done, err := k.use(n)
	if err != nil {
		return k.lostHandle(n, err, which)
	}
	defer done()
	for _, i := range which {
		if k.failed.Load() {
			return nil
		}
		err := k.readFile(n, h, int(i))
		if k.failed.Load() {
			return nil // what ended the walk is known
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *worker) readFile(n *node, h disk.Dir, i int) error {
	b := n.present()
	name := string(b.name(i))
	sum, in, old, err := k.hashFile(n, i, h, name)
	switch {
	case err == errTooLarge:
		k.leaveLarge(n, i, in.Size)
		k.missed = append(k.missed, join(n.path, b.name(i)))
		n.change(func(b block) { k.keepOld(n, b, i) })
		return nil
	case err == errOutput:
		k.outputs = append(k.outputs, join(n.path, b.name(i)))
		n.change(func(b block) { k.keepOld(n, b, i) })
		return nil
	case err == nil:
		if k.req.Ended != 0 && in.Mtime > k.req.Ended {
			k.late = append(k.late, join(n.path, b.name(i)))
		}
		owner, err := ownerOf(h, name, in)
		if err != nil {
			return k.unreadFile(n, i, join(n.path, b.name(i)), err)
		}
		if k.req.AfterRun && n.rewritten(i, sum, &in) {
			k.rewritten = append(k.rewritten, join(n.path, b.name(i)))
		}
		k.record(n, i, sum, &in, owner, old)
		k.notice(n, b, i, in.Size)
		return nil
	case absent(err):
		n.change(func(b block) { b.setKind(i, kNone) })
		return nil
	case disk.OtherKind(err):
		in, err := h.Stat(name)
		if err == nil && in.Kind == disk.Regular {
			err = errChanging
		}
		if err == nil || absent(err) {
			return k.differs(n, h, i, &in, err)
		}
	}
	return k.unreadFile(n, i, join(n.path, b.name(i)), err)
}

// record enters what was read; old says that its facts vouch for it. The node's block
// stays the old one if nothing is new.
// A file that somebody had open for writing is read again next time: through a mapping
// it changes, and its times do not.
func (k *worker) record(n *node, i int, sum Hash, in *disk.Info, owner tree.Owner, old bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.buf == nil && n.old.kind(i) == kFile && n.old.sameFacts(i, kFile, in) && n.old.trusted(i) == old && Hash(n.old.hash(i)) == sum &&
		n.old.entry(i).Owner == owner && n.old.rec(i)[rFlags]&asked != 0 {
		return
	}
	b := n.block()
	b.setFacts(i, kFile, in, old)
	b.setOwner(i, owner)
	copy(b.hash(i), sum[:])
}

// rewritten says whether the file of record i is another one than the cache has, or was written since, and has the bytes
// that it had.
func (n *node) rewritten(i int, sum Hash, in *disk.Info) bool {
	j := n.oldRecord(i)
	return j >= 0 && n.old.kind(j) == kFile && Hash(n.old.hash(j)) == sum && !n.old.sameFacts(j, kFile, in)
}

// ownerOf returns what is to be recorded about whose the file is.
func ownerOf(h disk.Dir, name string, in disk.Info) (tree.Owner, error) {
	gid, usual, err := disk.GroupOf(h, name, in)
	if usual && in.Mode&tree.SpecialBits == 0 {
		return tree.Owner{}, err
	}
	return tree.Owner{UID: in.UID, GID: gid, Known: true}, err
}

// storeError is an error of the store, not of the file that was read.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// errOutput says that a file is one of Request.Outputs.
var errOutput = errors.New("a file of the caller's own output")

// hashFile reads a file until it stays the same while it is read, and stores it. The
// facts are those of the descriptor that was read; old says that they vouch for it: they are
// old enough, and nobody had it open for writing when the reading began.
func (k *worker) hashFile(n *node, i int, h disk.Dir, name string) (sum Hash, in disk.Info, old bool, err error) {
	for range readAttempts {
		f, st, err := openFile(h, name)
		if err != nil {
			return sum, in, false, err
		}
		in = st
		if k.tooLarge(n, i, &in) {
			f.Close()
			return sum, in, false, errTooLarge
		}
		if k.req.AfterRun && slices.ContainsFunc(k.req.Outputs, in.SameFile) {
			f.Close()
			return sum, in, false, errOutput
		}
		old = !f.BeingWritten() && k.startOf(&in).trusts(&in) && k.device(in.Dev, h).ChangeTimes
		sum, same, err := k.hashOnce(f, &in, h)
		f.Close()
		if err != nil || same {
			return sum, in, old, err
		}
	}
	return sum, in, false, errChanging
}

// hashOnce reads and stores an open file and says whether it stayed the same meanwhile.
func (k *worker) hashOnce(f disk.File, in *disk.Info, h disk.Dir) (sum Hash, same bool, err error) {
	read, c := int64(0), k.contentOf(f, in, h)
	if k.req.Writer == nil {
		sum, read, err = sumOf(c, k.buffer())
	} else {
		sum, read, err = k.req.Writer.PutFile(c, in.Size)
		if err != nil && c.err == nil {
			return sum, false, storeError{err}
		}
	}
	if err != nil {
		return sum, false, err
	}
	after, err := f.Stat()
	return sum, err == nil && read == in.Size && sameState(in, &after), err
}

// buffer is used again for each file of the worker's.
func (k *worker) buffer() []byte {
	if k.buf == nil {
		k.buf = make([]byte, 128<<10)
	}
	return k.buf
}

func sumOf(f io.Reader, buf []byte) (Hash, int64, error) {
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{f}, buf)
	return Hash(sum.Sum(nil)), n, err
}

// unreadFile deals with a file that could not be read: an error before a run, else it is
// listed, and after a run keeps what the cache has of it.
func (k *worker) unreadFile(n *node, i int, path tree.Path, err error) error {
	if store, ok := errors.AsType[storeError](err); ok {
		return store.error
	}
	if exhausted(err) {
		return exhaustion(path, err)
	}
	if !k.req.AfterRun && !k.req.SkipUnreadable {
		if err == errChanging {
			return &ChangingError{path}
		}
		return &UnreadableError{path, bare(err)}
	}
	k.missed = append(k.missed, path)
	n.change(func(b block) { k.keepOld(n, b, i) })
	return nil
}

// keepOld makes record i what the cache has, not trusted, so that the next walk tries
// again; without AfterRun, or if the cache has none, it is none.
func (k *worker) keepOld(n *node, b block, i int) {
	j := n.oldRecord(i)
	b.setKind(i, kNone)
	if j < 0 || !k.req.AfterRun {
		return
	}
	switch n.old.kind(j) {
	case kFile:
		copy(b.rec(i)[rKind:rPerm], n.old.rec(j)[rKind:rPerm])
		copy(b.rec(i)[rGroup:], n.old.rec(j)[rGroup:])
		copy(b.hash(i), n.old.hash(j))
	case kLink:
		copy(b.rec(i)[rKind:rPerm], n.old.rec(j)[rKind:rPerm])
		copy(b.hash(i), n.old.hash(j))
		n.target(i, string(n.old.target(j)))
	default:
		return
	}
	b.rec(i)[rFlags] &^= trusted
}
