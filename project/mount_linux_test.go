package project

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
)

// TestTwoDisksAtOnePlace: two file systems mounted at one place in turn have a root of
// the same path and inode, and are two projects; the first is known again when it
// comes back, also without its .decree.
func TestTwoDisksAtOnePlace(t *testing.T) {
	home, root := ground(t)
	mount := func() func() {
		if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("cannot mount: ", err)
		}
		return func() { require.NoError(t, unix.Unmount(root, 0)) }
	}
	w := Where{Cwd: root, Home: home}
	first := func() (string, uint64, disk.Origin) {
		p, err := Open(disk.OS, w, true)
		require.NoError(t, err)
		defer p.Close()
		self, err := factsOf(p.Dir)
		require.NoError(t, err)
		return p.ID, self.Ino, self.Origin
	}
	away := mount()
	id, ino, origin := first()
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	again, _, _ := first()
	require.Equal(t, id, again, "the store remembers its root")
	away()
	away = mount()
	defer func() { away() }()
	other, otherIno, otherOrigin := first()
	require.Equal(t, ino, otherIno)
	if !origin.Differs(otherOrigin) {
		t.Skip("this system's file systems in memory have neither birth times nor ids")
	}
	assert.NotEqual(t, id, other)
}

// TestOriginThatIsNotKnown tells nothing, and a store of an earlier version learns it.
func TestOriginThatIsNotKnown(t *testing.T) {
	a := disk.Origin{Born: 1, FS: 2}
	for o, want := range map[disk.Origin]bool{
		{}: false, a: false, {Born: 1}: false, {FS: 2}: false, {Born: 3}: true, {FS: 3}: true, {Born: 1, FS: 3}: true, {Born: 3, FS: 2}: true,
	} {
		assert.Equal(t, want, a.Differs(o), "%+v", o)
		assert.Equal(t, want, o.Differs(a), "%+v", o)
	}
	home, root := ground(t)
	w := Where{Cwd: root, Home: home}
	p := open(t, w, true)
	was, err := readMemory(p.Store)
	require.NoError(t, err)
	require.NotZero(t, was.origin())
	old := *was
	old.Born, old.FS = 0, 0
	data, err := json.Marshal(old)
	require.NoError(t, err)
	write(t, filepath.Join(p.StorePath, memoryFile), string(data))
	require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
	assert.Equal(t, p.ID, open(t, w, true).ID)
	now, err := readMemory(p.Store)
	require.NoError(t, err)
	assert.Equal(t, was, now)
}
