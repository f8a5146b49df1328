package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"decree/disk"
	"decree/project"
	"decree/tree"
)

// Objects reads the store's objects; *store.Store is one.
type Objects interface {
	Has(tree.Hash) bool
	// Open returns the object's bytes, checked against the hash at their end, and their number.
	Open(tree.Hash) (io.ReadCloser, int64, error)
}

// Putter adds objects to the store; *store.Writer is one.
type Putter interface {
	// Has says whether the store has the object, or will with the next flush.
	Has(tree.Hash) bool
	Put(r io.Reader, sizeHint int64) (tree.Hash, int64, error)
	PutBytes(b []byte) (tree.Hash, error)
	// PutTree adds a directory's object.
	PutTree(b []byte) (tree.Hash, error)
}

// Options are what a History needs besides its project.
type Options struct {
	Objects Objects          // may be nil for what needs no object
	Now     func() time.Time // nil: time.Now
	Note    func(string)     // takes one-line notes for people; nil: nobody does
}

// History is the records of one project. Reading methods are safe for
// concurrent use; writing ones need the project's lock and one goroutine.
type History struct {
	p    *project.Project
	now  func() time.Time
	note func(string)

	mu         sync.Mutex
	clockNoted bool
	barred     error    // what NoteKeptOut told last, to tell it once; for the writing goroutine alone
	left       []string // files of run directories that were not stored, told once; likewise
	objects    Objects
	log        *log
	stale      bool // the log may have lines behind what was read
}

// Open returns the history of p. It reads nothing yet.
func Open(p *project.Project, o Options) *History {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &History{p: p, now: o.Now, note: o.Note, objects: o.Objects}
}

// UseObjects makes later reads go through o: a store's reader does not see what
// was written after it was opened.
func (h *History) UseObjects(o Objects) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects = o
}

// Refresh makes later calls see what other processes wrote. A writer calls it
// after it took the lock.
func (h *History) Refresh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stale = true
}

// CatchUp makes later calls see what other processes have recorded, and says whether there
// is something: they may have removed records that this copy of the log has. It costs a look at the log's size where there is nothing new.
func (h *History) CatchUp() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.log == nil || h.log.current(h.p.Store) {
		return false
	}
	h.stale = true
	return true
}

// Gone says whether id, a record that the log had, is not in it any more.
func (h *History) Gone(id string) (bool, error) {
	h.CatchUp()
	is, err := h.Recorded(id)
	return !is, err
}

// readOn returns the log: what of it is new is read where it was not, or may have grown.
func (h *History) readOn() (*log, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readOnLocked()
}

// readOnLocked is readOn for a caller that holds mu.
func (h *History) readOnLocked() (*log, error) {
	if h.log == nil || h.stale {
		l, err := readLog(h.p.Store, h.log)
		if err != nil {
			return nil, err
		}
		h.log, h.stale = l, false
	}
	return h.log, nil
}

// write appends lines to the log, and compacts it where that is due and can be done.
func (h *History) write(lines ...*line) error {
	h.CatchUp()
	l, err := h.readOn()
	if err != nil {
		return err
	}
	if l.size == 0 {
		err = h.p.FlushNames()
	}
	if err == nil {
		err = l.appendLines(h.p.Store, lines)
	}
	if err != nil {
		h.Refresh()
		return err
	}
	h.Refresh()
	// The lines are durable: what goes wrong from here on must not be taken for a
	// record that was not written.
	if l, err = h.readOn(); err == nil && l.mostlyDead() {
		err = l.compact(h.p.Store)
		h.Refresh()
	}
	if err != nil && h.note != nil {
		h.note(fmt.Sprintf("%s could not be rewritten without its old lines: %v; nothing in it is lost", logFile, err))
	}
	return nil
}

// runs opens .decree/runs; fs.ErrNotExist when there is none.
func (h *History) runs() (disk.Dir, error) { return h.below(project.RunsDir) }

// runsIfAny opens .decree/runs; nil when there is none.
func (h *History) runsIfAny() (disk.Dir, error) {
	runs, err := h.runs()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return runs, err
}

// hasRunEntry says whether .decree/runs has anything whose name is the id.
func (h *History) hasRunEntry(id string) (bool, error) {
	runs, err := h.runsIfAny()
	if runs == nil || err != nil {
		return false, err
	}
	defer runs.Close()
	return disk.Has(runs, id)
}

// tmp opens .decree/tmp; fs.ErrNotExist when there is none.
func (h *History) tmp() (disk.Dir, error) { return h.below(project.TmpDir) }

func (h *History) below(name string) (disk.Dir, error) {
	if h.p.Decree == nil {
		return nil, &fs.PathError{Op: "open", Path: h.p.Root + "/.decree", Err: fs.ErrNotExist}
	}
	d, err := h.p.Decree.OpenDir(name)
	if errors.Is(err, syscall.ENOTDIR) { // the next writing command puts it aside
		err = &fs.PathError{Op: "open", Path: h.p.Root + "/.decree/" + name, Err: fs.ErrNotExist}
	}
	return d, err
}

// runNames are the names in .decree/runs, compared with the log: for each row of the log
// whether there is something of its name, and of what kind, and the other names that are ids.
type runNames struct {
	kinds  []disk.Kind // by row
	there  []bool      // by row
	others []string
}

// at says whether there is something of the name of r, row i, and of what kind. A nil n has not
// listed the directory, which then is asked.
func (n *runNames) at(i int, r row, runs disk.Dir) (there bool, kind disk.Kind) {
	if n != nil {
		return n.there[i], n.kinds[i]
	}
	st, err := runs.Stat(r.id())
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist), disk.Unknown
	}
	return true, st.Kind
}

func (h *History) runNames(l *log) (*runNames, error) {
	n := &runNames{kinds: make([]disk.Kind, len(l.rows)), there: make([]bool, len(l.rows))}
	runs, err := h.runsIfAny()
	if runs == nil || err != nil {
		return n, err
	}
	defer runs.Close()
	list, err := runs.List()
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if i, ok := l.where(e.Name); ok {
			n.kinds[i], n.there[i] = e.Kind, true
		} else if IsID(e.Name) {
			n.others = append(n.others, e.Name)
		}
	}
	return n, nil
}

// ids returns the keys of all records: those of the log and the open ones. The
// key of an open one that cannot be read follows from its id, which has the second of its start.
func (h *History) ids() ([]key, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	out := make([]key, 0, len(l.rows))
	for i := range l.rows {
		out = append(out, l.rows[i].key)
	}
	open, err := h.unended(l)
	if err != nil {
		return nil, err
	}
	for _, id := range open {
		out = append(out, h.openKey(l, id))
	}
	return out, nil
}

// unended are the ids of the open records that the log lacks.
func (h *History) unended(l *log) ([]string, error) {
	open, err := h.openNames()
	return slices.DeleteFunc(open, func(id string) bool { _, known := l.where(id); return known }), err
}

// foreign are the names in .decree/runs that are ids of neither a record of the log nor an
// open one, sorted: another store's records, as in a copied tree, or anybody's
// files. They have no place in the order and are found by their whole id alone.
func (h *History) foreign() ([]string, error) {
	l, err := h.readOn()
	if err != nil {
		return nil, err
	}
	names, err := h.runNames(l)
	if err != nil {
		return nil, err
	}
	return h.foreignOf(names)
}

func (h *History) foreignOf(names *runNames) ([]string, error) {
	if len(names.others) == 0 {
		return nil, nil
	}
	open, err := h.openNames()
	out := slices.DeleteFunc(slices.Clone(names.others), func(id string) bool { return slices.Contains(open, id) })
	slices.Sort(out)
	return out, err
}

// Foreign says whether the record id is in .decree/runs alone: this store has never
// seen it.
func (h *History) Foreign(id string) (bool, error) {
	known, err := h.Recorded(id)
	if known || err != nil {
		return false, err
	}
	_, err = h.Opened(id)
	return errors.Is(err, fs.ErrNotExist), nil
}

func (h *History) openKey(l *log, id string) key {
	if o, err := h.Opened(id); err == nil {
		l.follow(o.Record)
		return recordKey(o.Record)
	}
	chain, seq, _ := ParseID(id)
	k := key{chain: chain, seq: seq}
	if t, err := time.Parse(chainForm, chain[:len(chainForm)]); err == nil {
		k.at = t.UnixNano()
	}
	return k
}

// behindOpen places a record that ends before an open one has begun, as its times say, behind that one's start: the
// clock was set back, and the log does not have the open one yet.
func (h *History) behindOpen(r *Record) {
	ids, _ := h.openNames() // what cannot be read tells nothing
	for _, id := range ids {
		o, err := h.Opened(id)
		if err != nil || id == r.ID || r.Ended.IsZero() || !r.Ended.Before(o.Record.Started) {
			continue
		}
		if start := o.Record.Started.UnixNano(); recordKey(r).at <= start {
			r.order = start + 1
		}
	}
}

// stray reads a record that the log lacks, from the open records first.
func (h *History) stray(id string) (*Record, error) {
	if o, err := h.Opened(id); err == nil {
		if l, err := h.readOn(); err == nil {
			l.follow(o.Record)
		}
		return o.Record, nil
	}
	r, _, err := h.readRun(id)
	return r, err
}
