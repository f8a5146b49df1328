package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/project"
	"decree/tree"

	"golang.org/x/sync/errgroup"
)

// Closing is a record that ends.
type Closing struct {
	Record *Record
	// Files are the run directory's files as objects that are durable in the
	// store already (StoreFiles, then the writer's Flush).
	Files   map[string]tree.Hash
	Effects Effects
	Audit   Operation // zero Op: no line
}

// StoreFiles puts the files of a record's run directory into the store, but for
// run.json and manifest.json, which the store has in forms of its own, and for
// outboxes: a follow-up that has left one must not come back with the record. They
// are durable after the writer's Flush.
func (h *History) StoreFiles(w Putter, id string) (map[string]tree.Hash, error) {
	dir, err := h.OpenRun(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	out := map[string]tree.Hash{}
	return out, storeDir(w, dir, "", 0, out)
}

func storeDir(w Putter, dir disk.Dir, prefix string, depth int, out map[string]tree.Hash) error {
	list, err := dir.List()
	if err != nil || depth >= maxDepthName {
		return err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range list {
		name := prefix + e.Name
		if name == runJSON || name == manifestJSON || strings.HasPrefix(name, project.OutboxDir) {
			continue
		}
		st, err := dir.Stat(e.Name)
		if err != nil {
			return err
		}
		switch st.Kind {
		case disk.Regular:
			out[name], err = storeFile(w, dir, e.Name, st.Size)
		case disk.Directory:
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = storeDir(w, sub, name+"/", depth+1, out)
				sub.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func storeFile(w Putter, dir disk.Dir, name string, size int64) (tree.Hash, error) {
	f, err := dir.Open(name)
	if err != nil {
		return tree.Hash{}, err
	}
	defer f.Close()
	sum, _, err := w.Put(f, size)
	return sum, err
}

// Finish ends a record: its line and those of the records that it affects are
// appended to the log and flushed, which is the moment it exists; then run.json
// is replaced, labels move, the audit line is written and the open record
// removed. After a death anywhere, Complete does the rest.
func (h *History) Finish(c Closing) error { return h.commit(c, nil) }

// Add is Finish for a record that was never open, such as a checkpoint: its run
// directory is built of files and run.json, and renamed in once the record exists.
func (h *History) Add(c Closing, files []RunFile) error { return h.commit(c, &files) }

// commit does both: with files nil the run directory is there, or can be missing.
func (h *History) commit(c Closing, files *[]RunFile) error {
	if err := c.Record.check(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	l, err := h.rows()
	if err != nil {
		return err
	}
	l.follow(c.Record)
	t := &turn{h: h}
	defer t.drop()
	self := &line{key: recordKey(c.Record), files: c.Files, record: c.Record}
	t.lines = append(t.lines, self) // before those that it affects
	// What stage has written is flushed while the directory is built.
	if files == nil {
		if err := t.stageOrNote(self); err != nil {
			return err
		}
	}
	if err := t.effects(c.Effects); err != nil {
		return err
	}
	if files != nil {
		if err := t.orNote(self, t.build(self, *files)); err != nil {
			return err
		}
	}
	return t.end(self, c.Effects, c.Audit)
}

// end appends the lines, and then does what follows once they are durable; it can
// be repeated from there. What it changes in several directories waits for their
// flushes together; the open record, which would have it repeated, goes last.
func (t *turn) end(l *line, e Effects, a Operation) error {
	err := t.append()
	if disk.Full(err) && len(t.prepared) > 0 { // the lines go before the files, which the store has
		for _, p := range t.prepared {
			t.h.NoteKeptOut(p.record(), err)
		}
		t.drop()
		err = t.append()
	}
	if err != nil {
		return err
	}
	var flushes errgroup.Group
	err = t.place(&flushes)
	if err == nil && a.Op != "" {
		a.Record = l.id()
		flushes.Go(func() error { return t.h.auditOnce(a) })
	}
	if err == nil {
		err = t.h.moveLabels(e.Labels)
	}
	if err = cmp.Or(err, flushes.Wait()); err != nil {
		return err
	}
	return t.h.removeOpen(l.id())
}

// Complete does what is missing of a Finish that died after its line: the
// effects, run.json, labels, audit line, the open record's end. It can be
// repeated. The record must be Recorded.
func (h *History) Complete(o *Opened, audit Operation) error {
	l, err := h.line(o.Record.ID)
	if err == nil && l == nil {
		err = fmt.Errorf("record %s has not ended", o.Record.ID)
	}
	if err != nil {
		return err
	}
	t := &turn{h: h}
	defer t.drop()
	if err := t.again(l); err != nil {
		return err
	}
	if err := t.effects(o.Effects); err != nil {
		return err
	}
	if err := t.effectsAgain(o.Effects); err != nil {
		return err
	}
	return t.end(l, o.Effects, audit)
}

// turn is one set of lines that is appended together, with their run.json files.
type turn struct {
	h        *History
	lines    []*line
	prepared []prepared
	flushes  *errgroup.Group // of what is staged; nil: none
}

// prepared is what waits in .decree/tmp for its place in a record's run directory:
// *built or *staged.
type prepared interface {
	record() string // its id
	// place renames it in; sync flushes its name, and has to be called.
	place(h *History) (sync func() error, err error)
	// drop removes it where it was not placed.
	drop(h *History)
}

// mostFlushes is how many staged files are open, and flushed, at once.
const mostFlushes = 32

// add takes the line in, once.
func (t *turn) add(l *line) {
	if !slices.Contains(t.lines, l) {
		t.lines = append(t.lines, l)
	}
}

// build prepares the whole run directory of a new line.
func (t *turn) build(l *line, files []RunFile) error {
	b, err := t.h.build(l.id(), append(slices.Clone(files), RunFile{Name: runJSON, Write: Bytes(l.record.JSON(nil))}))
	if err != nil {
		return err
	}
	l.size, l.mtime = b.info.Size, b.info.Mtime
	t.add(l)
	t.prepared = append(t.prepared, b)
	return nil
}

// stage writes the run.json that belongs to the line and notes what stat says of
// it. append waits for its flush.
func (t *turn) stage(l *line) error {
	s, err := t.h.stage(l.id(), runJSON, Bytes(l.record.JSON(nil)))
	if err != nil {
		return err
	}
	l.size, l.mtime = s.info.Size, s.info.Mtime
	t.add(l)
	t.prepared = append(t.prepared, s)
	if t.flushes == nil {
		t.flushes = &errgroup.Group{}
		t.flushes.SetLimit(mostFlushes)
	}
	t.flushes.Go(s.flush)
	return nil
}

// flushed waits for the flushes of what is staged.
func (t *turn) flushed() error {
	if t.flushes == nil {
		return nil
	}
	err := t.flushes.Wait()
	t.flushes = nil
	return err
}

// again stages the run.json of a line that stands in the log, when it differs.
func (t *turn) again(l *line) error {
	_, data, err := t.h.readRun(l.id())
	if err == nil && string(data) == string(l.record.JSON(nil)) {
		return nil
	}
	return t.stageOrNote(l)
}

// effects stages the lines of the records whose status changes. One that is
// gone or foreign, or has the status already, is passed over.
func (t *turn) effects(e Effects) error {
	for _, s := range e.Status {
		l, err := t.h.line(s.ID)
		if err != nil {
			return err
		}
		if l == nil || l.record.Status == s.Status && l.record.UndoneBy == s.UndoneBy {
			continue
		}
		l.record.Status, l.record.UndoneBy = s.Status, s.UndoneBy
		if err := t.stageOrNote(l); err != nil {
			return err
		}
	}
	return nil
}

// effectsAgain stages the run.json of those records whose line has the status
// already and whose run.json may not.
func (t *turn) effectsAgain(e Effects) error {
	for _, s := range e.Status {
		l, err := t.h.line(s.ID)
		if err != nil {
			return err
		}
		if l == nil || l.record.Status != s.Status || l.record.UndoneBy != s.UndoneBy {
			continue // gone, or staged by effects
		}
		if err := t.again(l); err != nil {
			return err
		}
	}
	return nil
}

// write appends the lines, then puts the run directories' files in place.
func (t *turn) write() error {
	if err := t.append(); err != nil {
		return err
	}
	var flushes errgroup.Group
	err := t.place(&flushes)
	return cmp.Or(err, flushes.Wait())
}

// append appends the lines to the log once all that they tell of is durable.
func (t *turn) append() error {
	if err := t.flushed(); err != nil {
		return err
	}
	if len(t.lines) > 0 {
		if err := t.h.write(t.lines...); err != nil {
			return err
		}
	}
	t.lines = nil
	return nil
}

// place puts what was prepared in its place. The directories are flushed in g.
func (t *turn) place(g *errgroup.Group) error {
	g.SetLimit(mostFlushes)
	for ; len(t.prepared) > 0; t.prepared = t.prepared[1:] {
		p := t.prepared[0]
		sync, err := p.place(t.h)
		if KeepsOut(err) {
			p.drop(t.h)
			t.h.NoteKeptOut(p.record(), err)
			continue
		}
		if err != nil {
			return err
		}
		g.Go(sync)
	}
	return nil
}

// KeepsOut says whether err, somebody else's rights in .decree, a mount there or a full
// disk, keeps a record's files out of .decree/runs alone. The store has them, and the
// record counts without: otherwise it would hold up every later command.
func KeepsOut(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EXDEV) || errors.Is(err, syscall.EROFS) || disk.Full(err)
}

// orNote takes the line in without the files that err keeps out of .decree/runs.
func (t *turn) orNote(l *line, err error) error {
	if !KeepsOut(err) {
		return err
	}
	t.add(l)
	t.h.NoteKeptOut(l.id(), err)
	return nil
}

// stageOrNote is stage for a record that ends, or whose status changes.
func (t *turn) stageOrNote(l *line) error { return t.orNote(l, t.stage(l)) }

// NoteKeptOut tells, once a record, that err keeps its files out of .decree/runs.
func (h *History) NoteKeptOut(id string, err error) {
	if h.note == nil || h.keptOut[id] {
		return
	}
	if h.keptOut == nil {
		h.keptOut = map[string]bool{}
	}
	h.keptOut[id] = true
	h.note(fmt.Sprintf("the files of record %s could not be written to .decree/runs: %v; the store has them, and 'decree doctor --repair' writes them again once that is possible", id, err))
}

// drop removes what was staged for nothing.
func (t *turn) drop() {
	_ = t.flushed()
	for _, p := range t.prepared {
		p.drop(t.h)
	}
	t.prepared = nil
}

// SetStatus changes a record's status, in the log and in run.json.
func (h *History) SetStatus(id string, s Status, undoneBy string) error {
	t := &turn{h: h}
	defer t.drop()
	if _, err := h.Get(id); err != nil {
		return err
	}
	if err := t.effects(Effects{Status: []StatusEffect{{id, s, undoneBy}}}); err != nil {
		return err
	}
	return t.write()
}
