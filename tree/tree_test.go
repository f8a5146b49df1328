package tree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is a store of objects; put counts those that were new, and their bytes.
type memory struct {
	objects  map[Hash][]byte
	put, len int
}

func newMemory() *memory { return &memory{objects: map[Hash][]byte{}} }

func (m *memory) Get(h Hash) ([]byte, error) {
	b, ok := m.objects[h]
	if !ok {
		return nil, errors.New("not there")
	}
	return b, nil
}

func (m *memory) Put(b []byte) (Hash, error) {
	h := Sum(b)
	if _, ok := m.objects[h]; !ok {
		m.objects[h] = bytes.Clone(b)
		m.put++
		m.len += len(b)
	}
	return h, nil
}

func file(content string) Entry {
	return Entry{SHA256: Sum([]byte(content)), Size: int64(len(content)), Mode: 0o644}
}

func dir(mode uint32) Entry { return Entry{Type: Dir, Mode: mode} }

// tree is the naive state of a tree: path -> entry.
type naive map[Path]Entry

func (t naive) changes() []Change {
	var out []Change
	for p, e := range t {
		out = append(out, Change{Path: p, New: &e})
	}
	return out
}

func (t naive) items() (out []Item) {
	for _, dirs := range []bool{false, true} {
		for _, p := range slices.Sorted(maps.Keys(t)) {
			if (t[p].Type == Dir) == dirs {
				out = append(out, Item{p, t[p]})
			}
		}
	}
	return out
}

func (t naive) compare(o naive) (out []Change) {
	all := maps.Clone(t)
	maps.Copy(all, o)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		a, was := t[p]
		b, is := o[p]
		if was && is && a.Same(b) {
			continue
		}
		c := Change{Path: p}
		if was {
			c.Old = &a
		}
		if is {
			c.New = &b
		}
		out = append(out, c)
	}
	return out
}

func build(t *testing.T, m *memory, n naive) Hash {
	t.Helper()
	h, err := Apply(Reader{From: m}, m, Hash{}, n.changes())
	require.NoError(t, err)
	return h
}

func collect(t *testing.T, r Reader, root Hash) (out []Item) {
	t.Helper()
	for it, err := range r.Entries(root) {
		require.NoError(t, err)
		out = append(out, it)
	}
	return out
}

// mutate does one thing to a tree, in names that bring the orders of paths and of names
// into conflict.
func mutate(r *rand.Rand, t naive) {
	names := []Path{"a", "a-b", "a.b", "a0", "A", "b", "\xff", "b\n", "a-", "c"}
	p := names[r.IntN(len(names))]
	for r.IntN(3) > 0 {
		if _, ok := t[p]; !ok {
			t[p] = dir(0o755)
		}
		if t[p].Type != Dir {
			break
		}
		p += "/" + names[r.IntN(len(names))]
		if r.IntN(4) == 0 {
			p += Path(fmt.Sprint(r.IntN(200)))
		}
	}
	under := func() {
		for q := range t {
			if q.Below(p) {
				delete(t, q)
			}
		}
	}
	switch r.IntN(6) {
	case 0:
		under()
		delete(t, p)
	case 1:
		under()
		t[p] = Link(fmt.Sprint("to", r.IntN(9)))
	case 2:
		if t[p].Type != Dir {
			delete(t, p)
		}
		e := dir([]uint32{0o755, 0o700, 0, 0o2775}[r.IntN(4)])
		if e.MayOwn() {
			e.Owner = Owner{UID: 7, GID: 50, Known: true}
		}
		t[p] = e
	case 3:
		under()
		e := file(fmt.Sprint(r.IntN(99)))
		e.Mode = 0o4755
		if r.IntN(2) == 0 {
			e.Owner = Owner{UID: 7, GID: 1 << 31, Known: true}
		}
		t[p] = e
	default:
		under()
		t[p] = file(fmt.Sprint(r.IntN(99)))
	}
}

// TestTreesAreWhatTheirPathsSay holds Apply, Entries, Find and Compare against maps.
func TestTreesAreWhatTheirPathsSay(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMemory()
		read := Reader{From: m}
		now := naive{}
		root := build(t, m, now)
		for range 20 {
			next := maps.Clone(now)
			for range r.IntN(40) {
				mutate(r, next)
			}
			want := now.compare(next)
			id, err := Apply(read, m, root, want)
			require.NoError(t, err)
			require.Equal(t, build(t, m, next), id, "the way there does not matter")
			require.Equal(t, next.items(), collect(t, read, id))
			requireDownward(t, read, id, next)
			got, err := read.Compare(root, id)
			require.NoError(t, err)
			require.Equal(t, want, got)
			for p, e := range next {
				n, err := read.Find(id, p)
				require.NoError(t, err)
				require.NotNil(t, n, "%q", p)
				require.True(t, e == n.entry(), "%q", p)
			}
			n, err := read.Find(id, "a/none/at/all")
			require.NoError(t, err)
			require.Nil(t, n)
			now, root = next, id
		}
	}
}

// requireDownward sees that each directory comes right before all that is in it, and each path once.
func requireDownward(t *testing.T, read Reader, id Hash, want naive) {
	t.Helper()
	got, left := naive{}, map[Path]bool{}
	var last Path
	for it, err := range read.Downward(id) {
		require.NoError(t, err)
		for dir := last; dir != it.Path.Parent(); dir = dir.Parent() {
			left[dir] = true
		}
		require.False(t, left[it.Path.Parent()], "%q comes when its directory was left", it.Path)
		require.NotContains(t, got, it.Path)
		got[it.Path], last = it.Entry, it.Path
	}
	require.Equal(t, want, got)
}

func many(n int, name func(i int) string) naive {
	t := naive{"d": dir(0o755)}
	for i := range n {
		t["d/"+Path(name(i))] = file(fmt.Sprint(i))
	}
	return t
}

// TestOneChangeAmongMany holds what a change in a large directory costs.
func TestOneChangeAmongMany(t *testing.T) {
	const n = 200_000
	shapes := map[string]func(int) string{
		"counted": func(i int) string { return fmt.Sprintf("file%06d.txt", i) },
		"plain":   func(i int) string { return fmt.Sprint(i) },
		"hashed":  func(i int) string { return Sum(binary.BigEndian.AppendUint32(nil, uint32(i))).String() },
	}
	if testing.Short() {
		delete(shapes, "plain")
		delete(shapes, "hashed")
	}
	for what, name := range shapes {
		m := newMemory()
		read := Reader{From: m}
		root := build(t, m, many(n, name))
		objects := m.put
		require.Less(t, objects, n/12, what)
		require.Greater(t, objects, n/30, what)
		other, old := file("other"), file("77777")
		for _, c := range []Change{
			{Path: "d/" + Path(name(77_777)), Old: &old, New: &other},
			{Path: "d/" + Path(name(77_777)), Old: &old},
			{Path: "d/" + Path(name(77_777)) + "x", New: &other},
		} {
			m.len = 0
			id, err := Apply(read, m, root, []Change{c})
			require.NoError(t, err)
			require.Less(t, m.len, 12<<10, what)
			asked := &counting{memory: m}
			got, err := Reader{From: asked}.Compare(root, id)
			require.NoError(t, err)
			require.Equal(t, []Change{c}, got)
			require.Less(t, asked.got, 24, what)
			back, err := Apply(read, m, id, []Change{{Path: c.Path, Old: c.New, New: c.Old}})
			require.NoError(t, err)
			require.Equal(t, root, back)
		}
		asked := &counting{memory: m}
		found, err := Reader{From: asked}.Find(root, "d/"+Path(name(123_456)))
		require.NoError(t, err)
		require.Equal(t, file("123456"), found.Entry)
		require.Less(t, asked.got, 8, what)
	}
}

type counting struct {
	*memory
	got int
}

func (c *counting) Get(h Hash) ([]byte, error) { c.got++; return c.memory.Get(h) }

// TestHostileNames holds that names chosen to cut everywhere, or nowhere, make neither a
// deep index nor an object without bounds.
func TestHostileNames(t *testing.T) {
	for _, everywhere := range []bool{true, false} {
		n, all := 0, naive{}
		for i := 0; n < 20_000; i++ {
			name := fmt.Sprintf("%07d", i)
			cuts := true
			for level := range 6 {
				if cutsBehind(level, minEntries, name) != everywhere {
					cuts = false
				}
				if everywhere {
					break // names that cut on each level are too rare to be found
				}
			}
			if cuts {
				all[Path(name)] = file("")
				n++
			}
		}
		m := newMemory()
		root := build(t, m, all)
		require.Equal(t, all.items(), collect(t, Reader{From: m}, root))
		for _, b := range m.objects {
			require.Less(t, len(b), 64<<10)
			require.Less(t, int(b[len(magic)]), 5)
		}
	}
}

func TestDepth(t *testing.T) {
	const depth = 8000
	path := Path(strings.Repeat("d/", depth-1) + "f")
	m := newMemory()
	root := build(t, m, naive{path: file("bottom")})
	read := Reader{From: m}
	other := file("other")
	id, err := Apply(read, m, root, []Change{{Path: path, New: &other}})
	require.NoError(t, err)
	changes, err := read.Compare(root, id)
	require.NoError(t, err)
	require.Len(t, changes, 1)
	n, err := read.Find(id, path)
	require.NoError(t, err)
	require.Equal(t, other, n.Entry)
	items := 0
	for _, err := range read.Entries(id) {
		require.NoError(t, err)
		items++
	}
	require.Equal(t, depth, items)
	require.NoError(t, read.Walk(id, func([]byte, Hash) bool { return true }, func([]byte, *Node) error { return nil }))
}

// TestTooDeepIsSaid holds that a chain of objects deeper than any path ends.
func TestTooDeepIsSaid(t *testing.T) {
	m := newMemory()
	h, err := m.Put(Empty())
	require.NoError(t, err)
	for range 10_000 {
		w := NewWriter(m)
		require.NoError(t, w.Add(&Node{"d", Entry{Type: Dir, Mode: 0o755, SHA256: h}}))
		h, err = w.Finish()
		require.NoError(t, err)
	}
	read := Reader{From: m}
	var damaged *DamagedError
	for _, err := range read.Entries(h) {
		if err != nil {
			require.ErrorAs(t, err, &damaged)
		}
	}
	require.NotNil(t, damaged)
	_, err = read.Compare(Hash{}, h)
	require.ErrorAs(t, err, &damaged)
	err = read.Walk(h, func([]byte, Hash) bool { return true }, func([]byte, *Node) error { return nil })
	require.ErrorAs(t, err, &damaged)
}

func TestMillionNames(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	m := newMemory()
	w := NewWriter(m)
	for i := range 1_000_000 {
		require.NoError(t, w.Add(&Node{fmt.Sprintf("%07d", i), file("x")}))
	}
	h, err := w.Finish()
	require.NoError(t, err)
	n := 0
	for _, err := range (Reader{From: m}).Entries(h) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1_000_000, n)
}

// TestDamage holds that what is damaged is named by its path, and that all else is read.
func TestDamage(t *testing.T) {
	all := naive{"a": dir(0o755), "a/b": dir(0o755), "a/b/f": file("f"), "a/g": file("g"), "z": file("z")}
	big := many(500, func(i int) string { return fmt.Sprintf("n%03d", i) })
	maps.Copy(all, big)
	m := newMemory()
	root := build(t, m, all)
	read := Reader{From: m}
	n, err := read.Find(root, "a/b")
	require.NoError(t, err)
	m.objects[n.SHA256] = []byte("what is this?")
	d, err := read.Find(root, "d")
	require.NoError(t, err)
	c := read.open(d.SHA256, func() Path { return "" })
	c.expand()
	for c.ref.level != 0 {
		c.expand()
	}
	delete(m.objects, c.ref.hash) // its first leaf

	var damaged *DamagedError
	_, err = read.Find(root, "a/b/f")
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, Path("a/b"), damaged.Path)
	require.ErrorContains(t, err, "directory a/b: object ")
	var named []Path
	lenient := Reader{From: m, Skip: func(e *DamagedError) bool { named = append(named, e.Path); return true }}
	items := collect(t, lenient, root)
	require.Equal(t, []Path{"a/b", "d", "a/b", "d"}, named)
	require.Contains(t, items, Item{"a/g", file("g")})
	require.Contains(t, items, Item{"d/n499", file("499")})
	require.NotContains(t, items, Item{"a/b/f", file("f")})
	require.Greater(t, len(items), 500-maxEntries/4)
}

// TestWalkSeesEachObjectOnce holds that objects that two trees share are read once.
func TestWalkSeesEachObjectOnce(t *testing.T) {
	m := newMemory()
	all := many(3000, func(i int) string { return fmt.Sprint(i) })
	a := build(t, m, all)
	all["d/7"] = file("new")
	b := build(t, m, all)
	seen := map[Hash]bool{}
	enter := func(_ []byte, h Hash) bool {
		was := seen[h]
		seen[h] = true
		return !was
	}
	contents := map[Hash]bool{}
	note := func(path []byte, n *Node) error {
		if n.Type == Regular {
			contents[n.SHA256] = true
		}
		return nil
	}
	asked := &counting{memory: m}
	read := Reader{From: asked}
	require.NoError(t, read.Walk(a, enter, note))
	first := asked.got
	require.NoError(t, read.Walk(b, enter, note))
	require.Less(t, asked.got-first, 10)
	require.Len(t, contents, 3001)
	require.Len(t, seen, len(m.objects)-1, "all but the empty tree that the two began with")
	for h := range seen {
		require.Contains(t, m.objects, h)
	}
}

func TestApplyRefuses(t *testing.T) {
	m := newMemory()
	root := build(t, m, naive{"f": file("f"), "d": dir(0o755)})
	e := file("x")
	for what, changes := range map[string][]Change{
		"below a file":            {{Path: "f/x", New: &e}},
		"twice":                   {{Path: "n", New: &e}, {Path: "n", New: &e}},
		"outside":                 {{Path: "../n", New: &e}},
		"in .git":                 {{Path: "d/.git/n", New: &e}},
		"below a file that comes": {{Path: "d", New: &e}, {Path: "d/x", New: &e}},
	} {
		_, err := Apply(Reader{From: m}, m, root, changes)
		require.Error(t, err, what)
	}
}

// TestCaseOnly holds that two names that differ in case are two names.
func TestCaseOnly(t *testing.T) {
	m := newMemory()
	all := naive{"README": file("a"), "readme": file("b"), "D": dir(0o755), "d": dir(0o700), "D/x": file("x")}
	require.Equal(t, all.items(), collect(t, Reader{From: m}, build(t, m, all)))
}

// TestBytes holds the documented form of an object to the byte.
func TestBytes(t *testing.T) {
	m := newMemory()
	w := NewWriter(m)
	set := Entry{Size: 1, Mode: 0o4755, Owner: Owner{UID: 1, GID: 300, Known: true}, SHA256: Hash{1}}
	for _, n := range []*Node{
		{"d", Entry{Type: Dir, Mode: 0o755, SHA256: Hash{2}}},
		{"f", Entry{Size: 200, Mode: 0o644, SHA256: Hash{3}}},
		{"l", Link("to")},
		{"p", Entry{Type: Dir, Mode: 0o700, SHA256: Hash{4}}},
		{"s", set},
	} {
		require.NoError(t, w.Add(n))
	}
	h, err := w.Finish()
	require.NoError(t, err)
	sum := func(b byte) string { return string(b) + strings.Repeat("\x00", 31) }
	require.Equal(t, "dtree2\n\x00"+
		"\x03\x01d"+sum(2)+
		"\x01\x01f\xc8\x01"+sum(3)+
		"\x02\x01l\x02to"+
		"\x07\x01p\xc0\x03"+sum(4)+
		"\x0d\x01s\xed\x13\x01\xac\x02\x01"+sum(1), string(m.objects[h]))
}

func FuzzObject(f *testing.F) {
	m := newMemory()
	h, err := Apply(Reader{From: m}, m, Hash{}, many(40, func(i int) string { return fmt.Sprint(i) }).changes())
	require.NoError(f, err)
	for _, b := range m.objects {
		f.Add(b)
	}
	f.Add(m.objects[h])
	f.Add(Empty())
	f.Fuzz(func(t *testing.T, data []byte) {
		o := openObject(data)
		if o.err == nil && o.level > 0 {
			for o.more() {
				o.child()
			}
			return
		}
		var nodes []Node
		for o.more() {
			nodes = append(nodes, o.node())
		}
		if o.err != nil {
			return
		}
		first := []byte(nil)
		w := NewWriter(onlyFirst{&first})
		for i := range nodes {
			require.NoError(t, w.Add(&nodes[i]))
		}
		_, err := w.Finish()
		require.NoError(t, err)
		require.Equal(t, data, first, "only what the encoder writes is taken")
	})
}

type onlyFirst struct{ b *[]byte }

func (o onlyFirst) Put(b []byte) (Hash, error) {
	if *o.b == nil {
		*o.b = bytes.Clone(b)
	}
	return Sum(b), nil
}
