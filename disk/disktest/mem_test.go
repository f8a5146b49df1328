package disktest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
)

func put(t testing.TB, d disk.Dir, name, data string, sync bool) {
	t.Helper()
	f, err := d.OpenWrite(name, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(0))
	_, err = f.Write([]byte(data))
	require.NoError(t, err)
	if sync {
		require.NoError(t, f.Sync())
	}
	require.NoError(t, f.Close())
}

func get(t testing.TB, d disk.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	require.NoError(t, err)
	data, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(data)
}

// TestSameAsTheSystem makes the same random steps on the system's disk and in
// memory and compares what each answers and the trees in the end.
func TestSameAsTheSystem(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		real, err := disk.OS.OpenRoot(t.TempDir())
		require.NoError(t, err)
		mem, err := NewMem().OpenRoot("/")
		require.NoError(t, err)
		for _, d := range []disk.Dir{real, mem} {
			require.NoError(t, d.Mkdir("d", 0o755))
		}
		rsub, err := real.OpenDir("d")
		require.NoError(t, err)
		msub, err := mem.OpenDir("d")
		require.NoError(t, err)
		for i := range 200 {
			pick, n1, n2, dir1, dir2 := rng.IntN(14), fmt.Sprint(rng.IntN(4)), fmt.Sprint(rng.IntN(4)), rng.IntN(2), rng.IntN(2)
			var got [2]string
			for k, pair := range [2][2]disk.Dir{{real, rsub}, {mem, msub}} {
				got[k] = random(pair[dir1], pair[dir2], pick, n1, n2)
			}
			require.Equal(t, got[0], got[1], "seed %d, step %d: %d %s %s %d %d", seed, i, pick, n1, n2, dir1, dir2)
			require.Equal(t, shape(t, real), shape(t, mem), "seed %d, step %d: %d %s %s", seed, i, pick, n1, n2)
		}
	}
}

// random makes one step and returns what came of it.
func random(d, to disk.Dir, pick int, a, b string) string {
	var err error
	var text string
	switch pick {
	case 0:
		var f disk.File
		if f, err = d.Create(a, 0o600); err == nil {
			_, err = f.Write([]byte("made " + a))
			f.Close()
		}
	case 1:
		var f disk.File
		if f, err = d.OpenWrite(a, 0o600); err == nil {
			_, err = f.WriteAt([]byte(b), 12)
			f.Close()
		}
	case 2:
		err = d.Mkdir(a, 0o700)
	case 3:
		err = d.Remove(a)
		if errors.Is(err, syscall.EPERM) { // what some systems answer for a directory
			err = syscall.EISDIR
		}
	case 4:
		err = d.Rmdir(a)
	case 5:
		err = d.Rename(a, to, b)
	case 6:
		err = d.RenameNew(a, to, b)
	case 7:
		err = d.Exchange(a, to, b)
	case 8:
		err = d.Link(a, to, b)
	case 9:
		err = d.Symlink("to "+b, a)
	case 10:
		text, err = d.Readlink(a)
	case 11:
		var st disk.Info
		if st, err = d.Stat(a); err == nil {
			err = d.Chmod(a, st, 0o640)
		}
	case 12:
		var st disk.Info
		if st, err = d.Stat(a); st.Kind == disk.Regular {
			text = fmt.Sprint(st.Size, st.Nlink)
		}
	case 13:
		_, err = d.OpenDir(a)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Sprint(text, err)
}

func shape(t testing.TB, d disk.Dir) []string {
	list, err := d.List()
	require.NoError(t, err)
	var out []string
	for _, e := range list {
		st, err := d.Stat(e.Name)
		require.NoError(t, err)
		line := fmt.Sprintf("%s %d %o", e.Name, st.Kind, st.Mode)
		switch st.Kind {
		case disk.Regular:
			line += " " + get(t, d, e.Name)
		case disk.Directory:
			c, err := d.OpenDir(e.Name)
			require.NoError(t, err)
			line += fmt.Sprint(" ", shape(t, c))
			c.Close()
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// crashes opens the root after many losses of power.
func crashes(t *testing.T, m *Mem) []disk.Dir {
	rng := rand.New(rand.NewPCG(1, 2))
	var out []disk.Dir
	for range 200 {
		d, err := m.Crash(rng).OpenRoot("/")
		require.NoError(t, err)
		out = append(out, d)
	}
	return out
}

func outcomes(t *testing.T, m *Mem, names ...string) map[string]bool {
	got := map[string]bool{}
	for _, d := range crashes(t, m) {
		var all []string
		for _, n := range names {
			all = append(all, get(t, d, n))
		}
		got[strings.Join(all, "|")] = true
	}
	return got
}

func TestWhatIsNotFlushedMayBeLost(t *testing.T) {
	m := NewMem()
	d, err := m.OpenRoot("/")
	require.NoError(t, err)
	put(t, d, "a", "one", true)
	assert.Equal(t, map[string]bool{"one": true, "absent": true}, outcomes(t, m, "a"), "the entry was not flushed")
	require.NoError(t, d.Sync())
	assert.Equal(t, map[string]bool{"one": true}, outcomes(t, m, "a"))

	put(t, d, "a", "twenty", false)
	got := outcomes(t, m, "a")
	for _, want := range []string{"one", "twenty", "twen", "tw\x00\x00\x00\x00", ""} {
		assert.True(t, got[want], "%q", want)
	}
	put(t, d, "a", "twenty", true)
	put(t, d, "b", "b", true)
	require.NoError(t, d.Sync())

	require.NoError(t, d.Exchange("a", d, "b"))
	assert.Equal(t, map[string]bool{"twenty|b": true, "b|twenty": true}, outcomes(t, m, "a", "b"), "an exchange is atomic")
	require.NoError(t, d.Remove("a"))
	assert.Equal(t, map[string]bool{"twenty|b": true, "b|twenty": true, "absent|twenty": true}, outcomes(t, m, "a", "b"), "in their order")
	b, err := d.Stat("b")
	require.NoError(t, err)
	require.NoError(t, d.Chmod("b", b, 0o600))
	modes := map[uint32]bool{}
	for _, c := range crashes(t, m) {
		if st, err := c.Stat("b"); err == nil && st.Size == 6 {
			modes[st.Mode] = true
		}
	}
	assert.Equal(t, map[uint32]bool{0o600: true, 0o644: true}, modes)
}

func TestSyncAll(t *testing.T) {
	m := NewMem()
	d, err := m.OpenRoot("/")
	require.NoError(t, err)
	require.NoError(t, d.Mkdir("sub", 0o700))
	sub, err := d.OpenDir("sub")
	require.NoError(t, err)
	put(t, sub, "f", "one", false)
	put(t, d, "gone", "x", true)
	require.NoError(t, d.Sync())
	require.NoError(t, d.Remove("gone"))
	f, err := sub.OpenWrite("f", 0)
	require.NoError(t, err)
	f.StartSync()
	require.Greater(t, len(outcomes(t, m, "gone")), 1, "what has only been started is not flushed")
	require.NoError(t, sub.SyncAll()())
	for _, c := range crashes(t, m) {
		require.Equal(t, "absent", get(t, c, "gone"))
		sub, err := c.OpenDir("sub")
		require.NoError(t, err)
		require.Equal(t, "one", get(t, sub, "f"))
		st, err := c.Stat("sub")
		require.NoError(t, err)
		require.EqualValues(t, 0o700, st.Mode)
	}
	m.NoSyncAll = true
	require.Nil(t, d.SyncAll())
}

func TestRenameBetweenDirectoriesIsFlushedByEither(t *testing.T) {
	for _, which := range []string{"from", "to"} {
		m := NewMem()
		root, err := m.OpenRoot("/")
		require.NoError(t, err)
		dirs := map[string]disk.Dir{}
		for _, n := range []string{"from", "to"} {
			require.NoError(t, root.Mkdir(n, 0o755))
			dirs[n], err = root.OpenDir(n)
			require.NoError(t, err)
		}
		require.NoError(t, root.Sync())
		put(t, dirs["from"], "f", "x", true)
		require.NoError(t, dirs["from"].Rename("f", dirs["to"], "g"))
		require.NoError(t, dirs[which].Sync())
		for _, c := range crashes(t, m) {
			to, err := c.OpenDir("to")
			require.NoError(t, err)
			require.Equal(t, "x", get(t, to, "g"))
			from, err := c.OpenDir("from")
			require.NoError(t, err)
			require.Equal(t, "absent", get(t, from, "f"))
		}
	}
}

func TestLocks(t *testing.T) {
	d, err := NewMem().OpenRoot("/")
	require.NoError(t, err)
	unlock, err := d.TryLock()
	require.NoError(t, err)
	_, err = d.TryLock()
	require.ErrorIs(t, err, disk.ErrLocked)
	require.NoError(t, unlock())
	_, err = d.TryLock()
	require.NoError(t, err)
	require.NoError(t, unlock(), "a second time frees nobody else's")
	_, err = d.TryLock()
	require.ErrorIs(t, err, disk.ErrLocked)
}

func TestPathsFollowLinks(t *testing.T) {
	m := NewMem()
	d, err := m.MkdirAll("/a/b/c", 0o755)
	require.NoError(t, err)
	put(t, d, "f", "x", false)
	top, err := m.OpenRoot("/")
	require.NoError(t, err)
	require.NoError(t, top.Symlink("a/../a/b", "l"))
	got, err := m.OpenRoot("/l/c")
	require.NoError(t, err)
	require.Equal(t, "x", get(t, got, "f"))
	require.NoError(t, top.Symlink("loop", "loop"))
	_, err = m.OpenRoot("/loop")
	require.ErrorIs(t, err, syscall.ELOOP)
}

func TestInjectFailsAndDies(t *testing.T) {
	var ops []string
	kill := -1
	d := Inject(disk.OS, func(s Step) Action {
		ops = append(ops, fmt.Sprint(s.N, " ", s.Op, " ", s.Write, " ", s.Path[strings.LastIndexByte(s.Path, '/')+1:]))
		if s.N == kill {
			return Action{Die: true, Torn: 2}
		}
		if s.N == 2 {
			return Action{Err: syscall.EIO}
		}
		return Action{}
	})
	top := t.TempDir()
	root, err := d.OpenRoot(top)
	require.NoError(t, err)
	f, err := root.Create("f", 0o600)
	require.NoError(t, err)
	_, err = f.Write([]byte("hello"))
	require.ErrorIs(t, err, syscall.EIO)
	kill = 3
	n, err := f.Write([]byte("hello"))
	require.ErrorIs(t, err, ErrDead)
	require.Equal(t, 2, n)
	require.ErrorIs(t, root.Remove("f"), ErrDead)
	require.NoError(t, f.Close())
	data, err := os.ReadFile(top + "/f")
	require.NoError(t, err)
	require.Equal(t, "he", string(data))
	require.Equal(t, []string{"1 Create true f", "2 Write true f", "3 Write true f"}, ops[1:])
	_, real := disk.FD(root)
	require.False(t, real, "a system call on it would pass the hook by")
}
