package disktest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"

	"decree/disk"
)

// Mem is a disk in memory that knows what would survive a loss of power:
//
//   - a file's content, size, mode, owner and attributes as they were at its
//     last File.Sync; for a directory's own, at its last Dir.Sync
//   - a change of entries (create, remove, rename, exchange, link, mkdir) once
//     one of the directories that it concerns was flushed by Dir.Sync. Such a
//     change is atomic, also between two directories, as it is on journaling
//     file systems; those of one entry become durable in their order.
//   - all of it, after SyncAll; StartSync changes nothing, as what was not
//     flushed may have reached the medium anyway
//
// It has no permissions: its user is root. It is safe for concurrent use.
type Mem struct {
	// NoExchange makes Exchange answer errors.ErrUnsupported, NoLinks Link;
	// NoSyncAll leaves it with no SyncAll.
	NoExchange, NoLinks, NoSyncAll bool
	// FoldCase makes names that differ in case only, or in how an accent is written, the same one, as on macOS.
	FoldCase bool
	// NoModes makes every mode 777, whatever was asked for, as exFAT and NTFS do.
	NoModes bool
	// NoInodes makes every inode number 0, as some file systems in user space do.
	NoInodes bool

	mu      sync.Mutex
	root    *inode
	last    uint64   // inode number
	clock   int64    // a nanosecond time that every change advances
	pending []change // not yet durable, oldest first
}

// inode is a file, directory or link, as it is and as it is on the medium.
type inode struct {
	ino     uint64
	kind    disk.Kind
	now     facts
	durable facts
	entries map[string]*inode // of a directory
	flushed map[string]*inode // those of them, and those removed since, on the medium
	target  string
	names   int // how many entries lead here
	locked  bool
	mtime   int64
	ctime   int64
}

// facts are what a flush of the inode itself makes durable.
type facts struct {
	data     []byte
	mode     uint32
	uid, gid uint32
	xattrs   map[string][]byte
}

func (f facts) clone() facts {
	f.data, f.xattrs = bytes.Clone(f.data), maps.Clone(f.xattrs)
	return f
}

// change is one atomic change of one or two entries.
type change []entry

type entry struct {
	dir  *inode
	name string
	to   *inode // nil: removed
}

func (c change) touches(d *inode) bool {
	return slices.ContainsFunc(c, func(e entry) bool { return e.dir == d })
}

// place is one entry's place, whatever is there.
type place struct {
	dir  *inode
	name string
}

func (c change) mark(places map[place]bool) {
	for _, e := range c {
		places[place{e.dir, e.name}] = true
	}
}

// in says whether the change is of one of the places.
func (c change) in(places map[place]bool) bool {
	return slices.ContainsFunc(c, func(e entry) bool { return places[place{e.dir, e.name}] })
}

func (c change) flush() {
	for _, e := range c {
		if e.to == nil {
			delete(e.dir.flushed, e.name)
		} else {
			e.dir.flushed[e.name] = e.to
		}
	}
}

// NewMem returns an empty disk.
func NewMem() *Mem {
	m := &Mem{clock: 1_700_000_000_000_000_000}
	m.root = m.inode(disk.Directory, 0o755)
	return m
}

func (m *Mem) inode(kind disk.Kind, mode uint32) *inode {
	m.last++
	n := &inode{ino: m.last, kind: kind, now: facts{mode: mode}}
	n.mtime, n.ctime = m.tick(), m.clock
	n.durable = n.now
	if kind == disk.Directory {
		n.entries, n.flushed = map[string]*inode{}, map[string]*inode{}
	}
	return n
}

func (m *Mem) tick() int64 {
	m.clock += 1_000_000
	return m.clock
}

// set makes one change of entries; what is removed or replaced loses a name.
func (m *Mem) set(c change) {
	t := m.tick()
	for _, e := range c {
		if old := e.dir.entries[e.name]; old != nil {
			old.names--
			old.ctime = t
		}
		if e.to == nil {
			delete(e.dir.entries, e.name)
		} else {
			e.dir.entries[e.name] = e.to
			e.to.names++
			e.to.ctime = t
		}
		e.dir.mtime, e.dir.ctime = t, t
	}
	m.pending = append(m.pending, c)
}

// flush makes the changes that touch d durable, and older ones of the same entries.
func (m *Mem) flush(d *inode) {
	wanted := map[place]bool{}
	keep := make([]bool, len(m.pending))
	for i, c := range slices.Backward(m.pending) {
		if keep[i] = !c.touches(d) && !c.in(wanted); !keep[i] {
			c.mark(wanted)
		}
	}
	var rest []change
	for i, c := range m.pending {
		if keep[i] {
			rest = append(rest, c)
		} else {
			c.flush()
		}
	}
	m.pending = rest
}

// flushAll makes everything durable that has a name.
func (m *Mem) flushAll() {
	for _, c := range m.pending {
		c.flush()
	}
	m.pending = nil
	todo := []*inode{m.root}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.durable = n.now.clone()
		for _, child := range n.entries {
			todo = append(todo, child)
		}
	}
}

// Crash returns the disk as it could be after a loss of power now: of what was
// not flushed each change of entries happened or not, and a file's content is
// the flushed one, the present one, or something between, as rng decides. m
// itself goes on unharmed.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	return m.crash(rng, []float64{0, 0.5, 0.9, 1}[rng.IntN(4)])
}

// Lose returns the disk as it is at worst after a loss of power now: without all that was not
// flushed or, where names is true, with each change of entries, and none of the contents.
func (m *Mem) Lose(names bool) *Mem {
	if names {
		return m.crash(nil, 1)
	}
	return m.crash(nil, 0)
}

// crash is a loss of power that changes of entries survive with the odds given; rng nil: of the contents none does.
func (m *Mem) crash(rng *rand.Rand, odds float64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &copier{to: NewMem(), rng: rng, done: map[*inode]*inode{}, lost: map[*inode]map[string]*inode{}}
	c.to.NoExchange, c.to.NoLinks, c.to.NoSyncAll, c.to.FoldCase = m.NoExchange, m.NoLinks, m.NoSyncAll, m.FoldCase
	c.to.clock, c.to.last = m.clock, m.last
	gone := map[place]bool{}
	for _, ch := range m.pending {
		if rng == nil && odds == 0 || rng != nil && rng.Float64() >= odds || ch.in(gone) {
			ch.mark(gone)
			continue
		}
		for _, e := range ch {
			if c.lost[e.dir] == nil {
				c.lost[e.dir] = maps.Clone(e.dir.flushed)
			}
			c.lost[e.dir][e.name] = e.to // nil: removed
		}
	}
	c.to.root = c.copy(m.root)
	return c.to
}

// copier copies what survives.
type copier struct {
	to   *Mem
	rng  *rand.Rand
	done map[*inode]*inode
	lost map[*inode]map[string]*inode // entries of directories with surviving changes
}

func (c *copier) copy(n *inode) *inode {
	if out := c.done[n]; out != nil {
		return out
	}
	out := &inode{ino: n.ino, kind: n.kind, target: n.target, mtime: n.mtime, ctime: n.ctime}
	c.done[n] = out
	out.now = n.durable.clone()
	switch n.kind {
	case disk.Regular:
		out.now.data = c.torn(n.durable.data, n.now.data)
	case disk.Symlink:
		out.now = n.now.clone()
	}
	if n.kind != disk.Symlink && c.rng != nil && c.rng.IntN(2) == 0 {
		data := out.now.data
		out.now = n.now.clone()
		out.now.data = data
	}
	if n.kind == disk.Directory {
		c.entries(n, out)
	}
	out.durable = out.now.clone()
	return out
}

func (c *copier) entries(n, out *inode) {
	from := n.flushed
	if kept := c.lost[n]; kept != nil {
		from = kept
	}
	out.entries, out.flushed = map[string]*inode{}, map[string]*inode{}
	for _, name := range slices.Sorted(maps.Keys(from)) { // sorted: one seed, one disk
		if child := from[name]; child != nil {
			copied := c.copy(child)
			copied.names++
			out.entries[name], out.flushed[name] = copied, copied
		}
	}
}

// torn returns what a content may be whose change from old to now was not
// flushed. What both begin with stays: an append harms nothing that was flushed.
func (c *copier) torn(old, now []byte) []byte {
	if bytes.Equal(old, now) || c.rng == nil {
		return bytes.Clone(old)
	}
	same := 0
	for same < min(len(old), len(now)) && old[same] == now[same] {
		same++
	}
	cut := same + c.rng.IntN(len(now)-same+1)
	switch c.rng.IntN(4) {
	case 0:
		return bytes.Clone(old)
	case 1:
		return bytes.Clone(now)
	case 2: // its size, and zeros where the rest should be
		out := make([]byte, len(now))
		copy(out, now[:cut])
		return out
	}
	return bytes.Clone(now[:cut])
}

// OpenSearch is OpenRoot, as there are no permissions.
func (m *Mem) OpenSearch(path string) (disk.Dir, error) { return m.OpenRoot(path) }

// OpenRoot opens a directory by its path.
func (m *Mem) OpenRoot(path string) (disk.Dir, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.walk(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &memDir{m, n, path}, nil
}

// walk follows links, at most forty.
func (m *Mem) walk(path string) (*inode, error) {
	trail, links := []*inode{m.root}, 0
	rest := strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			trail = trail[:max(len(trail)-1, 1)]
			continue
		}
		next := trail[len(trail)-1].entries[name]
		switch {
		case next == nil:
			return nil, syscall.ENOENT
		case next.kind == disk.Symlink:
			if links++; links > 40 {
				return nil, syscall.ELOOP
			}
			if strings.HasPrefix(next.target, "/") {
				trail = trail[:1]
			}
			rest = append(strings.Split(next.target, "/"), rest...)
		case next.kind != disk.Directory:
			return nil, syscall.ENOTDIR
		default:
			trail = append(trail, next)
		}
	}
	return trail[len(trail)-1], nil
}

// MkdirAll makes path and its missing parents; a link is not followed to make one.
func (m *Mem) MkdirAll(path string, perm uint32) (disk.Dir, error) {
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if d, err := m.OpenRoot(path[:i]); err == nil || !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return nil, err
			}
			d.Close()
			continue
		}
		cut := strings.LastIndexByte(path[:i], '/')
		up, err := m.OpenRoot("/" + path[:max(cut, 0)])
		if err != nil {
			return nil, err
		}
		if err := up.Mkdir(path[cut+1:i], perm); err != nil {
			return nil, err
		}
	}
	return m.OpenRoot(path)
}

func (m *Mem) info(n *inode) disk.Info {
	st := disk.Info{
		Kind: n.kind, Mode: n.now.mode, Size: int64(len(n.now.data)), Mtime: n.mtime, Ctime: n.ctime,
		Dev: 1, Ino: n.ino, Nlink: uint64(n.names), UID: n.now.uid, GID: n.now.gid,
	}
	if n.kind == disk.Symlink {
		st.Size = int64(len(n.target))
	}
	if m.NoModes {
		st.Mode = 0o777
	}
	if m.NoInodes {
		st.Ino = 0
	}
	return st
}
