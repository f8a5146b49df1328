package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"decree/disk"
	"decree/project"
	"decree/tree"

	"golang.org/x/sync/errgroup"
)

const (
	runJSON      = "run.json"
	manifestJSON = "manifest.json"
	failureFile  = "failure-context.md"
	maxRunJSON   = 16 << 20
	maxDepthName = 4
)

const (
	// ChangesFile is the name, in a record's directory, of what it changed; the contents are in its trees.
	ChangesFile = "changes.diff"
	// RoutineLog is that of what its command printed.
	RoutineLog = "routine.log"
)

// RunFile is a file of a run directory that is to be written.
type RunFile struct {
	Name  string // "changes.diff", "attempts/1/routine.log"
	Write func(io.Writer) error
	// LinkFrom is the id of a record whose file of this name has the same
	// content; where a hard link to it can be made, Write is not called.
	LinkFrom string
	// Tmp is the name of a file in .decree/tmp with that content; where it is
	// there, it is flushed and moved in, and Write is not called.
	Tmp string
}

// Bytes is a RunFile's Write for content that is at hand.
func Bytes(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

// splitName takes a file's name in a run directory apart.
func splitName(name string) ([]string, error) {
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if err := disk.CheckName(p); err != nil || len(name) > maxFileName || len(parts) > maxDepthName {
			return nil, fmt.Errorf("%q: not a name in a run directory", clip(name))
		}
	}
	return parts, nil
}

// OpenRun opens a record's run directory.
func (h *History) OpenRun(id string) (disk.Dir, error) {
	runs, err := h.runs()
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	return runs.OpenDir(id)
}

// HasRun says whether the record has a run directory.
func (h *History) HasRun(id string) bool {
	d, err := h.OpenRun(id)
	if err != nil {
		return false
	}
	d.Close()
	return true
}

// EnsureRun opens a record's run directory. It is made if a command deleted it,
// and what a command made in its place is put aside.
func (h *History) EnsureRun(id string) (disk.Dir, error) {
	runs, err := h.runs()
	if errors.Is(err, fs.ErrNotExist) {
		if err := h.p.EnsureDecree(); err != nil {
			return nil, err
		}
		runs, err = h.runs()
	}
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	st, err := runs.Stat(id)
	if err == nil && st.Kind == disk.Directory && st.Mode&0o700 == 0o700 {
		return runs.OpenDir(id)
	}
	d, err := h.p.OwnDir(runs, id)
	if err == nil {
		err = runs.Sync()
	}
	return d, err
}

// clearRun puts aside what stands in the place of a record's run directory, and gives the owner of one that is there
// the rights that decree needs, which a command may have taken away.
func (h *History) clearRun(id string) error {
	runs, err := h.runsIfAny()
	if runs == nil || err != nil {
		return err
	}
	defer runs.Close()
	st, err := runs.Stat(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.Kind == disk.Directory:
		return disk.GiveRights(runs, id, disk.Directory, 0o700)
	}
	return h.p.PutAside(runs, id)
}

// BuildRun makes a record's run directory: built in .decree/tmp, each file
// flushed, renamed in, the parent flushed. It fails if the directory is there.
func (h *History) BuildRun(id string, files []RunFile) error {
	b, err := h.build(id, files)
	if err != nil {
		return err
	}
	defer b.drop(h)
	sync, err := b.moveIn(h)
	if err != nil {
		return err
	}
	return sync()
}

// built is a flushed run directory in .decree/tmp that waits to be renamed in.
type built struct {
	id, name string
	info     disk.Info // of its run.json, if it has one
}

func (h *History) build(id string, files []RunFile) (*built, error) {
	b := &built{id: id, name: h.p.TmpName("run-" + id)}
	tmp, err := h.tmpWithout(b.name)
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	b.info, err = h.fill(tmp, b.name, files)
	if err != nil {
		_ = disk.RemoveTree(tmp, b.name)
		return nil, err
	}
	return b, nil
}

// Built says which records have a run directory that waits in .decree/tmp for its place: their line may be in the log
// before. Who finds files of one missing, asks this, and looks once more where it is none of them, knows that they are.
func (h *History) Built() (is func(id string) bool) {
	var list []disk.Entry
	if tmp, err := h.tmp(); err == nil {
		list, _ = tmp.List()
		tmp.Close()
	}
	return func(id string) bool {
		return slices.ContainsFunc(list, func(e disk.Entry) bool { return strings.HasSuffix(e.Name, "run-"+id) })
	}
}

// tmpWithout opens .decree/tmp, made if it is missing, and removes what a dead process has left there of that name.
func (h *History) tmpWithout(name string) (disk.Dir, error) {
	if err := h.p.EnsureDecree(); err != nil {
		return nil, err
	}
	tmp, err := h.tmp()
	if err != nil {
		return nil, err
	}
	if err := disk.RemoveTree(tmp, name); err != nil {
		tmp.Close()
		return nil, err
	}
	return tmp, nil
}

func (b *built) record() string { return b.id }

func (b *built) moveIn(h *History) (sync func() error, err error) {
	tmp, err := h.tmp()
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	runs, err := h.runs()
	if err != nil {
		return nil, err
	}
	if err := tmp.RenameNew(b.name, runs, b.id); err != nil {
		runs.Close()
		return nil, err
	}
	return syncClose(runs), nil
}

// syncClose flushes a directory and lets go of it.
func syncClose(d disk.Dir) func() error {
	return func() error {
		defer d.Close()
		return d.Sync()
	}
}

func (b *built) drop(h *History) {
	if tmp, err := h.tmp(); err == nil {
		_ = disk.RemoveTree(tmp, b.name)
		tmp.Close()
	}
}

// fill makes the directory and returns what stat says of its run.json.
func (h *History) fill(tmp disk.Dir, name string, files []RunFile) (info disk.Info, err error) {
	dir, err := project.MakeDir(tmp, name, project.PrivateDir)
	if err != nil {
		return info, err
	}
	defer dir.Close()
	var g errgroup.Group
	// The flushes wait together, so that the file system commits once for all.
	for _, f := range files {
		parent, base, done, err := h.makeParent(dir, f.Name)
		if err != nil {
			_ = g.Wait()
			return info, err
		}
		g.Go(func() error {
			defer done()
			linked := f.LinkFrom != "" && h.link(f, parent, base) || f.Tmp != "" && moveFlushed(tmp, f.Tmp, parent, base)
			if !linked {
				if err := writeFlushed(parent, base, f.Write); err != nil {
					return err
				}
			}
			if parent == dir {
				return nil // flushed once, below
			}
			return parent.Sync()
		})
	}
	if err := g.Wait(); err != nil {
		return info, err
	}
	if info, err = dir.Stat(runJSON); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return info, err
	}
	return info, dir.Sync()
}

// moveFlushed flushes a file of tmp and moves it to its place.
func moveFlushed(tmp disk.Dir, name string, to disk.Dir, base string) bool {
	f, err := tmp.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Sync() == nil && tmp.Rename(name, to, base) == nil
}

// link makes a hard link to another record's file of the same name.
func (h *History) link(f RunFile, to disk.Dir, base string) bool {
	from, err := h.OpenRun(f.LinkFrom)
	if err != nil {
		return false
	}
	defer from.Close()
	st, err := from.Stat(f.Name)
	return err == nil && st.Kind == disk.Regular && from.Link(f.Name, to, base) == nil
}

// makeParent opens the directory of name below dir, makes what is missing of
// it, and returns it with name's last part. done releases it.
func (h *History) makeParent(dir disk.Dir, name string) (parent disk.Dir, base string, done func(), err error) {
	parts, err := splitName(name)
	if err != nil {
		return nil, "", nil, err
	}
	parent, done = dir, func() {}
	for _, p := range parts[:len(parts)-1] {
		next, err := h.p.OwnDir(parent, p)
		if err == nil {
			err = parent.Sync()
		}
		done()
		if err != nil {
			return nil, "", nil, err
		}
		parent, done = next, func() { next.Close() }
	}
	return parent, parts[len(parts)-1], done, nil
}

func writeFlushed(d disk.Dir, name string, write func(io.Writer) error) error {
	f, err := writeFile(d, name, write)
	if err != nil {
		return err
	}
	return cmp.Or(f.Sync(), f.Close())
}

// writeFile makes a file and leaves it open, to be flushed.
func writeFile(d disk.Dir, name string, write func(io.Writer) error) (disk.File, error) {
	f, err := disk.CreateFile(d, name, project.PrivateFile)
	if err != nil {
		return nil, err
	}
	b := bufio.NewWriterSize(f, 64<<10)
	if err = cmp.Or(write(b), b.Flush()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReplaceFile puts a file into a record's run directory, new or in the place of
// an old one: written in .decree/tmp, flushed, renamed in, its directory flushed.
// The run directory is made if it is missing.
func (h *History) ReplaceFile(id, name string, write func(io.Writer) error) error {
	s, err := h.stage(id, name, write)
	if err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		s.drop(h)
		return err
	}
	sync, err := s.moveIn(h)
	if err != nil {
		s.drop(h)
		return err
	}
	return sync()
}

// staged is a file in .decree/tmp that waits to be flushed and renamed in.
type staged struct {
	id, name, tmp string
	info          disk.Info
	file          disk.File // open until flush
}

// flush makes the content durable. It is called once.
func (s *staged) flush() error { return cmp.Or(s.file.Sync(), s.file.Close()) }

// stage writes a file that is to be flushed.
func (h *History) stage(id, name string, write func(io.Writer) error) (*staged, error) {
	if _, err := splitName(name); err != nil {
		return nil, err
	}
	s := &staged{id: id, name: name, tmp: h.p.TmpName("file-" + id + "-" + strings.ReplaceAll(name, "/", "-"))}
	tmp, err := h.tmpWithout(s.tmp)
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	if s.file, err = writeFile(tmp, s.tmp, write); err == nil {
		if s.info, err = s.file.Stat(); err == nil {
			return s, nil
		}
		s.file.Close()
	}
	_ = tmp.Remove(s.tmp)
	return nil, err
}

func (s *staged) record() string { return s.id }

func (s *staged) moveIn(h *History) (sync func() error, err error) {
	dir, err := h.EnsureRun(s.id)
	if err != nil {
		return nil, err
	}
	parent, base, done, err := h.makeParent(dir, s.name)
	if err != nil {
		dir.Close()
		return nil, err
	}
	sync = func() error {
		defer dir.Close()
		defer done()
		return parent.Sync()
	}
	tmp, err := h.tmp()
	if err == nil {
		err = h.renameOver(tmp, s.tmp, parent, base)
		tmp.Close()
	}
	if err != nil {
		done()
		dir.Close()
		return nil, err
	}
	return sync, nil
}

// renameOver moves a file of tmp over another one that decree has written. What else is in
// that place is put aside.
func (h *History) renameOver(tmp disk.Dir, name string, to disk.Dir, base string) error {
	if err := h.clearFile(tmp, name, to, base); err != nil {
		return err
	}
	err := tmp.Rename(name, to, base)
	if err == nil {
		return nil
	}
	if st, serr := to.Stat(base); serr != nil || st.Kind != disk.Directory {
		return err
	}
	if err := h.p.PutAside(to, base); err != nil {
		return err
	}
	return tmp.Rename(name, to, base)
}

func (s *staged) drop(h *History) {
	if tmp, err := h.tmp(); err == nil {
		_ = tmp.Remove(s.tmp)
		tmp.Close()
	}
}

// ReadRun reads a record's run.json as it lies in .decree/runs, whatever the
// store's copy says.
func (h *History) ReadRun(id string) (*Record, error) {
	r, _, err := h.readRun(id)
	return r, err
}

// readRun is ReadRun with the file's bytes.
func (h *History) readRun(id string) (*Record, []byte, error) {
	dir, err := h.OpenRun(id)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	data, err := project.ReadFile(dir, runJSON, maxRunJSON)
	if err != nil {
		return nil, nil, err
	}
	r, err := ParseRecord(data)
	if err == nil && r.ID != id {
		err = fmt.Errorf("it belongs to record %s", r.ID)
	}
	if newer, ok := errors.AsType[*NewerError](err); ok {
		newer.Path = path.Join(".decree/runs", id, runJSON)
		return nil, nil, newer
	}
	if err != nil {
		return nil, nil, fmt.Errorf(".decree/runs/%s/%s: %w", id, runJSON, err)
	}
	return r, data, nil
}

// OpenFile opens a file of a record: in its run directory, else, when it is
// missing there or may not be read, the store's copy. What it reads from the run directory is not
// checked: for changes.diff that is what diff_sha256 is for.
func (h *History) OpenFile(id, name string) (io.ReadCloser, error) {
	f, err := h.OpenPlain(id, name)
	missing, barred := errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission)
	if !missing && !barred {
		return f, err
	}
	stored, serr := h.OpenStored(id, name)
	if serr != nil && barred {
		return nil, err
	}
	return stored, serr
}

// OpenPlain opens a file of a record as it lies in its run directory, without
// falling back on the store's copy.
func (h *History) OpenPlain(id, name string) (io.ReadCloser, error) {
	parts, err := splitName(name)
	if err != nil {
		return nil, err
	}
	dir, err := h.OpenRun(id)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	in := dir
	if above := parts[:len(parts)-1]; len(above) > 0 {
		if in, err = disk.OpenPath(dir, strings.Join(above, "/")); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	f, err := in.Open(parts[len(parts)-1])
	if err != nil {
		return nil, err
	}
	if err := h.checkHollow(f, id, name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// hollowFrom is the size, in bytes, from which a file is asked how much of it is data.
const hollowFrom = 64 << 20

// errHollow is a file that is nearly all hole, as 'truncate -s 8T' makes it: to read it would
// take hours, and decree writes none.
var errHollow = errors.New("nearly all of it is a hole")

// openSolid opens a file of a run directory, or returns errHollow.
func openSolid(dir disk.Dir, name string) (disk.File, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size >= hollowFrom && disk.Hollow(f, info.Size) {
		err = errHollow
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkHollow refuses a file that openSolid would not open. What the store has at that size is
// an exception: a file system may have made holes of a log full of zeros.
func (h *History) checkHollow(f disk.File, id, name string) error {
	info, err := f.Stat()
	if err != nil || info.Size < hollowFrom {
		return err
	}
	if l, err := h.line(id); err == nil && l != nil && h.objects != nil {
		if sum, ok := l.files[name]; ok && h.sizeOf(sum) == info.Size {
			return nil
		}
	}
	if disk.Hollow(f, info.Size) {
		return &project.Error{Kind: project.Integrity,
			Msg:    fmt.Sprintf(".decree/runs/%s/%s is not what was recorded: of its %d bytes nearly all are a hole", id, name, info.Size),
			Advice: "'decree doctor --repair' writes it again from the store"}
	}
	return nil
}

// sizeOf is the size of an object in bytes, -1 if the store does not have it.
func (h *History) sizeOf(sum tree.Hash) int64 {
	f, size, err := h.objects.Open(sum)
	if err != nil {
		return -1
	}
	f.Close()
	return size
}

// OpenStored opens the store's copy of a record's file.
func (h *History) OpenStored(id, name string) (io.ReadCloser, error) {
	l, err := h.line(id)
	if err != nil {
		return nil, err
	}
	missing := &fs.PathError{Op: "open", Path: path.Join(".decree/runs", id, name), Err: fs.ErrNotExist}
	if l == nil {
		return nil, missing
	}
	sum, ok := l.files[name]
	if !ok || h.objects == nil {
		return nil, missing
	}
	r, _, err := h.objects.Open(sum)
	return r, err
}

// probeInTmp is the form of the names of the empty files on which the file system is
// tried, also by readers.
var probeInTmp = regexp.MustCompile(`^(clock|owner)-[0-9a-z]+$`)

// CleanTmp removes what dead processes left in .decree/tmp, the staging of transactions
// aside, which worktree removes. What decree did not make is put aside. What another user's rights or a mount keeps
// there is noted: it is in nobody's way.
func (h *History) CleanTmp() error {
	tmp, err := h.tmp()
	if err != nil {
		return disk.UnlessMissing(err)
	}
	defer tmp.Close()
	list, err := tmp.List()
	for _, e := range list {
		cerr := h.clearTmp(tmp, e.Name)
		if h.note != nil && (errors.Is(cerr, fs.ErrPermission) || errors.Is(cerr, syscall.EXDEV) || errors.Is(cerr, syscall.EBUSY)) {
			h.note(fmt.Sprintf("%s could not be removed from .decree/tmp and was left there: %v", tree.Quote(e.Name), cerr))
			continue
		}
		err = errors.Join(err, cerr)
	}
	return err
}

// clearTmp removes or puts aside one entry of tmp.
func (h *History) clearTmp(tmp disk.Dir, name string) error {
	st, err := tmp.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a reader's probe
		return nil
	case err != nil:
		return err
	case h.p.InTmp(name) || st.Kind == disk.Regular && st.Size == 0 && probeInTmp.MatchString(name):
		return disk.RemoveTree(tmp, name)
	}
	return h.p.PutAside(tmp, name)
}

// RecordFiles are what decree writes into each record's directory, where it has to.
var RecordFiles = []string{runJSON, manifestJSON, ChangesFile, OutsideFile, RoutineLog, JudgeLog, failureFile, "attempts"}
