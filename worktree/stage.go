package worktree

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"decree/disk"
	"decree/tree"
)

const (
	stagePrefix  = "txn-"         // of the staging directory in .decree/tmp
	besidePrefix = ".decree-txn-" // of a slot beside its target
	keptPrefix   = "decree-kept-" // of what is somebody's and could not be put back to its place
	besideNote   = "beside"       // in the staging directory: where slots lie beside their targets
	movesNote    = "moves"        // there too: the journal has its name, and moves may have begun
	// stageBatch is how many staged files are open at once: they are written
	// first and flushed together, so that the flushes share the file system's commits.
	stageBatch = 128
	// flushers is how many flushes wait at once.
	flushers = 32
	// manySteps is from how many steps on the file system is flushed whole, twice
	// for a transaction, instead of each file and directory. Below, what others
	// have written and not flushed would cost more than the flushes.
	manySteps = 4096
	// wholeTries is how many whole flushes before the journal are tried.
	wholeTries = 2
)

// flushWhole returns what flushes all that the transaction does on the tree's file
// system, or nil where each file and directory is to be flushed.
//
// Either way what was written is on the medium before the journal names it, and
// what was moved before the journal says done. With flushes of each it is fsync(2)
// that says so: the files' writing was started as they were staged, and the flushes
// wait side by side, so that a journaling file system commits a few times for all;
// it would be as true without. A whole flush needs the file system's word that it
// covers data and names (see [disk.Dir.SyncAll]), and all that is touched on it. A
// recovery, which has not looked at all of that, flushes each.
//
// A whole flush also tells, once, of what could not be written for others, whenever that
// was. Whose error it is cannot be known, and what failed of ours need not be told again:
// all is staged anew, for a second whole flush, and then with a flush of each.
func (x *txn) flushWhole() func() error {
	many := manySteps
	if x.t.many > 0 {
		many = x.t.many
	}
	if x.steps.n < many || x.beside || x.failed == wholeTries || x.elsewhere.Load() {
		return nil
	}
	all := x.stage.SyncAll()
	if all == nil {
		return nil
	}
	return func() error {
		if err := all(); err != nil {
			return &wholeError{err}
		}
		return nil
	}
}

// wholeError is the error of a whole flush: of ours or of anybody's.
type wholeError struct{ err error }

func (e *wholeError) Error() string { return e.err.Error() }
func (e *wholeError) Unwrap() error { return e.err }

// slot is one of the two slots of a step that hold what may have been in the tree.
type slot uint8

const (
	slotIn  slot = iota // what is to come in, or came out by an exchange
	slotOut             // what was renamed away
)

// slots is where the slots of a step lie.
type slots struct {
	disk.Dir
	in, out string // what comes in; what was taken out
	draft   string // the old content being made again
	close   func()
}

func (p slots) name(of slot) string {
	if of == slotOut {
		return p.out
	}
	return p.in
}

func (x *txn) slots(s *step) (slots, error) {
	n := strconv.Itoa(int(s.n))
	if s.beside == nil {
		return slots{x.stage, "s" + n, "d" + n, "r" + n, func() {}}, nil
	}
	d, err := x.h.dir(*s.beside)
	if err != nil {
		return slots{}, err
	}
	prefix := besidePrefix + x.id + "-"
	return slots{d.Dir, prefix + "s" + n, prefix + "d" + n, prefix + "r" + n, d.release}, nil
}

// both opens the directory of the step's path, in which that name may be touched, and its slots.
func (x *txn) both(s *step) (d *handle, p slots, done func(), err error) {
	if d, err = x.h.dir(s.Path.Parent()); err != nil {
		return nil, p, nil, err
	}
	if p, err = x.slots(s); err != nil {
		d.release()
		return nil, p, nil, err
	}
	done = func() { p.close(); d.release() }
	if err = guard(d, s.Path); err != nil {
		done()
		return nil, p, nil, err
	}
	return d, p, done, nil
}

// isSlot says whether name, without the prefix beside a target, is a slot's.
func isSlot(name string) bool {
	if len(name) < 2 || !strings.Contains("sdr", name[:1]) {
		return false
	}
	_, err := strconv.ParseUint(name[1:], 10, 31)
	return err == nil
}

// openStage opens the staging directory, which it makes first if it is to be new
// or, in a recovery, was lost. The owner of a new one is whoever we are on this file system.
func (x *txn) openStage(isNew bool) error {
	tmp, name := x.t.opt.Tmp, stagePrefix+x.id
	err := tmp.Mkdir(name, 0o700)
	found := errors.Is(err, fs.ErrExist)
	if err != nil && (isNew || !found) {
		return err
	}
	x.staged = true
	d, err := tmp.OpenDir(name)
	if err != nil {
		return err
	}
	x.stage = d
	st, err := d.Self()
	if err != nil {
		return err
	}
	x.uid, x.dev, x.dirMode = st.UID, st.Dev, st.Mode
	if found { // by a process that died, perhaps another user's, or that gave it to the tree's user
		if x.uid, err = x.ownUID(st.UID); err != nil {
			return err
		}
	}
	return x.giveStage(name, st)
}

// ownUID is whose what we make is on this file system. A death may leave the directory that tells it to Tidy. Where the disk is full it is found's, whose
// the staging directory is, or root's.
func (x *txn) ownUID(found uint32) (uint32, error) {
	tmp, name := x.t.opt.Tmp, stagePrefix+x.id+"-owner"
	if err := tmp.Rmdir(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	err := tmp.Mkdir(name, 0o700)
	switch {
	case disk.Full(err) && disk.AsRoot():
		return 0, nil
	case disk.Full(err):
		return found, nil
	case err != nil:
		return 0, err
	}
	st, err := tmp.Stat(name)
	return st.UID, errors.Join(err, tmp.Rmdir(name))
}

// giveStage gives the staging directory that root has made in a user's own tree to this user, whose decree has to
// finish the transaction where root's dies.
func (x *txn) giveStage(name string, st disk.Info) error {
	root, err := x.t.root.Self()
	if err != nil {
		return err
	}
	tmp, err := x.t.opt.Tmp.Self()
	if err != nil || st.UID != 0 || tmp.UID == 0 || tmp.UID != root.UID {
		return err
	}
	err = x.t.opt.Tmp.Chown(name, st, tmp.UID, tmp.GID)
	if refused(err) || errors.Is(err, syscall.ENOTEMPTY) { // a dead one's
		return nil
	}
	return err
}

// checkModes refuses what a file system that gives all directories one mode cannot keep.
func (x *txn) checkModes() error {
	if x.dirMode&0o077 == 0 {
		return nil // as the staging directory was to be made
	}
	for _, n := range x.steps.picked((*facts).ofDir) {
		s := x.steps.at(int(n))
		if !s.To.IsDir() {
			continue
		}
		if err := keepsMode(s, s.To.Mode, x.dirMode); err != nil {
			return err
		}
	}
	return nil
}

// stageAll puts every new content into its slot, checked. The last batch and
// the directories are left to be flushed, together with the journal.
func (x *txn) stageAll(ctx context.Context) error {
	if err := x.checkModes(); err != nil {
		return err
	}
	if err := x.noteBesides(); err != nil {
		return err
	}
	x.flushAll = x.flushWhole()
	for batch := range slices.Chunk(x.inOrder(x.steps.picked((*facts).hasNew)), share(stageBatch, 4)) {
		if err := x.flush(ctx); err != nil {
			return err
		}
		if err := x.stageSome(ctx, batch); err != nil {
			return err
		}
	}
	x.noteLinks()
	if x.flushAll != nil {
		x.unflushed = append(x.unflushed, func(on bool) error { return when(on, x.flushAll) })
		return nil
	}
	for _, dir := range x.besides() {
		d, err := x.h.dir(dir)
		if err != nil {
			return err
		}
		x.unflushed = append(x.unflushed, func(on bool) error {
			defer d.release()
			return when(on, d.Sync)
		})
	}
	x.unflushed = append(x.unflushed,
		func(on bool) error { return when(on, x.stage.Sync) },
		func(on bool) error { return when(on, x.t.opt.Tmp.Sync) })
	return nil
}

// inOrder sorts the numbers of steps by where their contents lie in the store, so that each block of it is
// decompressed once. By path, what the contents of neighbours lie among is read again and again.
func (x *txn) inOrder(steps []int32) []int32 {
	if x.t.opt.Store == nil {
		return steps
	}
	type placed struct {
		at uint64
		n  int32
	}
	list := make([]placed, len(steps))
	for i, n := range steps {
		list[i].n = n
		if to := x.steps.at(int(n)).To; to.Type == tree.Regular {
			list[i].at = x.t.opt.Store.Place(to.SHA256)
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	for i := range list {
		steps[i] = list[i].n
	}
	return steps
}

func when(on bool, do func() error) error {
	if !on {
		return nil
	}
	return do()
}

// stageSome writes a batch and leaves its files open, to be flushed, unless they
// will be with all others.
func (x *txn) stageSome(ctx context.Context, batch []int32) error {
	files := make([]disk.File, len(batch))
	err := each(ctx, x.t.workers(), len(batch), func(i int) (err error) {
		s := x.steps.at(int(batch[i]))
		files[i], err = x.stageOne(s)
		return at(s, err)
	})
	for i, f := range files {
		if f != nil && x.flushAll != nil {
			err = errors.Join(err, x.atNumber(batch[i], f.Close()))
		} else if f != nil {
			x.unflushed = append(x.unflushed, func(on bool) error {
				return x.atNumber(batch[i], errors.Join(when(on, f.Sync), f.Close()))
			})
		}
	}
	return err
}

// flush makes durable what waits for it. The flushes wait side by side, and
// share the file system's commits.
func (x *txn) flush(ctx context.Context) error {
	list := x.unflushed
	x.unflushed = nil
	err := each(ctx, x.flushers(), len(list), func(i int) error {
		do := list[i]
		list[i] = nil
		return do(true)
	})
	if err != nil {
		x.unflushed = slices.DeleteFunc(list, func(f func(bool) error) bool { return f == nil })
	}
	return err
}

// drop lets go of what waits to be flushed.
func (x *txn) drop() {
	for _, f := range x.unflushed {
		_ = f(false)
	}
	x.unflushed = nil
}

// stageOne makes the step's new file or link in its slot; a file is returned
// open and not flushed.
func (x *txn) stageOne(s *step) (disk.File, error) {
	p, err := x.slots(s)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if s.To.Type == tree.Symlink {
		if err := p.Symlink(s.To.Target, p.in); err != nil {
			return nil, err
		}
		_, err := x.giveOwner(s, s.To, p, p.in, nil)
		return nil, err
	}
	r, proven, err := x.content(s)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := fill(p, p.in, s.Path, s.To, r, proven)
	if err != nil {
		return nil, err
	}
	if err := x.dress(s, p, f); err != nil {
		f.Close()
		return nil, err
	}
	if x.flushAll == nil {
		f.StartSync()
	}
	return f, nil
}

// content opens the bytes of the step's To, and says whether its reader proves them.
func (x *txn) content(s *step) (r io.ReadCloser, proven bool, err error) {
	switch {
	case s.Content != nil:
		r, err = s.Content()
		return r, false, err
	case s.To.Size == 0:
		return io.NopCloser(strings.NewReader("")), false, nil
	case s.From != nil && s.From.SHA256 == s.To.SHA256 && s.From.Size == s.To.Size: // see losesList
		d, err := x.h.dir(s.Path.Parent())
		if err != nil {
			return nil, false, err
		}
		defer d.release()
		r, err = d.Open(s.Path.Name())
		return r, false, err
	case x.t.opt.Store == nil:
		return nil, false, errors.New("no content given")
	}
	r, _, err = x.t.opt.Store.Open(s.To.SHA256)
	return r, true, err
}

// fill makes the file name with r's bytes, which must be those that want says. Where r proves their
// hash, as Bytes does, they are not hashed once more.
func fill(d disk.Dir, name string, path tree.Path, want *tree.Entry, r io.Reader, proven bool) (disk.File, error) {
	f, err := d.Create(name, 0o600)
	if err != nil {
		return nil, err
	}
	to := &sparse{file: f}
	sum, n, err := want.SHA256, int64(0), error(nil)
	if proven {
		n, err = copyBytes(to, r, want.Size, io.Discard)
	} else {
		sum, n, err = copyHash(to, r, want.Size)
	}
	if err == nil {
		err = to.end(n)
	}
	if err == nil && (sum != want.SHA256 || n != want.Size) {
		err = &MismatchError{Path: path, Want: want.SHA256, Have: sum}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sparse writes a new file from its beginning and leaves a hole where a whole buffer of
// zeros comes, so that a sparse file takes no more space than it did.
type sparse struct {
	file disk.File
	hole int64 // zeros that are not written
}

// holeFloor is how many zeros at once are worth a hole.
const holeFloor = 64 << 10

var zeros [holeFloor]byte

func (s *sparse) Write(p []byte) (int, error) {
	if allZero(p) {
		s.hole += int64(len(p))
		return len(p), nil
	}
	if s.hole > 0 {
		if _, err := s.file.Seek(s.hole, io.SeekCurrent); err != nil {
			return 0, err
		}
		s.hole = 0
	}
	return s.file.Write(p)
}

// end gives a file that ends in a hole its size.
func (s *sparse) end(size int64) error {
	if s.hole == 0 {
		return nil
	}
	return s.file.Truncate(size)
}

// allZero says of a large piece that it holds nothing but zeros.
func allZero(p []byte) bool {
	if len(p) < holeFloor {
		return false
	}
	for len(p) > 0 {
		n := min(len(p), len(zeros))
		if !bytes.Equal(p[:n], zeros[:n]) {
			return false
		}
		p = p[n:]
	}
	return true
}

// dress gives the staged file its owner, attributes and mode, in this order:
// a new owner takes away set-user-ID and capabilities, an ACL changes the mode.
func (x *txn) dress(s *step, p slots, f disk.File) error {
	kept, err := x.giveOwner(s, s.To, p, p.in, f)
	if err != nil {
		return err
	}
	if s.To.Special() && !(kept && s.To.Owner.Known) {
		return &ConflictError{[]Conflict{{s.Path, fmt.Sprintf("mode %o cannot be given to a file of another owner", s.To.Mode)}}}
	}
	if s.From.IsFile() && kept { // else they are a stranger's
		if err := x.giveXattrs(s, p, f); err != nil {
			return err
		}
	}
	mode, err := x.groupMode(s.To, p, p.in)
	if err == nil && mode != s.To.Mode {
		err = &ConflictError{[]Conflict{{s.Path, fmt.Sprintf("mode %o cannot be given to a file of another group", s.To.Mode)}}}
	}
	if err != nil {
		return err
	}
	if err := unlistAndChmod(s.To, p, p.in, f, mode); err != nil {
		return err
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	return keepsMode(s, mode, is.Mode)
}

// keepsMode refuses where a file system did as if it gave a mode, and has kept its own: what then
// came into the tree would not be known for ours.
func keepsMode(s *step, want, have uint32) error {
	if have == want {
		return nil
	}
	return &ConflictError{[]Conflict{{s.Path, fmt.Sprintf("mode %o cannot be given here: the file system makes it %o", want, have)}}}
}

// unlistAndChmod gives the new file f its mode, and takes from it the access control list that
// it may have from the default list of the directory where it was made.
func unlistAndChmod(e *tree.Entry, p slots, name string, f disk.File, mode uint32) error {
	if unlisted(e) {
		is, err := f.Stat()
		if err != nil {
			return err
		}
		if _, err := disk.DropACL(p, name, is, mode); err != nil {
			return err
		}
	}
	return f.Chmod(mode)
}

// groupMode is e's mode as the named slot may have it: without what e's group alone may
// do if the file has not come to that group, or not got its access control list.
func (x *txn) groupMode(e *tree.Entry, p slots, name string) (uint32, error) {
	if e.GroupOnly() == 0 && !e.GivesGroup() || !e.Owner.Known {
		return e.Mode, nil
	}
	kept := false
	if hasList(e) {
		var err error
		if kept, err = disk.HasACL(p, name); err != nil {
			return 0, err
		}
	} else {
		have, err := p.Stat(name)
		if err != nil {
			return 0, err
		}
		kept = have.GID == e.Owner.GID
	}
	mode := e.Mode
	if !kept {
		mode &^= e.GroupOnly()
	}
	if !kept && e.GivesGroup() {
		mode &^= tree.SpecialBits
	}
	return mode, nil
}

// giveOwner gives the slot, which is to be e, the recorded owner and group, where there are some,
// else those of what stood at the path; where nothing stood there and we are root, those of the directory, so that work
// under sudo leaves no root's files in a user's tree. It reports whether they
// are as they should be. A file is f, which no other can take the place of; a link or a directory has none.
func (x *txn) giveOwner(s *step, e *tree.Entry, p slots, name string, f disk.File) (bool, error) {
	if e.Special() && e.Owner.Known && !x.t.believes(e.Owner) {
		return false, nil // a journal can be written by whoever can write a record
	}
	want, err := x.ownerFor(s, e)
	if err != nil || want == nil {
		return err == nil, err
	}
	have, chown, err := ownerOf(p, name, f)
	if err != nil || have.UID == want.UID && have.GID == want.GID {
		return true, err
	}
	err = chown(want.UID, want.GID)
	if errors.Is(err, fs.ErrPermission) && have.GID != want.GID {
		// The group alone may be ours to give.
		if gerr := chown(have.UID, want.GID); gerr == nil && have.UID == want.UID {
			return true, nil
		}
	}
	if err == nil {
		return true, nil
	}
	if !refused(err) {
		return false, err
	}
	if s.From != nil && s.To != nil && !s.To.Special() {
		x.note(fmt.Sprintf("%s: its owner %d:%d could not be kept", tree.Quote(s.Path), want.UID, want.GID))
	}
	return false, nil
}

// ownerOf is what f is, or else the link or directory name in d, and what changes the
// owner of just that.
func ownerOf(d disk.Dir, name string, f disk.File) (is disk.Info, chown func(uid, gid uint32) error, err error) {
	if f != nil {
		is, err = f.Stat()
		return is, f.Chown, err
	}
	is, err = d.Stat(name)
	return is, func(uid, gid uint32) error { return d.Chown(name, is, uid, gid) }, err
}

// refused says whether the system does not let us, or cannot, give a file what
// err is about; any other error is the disk's.
func refused(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}

// ownerFor returns whose a file of the step with the state e is to be, nil where the
// system decides.
func (x *txn) ownerFor(s *step, e *tree.Entry) (*disk.Info, error) {
	if e.Special() && e.Owner.Known {
		return &disk.Info{UID: e.Owner.UID, GID: e.Owner.GID}, nil
	}
	want, err := x.usualOwner(s, e)
	if err != nil {
		return nil, err
	}
	group := e.Owner.GID
	switch {
	case s.was != nil && e != s.From && usualAgain(s.From, e):
		if group, err = usualGroup(x.h, s.Path.Parent()); errors.Is(err, errNoDir) {
			return want, nil // it is made
		}
	case !e.MayOwn() || !e.Owner.Known || hasList(e):
		return want, nil
	}
	owner := disk.Info{UID: x.uid, GID: group}
	if want != nil {
		owner.UID = want.UID
	}
	return &owner, err
}

// usualOwner is that of what stood at the path, where that was of the same kind as e, or else of what is made there.
func (x *txn) usualOwner(s *step, e *tree.Entry) (*disk.Info, error) {
	if s.was != nil && s.From != nil && s.From.Type == e.Type {
		return s.was, nil
	}
	dir := s.Path.Parent()
	x.mu.Lock()
	owner, known := x.owners[dir]
	x.mu.Unlock()
	if known {
		return owner, nil
	}
	owner, err := x.ownerIn(dir)
	if err == nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.owners == nil {
			x.owners = map[tree.Path]*disk.Info{}
		}
		x.owners[dir] = owner
	}
	return owner, err
}

// ownerIn is that of what is made in a directory.
func (x *txn) ownerIn(dir tree.Path) (*disk.Info, error) {
	if up := x.newDir(dir); up != nil {
		want, err := x.ownerFor(up, up.To)
		if x.uid == 0 || want == nil || up.To.GivesGroup() {
			return want, err
		}
		return nil, err
	}
	d, _, err := x.nearestDir(dir)
	if err != nil {
		return nil, err
	}
	st, err := d.Self()
	d.release()
	switch {
	case err != nil:
		return nil, err
	case x.uid == 0:
		return &st, nil
	case st.Mode&0o2000 != 0: // new files in it get its group
		return &disk.Info{UID: x.uid, GID: st.GID}, nil
	}
	return nil, nil
}

// newDir returns the step that makes the directory at path, nil if none does.
func (x *txn) newDir(path tree.Path) *step {
	s := x.steps.find(path)
	if s == nil || !s.makesDir() {
		return nil
	}
	return s
}

// giveXattrs gives the slot the attributes and ACLs of the file it replaces.
func (x *txn) giveXattrs(s *step, p slots, f disk.File) error {
	d, err := x.h.dir(s.Path.Parent())
	if err != nil {
		return err
	}
	defer d.release()
	list, err := d.Xattrs(s.Path.Name())
	if refused(err) {
		x.note(fmt.Sprintf("%s: its extended attributes cannot be read, so they are not kept (%s)", tree.Quote(s.Path), rootCause(err)))
		return nil
	}
	if err != nil || len(list) == 0 {
		return err
	}
	have, err := p.Xattrs(p.in)
	if err != nil {
		return err
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	for _, a := range list {
		if a.Name == disk.ACL && (losesList(s.From, s.To) || unlisted(s.To)) {
			x.noteList(s)
			continue
		}
		if a.Name == disk.Capability {
			x.note(tree.Quote(s.Path) + ": its file capabilities were another content's, and are gone")
			continue
		}
		if slices.ContainsFunc(have, func(b disk.Xattr) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }) {
			continue
		}
		if err := p.SetXattr(p.in, is, a); err != nil {
			if !refused(err) {
				return err
			}
			x.note(fmt.Sprintf("%s: its extended attribute %s could not be kept (%s)", tree.Quote(s.Path), a.Name, rootCause(err)))
		}
	}
	return nil
}

// noteLinks names the files that other names share: the new content is a file
// of its own.
func (x *txn) noteLinks() {
	shared := func(s *facts) bool { return s.kind == replace && s.was != nil && s.was.Nlink > 1 }
	for _, n := range x.steps.picked(shared) {
		s := x.steps.at(int(n))
		if s.kind == replace && s.From.Type == tree.Regular && s.was != nil && s.was.Nlink > 1 {
			x.note(fmt.Sprintf("%s: no longer hard-linked to its other names (it had %d)", tree.Quote(s.Path), s.was.Nlink))
		}
	}
}

// besides returns the directories with slots of their own.
func (x *txn) besides() []tree.Path {
	dirs := map[tree.Path]bool{}
	for s := range x.steps.allFacts() {
		if s.beside != nil {
			dirs[*s.beside] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// noteBesides writes down where slots will lie beside their targets, so that
// they are found if we die before there is a journal. It is a journal without steps.
func (x *txn) noteBesides() error {
	dirs := x.besides()
	if len(dirs) == 0 {
		return nil
	}
	raw := make([][]byte, len(dirs))
	for i, d := range dirs {
		raw[i] = []byte(d)
	}
	meta, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	f, err := x.stage.Create(besideNote, 0o600)
	if err != nil {
		return err
	}
	err = writeJournal(f, x.id, meta, &stepList{})
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = x.stage.Sync()
	}
	if err == nil {
		err = x.t.opt.Tmp.Sync()
	}
	return err
}

// notedBesides reads what noteBesides wrote; a note that is torn was followed by nothing.
func (x *txn) notedBesides() ([]tree.Path, error) {
	f, err := x.stage.Open(besideNote)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	j, _, err := decodeJournal(f, st.Size)
	if err != nil {
		return nil, err
	}
	var raw [][]byte
	if j == nil || j.ID != x.id || json.Unmarshal(j.Meta, &raw) != nil {
		return nil, nil
	}
	var out []tree.Path
	for _, d := range raw {
		if dir := tree.Path(d); dir == "" || dir.Check() == nil {
			out = append(out, dir)
		}
	}
	return out, nil
}

// noteMoves says in the staging directory that moves may follow: where its journal is lost, or belongs to
// another store, what lies there may be somebody's only copy. It is no more durable than the moves that follow.
func (x *txn) noteMoves(context.Context) error {
	f, err := x.stage.Create(movesNote, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// abandon removes the journal and all staging of a transaction that has moved
// nothing. Each is tried whatever becomes of the other: without its staging a
// journal that stays can mostly be taken back alone. dropped says that none stays:
// removals need no staging, so that a recovery may finish it.
func (x *txn) abandon() (dropped bool, err error) {
	if !x.staged { // what is there, if anything, is not ours
		return true, nil
	}
	err = x.dropJournal()
	return err == nil || x.ext != extJournal, errors.Join(err, x.sweep())
}

// clean removes the slots and the journal of a settled transaction.
func (x *txn) clean() error {
	if err := x.sweep(); err != nil {
		return err
	}
	return x.journals.Remove(x.id + x.ext)
}

// emptySlots removes the slots of the steps. The staging directory stays, so that a
// recovery needs no room to open it.
func (x *txn) emptySlots() error {
	for _, dir := range x.besides() {
		if err := x.sweepBeside(dir); err != nil {
			return err
		}
	}
	_, err := removeSlots(x.stage, "")
	return err
}

// sweep removes the staging directory and all slots.
func (x *txn) sweep() error {
	if x.stage == nil {
		d, err := x.t.opt.Tmp.OpenDir(stagePrefix + x.id)
		if err != nil {
			return disk.UnlessMissing(err)
		}
		x.stage = d
	}
	dirs, err := x.notedBesides() // without a journal nothing else names them
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := x.sweepBeside(dir); err != nil {
			return err
		}
	}
	if err := x.emptySlots(); err != nil {
		return err
	}
	for _, note := range [...]string{besideNote, movesNote} {
		if err := x.stage.Remove(note); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return x.t.opt.Tmp.Rmdir(stagePrefix + x.id)
}

// sweepBeside removes the slots in dir, durably: the note that names dir goes next.
func (x *txn) sweepBeside(dir tree.Path) error {
	d, err := x.h.dir(dir)
	if errors.Is(err, errNoDir) {
		return nil
	}
	if notOurs(err) {
		x.note(fmt.Sprintf("%s: replaced by something else; what %s* was in it stays where that is now", tree.Quote(dir), besidePrefix+x.id+"-"))
		return nil
	}
	if err != nil {
		return err
	}
	defer d.release()
	removed, err := removeSlots(d, besidePrefix+x.id+"-")
	if err != nil || !removed {
		return err
	}
	return d.Sync()
}

func removeSlots(d disk.Dir, prefix string) (removed bool, err error) {
	list, err := d.List()
	if err != nil {
		return false, err
	}
	for _, e := range list {
		if name, ok := strings.CutPrefix(e.Name, prefix); ok && isSlot(name) {
			if err := d.Remove(e.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, err
			}
			removed = true
		}
	}
	return removed, nil
}
