package recorder

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"decree/disk"
	"decree/project"
	"decree/tree"
	"decree/worktree"
)

// On a full disk even what makes room needs some: lines in the log and the audit,
// the copy of what lives in a pack. So the store keeps a file that is nothing but
// space, which prune and gc give up before they begin. What moves the tree, or finishes
// such a move, often frees more than it takes: it is given a part of this file for its
// journal, its open record and its line. The rest stays for prune and gc, should that
// part be used up in vain. What was given up is made again when the lock goes.
const (
	reserveFile = "reserve"
	reserveSize = 1 << 20
	reserveRest = reserveSize / 2 // what a move leaves of it
	reserveStep = reserveSize / 16
)

// keepReserve makes the reserve as large as it should be, or as there is room for: then
// the next command tries again. It says whether it is whole.
func (r *Recorder) keepReserve() bool {
	dir := r.project.Store
	info, err := dir.Stat(reserveFile)
	if err == nil && info.Size == reserveSize || err != nil && !isMissing(err) {
		return err == nil
	}
	if err == nil && (info.Kind != disk.Regular || info.Size > reserveSize) {
		_ = dir.Remove(reserveFile)
		info.Size = 0
	}
	f, err := disk.CreateFile(dir, reserveFile, project.PrivateFile)
	if errors.Is(err, fs.ErrExist) {
		f, err = dir.OpenWrite(reserveFile, project.PrivateFile)
	}
	if err != nil {
		return false
	}
	space := make([]byte, reserveStep)
	for at := info.Size / reserveStep * reserveStep; at < reserveSize && err == nil; at += reserveStep {
		_, _ = rand.Read(space) // what a file system cannot compress
		if _, err = f.WriteAt(space, at); err != nil {
			err = errors.Join(err, f.Truncate(at))
		}
	}
	return errors.Join(err, f.Close()) == nil
}

// giveReserve gives the reserve up until the lock goes.
func (r *Recorder) giveReserve() {
	r.reserveGiven = true
	_ = r.project.Store.Remove(reserveFile)
}

// spareReserve gives up the part of the reserve that is for moves, where the store's
// disk is nearly full, until the lock goes.
func (r *Recorder) spareReserve() {
	dir := r.project.Store
	info, err := dir.Stat(reserveFile)
	if err != nil || info.Kind != disk.Regular || info.Size <= reserveRest {
		r.reserveGiven = r.reserveGiven || dir.FileSystem().Spent
		return
	}
	f, err := dir.OpenWrite(reserveFile, project.PrivateFile)
	if err != nil {
		return
	}
	defer f.Close()
	if dir.FileSystem().Spent || atQuota(f, info.Size) {
		r.reserveGiven = true
		_ = f.Truncate(reserveRest)
	}
}

// atQuota says whether there is no room for what a move may need behind the end of the reserve.
// A quota shows nowhere else ahead: its disk has room, for others.
func atQuota(reserve disk.File, size int64) bool {
	_, err := reserve.WriteAt(make([]byte, reserveSize-reserveRest), size)
	return disk.Full(errors.Join(err, reserve.Truncate(size)))
}

// remakeReserve makes again what was given up of the reserve. The lock is still held.
func (r *Recorder) remakeReserve() {
	if r.reserveGiven {
		r.keepReserve()
		r.reserveGiven = false
	}
}

// enterForSpace is enter for what frees space. It does not recover: that may be what
// there is no room for. What waits keeps all that it names.
func (r *Recorder) enterForSpace(ctx context.Context, op string) (*writeSession, error) {
	r.giveReserve()
	x, err := r.lock(ctx, besideRuns)
	if err != nil {
		_ = r.history.AuditAside(r.audit(op, err.Error()))
	}
	return x, err
}

// enterToMove is enterFor for what moves the tree.
func (r *Recorder) enterToMove(ctx context.Context, op string) (*writeSession, error) {
	r.spareReserve()
	return r.enterFor(ctx, op, movesFiles)
}

// collectUntilThereIsRoom is collect, and where there is no room for the reserve
// afterwards once more, with the packs that are dead in part only.
func (r *Recorder) collectUntilThereIsRoom(ctx context.Context, x *writeSession, o collectOptions) (*Collected, error) {
	c, err := r.collect(ctx, x, o)
	if err != nil || o.force || r.keepReserve() {
		return c, err
	}
	if err := r.openWriter(ctx, x); err != nil {
		return c, err
	}
	o.force = true
	more, err := r.collect(ctx, x, o)
	if err != nil {
		return c, err
	}
	more.Freed, more.Objects, more.Packs = more.Freed+c.Freed, more.Objects+c.Objects, more.Packs+c.Packs
	return more, nil
}

// storeSize is the sum of the store's files, in bytes, without the reserve and the layers of
// isolated runs: no record goes to make room for these.
func (r *Reader) storeSize() (int64, error) {
	m := &measure{}
	defer r.tellBarred(m)
	list, err := m.list(r.project.Store)
	var total int64
	for _, e := range list {
		if e.Name == reserveFile || e.Name == layersDir {
			continue
		}
		n, err := m.entry(r.project.Store, e.Name)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, err
}

// Used are the bytes that a project's records take.
type Used struct {
	Store int64 // without the reserve
	Runs  int64 // of the readable copies in .decree/runs
}

// Total is all of them: what max_store bounds.
func (u Used) Total() int64 { return u.Store + u.Runs }

func (r *Reader) used() (u Used, err error) {
	sizes, err := r.runSizes()
	if err != nil {
		return u, err
	}
	return r.usedWith(sizes)
}

// usedWith is used where the sizes of the directories in .decree/runs are known.
func (r *Reader) usedWith(runs map[string]int64) (u Used, err error) {
	u.Store, err = r.storeSize()
	for _, n := range runs {
		u.Runs += n
	}
	return u, err
}

// runSizes are the bytes of the directories in .decree/runs, by record. What is linked
// into several counts once in all.
func (r *Reader) runSizes() (map[string]int64, error) {
	sizes := map[string]int64{}
	if r.project.Decree == nil {
		return sizes, nil
	}
	m := &measure{}
	defer r.tellBarred(m)
	runs, err := m.open(r.project.Decree, "runs")
	if runs == nil || err != nil {
		return sizes, err
	}
	defer runs.Close()
	list, err := m.list(runs)
	for _, e := range list {
		if e.Kind != disk.Directory {
			continue
		}
		dir, err := m.open(runs, e.Name)
		if err != nil {
			return nil, err
		}
		if dir == nil {
			continue
		}
		sizes[e.Name], err = m.below(dir)
		dir.Close()
		if err != nil {
			return nil, err
		}
	}
	return sizes, err
}

// measure adds up the sizes of files. What the user may not look at, as what another
// user has left, it passes over and remembers.
type measure struct{ barred []string }

// passed says whether an error means that there is nothing to be counted.
func (m *measure) passed(path string, err error) bool {
	if errors.Is(err, fs.ErrPermission) {
		m.barred = append(m.barred, path)
		return true
	}
	return isMissing(err)
}

// open opens a child directory; nil where there is none to be counted.
func (m *measure) open(dir disk.Dir, name string) (disk.Dir, error) {
	sub, err := dir.OpenDir(name)
	if m.passed(filepath.Join(dir.Path(), name), err) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	}
	return sub, err
}

func (m *measure) list(dir disk.Dir) ([]disk.Entry, error) {
	list, err := dir.List()
	if m.passed(dir.Path(), err) {
		return nil, nil
	}
	return list, err
}

// below is the sum of the files' sizes below dir, in bytes; of a file with several
// links its part.
func (m *measure) below(dir disk.Dir) (total int64, err error) {
	list, err := m.list(dir)
	for _, e := range list {
		n, err := m.entry(dir, e.Name)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, err
}

func (m *measure) entry(dir disk.Dir, name string) (int64, error) {
	info, err := dir.Stat(name)
	if m.passed(filepath.Join(dir.Path(), name), err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if info.Kind != disk.Directory {
		return info.Size / int64(max(info.Nlink, 1)), nil
	}
	sub, err := m.open(dir, name)
	if sub == nil || err != nil {
		return 0, err
	}
	defer sub.Close()
	return m.below(sub)
}

// tellBarred names what was passed over, once.
func (r *Reader) tellBarred(m *measure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if names := some(m.barred); names != "" && names != r.barred {
		r.barred = names
		r.note("not counted, as you may not read it: %s", names)
	}
}

// namedByJournals takes both sides of all that interrupted transactions move.
func (r *Recorder) namedByJournals(each func(tree.Hash)) error {
	dir, err := r.project.Store.OpenDir("txn")
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer dir.Close()
	list, err := worktree.Pending(dir)
	if err != nil {
		return err
	}
	for _, j := range list {
		if j.Err != nil {
			return unreadJournal(j.Err)
		}
		for s := range j.Steps() {
			for _, e := range []*tree.Entry{s.From, s.To} {
				if e != nil {
					each(e.SHA256)
				}
			}
		}
	}
	return nil
}

// unreadJournal says that nothing is freed beside a transaction of which it is not known what it needs.
func unreadJournal(err *worktree.JournalError) error {
	e := &project.Error{Kind: project.Refused, State: project.Unchanged, Err: err,
		Msg: "nothing was freed, because it is not known what a half-done move needs", Advice: "'decree recover' sets it aside"}
	if err.Newer {
		e.Advice = "let the newer decree finish it: 'decree recover' of that version"
	}
	return e
}

// OfStore says whether the disk that full tells of is the store's.
func (r *Reader) OfStore(full error) bool { return r.fullInStore(full) || r.oneDisk() }

// fullInStore says whether full tells of a file in the store, or of none.
func (r *Reader) fullInStore(full error) bool {
	var at *fs.PathError
	return !errors.As(full, &at) || strings.HasPrefix(at.Path, r.project.StorePath+"/")
}

// oneDisk says whether the store and .decree are on the same disk.
func (r *Reader) oneDisk() bool {
	if r.project.Store == nil || r.project.Decree == nil {
		return false
	}
	store, err := r.project.Store.Self()
	if err != nil {
		return false
	}
	decree, err := r.project.Decree.Self()
	return err == nil && decree.Dev == store.Dev
}

// LargestCopy is the largest file of .decree/runs that the store has too, with its
// size in bytes: where it lies on the disk that full tells of it can be done without.
// A size of 0: there is none.
func (r *Reader) LargestCopy(full error) (largest string, size int64) {
	if r.project.Store == nil || r.project.Decree == nil {
		return "", 0
	}
	if r.fullInStore(full) && !r.oneDisk() {
		return "", 0
	}
	logged, err := r.history.Logged()
	if err != nil {
		return "", 0
	}
	for _, rec := range logged {
		files, err := r.history.RecordFiles(rec.ID)
		if err != nil {
			continue
		}
		dir, err := r.history.OpenRun(rec.ID)
		if err != nil {
			continue
		}
		for _, f := range files {
			info, err := disk.StatPath(dir, f.Name)
			if err == nil && info.Size > size && r.store.Has(f.SHA256) {
				largest, size = path.Join(dir.Path(), f.Name), info.Size
			}
		}
		dir.Close()
	}
	return largest, size
}
