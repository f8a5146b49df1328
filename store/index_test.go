package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyObjects returns n small contents.
func manyObjects(seed, n int) [][]byte {
	var list [][]byte
	for i := range n {
		list = append(list, fmt.Appendf(nil, "object %d of %d\n", i, seed))
	}
	return list
}

// trusty checks that a store answers rightly for what it has and what it has
// not, that what it has is not stored again, and that its index is sound after the next Flush.
func trusty(t *testing.T, state files, has [][]byte, name string) {
	t.Helper()
	d := state.lay(t)
	s, err := Open(d, Options{})
	require.NoError(t, err, name)
	for _, b := range has {
		require.Equal(t, b, content(t, s, sum(b)), name)
	}
	require.ErrorAs(t, s.Verify(Hash{7}), new(*MissingError), name)
	require.NoError(t, s.Close())

	s, err = Open(d, Options{}) // a Writer that comes first
	require.NoError(t, err, name)
	defer s.Close()
	w, err := s.Writer(t.Context())
	require.NoError(t, err, name)
	for _, b := range has {
		_, err := w.PutBytes(b)
		require.NoError(t, err, name)
	}
	extra := []byte("one more")
	_, err = w.PutBytes(extra)
	require.NoError(t, err, name)
	require.NoError(t, w.Flush(), name)
	require.NoError(t, w.Close(), name)
	problems, err := s.Check(t.Context())
	require.NoError(t, err, name)
	require.Empty(t, problems, name)

	fresh, err := Open(d, Options{})
	require.NoError(t, err, name)
	defer fresh.Close()
	for _, b := range append(has, extra) {
		require.Equal(t, b, content(t, fresh, sum(b)), name)
	}
}

// TestIndexLies damages the index in every way it can be damaged. In no case is
// an object lost, wrongly missed or wrongly believed to be stored.
func TestIndexLies(t *testing.T) {
	first, second, third := manyObjects(1, 300), manyObjects(2, 20), manyObjects(3, 30)
	states := built(t, Options{FoldAt: 100}, first, second, third)
	now := states[2]
	all := append(append(append([][]byte{}, first...), second...), third...)
	require.Contains(t, now, baseName, "there is a base")
	require.Greater(t, len(now[logName]), logHead, "and a log")
	trusty(t, now, all, "sound")

	foreign := built(t, Options{FoldAt: 100}, manyObjects(9, 400), manyObjects(8, 10))[1]
	cases := map[string]files{
		"base missing":         now.with(baseName, nil),
		"log missing":          now.with(logName, nil),
		"both missing":         now.with(baseName, nil).with(logName, nil),
		"base empty":           now.with(baseName, []byte{}),
		"log empty":            now.with(logName, []byte{}),
		"stale base and log":   now.with(baseName, states[0][baseName]).with(logName, states[0][logName]),
		"stale log":            now.with(logName, states[1][logName]),
		"foreign base":         now.with(baseName, foreign[baseName]),
		"foreign log":          now.with(logName, foreign[logName]),
		"foreign base and log": now.with(baseName, foreign[baseName]).with(logName, foreign[logName]),
		"left temporary file":  now.with(baseTemp, []byte("half")),
		"zeros":                now.with(baseName, make([]byte, len(now[baseName]))),
	}
	for name, state := range cases {
		t.Run(name, func(t *testing.T) { trusty(t, state, all, name) })
	}
	for _, file := range []string{baseName, logName} {
		whole := now[file]
		for i := 0; i < len(whole); i += 1 + len(whole)/60 {
			trusty(t, now.with(file, append([]byte{}, whole[:i]...)), all, fmt.Sprintf("%s cut at %d", file, i))
			flipped := append([]byte(nil), whole...)
			flipped[i] ^= 0x21
			trusty(t, now.with(file, flipped), all, fmt.Sprintf("%s flipped at %d", file, i))
			longer := append(append([]byte(nil), whole...), whole[:i%97]...)
			trusty(t, now.with(file, longer), all, fmt.Sprintf("%s longer by %d", file, i%97))
		}
	}
}

// TestIndexOfOtherPacks puts the index of one store over the packs of another
// that are longer: nothing may be taken for stored that is not.
func TestIndexOfOtherPacks(t *testing.T) {
	mine := built(t, Options{}, manyObjects(1, 500))[0]
	other := built(t, Options{FoldAt: 10}, manyObjects(2, 50))[0]
	state := mine.with(baseName, other[baseName]).with(logName, other[logName])
	s := openStore(t, state.lay(t), Options{})
	w := openWriter(t, s)
	for _, b := range manyObjects(2, 50) {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	for _, b := range append(manyObjects(1, 500), manyObjects(2, 50)...) {
		require.Equal(t, b, content(t, s, sum(b)))
	}
}

// TestMissingPack takes a pack away: its objects are missing, not wrong, and are stored again.
func TestMissingPack(t *testing.T) {
	o := Options{PackSize: 4 << 10, BlockSize: 1 << 10}
	var objects [][]byte
	for i := range 40 {
		objects = append(objects, noise(uint64(i), 500))
	}
	state := built(t, o, objects)[0]
	s := openStore(t, state.with(packsName+"/00000002.pack", nil).lay(t), o)
	lost := 0
	for _, b := range objects {
		if !s.Has(sum(b)) {
			lost++
			require.ErrorAs(t, s.Verify(sum(b)), new(*MissingError))
		}
	}
	assert.Positive(t, lost)
	assert.Less(t, lost, len(objects)/2)
	w := openWriter(t, s)
	for _, b := range objects {
		_, err := w.PutBytes(b)
		require.NoError(t, err)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, w.Close())
	fresh := openStore(t, s.dir, o)
	for _, b := range objects {
		require.Equal(t, b, content(t, fresh, sum(b)))
	}
}

func TestFoldWhileOthersRead(t *testing.T) {
	d := openDir(t)
	s := openStore(t, d, Options{FoldAt: 50})
	reader := openStore(t, d, Options{})
	w := openWriter(t, s)
	var all [][]byte
	for round := range 20 {
		list := manyObjects(100+round, 30)
		for _, b := range list {
			_, err := w.PutBytes(b)
			require.NoError(t, err)
		}
		require.NoError(t, w.Flush())
		all = append(all, list...)
		for _, b := range all {
			require.Equal(t, b, content(t, reader, sum(b)))
			require.Equal(t, b, content(t, s, sum(b)))
		}
	}
	n, before := 0, Hash{}
	for o, err := range s.Objects() {
		require.NoError(t, err)
		require.Negative(t, bytes.Compare(before[:], o.Hash[:]), "sorted, once each")
		before = o.Hash
		n++
	}
	assert.Equal(t, len(all), n)
	st, err := reader.Stats()
	require.NoError(t, err)
	assert.EqualValues(t, len(all), st.Objects)
}

func TestTableFindsAll(t *testing.T) {
	var tab table
	hash := func(i int) (h Hash) {
		binary.BigEndian.PutUint64(h[24:], uint64(i)) // alike in the first bytes
		return h
	}
	for i := range 5000 {
		tab.put(entry{hash: hash(i), size: int64(i)})
	}
	tab.put(entry{hash: hash(7), size: 77})
	require.Equal(t, 5000, tab.n)
	tab.cut(3000)
	for i := range 5000 {
		e := tab.get(ptr(hash(i)))
		require.Equal(t, i < 3000, e != nil)
		if e != nil && i != 7 {
			require.EqualValues(t, i, e.size)
		}
	}
	require.EqualValues(t, 77, tab.get(ptr(hash(7))).size)
}

func ptr[T any](v T) *T { return &v }
