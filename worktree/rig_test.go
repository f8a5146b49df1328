package worktree

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// node is one path of a test's tree: "file", "link" or "dir".
type node struct {
	kind string
	mode uint32
	data string // content or target
}

func file(data string) node               { return node{"file", 0o644, data} }
func moded(mode uint32, data string) node { return node{"file", mode, data} }
func link(target string) node             { return node{"link", 0o777, target} }
func dir(mode uint32) node                { return node{"dir", mode, ""} }

// files is a tree; parents come before children by the order of the paths.
type files map[tree.Path]node

func (f files) with(other files) files {
	out := maps.Clone(f)
	maps.Copy(out, other)
	return out
}

func (n node) entry() *tree.Entry {
	switch n.kind {
	case "file":
		e := &tree.Entry{Mode: n.mode, Size: int64(len(n.data)), SHA256: tree.Sum([]byte(n.data))}
		if e.Special() {
			e.Owner = tree.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Known: true}
		}
		return e
	case "link":
		return linkEntry(n.data)
	}
	return &tree.Entry{Type: tree.Dir, Mode: n.mode}
}

// steps takes a tree from one state to another.
func steps(from, to files) []Step {
	all := from.with(to)
	var out []Step
	for _, path := range slices.Sorted(maps.Keys(all)) {
		s := Step{Path: path}
		if n, ok := from[path]; ok {
			s.From = n.entry()
		}
		if n, ok := to[path]; ok {
			s.To = n.entry()
			s.Content = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(n.data)), nil }
		}
		out = append(out, s)
	}
	return out
}

// vault is a store in memory; what was not flushed does not survive crash.
type vault struct {
	mu      sync.Mutex
	objects map[tree.Hash][]byte
	pending map[tree.Hash][]byte
	fail    error // of Put and Flush
	opened  []tree.Hash
}

func newVault() *vault {
	return &vault{objects: map[tree.Hash][]byte{}, pending: map[tree.Hash][]byte{}}
}

func (v *vault) Put(r io.Reader, sizeHint int64) (tree.Hash, int64, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return tree.Hash{}, 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pending[tree.Sum(data)] = data
	return tree.Sum(data), int64(len(data)), v.fail
}

func (v *vault) Keep(h tree.Hash, size int64, open func() (io.ReadCloser, error)) (tree.Hash, error) {
	if v.Has(h) {
		return h, nil
	}
	r, err := open()
	if err != nil {
		return tree.Hash{}, err
	}
	defer r.Close()
	sum, _, err := v.Put(r, size)
	return sum, err
}

func (v *vault) Flush() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.Copy(v.objects, v.pending)
	clear(v.pending)
	return v.fail
}

func (v *vault) crash() { v.mu.Lock(); clear(v.pending); v.mu.Unlock() }

func (v *vault) Has(h tree.Hash) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.objects[h]
	return ok
}

// Place is another order than that of any paths.
func (v *vault) Place(h tree.Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }

func (v *vault) Open(h tree.Hash) (io.ReadCloser, int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	data, ok := v.objects[h]
	v.opened = append(v.opened, h)
	if !ok {
		return nil, 0, fmt.Errorf("object %s: missing", h)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// rig is a tree with all that a transaction needs, on any disk.
type rig struct {
	kept  int // what Tidy has left
	t     testing.TB
	d     disk.Disk
	top   string // holds tree and txn
	vault *vault
	// wrap, when set, stands between the package and the disk's directories.
	wrap    func(dirs ...disk.Dir) []disk.Dir
	workers int
	many    int // of the Tree
}

// newRig is a rig in a directory of the system's.
func newRig(t testing.TB, tree files) *rig {
	r := &rig{t: t, d: disk.OS, top: t.TempDir(), vault: newVault(), workers: 1}
	r.init(tree)
	return r
}

func (r *rig) init(tree files) {
	for _, d := range []string{"tree/.decree/tmp", "txn"} {
		h, err := r.d.MkdirAll(r.top+"/"+d, 0o700)
		require.NoError(r.t, err)
		h.Close()
	}
	r.build(tree)
}

func (r *rig) open(path string) disk.Dir {
	d, err := r.d.OpenRoot(r.top + "/" + path)
	require.NoError(r.t, err)
	return d
}

// build makes the nodes, directories' modes last.
func (r *rig) build(tree files) {
	paths := slices.Sorted(maps.Keys(tree))
	for _, path := range paths {
		n := tree[path]
		d, err := newHandles(r.open("tree")).dir(path.Parent())
		require.NoError(r.t, err, path)
		name := path.Name()
		switch n.kind {
		case "file":
			f, err := d.Create(name, 0o600)
			require.NoError(r.t, err)
			_, err = f.Write([]byte(n.data))
			require.NoError(r.t, err)
			require.NoError(r.t, f.Chmod(n.mode))
			require.NoError(r.t, f.Sync())
			require.NoError(r.t, f.Close())
		case "link":
			require.NoError(r.t, d.Symlink(n.data, name))
		case "dir":
			require.NoError(r.t, d.Mkdir(name, 0o700))
		}
		require.NoError(r.t, d.Sync())
		d.release()
	}
	for _, path := range slices.Backward(paths) {
		if n := tree[path]; n.kind == "dir" {
			d, err := newHandles(r.open("tree")).dir(path.Parent())
			require.NoError(r.t, err)
			is, err := d.Stat(path.Name())
			require.NoError(r.t, err)
			require.NoError(r.t, d.Chmod(path.Name(), is, n.mode))
			require.NoError(r.t, d.Sync())
			c, err := d.OpenDir(path.Name())
			if err == nil {
				require.NoError(r.t, c.Sync())
				c.Close()
			}
			d.release()
		}
	}
}

// state reads the tree without .decree, and fails the test if any staging is left.
func (r *rig) state() files {
	root := r.open("tree")
	defer root.Close()
	out := files{}
	r.read(root, "", out)
	return out
}

func (r *rig) read(d disk.Dir, prefix tree.Path, out files) {
	list, err := d.List()
	require.NoError(r.t, err)
	for _, e := range list {
		path := prefix + tree.Path(e.Name)
		if path == ".decree" || path == ".git" {
			continue
		}
		s, err := entryAt(d, e.Name, false)
		require.NoError(r.t, err)
		require.NotNil(r.t, s.entry, path)
		switch s.entry.Type {
		case tree.Regular:
			f, err := d.Open(e.Name)
			require.NoError(r.t, err)
			data, err := io.ReadAll(f)
			require.NoError(r.t, err)
			f.Close()
			out[path] = node{"file", s.entry.Mode, string(data)}
		case tree.Symlink:
			out[path] = link(s.entry.Target)
		case tree.Dir:
			out[path] = dir(s.entry.Mode)
			c, err := d.OpenDir(e.Name)
			require.NoError(r.t, err)
			r.read(c, path+"/", out)
			c.Close()
		}
	}
}

// clean says that nothing of a transaction lies about.
func (r *rig) clean() {
	r.t.Helper()
	for _, path := range []string{"tree/.decree/tmp", "txn"} {
		d := r.open(path)
		list, err := d.List()
		require.NoError(r.t, err)
		require.Empty(r.t, list, path)
		d.Close()
	}
}

// tree opens the package's view of the rig; done closes it.
func (r *rig) tree() (t *Tree, journals disk.Dir, done func()) {
	dirs := []disk.Dir{r.open("tree"), r.open("tree/.decree/tmp"), r.open("txn")}
	done = func() {
		for _, d := range dirs {
			d.Close()
		}
	}
	use := dirs
	if r.wrap != nil {
		use = r.wrap(dirs...)
	}
	t = Open(use[0], Options{Tmp: use[1], Store: r.vault, Workers: r.workers})
	t.many = r.many
	return t, use[2], done
}

func (r *rig) move(steps []Step) (*Outcome, error) {
	t, journals, done := r.tree()
	defer done()
	return t.Move(context.Background(), Plan{ID: "t1", Steps: steps}, r.vault, journals)
}

// recover settles all that waits, as a later process would.
func (r *rig) recover() (results []Result, out []*Outcome, err error) {
	t, journals, done := r.tree()
	defer done()
	pending, err := Pending(journals)
	if err != nil {
		return nil, nil, err
	}
	for _, j := range pending {
		res, o, err := t.Recover(context.Background(), j)
		if err != nil {
			return results, out, err
		}
		results, out = append(results, res), append(out, o)
	}
	// After a power loss a staging directory may have come back whose journal is gone for good.
	kept, err := t.Tidy(journals, func(string) bool { return false })
	for _, k := range kept {
		tmp := r.open("tree/.decree/tmp")
		require.NoError(r.t, disk.RemoveTree(tmp, k.Stage))
		tmp.Close()
	}
	r.kept += len(kept)
	return results, out, err
}

func (r *rig) path(p tree.Path) string { return filepath.Join(r.top, "tree", string(p)) }

// write puts other bytes at a path of the system's disk, as a user would.
func (r *rig) write(p tree.Path, data string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.path(p), []byte(data), 0o644))
}
