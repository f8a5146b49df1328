package history

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"syscall"

	"decree/disk"
	"decree/manifest"
	"decree/patch"
	"decree/project"
	"decree/tree"
)

// What a record needs of the store is its closure, and here alone it is known: the files
// of its directory, its trees with all directories' objects and contents, what its diffs
// leave to the store, and of an open record whatever its process has noted. The store keeps
// the closures of all records, and sweeps the rest.

// Part is one thing that a closure consists of.
type Part struct {
	Record string // the id
	Kind   PartKind
	Path   []byte      // of a File its name in the record's directory, else where it is in the tree; good during the call
	Object tree.Hash   // what the store has of it; zero for a directory's name in the one above, and a link
	Entry  *tree.Entry // of InTree and InDiff, good during the call
	Err    error       // Object cannot be read, so it is not known what else is needed
}

// PartKind says what a Part is.
type PartKind uint8

// The kinds of parts.
const (
	File      PartKind = iota // a file of the record's directory
	Directory                 // a directory's object; of a large directory there are several
	InTree                    // what a tree has at a path
	InDiff                    // a state before or after, which a diff leaves to the store
	Noted                     // what an open record or a foreign one names
)

// Enter says whether a closure goes into a directory's object, which it comes upon in dir.
type Enter func(dir []byte, object tree.Hash) bool

// Once goes into each object once, wherever it is.
func Once() Enter {
	seen := map[tree.Hash]bool{}
	return func(_ []byte, object tree.Hash) bool {
		was := seen[object]
		seen[object] = true
		return !was
	}
}

// Closure calls each for the parts of the closure of a record: one of the log, an open one
// or a foreign one. A part can come more than once. What cannot be read comes as a part with
// an Err, and the rest follows; an error of each ends it.
func (h *History) Closure(id string, enter Enter, each func(*Part) error) error {
	c := h.closureOf(id, enter, each)
	l, err := h.line(id)
	if err != nil {
		return err
	}
	o, openErr := h.Opened(id)
	switch {
	case l != nil:
		err = c.logged(l)
	case errors.Is(openErr, fs.ErrNotExist):
		return c.foreign()
	}
	if errors.Is(openErr, fs.ErrNotExist) {
		return err
	}
	if err = cmp.Or(err, openErr); err == nil {
		err = c.open(o)
	}
	return err
}

// Closures is Closure for all records, or those of the log that keep names: what many have
// comes with the first of them when enter is [Once]. Those of the log come from the oldest
// to the newest, then the foreign ones, of which nothing unreadable is told, since this store
// need not answer for them, then the open ones. That a record itself cannot be read is an
// error.
func (h *History) Closures(keep func(id string) bool, enter Enter, each func(*Part) error) error {
	l, err := h.readOn()
	if err != nil {
		return err
	}
	if n := len(l.unknown); n > 0 && keep == nil {
		return &project.Error{Kind: project.Refused, Msg: fmt.Sprintf("%s has lines that this decree cannot read (%d), so it cannot tell which contents are still needed", logFile, n),
			Advice: "a newer decree may have written them: use that one"}
	}
	if n := l.broken.n; n > 0 && keep == nil {
		return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf("%s has damaged lines (%d), so it cannot be told which contents are still needed", logFile, n),
			Advice: "'decree doctor --repair' sets them aside"}
	}
	err = h.lines(false, func(l *line) error {
		if keep != nil && !keep(l.id()) {
			return nil
		}
		return h.closureOf(l.id(), enter, each).logged(l)
	})
	if err != nil || keep != nil {
		return err
	}
	return h.unlogged(enter, each)
}

// ReadableClosures is Closures for the records of the log whose lines can be read: Unread names the others.
func (h *History) ReadableClosures(enter Enter, each func(*Part) error) error {
	return h.lines(true, func(l *line) error { return h.closureOf(l.id(), enter, each).logged(l) })
}

// EachEntry calls each for every path of every kept tree with what the tree has there, in
// no certain order. What a directory has in one tree comes once with its path, however many
// trees have it there.
func (h *History) EachEntry(each func(path tree.Path, e tree.Entry)) error {
	seen := map[string]bool{}
	c := &closure{h: h}
	c.enter = func(dir []byte, object tree.Hash) bool {
		at := string(object[:]) + string(dir)
		was := seen[at]
		seen[at] = true
		return !was
	}
	c.each = func(p *Part) error {
		if p.Kind == InTree {
			e := *p.Entry
			if e.Type == tree.Dir {
				e.SHA256 = tree.Hash{}
			}
			each(tree.Path(p.Path), e)
		}
		return p.Err
	}
	return h.lines(false, func(l *line) error { return c.trees(l.trees[:]...) })
}

// lines calls each for the lines of the log, oldest first, without their records. One that cannot be read is an error,
// or is passed over where readable ones are wanted alone.
func (h *History) lines(readable bool, each func(*line) error) error {
	l, err := h.readOn()
	if err != nil {
		return err
	}
	for _, r := range l.rows {
		e, err := r.head()
		if readable && errors.As(err, new(*LineError)) {
			continue
		}
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unlogged is Closures for the records that the log lacks.
func (h *History) unlogged(enter Enter, each func(*Part) error) error {
	foreign, err := h.foreign()
	if err != nil {
		return err
	}
	readable := func(p *Part) error {
		if p.Err != nil {
			return nil //nolint:nilerr // this store need not answer for them
		}
		return each(p)
	}
	for _, id := range foreign {
		err := h.closureOf(id, enter, readable).foreign()
		if err != nil && !errors.As(err, new(*unreadRecord)) {
			return err
		}
	}
	open, bad, err := h.ListOpen()
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		return fmt.Errorf("open record %s: %w", bad[0].ID, bad[0].Err)
	}
	for _, o := range open {
		if err := h.closureOf(o.Record.ID, enter, each).open(o); err != nil {
			return err
		}
	}
	return nil
}

// closure is the closure of one record.
type closure struct {
	h     *History
	id    string
	enter Enter
	each  func(*Part) error
}

func (h *History) closureOf(id string, enter Enter, each func(*Part) error) *closure {
	return &closure{h: h, id: id, enter: enter, each: each}
}

func (c *closure) part(p Part) error {
	p.Record = c.id
	return c.each(&p)
}

// logged takes a record of the log by its line. The contents of changes.diff itself are in
// the trees; those of an attempt that was put back before the next, and of what changed
// between records, may be in no tree that stays.
func (c *closure) logged(l *line) error {
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		sum := l.files[name]
		if err := c.part(Part{Kind: File, Path: []byte(name), Object: sum}); err != nil {
			return err
		}
		noTrees := l.trees[0].IsZero() && l.trees[1].IsZero()
		if !OwnDiff(name) || name == ChangesFile && !l.trees[0].IsZero() && !l.trees[1].IsZero() {
			continue
		}
		if err := c.diff(Part{Kind: File, Path: []byte(name), Object: sum}, InDiff, noTrees); err != nil {
			return err
		}
	}
	return c.trees(l.trees[:]...)
}

// open takes an open record: its trees and rules, and whatever its process has noted for its
// end or for a recovery.
func (c *closure) open(o *Opened) error {
	for _, r := range o.Rules {
		if err := c.part(Part{Kind: Noted, Object: r.SHA256}); err != nil {
			return err
		}
	}
	for _, raw := range o.Extra {
		if err := c.noted(raw); err != nil {
			return err
		}
	}
	if err := c.h.EachLine(o.Log, c.noted); err != nil {
		return err
	}
	if err := c.trees(o.Record.Before, o.Record.After); err != nil {
		return err
	}
	dir, err := c.h.OpenRun(c.id)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return c.plainDiffs(dir)
}

// namedHash is a hash in a JSON text, with the name of the member that it is, if it is one.
var namedHash = regexp.MustCompile(`(?:"([^"]*)":)?"([0-9a-f]{64})"`)

// noted takes all that can be hashes in a JSON text. "before" and "after" are trees, and what
// is named like a diff is one.
func (c *closure) noted(raw []byte) error {
	for _, m := range namedHash.FindAllSubmatch(raw, -1) {
		p := Part{Kind: Noted, Path: m[1]}
		err := p.Object.UnmarshalText(m[2])
		if err == nil {
			err = c.part(p)
		}
		switch name := string(m[1]); {
		case err != nil:
		case name == "before", name == "after":
			err = c.trees(p.Object)
		case path.Ext(name) == ".diff":
			err = c.diff(p, Noted, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plainDiffs takes what the diffs name that a run has written already: its attempts' work
// may be in no tree. A torn one was being written: what it would name is in the tree still.
// One that a command made a hole of names nothing.
func (c *closure) plainDiffs(dir disk.Dir) error {
	list, err := dir.List()
	for _, e := range list {
		switch {
		case err != nil:
			return err
		case e.Kind == disk.Directory:
			var sub disk.Dir
			if sub, err = dir.OpenDir(e.Name); err == nil {
				err = c.plainDiffs(sub)
				sub.Close()
			}
		case path.Ext(e.Name) == ".diff":
			err = c.plainDiff(func() (io.ReadCloser, error) { return openSolid(dir, e.Name) })
		}
	}
	return err
}

func (c *closure) plainDiff(open func() (io.ReadCloser, error)) (err error) {
	if f, oerr := open(); oerr == nil {
		_ = Facts(f, func(s *patch.Section) bool {
			err = c.section(s, Noted)
			return err == nil
		})
		f.Close()
	}
	return err
}

// diff takes the contents that a diff in the store names. Of a closed record's these are
// those alone that it does not hold itself, unless no tree has them either: all.
func (c *closure) diff(of Part, kind PartKind, all bool) error {
	r, err := c.h.openObject(of.Object)
	var stop error
	if err == nil {
		err = Facts(r, func(s *patch.Section) bool {
			if all || s.Stored {
				stop = c.section(s, kind)
			}
			return stop == nil
		})
		r.Close()
	}
	if stop != nil || errors.As(err, new(*patch.SyntaxError)) { // a later attempt has written it over: it is what was recorded
		return stop
	}
	if err == nil {
		return nil
	}
	of.Err = fmt.Errorf("record %s: %s: %w", c.id, of.Path, err)
	return c.part(of)
}

// section takes both sides of what a diff changed.
func (c *closure) section(s *patch.Section, kind PartKind) error {
	for _, e := range []*tree.Entry{s.Old, s.New} {
		if !e.IsFile() {
			continue
		}
		if err := c.part(Part{Kind: kind, Path: []byte(s.Path), Object: e.SHA256, Entry: e}); err != nil {
			return err
		}
	}
	return nil
}

// trees takes trees whole, but for the objects that enter refuses. A zero id is none.
func (c *closure) trees(ids ...tree.Hash) error {
	for _, id := range ids {
		if id.IsZero() {
			continue
		}
		if err := c.tree(id); err != nil {
			return err
		}
	}
	return nil
}

func (c *closure) tree(id tree.Hash) error {
	if err := c.h.kept(id); err != nil {
		return c.part(Part{Kind: Directory, Object: id, Err: err})
	}
	var stop error
	r := c.h.trees()
	r.Skip = func(e *tree.DamagedError) bool {
		if stop == nil {
			stop = c.part(Part{Kind: Directory, Path: []byte(e.Path), Object: e.Hash, Err: treeError(id, e)})
		}
		return true
	}
	p := Part{Record: c.id}
	err := r.Walk(id, func(dir []byte, object tree.Hash) bool {
		if stop != nil || !c.enter(dir, object) {
			return false
		}
		p.Kind, p.Path, p.Object, p.Entry = Directory, dir, object, nil
		stop = c.each(&p)
		return stop == nil
	}, func(path []byte, n *tree.Node) error {
		if stop != nil {
			return stop
		}
		p.Kind, p.Path, p.Object, p.Entry = InTree, path, n.SHA256, &n.Entry
		if n.Type != tree.Regular { // a link's target is in the object itself
			p.Object = tree.Hash{}
		}
		return c.each(&p)
	})
	return cmp.Or(stop, err)
}

// unreadRecord is a foreign record of which nothing can be read.
type unreadRecord struct{ error }

func (e *unreadRecord) Unwrap() error { return e.error }

// foreign takes a record that is in .decree/runs alone, as far as it can be read: the log
// may have lost it.
func (c *closure) foreign() error {
	r, _, err := c.h.readRun(c.id)
	if err != nil {
		return &unreadRecord{err}
	}
	if err := c.trees(r.Before, r.After); err != nil {
		return err
	}
	if f, err := c.h.OpenPlain(c.id, manifestJSON); err == nil {
		defer f.Close()
		for it, err := range manifest.NewDecoder(f).All() {
			if err != nil {
				break
			}
			if it.Entry.Type != tree.Regular {
				continue
			}
			if err := c.part(Part{Kind: Noted, Path: []byte(it.Path), Object: it.Entry.SHA256}); err != nil {
				return err
			}
		}
	}
	return c.plainDiff(func() (io.ReadCloser, error) { return c.h.OpenPlain(c.id, ChangesFile) })
}

// OwnDiff says whether a record's file is a diff that decree has written. A command may put
// others into the directory, of any form.
func OwnDiff(name string) bool {
	own, _ := path.Match("attempts/*/"+ChangesFile, name)
	return own || name == ChangesFile || name == OutsideFile
}
