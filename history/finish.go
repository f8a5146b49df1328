package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
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
	Files map[string]tree.Hash
	// Build are the files that the run directory is built of, beside run.json. None: it is
	// there, as that of a run is, and what it lacks comes back with a repair.
	Build   []RunFile
	Effects Effects
	Audit   Operation // zero Op: no line
}

// StoreFiles puts the files of a record's run directory into the store, but for
// run.json and manifest.json, which the store has in forms of its own, and for
// outboxes: a follow-up that has left one must not come back with the record. What a command
// has put there stays where it is, with a note, where it is nearly all hole, has more than
// most bytes (0: any number), or is large and ctx has ended. They are durable after the
// writer's Flush; so are they in the run directory, and its names, since who wrote them may
// have died before he flushed them, or be the run's command.
func (h *History) StoreFiles(ctx context.Context, w Putter, id string, most int64) (map[string]tree.Hash, error) {
	dir, err := h.OpenRun(id)
	if err != nil {
		return nil, disk.UnlessMissing(err)
	}
	defer dir.Close()
	s := &storing{h: h, ctx: ctx, w: w, most: most, at: path.Join(".decree/runs", id), files: map[string]tree.Hash{}}
	if err := s.dir(dir, ""); err != nil {
		return nil, err
	}
	runs, err := h.runs()
	if err != nil {
		return nil, err
	}
	return s.files, syncClose(runs)()
}

// storing is a StoreFiles on its way.
type storing struct {
	h     *History
	ctx   context.Context
	w     Putter
	most  int64
	at    string // the run directory, from the root
	files map[string]tree.Hash
}

// isDeletedOpen says whether a FUSE or NFS has given that name to a file that was deleted while it was open, until it is closed.
func isDeletedOpen(name string) bool {
	return strings.HasPrefix(name, ".fuse_hidden") || strings.HasPrefix(name, ".nfs0")
}

// dir stores what dir has, which is at prefix in the run directory, and flushes its names.
func (s *storing) dir(dir disk.Dir, prefix string) error {
	list, err := dir.List()
	if err != nil || strings.Count(prefix, "/") >= maxDepthName {
		return err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range list {
		name := prefix + e.Name
		if name == runJSON || name == manifestJSON || strings.HasPrefix(name, project.OutboxDir) || isDeletedOpen(e.Name) {
			continue
		}
		st, err := dir.Stat(e.Name)
		if err != nil {
			return err
		}
		switch st.Kind {
		case disk.Regular:
			err = s.file(dir, e.Name, name, st.Size)
		case disk.Directory:
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = s.dir(sub, name+"/")
				sub.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return dir.Sync()
}

// file stores a file and flushes it, or notes why it is left.
func (s *storing) file(dir disk.Dir, base, name string, size int64) error {
	f, err := openSolid(dir, base)
	if errors.Is(err, errHollow) {
		s.left(name, "is nearly all a hole")
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var from io.Reader = f
	if size >= hollowFrom && !OwnDiff(name) {
		if s.most > 0 && size > s.most {
			s.left(name, "is larger than capture.max_file")
			return nil
		}
		from = disk.Until{Context: s.ctx, Reader: f}
	}
	sum, _, err := s.w.Put(from, size)
	if err != nil && s.ctx.Err() != nil && errors.Is(err, context.Cause(s.ctx)) {
		s.left(name, "was being stored when a signal stopped that")
		return nil
	}
	if err == nil {
		s.files[name] = sum
		err = f.Sync()
	}
	return err
}

// left tells it once, as the files of a run that is put back are stored twice.
func (s *storing) left(name, why string) {
	at := path.Join(s.at, name)
	if s.h.note == nil || slices.Contains(s.h.left, at) {
		return
	}
	s.h.left = append(s.h.left, at)
	s.h.note(fmt.Sprintf("%s %s: it was left there, and the store does not have it", tree.Quote(at), why))
}

// End ends a record of any kind: its line, which says what it does to others, is appended
// to the log and flushed, which is the moment it exists; then its run directory is put in
// place and the run.json files of the others are written again, labels move, the audit
// line is written and the open record removed. After a death anywhere it is called again:
// of a record that the log has it does what is missing.
func (h *History) End(c Closing) error {
	if err := c.Record.check(); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	was, err := h.line(c.Record.ID)
	if err != nil {
		return err
	}
	t := &commit{h: h, line: &line{op: opRunFiles}, again: was != nil}
	defer t.drop()
	if was != nil {
		if err := h.flushFile(logFile); err != nil { // the line counts, and is the only one that says so when the open record is gone
			return err
		}
		_, err = t.restore(was, true)
	} else {
		err = t.begin(c)
	}
	if err == nil {
		err = t.change(c.Effects.Status)
	}
	if err == nil && was == nil {
		err = t.orNote(c.Record.ID, t.prepareOwn(c))
	}
	if err != nil {
		return err
	}
	return t.end(c)
}

// begin makes the line of a record that the log does not have.
func (t *commit) begin(c Closing) error {
	l, err := t.h.readOn()
	if err != nil {
		return err
	}
	l.follow(c.Record)
	t.h.behindOpen(c.Record)
	t.line = &line{key: recordKey(c.Record), files: c.Files, record: c.Record}
	return nil
}

// prepareOwn prepares the files of the record that ends, while what was staged for others
// is flushed.
func (t *commit) prepareOwn(c Closing) error {
	if len(c.Build) > 0 {
		return t.build(t.line, c.Build)
	}
	return t.stage(t.line)
}

// end appends the line, and then does what follows once it is durable. What that changes
// in several directories waits for their flushes together; the open record, which would
// have it repeated, goes last.
func (t *commit) end(c Closing) error {
	err := t.append()
	if disk.Full(err) && len(t.prepared) > 0 { // the line goes before the files, which the store has
		for _, p := range t.prepared {
			t.noteKeptOut(p.record(), err)
		}
		t.drop()
		err = t.append()
	}
	if err != nil {
		return err
	}
	id, audit := c.Record.ID, c.Audit
	var flushes errgroup.Group
	err = t.moveAllIn(&flushes)
	if err == nil && audit.Op != "" {
		audit.Record = id
		flushes.Go(func() error { return t.h.auditOnce(audit) })
	}
	if err == nil {
		err = t.h.moveLabels(c.Effects.Labels)
	}
	if err = cmp.Or(err, flushes.Wait()); err != nil {
		return err
	}
	return t.h.removeOpen(id)
}

// commit is one line that is appended to the log, with the files of .decree/runs that
// follow from it.
type commit struct {
	h        *History
	line     *line // of a record that ends, or of an operation, which needs effects to be written
	prepared []prepared
	flushes  *errgroup.Group // of what is staged; nil: none

	keptOut []Damage // the records whose files something keeps out of .decree/runs
	quiet   bool     // no note of them
	again   bool     // the record was ended by a process that died: what is in place may not be flushed
}

// prepared is what waits in .decree/tmp for its place in a record's run directory:
// *built or *staged.
type prepared interface {
	record() string // its id
	// moveIn renames it in; sync flushes its name, and has to be called.
	moveIn(h *History) (sync func() error, err error)
	// drop removes it where it was not moved in.
	drop(h *History)
}

// mostFlushes is how many staged files are open, and flushed, at once.
const mostFlushes = 32

// build prepares the whole run directory of a record.
func (t *commit) build(l *line, files []RunFile) error {
	b, err := t.h.build(l.id(), append(slices.Clone(files), RunFile{Name: runJSON, Write: Bytes(l.record.JSON(nil))}))
	if err != nil {
		return err
	}
	t.noteFile(l, b.info)
	t.prepared = append(t.prepared, b)
	return nil
}

// stage writes the run.json of a record and notes what stat says of it. append waits for
// its flush.
func (t *commit) stage(l *line) error {
	s, err := t.h.stage(l.id(), runJSON, Bytes(l.record.JSON(nil)))
	if err != nil {
		return err
	}
	t.noteFile(l, s.info)
	t.prepared = append(t.prepared, s)
	if t.flushes == nil {
		t.flushes = &errgroup.Group{}
		t.flushes.SetLimit(mostFlushes)
	}
	t.flushes.Go(s.flush)
	return nil
}

// noteFile notes in the line what stat says of the run.json that the record gets.
func (t *commit) noteFile(l *line, info disk.Info) {
	v := fileStat{info.Size, info.Mtime}
	if l == t.line {
		l.file = v
	} else {
		t.line.effect(l.id()).file = v
	}
}

// flushed waits for the flushes of what is staged.
func (t *commit) flushed() error {
	if t.flushes == nil {
		return nil
	}
	err := t.flushes.Wait()
	t.flushes = nil
	return err
}

// restage stages the run.json of a record of the log, unless the present one is what the
// log says.
func (t *commit) restage(l *line) error {
	_, data, err := t.h.readRun(l.id())
	if err != nil || !bytes.Equal(data, l.record.JSON(nil)) {
		return t.stage(l)
	}
	if t.again {
		return t.h.flushRun(l.id())
	}
	return nil
}

// flushFile flushes a file of the store to which a process wrote that may have died before it did.
func (h *History) flushFile(name string) error {
	f, err := h.p.Store.OpenWrite(name, project.PrivateFile)
	if err != nil {
		return err
	}
	defer f.Close()
	return cmp.Or(f.Sync(), h.p.Store.Sync())
}

// flushRun flushes the names in a record's run directory, and its own.
func (h *History) flushRun(id string) error {
	dir, err := h.OpenRun(id)
	if err != nil {
		return err
	}
	defer dir.Close()
	runs, err := h.runs()
	if err != nil {
		return err
	}
	defer runs.Close()
	return cmp.Or(dir.Sync(), runs.Sync())
}

// change has the line change the status of other records, where they do not have it
// already. One that is gone or foreign is passed over.
func (t *commit) change(status []StatusEffect) error {
	for _, s := range status {
		l, err := t.h.line(s.ID)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		if s.Draft != nil {
			t.changeDraft(l, s)
		} else if r := l.record; r.Status != s.Status || r.UndoneBy != s.UndoneBy {
			r.Status, r.UndoneBy = s.Status, s.UndoneBy
			e := t.line.effect(s.ID)
			e.status, e.undoneBy = s.Status, s.UndoneBy
		}
		if err := t.orNote(s.ID, t.restage(l)); err != nil {
			return err
		}
	}
	return nil
}

// write appends the line, then puts the run directories' files in place.
func (t *commit) write() error {
	if err := t.append(); err != nil {
		return err
	}
	var flushes errgroup.Group
	err := t.moveAllIn(&flushes)
	return cmp.Or(err, flushes.Wait())
}

// append appends the line to the log once all that it tells of is durable.
func (t *commit) append() error {
	if err := t.flushed(); err != nil {
		return err
	}
	if t.line.op != "" && len(t.line.effects) == 0 {
		return nil
	}
	return t.h.write(t.line)
}

// moveAllIn moves what was prepared into the run directories, which are flushed in g.
func (t *commit) moveAllIn(g *errgroup.Group) error {
	g.SetLimit(mostFlushes)
	for ; len(t.prepared) > 0; t.prepared = t.prepared[1:] {
		p := t.prepared[0]
		sync, err := p.moveIn(t.h)
		if KeepsOut(err) {
			p.drop(t.h)
			t.noteKeptOut(p.record(), err)
			continue
		}
		if err != nil {
			return err
		}
		t.h.barred = nil
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

// orNote notes an err that keeps a record's files out of .decree/runs, and returns any other.
func (t *commit) orNote(id string, err error) error {
	if !KeepsOut(err) {
		return err
	}
	t.noteKeptOut(id, err)
	return nil
}

// noteKeptOut takes down what keeps a record's files out, and tells it unless the commit is
// quiet: then its owner does.
func (t *commit) noteKeptOut(id string, err error) {
	t.keptOut = append(t.keptOut, Damage{id, err})
	if !t.quiet {
		t.h.NoteKeptOut(id, err)
	}
}

// NoteKeptOut tells that err keeps a record's files out of .decree/runs: once for all
// records, until one gets there again or the cause is another.
func (h *History) NoteKeptOut(id string, err error) {
	var cause syscall.Errno
	if h.note == nil || errors.As(err, &cause) && h.barred == cause {
		return
	}
	h.barred = cause
	h.note(fmt.Sprintf("the files of record %s could not be written to .decree/runs: %v; the store has them, and 'decree doctor --repair' writes them again once that is possible", id, err))
}

// drop removes what was staged for nothing.
func (t *commit) drop() {
	_ = t.flushed()
	for _, p := range t.prepared {
		p.drop(t.h)
	}
	t.prepared = nil
}
