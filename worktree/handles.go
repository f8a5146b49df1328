package worktree

import (
	"container/list"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"decree/disk"
	"decree/tree"
)

const (
	// maxHandles bounds the directories that one transaction keeps open.
	maxHandles = 128
	// keepAbove is how many directories right above a wanted one are kept open
	// with it; a path of two thousand components must not fill the table.
	keepAbove = 16
	// keepEvery is which of the others are kept: of a deep path every so many, so
	// that to go on somewhere else in it no more than these have to be opened. Those
	// of the longest path that there can be fit into the table.
	keepEvery = 128
)

// share is the part of the files that this process may have open that one use of
// them gets: at most most, however many that are, and never less than two.
func share(most, part int) int {
	return max(2, min(most, disk.OpenLimit()/part))
}

// handles opens the directories of a tree component by component and keeps the
// latest open. It is safe for concurrent use.
//
// A handle is the directory that was at its path when it was opened. If it is
// renamed or replaced by a link meanwhile, what is done through the handle is
// still done in that directory, inside the root, and can be taken back there;
// a verification by fresh handles finds it out.
type handles struct {
	root disk.Dir
	most int // to be kept open
	mu   sync.Mutex
	open map[tree.Path]*handle
	age  list.List // of *handle, the latest in front
	// missing is, while looks is set, the path where no directory was found last: what is below it is not asked for.
	missing tree.Path
	looks   bool
}

// handle is an open directory, held until release.
type handle struct {
	disk.Dir
	of   *handles
	path tree.Path
	refs int
	elem *list.Element // nil: not in the table, closed by the last release
	// above is the nearest directory above it that was kept when this one was opened.
	above *handle
}

func newHandles(root disk.Dir) *handles {
	return &handles{root: root, most: share(maxHandles, 8), open: map[tree.Path]*handle{}}
}

// dir returns the directory at path, "" being the root. The error is errNoDir
// where there is none, *LinkError where a component is a link.
func (h *handles) dir(path tree.Path) (*handle, error) {
	d, err := h.reach(path)
	if err != nil {
		d.release()
		return nil, err
	}
	return d, nil
}

// reach is dir, but that with an error it returns the directory above what the
// error is about.
func (h *handles) reach(path tree.Path) (*handle, error) {
	last := depthOf(path)
	cur := h.nearest(path, last)
	if h.lacks(path) {
		return cur, errNoDir
	}
	for depth := depthOf(cur.path) + 1; len(cur.path) < len(path); depth++ {
		start := len(cur.path)
		if start > 0 {
			start++
		}
		at := path[:componentEnd(path, start)]
		d, err := openChild(cur.Dir, path, at)
		if exhausted(err) && h.spare() {
			d, err = openChild(cur.Dir, path, at)
		}
		if err != nil {
			h.note(at, err)
			return cur, err
		}
		next := h.add(cur, at, d, last-depth <= keepAbove || depth%keepEvery == 0)
		cur.release()
		cur = next
	}
	return cur, nil
}

// onlyLook says that until its result is called nothing is made through the handles: a directory
// that is missing then need not be asked for by each path below it, as of a tree that is to be filled. Who makes one
// meanwhile is found when the transaction makes its own.
func (h *handles) onlyLook() (looked func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.looks, h.missing = false, ""
	}
}

// lacks says whether path is known to be no directory.
func (h *handles) lacks(path tree.Path) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missing != "" && path.Within(h.missing)
}

// note remembers that there is no directory at a path.
func (h *handles) note(at tree.Path, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looks && errors.Is(err, errNoDir) {
		h.missing = at
	}
}

// nearest returns the open directory at path, which has depth components, or the
// nearest above it. Of a path that is deeper than directories are open it is these
// that are asked.
func (h *handles) nearest(path tree.Path, depth int) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.open[path]
	if depth <= len(h.open) {
		for at := path; at != "" && found == nil; at = at.Parent() {
			found = h.open[at]
		}
	} else if found == nil {
		for at, d := range h.open {
			if (found == nil || len(at) > len(found.path)) && path.Below(at) {
				found = d
			}
		}
	}
	if found == nil {
		return &handle{Dir: h.root, of: h, refs: 2} // one more than is ever released: never closed
	}
	found.refs++
	if found.path != path { // what is to be opened lies below all of these
		for above := found.above; above != nil; above = above.above {
			h.used(above)
		}
	}
	h.used(found)
	return found
}

// used makes d the last that is closed when the table is full.
func (h *handles) used(d *handle) {
	if d.elem != nil {
		h.age.MoveToFront(d.elem)
	}
}

// add enters d, the directory at path, which was opened in above.
func (h *handles) add(above *handle, path tree.Path, d disk.Dir, keep bool) *handle {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.open[path]; old != nil {
		d.Close()
		old.refs++
		h.used(old)
		return old
	}
	n := &handle{Dir: d, of: h, path: path, refs: 1, above: above}
	if above.elem == nil { // closed soon
		n.above = above.above
	}
	if !keep {
		return n
	}
	n.elem = h.age.PushFront(n)
	h.open[path] = n
	for e := h.age.Back(); e != nil && len(h.open) > h.most; {
		old := e.Value.(*handle)
		e = e.Prev()
		if old.refs == 0 {
			h.drop(old)
		}
	}
	return n
}

// exhausted says that no more files can be opened.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// spare closes all directories that nobody uses at the moment, if there are any.
func (h *handles) spare() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := false
	for _, d := range h.open {
		if d.refs == 0 {
			h.drop(d)
			found = true
		}
	}
	return found
}

// drop takes d out of the table and closes it unless it is in use.
func (h *handles) drop(d *handle) {
	h.age.Remove(d.elem)
	delete(h.open, d.path)
	d.elem = nil
	if d.refs == 0 {
		d.Dir.Close()
	}
}

func (d *handle) release() {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.refs--
	if d.refs == 0 && d.elem == nil {
		d.Dir.Close()
	}
}

// forget drops the handles at and below path, and other spellings of it: the
// directory was removed, and another may come in its place.
func (h *handles) forget(path tree.Path) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := disk.Folded(string(path))
	for at, d := range h.open {
		if below, ok := strings.CutPrefix(disk.Folded(string(at)), gone); ok && (below == "" || below[0] == '/') {
			h.drop(d)
		}
	}
}

func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range h.open {
		h.drop(d)
	}
}

// openChild opens at, a directory in parent on the way to the wanted path.
func openChild(parent disk.Dir, path, at tree.Path) (disk.Dir, error) {
	name := at.Name()
	if err := guard(parent, at); err != nil {
		return nil, err
	}
	d, err := parent.OpenDir(name)
	if err == nil {
		if isStore(name, d) {
			d.Close()
			return nil, &ForbiddenError{Path: at}
		}
		return d, nil
	}
	// Systems differ in what they answer for a link: a look decides.
	st, serr := parent.Stat(name)
	switch {
	case errors.Is(serr, fs.ErrNotExist):
		return nil, errNoDir
	case serr != nil:
		return nil, serr
	case st.Kind == disk.Symlink:
		return nil, &LinkError{Path: path, At: at}
	case st.Kind != disk.Directory:
		return nil, errNoDir
	}
	return nil, err
}

// isStore says whether the directory name, opened as d, is a store, whose bytes have
// changed since any record: those of records that earlier versions made over one are
// not put in their place.
func isStore(name string, d disk.Dir) bool {
	if len(name) != 32 || strings.Trim(name, "0123456789abcdef") != "" {
		return false
	}
	st, err := d.Stat("store.json")
	return err == nil && st.Kind == disk.Regular
}

// guard refuses a path in dir whose name is another spelling of .git or .decree: one
// that the file system takes for the same entry.
func guard(dir disk.Dir, at tree.Path) error {
	name := at.Name()
	if !suspicious(name) {
		return nil
	}
	for _, own := range [...]string{".git", ".decree"} {
		is, err := disk.IsSpelling(dir, name, own)
		if err != nil {
			return err
		}
		if is {
			return &ForbiddenError{Path: at, Is: own}
		}
	}
	return nil
}

// suspicious says whether some file system could take name for .git or .decree:
// by case, by dots and blanks at its end or characters beyond ASCII that it ignores, by a short name (GIT~1), or as a stream of it (.git::$INDEX_ALLOCATION).
func suspicious(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, ". ")
	if strings.EqualFold(name, ".git") || strings.EqualFold(name, ".decree") {
		return true
	}
	for i := range len(name) {
		if name[i] >= 0x80 || name[i] == '~' {
			return true
		}
	}
	return false
}

// depthOf returns how many components path has.
func depthOf(path tree.Path) int {
	if path == "" {
		return 0
	}
	return strings.Count(string(path), "/") + 1
}
