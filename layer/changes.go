package layer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"decree/disk"
	"decree/ignorefile"
	"decree/tree"
)

// A Change is a path at which the layer has something else than the root has now. It is valid
// until the function that it was given to returns.
type Change struct {
	Path tree.Path
	// Before is what the root has, After what the layer has: a regular file, a link or a
	// directory; nil where there is nothing, or nothing that is recorded.
	Before, After *disk.Info
	// Equal says that both have the same content and mode, a clone's but for what it never had (see clonedMode), although what the root has is not
	// settled: the run may have changed it and changed it back, or somebody else may have made
	// the same change in the root.
	Equal bool

	w    *walk
	l    *level
	name string
	seen *disk.Info // what the root has, recorded or not
}

// From is the root's directory with the path, nil if there is none, and To the layer's.
// Both are opened, and not closed, by the walk. Name is the path's in them.
func (c *Change) From() disk.Dir { return c.l.seen.dir }
func (c *Change) To() disk.Dir   { return c.l.upper }
func (c *Change) Name() string   { return c.name }

// Settled looks whether Before is what the run began with. Who reads its content asks
// after that.
func (c *Change) Settled() (bool, error) {
	// It is asked before the times are read: a file that is opened for writing can be seen cut at its old change time.
	writing, err := beingWritten(c.From(), c.name, c.Before)
	if writing || err != nil && !unreadable(err) {
		return false, err
	}
	return c.stands()
}

// stands is Settled of what nobody has open for writing.
func (c *Change) stands() (bool, error) {
	ok, err := c.w.stands(c.l.seen, c.Path, c.seen)
	if !ok || err != nil {
		return false, err
	}
	return c.sameRules()
}

// stands is base.stands, or else what ChangeOptions.Stands says.
func (w *walk) stands(s *sight, path tree.Path, seen *disk.Info) (bool, error) {
	ok, err := w.baseOf(path).stands(s, path.Name(), seen)
	if ok || err != nil || w.Stands == nil || w.again != nil {
		return ok, err
	}
	in, err := look(s.dir, path.Name())
	same := (in == nil) == (seen == nil) && (in == nil || *in == *seen)
	return err == nil && same && w.Stands(path) && !w.base.setBack(), err
}

// aged says whether what the root has was neither written nor moved since the run began, as far
// as its own change time tells: a directory above it may have been moved all the same.
func (c *Change) aged() bool {
	return c.seen != nil && c.w.baseOf(c.Path).aged(c.From(), c.name, c.seen)
}

// was is what the path is known to have been when the run began.
func (c *Change) was() (*tree.Entry, bool) { return c.w.known(c.l.seen, c.Path) }

// known is what ChangeOptions.Known says that a path in s was when the run began.
func (w *walk) known(s *sight, path tree.Path) (was *tree.Entry, is bool) {
	switch {
	case w.base.setBack():
		return nil, false
	case w.neverHad(s, path):
		return nil, true
	case w.Known == nil:
		return nil, false
	}
	return w.Known(path)
}

// neverHad says whether it is known that a clone never had a path in s: nothing was there, whatever the ignore rules, and whatever came
// there since.
func (w *walk) neverHad(s *sight, path tree.Path) bool {
	return !w.base.setBack() && w.cloned.neverHad(path, s.dir != nil)
}

// sameRules says whether the ignore rules for the path are those that the run began with.
func (c *Change) sameRules() (bool, error) { return c.l.seen.sameRules() }

// ChangeOptions say what counts as a change.
type ChangeOptions struct {
	Outer   []OuterRules // ignore files from outside of the root, in rising precedence
	Exclude []disk.Info  // directories left out wherever they are met, by device and inode
	Keeps   []string     // the names in a .decree that decree itself writes: what a run's layer has there is no work of its own
	// Known is asked for a path where the root does not tell what the run began with: what
	// the path was then (nil: it was not there), if that is known from elsewhere. Its content
	// is stored already. Nil: nothing is. Of a layer that was entered it says what a path was then.
	Known func(path tree.Path) (was *tree.Entry, known bool)

	// Stands is asked for a path whose times do not tell whether it is what the run began with: whether it is known from
	// elsewhere that it is. Nil: nothing is. Of a layer that was entered it is not asked.
	Stands func(path tree.Path) bool

	// MaxFile is the size above which a file is told in Tally.Large and not read, unless Known
	// has one as large. 0: none is too large.
	MaxFile int64

	git bool // of the root's .git alone, where there are no rules
	all bool // also what the layer has as the root has it
}

// OuterRules is an ignore file outside the root.
type OuterRules struct {
	Path string
	Data []byte
}

// A Tally counts what of the layer is no Change.
type Tally struct {
	Git     int         // files in a .git, with what was deleted there
	Repos   []tree.Path // each .git that has them
	Ignored int         // files that ignore rules leave out, the same
	Decree  int         // files in a .decree that the run wrote, but for ChangeOptions.Keeps; not what it deleted
	Wrote   []tree.Path // each of them, or a directory there that the root has not, and all below
	Special []tree.Path // sockets, pipes and devices
	Unread  []tree.Path // directories that could not be read, in the layer or in the root, and all below
	Large   []tree.Path // files above MaxFile, on either side
}

// Changes calls visit for each path that the layer has otherwise than the root, a
// directory before what is in it, else in byte order of the names. visit's error ends the
// walk and is returned; nil: only the tally is wanted. No process may work in the layer.
func (l *Layer) Changes(ctx context.Context, o ChangeOptions, visit func(*Change) error) (Tally, error) {
	w := &walk{ChangeOptions: o, ctx: ctx, visit: visit, again: l.again, buffers: [2][]byte{make([]byte, 128<<10), make([]byte, 128<<10)}}
	root, err := l.place.Root.Self()
	if err != nil {
		return w.tally, err
	}
	fs := l.place.Root.FileSystem()
	if l.again != nil && o.Known != nil {
		w.Known = l.again.since(o.Known)
	}
	w.base = base{moment: l.facts.moment, dev: root.Dev, fs: fs.ID, moves: fs.MoveTimes, names: l.names, setBack: l.setBack}
	if l.facts.Mechanism == Clone {
		w.cloned = &cloned{layer: l, at: l.facts.Cloned}
		if keeps, err := disk.KeepsTimes(l.dir); l.setBack() || err == nil && !keeps {
			w.cloned.at = 0 // anything may have been written
		}
	}
	upper, err := disk.OpenPathWritable(l.dir, l.top()) // the root's mode is no part of a record
	if err != nil {
		return w.tally, err
	}
	defer upper.Close()
	var outer []*ignorefile.File
	for _, r := range o.Outer {
		f, err := ignorefile.Parse(r.Path, r.Data)
		if err != nil {
			return w.tally, err
		}
		outer = append(outer, f)
	}
	var rules *ignorefile.Rules
	top := &level{upper: upper, seen: &sight{dir: l.place.Root}, rules: rules.Enter("", outer...)}
	top.own = top.rules
	if w.cloned != nil {
		self, err := upper.Self()
		if err != nil {
			return w.tally, err
		}
		w.cloned.steady = upper.FileSystem().Steady
		top.kept = w.cloned.steady && self.Ctime <= w.cloned.at
	}
	if o.git {
		err = w.entry(top, ".git")
	} else {
		err = w.level(top)
	}
	if w.cloned != nil && err == nil {
		err = w.cloned.failed
	}
	return w.tally, err
}

// walk is one call of Changes.
type walk struct {
	ChangeOptions
	ctx     context.Context
	visit   func(*Change) error
	base    base
	again   *again  // the layer was entered; nil: it was not
	cloned  *cloned // of a clone; nil: an overlay
	tally   Tally
	buffers [2][]byte
}

// A level is a directory of the layer with the root's at the same path.
type level struct {
	path  tree.Path
	upper disk.Dir // nil: the layer has none
	seen  *sight   // the root's; its dir is nil if there is none
	// hidden: what the root has in this directory is not seen through the layer, so that what the
	// layer lacks was deleted. kept: it is a directory of a clone in which no name was made or
	// taken away since it was cloned.
	hidden, kept bool
	// rules are the ignore rules of the root, own those that the run has made of them: what it takes out of the rules is its work.
	rules, own *ignorefile.Rules
}

// level looks at all names of a directory.
func (w *walk) level(l *level) error {
	names, err := w.enter(l)
	if err != nil {
		return err
	}
	return w.entries(l, names)
}

// enter reads what all entries of a directory are looked at by, and the names of them.
func (w *walk) enter(l *level) ([]string, error) {
	if err := w.enterRules(l); err != nil {
		return nil, err
	}
	return w.names(l)
}

// entries looks at the names of a directory.
func (w *walk) entries(l *level, names []string) error {
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if err := w.entry(l, name); err != nil {
			return err
		}
	}
	return nil
}

// names lists the layer's names, and the root's where they are hidden by their absence.
func (w *walk) names(l *level) ([]string, error) {
	dirs := []disk.Dir{l.upper}
	if l.hidden || w.cloned != nil && !l.kept {
		dirs = append(dirs, l.seen.dir)
	}
	var names []string
	for _, dir := range dirs {
		if dir == nil {
			continue
		}
		list, err := dir.List()
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// An entry is one name of a level, while it is looked at.
type entry struct {
	name        string
	path        tree.Path
	has, had    *disk.Info // what the layer and the root have, as they are
	after, old  *disk.Info // the same, where it is recorded
	opaque, new bool       // the layer's directory hides the root's; it is the run's own
}

// entry looks at one name.
func (w *walk) entry(l *level, name string) error {
	e := entry{name: name, path: l.path.Join(name)}
	touched, err := w.touched(l, &e)
	if err != nil || !touched {
		return err
	}
	if skip, err := w.leftOut(l, &e); skip || err != nil {
		return err
	}
	e.after, e.old = w.recorded(l, &e, e.has, true), w.recorded(l, &e, e.had, false)
	below, names, err := w.below(l, &e)
	defer below.close()
	barred := errors.Is(err, fs.ErrPermission) && !w.untouchedBelow(below)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if barred {
		w.tally.Unread = append(w.tally.Unread, e.path)
		if !isDir(e.after) {
			return nil // nobody can tell what was deleted
		}
	}
	if err := w.tell(l, &e); err != nil || barred {
		return err
	}
	return w.entries(below, names)
}

// touched reads what both sides have, and says whether the run may have changed it.
func (w *walk) touched(l *level, e *entry) (bool, error) {
	var err error
	if e.has, err = look(l.upper, e.name); err != nil {
		return false, err
	}
	if e.had, err = look(l.seen.dir, e.name); err != nil {
		return false, err
	}
	if w.cloned != nil {
		return w.cloned.touched(l, e)
	}
	e.new = true
	if e.has == nil {
		return e.had != nil && l.hidden, nil
	}
	deleted, err := isWhiteout(l.upper, e.name, e.has)
	if err == nil && e.has.Kind == disk.Directory {
		e.opaque, err = opaque(l.upper, e.name)
	}
	if err != nil {
		return false, err
	}
	if deleted {
		e.has = nil
	}
	return e.has != nil || e.had != nil, nil
}

// leftOut counts what is in .git and in .decree, and passes over that and stores.
func (w *walk) leftOut(l *level, e *entry) (bool, error) {
	if w.git {
		return false, nil
	}
	switch e.name {
	case ".decree":
		n, err := w.wrote(l, e)
		w.tally.Decree += n
		return true, err
	case ".git":
		n, err := w.gitFiles(l, e)
		if n > 0 {
			w.tally.Git, w.tally.Repos = w.tally.Git+n, append(w.tally.Repos, e.path)
		}
		return true, err
	}
	for _, in := range []*disk.Info{e.has, e.had} {
		if in != nil && slices.ContainsFunc(w.Exclude, in.SameFile) {
			return true, nil
		}
	}
	return isStore(l.upper, e.name) || isStore(l.seen.dir, e.name), nil
}

// wrote counts the files that the run wrote in a directory in or below a .decree, and that the root has not as they are.
func (w *walk) wrote(l *level, e *entry) (n int, err error) {
	if !isDir(e.has) {
		return 0, nil
	}
	next := &level{path: e.path, seen: &sight{up: l.seen, name: e.name}, kept: w.cloned.keeps(e)}
	defer next.close()
	next.upper, err = l.upper.OpenDir(e.name)
	if errors.Is(err, fs.ErrPermission) {
		return 0, nil // nobody can tell
	}
	if err == nil && isDir(e.had) {
		next.seen.dir, err = l.seen.dir.OpenDir(e.name)
	}
	if err != nil {
		return 0, err
	}
	list, err := next.upper.List()
	if err != nil {
		return 0, err
	}
	slices.SortFunc(list, func(a, b disk.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, in := range list {
		if e.name == ".decree" && slices.Contains(w.Keeps, in.Name) {
			continue
		}
		more, err := w.wroteEntry(next, in.Name)
		if err != nil {
			return n, err
		}
		n += more
	}
	return n, nil
}

// wroteEntry is wrote for one name.
func (w *walk) wroteEntry(l *level, name string) (n int, err error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	e := entry{name: name, path: l.path.Join(name)}
	touched, err := w.touched(l, &e)
	if !touched || e.has == nil || err != nil {
		return 0, err
	}
	before := len(w.tally.Wrote)
	switch {
	case isDir(e.has):
		if n, err = w.wrote(l, &e); err != nil || n == 0 || isDir(e.had) {
			return n, err
		}
		w.tally.Wrote = w.tally.Wrote[:before] // it stands for them
	case e.has.Kind == disk.Special:
		return 0, nil
	default:
		n = 1
		if e.old, e.after = e.had, e.has; e.had != nil && e.had.Kind == e.has.Kind {
			if same, err := w.equal(l, &e); same || err != nil {
				return 0, err
			}
		}
	}
	w.tally.Wrote = append(w.tally.Wrote, e.path)
	return n, nil
}

// isStore says whether name is a store of decree's, of whatever project.
func isStore(dir disk.Dir, name string) bool {
	if dir == nil || len(name) != 32 || strings.Trim(name, "0123456789abcdef") != "" {
		return false
	}
	d, err := dir.OpenDir(name)
	if err != nil {
		return false
	}
	defer d.Close()
	in, err := d.Stat("store.json")
	return err == nil && in.Kind == disk.Regular
}

// recorded is in, or nil where ignore rules leave it out or its kind is not recorded. Such things
// are counted in the tally where the layer has them, or where they were the root's and the run
// has deleted them.
func (w *walk) recorded(l *level, e *entry, in *disk.Info, layers bool) *disk.Info {
	if in == nil {
		return nil
	}
	tells := layers || e.has == nil
	ignores := func(r *ignorefile.Rules) bool { return r.Match(string(e.path), in.Kind == disk.Directory).Ignored }
	if ignores(l.rules) && ignores(l.own) {
		if tells {
			n, _ := w.files(l.upper, e)
			w.tally.Ignored += n
		}
		return nil
	}
	if in.Kind == disk.Special {
		if tells && layers {
			w.tally.Special = append(w.tally.Special, e.path)
		}
		return nil
	}
	return in
}

// files counts what the layer has below an entry that is left out; a deletion is one.
func (w *walk) files(dir disk.Dir, e *entry) (int, error) {
	if e.has == nil || e.has.Kind != disk.Directory {
		if w.cloned != nil && e.has != nil && e.has.Ctime <= w.cloned.at {
			return 0, nil
		}
		return 1, nil
	}
	return w.filesIn(dir, e.name)
}

// gitFiles is files for a .git, without its index where that stages what the root's does, and
// without the objects that the root has too.
func (w *walk) gitFiles(l *level, e *entry) (int, error) {
	n, err := w.files(l.upper, e)
	if err == nil && w.cloned != nil && isDir(e.has) {
		var gone int
		gone, err = w.cloned.gone(l.upper, e.name, e.path)
		n += gone
	}
	if n == 0 || err != nil || !isDir(e.has) {
		return n, err
	}
	dir, err := l.upper.OpenDir(e.name)
	if err != nil {
		return n, nil //nolint:nilerr // it is only counted
	}
	defer dir.Close()
	if in, _ := look(dir, "index"); in != nil && !in.Whiteout && (w.cloned == nil || in.Ctime > w.cloned.at) && !w.stages(dir, l.seen.dir, e.name) {
		n--
	}
	return n - w.objectsOfRoot(dir, l.seen.dir, e.name), nil
}

// objectsOfRoot counts the files in objects that the root has, too. Git gives an object
// that it needs again a new time, and so copies it into the layer.
func (w *walk) objectsOfRoot(git, root disk.Dir, name string) (n int) {
	if root == nil {
		return 0
	}
	has, err := disk.OpenPath(git, "objects")
	if err != nil {
		return 0
	}
	defer has.Close()
	had, err := disk.OpenPath(root, path.Join(name, "objects"))
	if err != nil {
		return 0
	}
	defer had.Close()
	list, _ := has.List()
	for _, e := range list {
		if e.Kind == disk.Directory && len(e.Name) == 2 {
			n += w.sameFiles(has, had, e.Name)
		}
	}
	return n
}

// sameFiles counts the counted files of a directory whose name and size are the same in both.
func (w *walk) sameFiles(has, had disk.Dir, name string) (n int) {
	a, err := has.OpenDir(name)
	if err != nil {
		return 0
	}
	defer a.Close()
	b, err := had.OpenDir(name)
	if err != nil {
		return 0
	}
	defer b.Close()
	list, _ := a.List()
	for _, e := range list {
		one, _ := look(a, e.Name)
		other, _ := look(b, e.Name)
		counted := one != nil && (w.cloned == nil || one.Ctime > w.cloned.at)
		if counted && other != nil && one.Kind == disk.Regular && other.Kind == disk.Regular && one.Size == other.Size {
			n++
		}
	}
	return n
}

func (w *walk) filesIn(dir disk.Dir, name string) (n int, err error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	var list []disk.Entry
	d, err := dir.OpenDir(name)
	if err == nil {
		defer d.Close()
		list, err = d.List()
	}
	if errors.Is(err, fs.ErrPermission) {
		return 1, nil // something, or nobody would have come here
	}
	if err != nil && d == nil {
		return 0, nil //nolint:nilerr // it is only counted
	}
	for _, e := range list {
		if err != nil {
			break
		}
		more := 1
		if e.Kind == disk.Directory {
			more, err = w.filesIn(d, e.Name)
		} else if w.cloned != nil {
			if in, _ := look(d, e.Name); in != nil && in.Ctime <= w.cloned.at {
				more = 0
			}
		}
		n += more
	}
	return n, err
}

// tell visits the entry itself, if it has changed.
func (w *walk) tell(l *level, e *entry) error {
	c := &Change{Path: e.path, Before: e.old, After: e.after, w: w, l: l, name: e.name, seen: e.had}
	switch {
	case w.visit == nil, e.old == nil && e.after == nil:
		return nil
	case w.tooLarge(e):
		w.tally.Large = append(w.tally.Large, e.path)
		return nil
	case e.old == nil || e.after == nil || e.old.Kind != e.after.Kind:
		if !e.new {
			return nil // a directory that the run did not touch
		}
		return w.visit(c)
	case e.old.Kind == disk.Directory && (!e.new || e.old.Mode == e.after.Mode && !w.all && !w.cloned.neverHad(e.path, true)):
		return nil
	case e.old.Kind == disk.Directory || w.all:
		return w.visit(c)
	}
	var err error
	if c.Equal, err = w.equal(l, e); err != nil {
		return err
	}
	if c.Equal {
		if ok, err := c.stands(); ok || err != nil {
			return err
		}
	}
	return w.visit(c)
}

// tooLarge says whether a side of the entry is larger than is read unasked.
func (w *walk) tooLarge(e *entry) bool {
	large := func(in *disk.Info) bool {
		return w.MaxFile > 0 && in != nil && in.Kind == disk.Regular && in.Size > w.MaxFile
	}
	if !large(e.old) && !large(e.after) {
		return false
	}
	if w.Known == nil {
		return true
	}
	was, known := w.Known(e.path)
	return !known || was == nil || was.Size <= w.MaxFile
}

// equal compares two files, or two links. What cannot be read is not equal.
func (w *walk) equal(l *level, e *entry) (bool, error) {
	if e.old.Kind == disk.Symlink {
		a, err1 := l.seen.dir.Readlink(e.name)
		b, err2 := l.upper.Readlink(e.name)
		return err1 == nil && err2 == nil && a == b, nil
	}
	sameMode := e.old.Mode == e.after.Mode || w.cloned != nil && e.after.Mode == clonedMode(e.old, e.after)
	if e.old.Size != e.after.Size || !sameMode {
		return false, nil
	}
	a, err := l.seen.dir.Open(e.name)
	if err != nil {
		return false, unread(err)
	}
	defer a.Close()
	b, err := l.upper.Open(e.name)
	if err != nil {
		return false, unread(err)
	}
	defer b.Close()
	return w.sameBytes(a, b)
}

// unread is nil for an error that says that this one file cannot be read.
func unread(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (w *walk) sameBytes(a, b io.Reader) (bool, error) {
	for {
		if err := w.ctx.Err(); err != nil {
			return false, err
		}
		n, errA := io.ReadFull(a, w.buffers[0])
		m, errB := io.ReadFull(b, w.buffers[1])
		ended := errA == io.EOF || errA == io.ErrUnexpectedEOF
		switch {
		case errA != nil && !ended:
			return false, errA
		case errB != nil && errB != io.EOF && errB != io.ErrUnexpectedEOF:
			return false, errB
		case !bytes.Equal(w.buffers[0][:n], w.buffers[1][:m]):
			return false, nil
		case ended:
			return true, nil
		}
	}
}

// below opens what the entry is a directory of, on either side, and has no names where it is none.
func (w *walk) below(l *level, e *entry) (next *level, names []string, err error) {
	next = &level{path: e.path, seen: &sight{up: l.seen, name: e.name}, rules: l.rules, own: l.own}
	if isDir(e.after) {
		if next.upper, err = l.upper.OpenDir(e.name); err != nil {
			return next, nil, err
		}
		next.kept = w.cloned.keeps(e)
	}
	next.hidden = l.hidden || e.opaque || next.upper == nil
	if isDir(e.old) {
		if next.seen.dir, err = l.seen.dir.OpenDir(e.name); err != nil {
			return next, nil, err
		}
	}
	if isDir(e.after) || isDir(e.old) {
		names, err = w.enter(next)
	}
	return next, names, err
}

// untouchedBelow says whether all that is seen in a directory through the layer is the root's own.
func (w *walk) untouchedBelow(l *level) bool {
	if w.cloned != nil || l.hidden || l.upper == nil {
		return false
	}
	list, err := l.upper.List()
	return err == nil && len(list) == 0
}

func isDir(in *disk.Info) bool { return in != nil && in.Kind == disk.Directory }

// close lets go of the directories of both sides.
func (l *level) close() {
	if l.upper != nil {
		l.upper.Close()
	}
	if l.seen.dir != nil {
		l.seen.dir.Close()
	}
}

// The ignore files of a directory, in rising precedence.
var ignoreNames = []string{".gitignore", ".decreeignore"}

// enterRules adds the rules of the root's directory, and those that the layer has there.
func (w *walk) enterRules(l *level) error {
	if w.git {
		return nil
	}
	files, err := w.rootsRules(l)
	if err != nil {
		return err
	}
	own := slices.Clone(files)
	for i, name := range ignoreNames {
		if own[i], err = w.ownRules(l, name, files[i]); err != nil {
			return err
		}
	}
	same, outer := l.own == l.rules && slices.Equal(own, files), l.own
	l.rules = l.rules.Enter(string(l.path), files...)
	if l.own = l.rules; !same {
		l.own = outer.Enter(string(l.path), own...)
	}
	return nil
}

// ownRules is the ignore file of a name that is seen in the layer, where the root has file; nil: none is. One that the run has made
// unusable ignores what the root's does.
func (w *walk) ownRules(l *level, name string, file *ignorefile.File) (*ignorefile.File, error) {
	if l.upper == nil {
		return file, nil
	}
	in, err := look(l.upper, name)
	switch {
	case err != nil:
		return nil, err
	case in == nil && (w.cloned != nil || l.hidden), in != nil && in.Whiteout:
		return nil, nil
	case in == nil, in.Kind != disk.Regular, w.cloned != nil && in.Ctime <= w.cloned.at:
		return file, nil
	}
	f := ruleFile{name: name, path: l.path.Join(name)}
	own, err := f.read(l.upper)
	if err != nil {
		return file, nil //nolint:nilerr // as said
	}
	return own, nil
}

// rootsRules reads the ignore files of the root's directory, by ignoreNames; nil where there is none.
func (w *walk) rootsRules(l *level) ([]*ignorefile.File, error) {
	files := make([]*ignorefile.File, len(ignoreNames))
	if l.seen.dir == nil {
		return files, nil
	}
	var seen []ruleFile
	for i, name := range ignoreNames {
		in, err := look(l.seen.dir, name)
		if err != nil {
			return nil, err
		}
		f := ruleFile{name: name, path: l.path.Join(name), in: in}
		if in != nil && in.Kind == disk.Regular { // a link is not followed, as git does not either
			if files[i], err = f.read(l.seen.dir); err != nil {
				return nil, err
			}
		}
		seen = append(seen, f)
	}
	l.seen.ruled = sync.OnceValues(func() (bool, error) { return w.sameRules(l.seen, seen) })
	return files, nil
}

// A ruleFile is an ignore file as it was read, or its place.
type ruleFile struct {
	name string
	path tree.Path
	in   *disk.Info // nil: there is none
	sum  tree.Hash  // of a regular file
}

// sameRules says whether the ignore files of s are those that the run began with.
func (w *walk) sameRules(s *sight, files []ruleFile) (bool, error) {
	for _, f := range files {
		ok, err := w.stands(s, f.path, f.in)
		if err != nil {
			return false, err
		}
		if !ok && !w.knownRules(s, f) {
			return false, nil
		}
	}
	return true, nil
}

// knownRules says whether an ignore file is known to have been what was read.
func (w *walk) knownRules(s *sight, f ruleFile) bool {
	was, known := w.known(s, f.path)
	had, has := was.IsFile(), f.in != nil && f.in.Kind == disk.Regular
	return known && had == has && (!had || was.SHA256 == f.sum)
}

// read reads the ignore file.
func (f *ruleFile) read(dir disk.Dir) (*ignorefile.File, error) {
	data, err := readFile(dir, f.name, ignorefile.MaxFile+1)
	if err != nil {
		return nil, err
	}
	file, err := ignorefile.Parse(string(f.path), data)
	if err != nil {
		return nil, fmt.Errorf("%s: this ignore file cannot be used: %w", tree.Quote(f.path), err)
	}
	f.sum = tree.Sum(data)
	return file, nil
}
