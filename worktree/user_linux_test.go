package worktree

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/disk"
	"decree/disk/disktest"
	"decree/tree"
)

const nobody = 65534

// asUser runs do without root's rights: on a thread of its own, whose user is
// another. It is skipped unless the test may become that.
func asUser(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		}
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody)
		}
		if errno != 0 {
			done <- errno
			return
		}
		defer func() { done <- nil }()
		do()
	}()
	if err := <-done; err != nil {
		t.Skip("cannot become another user: ", err)
	}
}

// give makes everything of the rig the user's.
func give(t *testing.T, r *rig) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for dir := r.top; dir != "/tmp" && dir != "/" && strings.HasPrefix(dir, os.TempDir()); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	require.NoError(t, filepath.WalkDir(r.top, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, nobody, nobody)
	}))
}

// TestReadOnlyDirectories changes what lies in directories that are closed to
// their owner, and dies in between.
func TestReadOnlyDirectories(t *testing.T) {
	was := files{
		"ro": dir(0o500), "ro/a": file("1"), "ro/gone": file("2"), "ro/sub": dir(0o555), "ro/sub/b": moded(0o400, "3"),
		"away": dir(0o500), "away/x": file("x"), "away/in": dir(0o500), "away/in/y": file("y"),
	}
	will := files{
		"ro": dir(0o500), "ro/a": file("one"), "ro/new": file("n"), "ro/sub": dir(0o555), "ro/sub/b": moded(0o400, "three"),
		"made": dir(0o500), "made/f": moded(0o400, "f"), "made/d": dir(0o555), "made/d/g": file("g"),
	}
	r := newRig(t, was)
	give(t, r)
	deaths := 0
	asUser(t, func() {
		_, err := r.move(steps(was, will))
		require.NoError(t, err)
		require.Equal(t, will, r.state())
		_, err = r.move(steps(will, was))
		require.NoError(t, err)
		require.Equal(t, was, r.state())
		r.clean()
		for n := 0; ; n++ {
			fired := false
			r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
			_, _ = r.move(steps(was, will))
			if !fired {
				break
			}
			r.wrap = failAt(n%17, &fired, writes, disktest.Action{Die: true})
			_, _, _ = r.recover()
			r.wrap = nil
			_, out, err := r.recover()
			require.NoError(t, err, "step %d", n)
			for _, o := range out {
				require.Empty(t, o.Left)
			}
			r.clean()
			deaths++
			if oldOrNew(r, was, will) == "new" {
				was, will = will, was
			}
		}
	})
	require.Greater(t, deaths, 50)
}

// TestDirectoriesWithoutRights makes directories that their owner may not look into, and dies in between.
func TestDirectoriesWithoutRights(t *testing.T) {
	was := files{"a": file("1"), "f2d": file("2"), "open": dir(0o755)}
	will := files{
		"a": file("one"), "f2d": dir(0), "open": dir(0o600),
		"shut": dir(0), "listed": dir(0o600), "holds": dir(0), "holds/f": file("f"), "holds/d": dir(0o600),
	}
	for n := 0; ; n++ {
		fired := false
		r := newRig(t, was)
		give(t, r)
		var moved, settled error
		asUser(t, func() {
			r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
			_, moved = r.move(steps(was, will))
			r.wrap = failAt(n%7, new(bool), writes, disktest.Action{Die: true})
			_, _, _ = r.recover()
			r.wrap = nil
			_, _, settled = r.recover()
		})
		require.NoError(t, settled, "step %d", n)
		r.clean()
		got := oldOrNew(r, was, will)
		if !fired {
			require.NoError(t, moved)
			require.Equal(t, "new", got)
			require.Greater(t, n, 50)
			break
		}
	}
}

// TestUnreadableTargets gives files and directories modes that close them to us.
func TestUnreadableTargets(t *testing.T) {
	was := files{"a": file("1"), "d": dir(0o755), "d/x": file("x")}
	will := files{"a": moded(0, "2"), "b": moded(0o200, "b"), "d": dir(0o755), "d/x": file("x"), "s": dir(0), "s/in": file("in"), "t": dir(0o300), "t/u": dir(0), "t/u/v": file("v")}
	r := newRig(t, was)
	give(t, r)
	asUser(t, func() {
		_, err := r.move(steps(was, will))
		require.NoError(t, err)
	})
	require.Equal(t, will, r.state())
	r.clean()
}

// TestClosedDirectoriesAreOpenedAgain takes back modes that close directories to
// us, their owner, whatever is to be done in them besides.
func TestClosedDirectoriesAreOpenedAgain(t *testing.T) {
	was := files{"c": dir(0), "d": dir(0o200), "e": dir(0o100), "f": dir(0o500), "f/in": file("in"), "g": file("1")}
	will := files{"c": dir(0o755), "d": dir(0o100), "e": dir(0o700), "f": dir(0o755), "f/in": file("changed"), "g": file("2")}
	r := newRig(t, was)
	give(t, r)
	deaths := 0
	asUser(t, func() {
		_, err := r.move(steps(was, will))
		require.NoError(t, err)
		_, err = r.move(steps(will, was))
		require.NoError(t, err)
		for n := 0; ; n++ {
			fired := false
			r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
			_, _ = r.move(steps(was, will))
			r.wrap = nil
			if !fired {
				break
			}
			_, out, err := r.recover()
			require.NoError(t, err, "step %d", n)
			for _, o := range out {
				require.Empty(t, o.Left)
			}
			r.clean()
			deaths++
			if _, err := os.ReadDir(r.path("c")); err == nil {
				_, err = r.move(steps(will, was))
				require.NoError(t, err)
			}
		}
	})
	require.Greater(t, deaths, 20)
	require.Equal(t, will, r.state())
	r.clean()
}

// TestForeignFilesAreRefusedBeforeAnyMove has paths that we may not change.
func TestForeignFilesAreRefusedBeforeAnyMove(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make another's files")
	}
	was := files{"a": file("1"), "mine": file("m"), "shut": dir(0o755), "shut/f": file("2"), "tmp": dir(0o1777), "tmp/f": file("3")}
	r := newRig(t, was)
	give(t, r)
	for _, p := range []tree.Path{"shut", "shut/f", "tmp", "tmp/f", "a"} {
		require.NoError(t, os.Lchown(r.path(p), 0, 0))
	}
	asUser(t, func() {
		_, err := r.move(steps(files{"a": file("1"), "mine": file("m"), "shut/f": file("2"), "tmp/f": file("3")},
			files{"a": moded(0o600, "1"), "mine": file("x"), "shut/f": file("x"), "tmp/f": file("x")}))
		var c *ConflictError
		require.ErrorAs(t, err, &c)
		require.Equal(t, []Conflict{
			{"a", "its mode cannot be changed: it belongs to another user"},
			{"shut/f", "its directory belongs to another user and cannot be written"},
			{"tmp/f", "it belongs to another user, in a directory with the sticky bit, where only its owner may remove it"},
		}, c.Conflicts)
		for _, one := range c.Conflicts {
			require.True(t, one.OfAnother())
		}
		require.Equal(t, was, r.state())
		r.clean()

		out, err := r.move(steps(files{"a": file("1")}, files{"a": file("x")}))
		require.NoError(t, err)
		require.Equal(t, []string{"a: its owner 0:0 could not be kept"}, out.Notes)
		_, err = r.move(steps(files{"mine": file("m")}, files{"mine": moded(0o4755, "x")}))
		require.NoError(t, err)
	})
	require.NoError(t, os.Lchown(r.path("mine"), 0, 0))
	asUser(t, func() {
		_, err := r.move(owned(steps(files{"mine": moded(0o755, "x")}, files{"mine": moded(0o4755, "y")}), 0))
		require.ErrorContains(t, err, "mine: mode 4755 cannot be given to a file of another owner (stage); nothing was changed")
		r.clean()
	})
}

// TestOwnersUnderSudo moves as root in a user's tree.
func TestOwnersUnderSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	was := files{"a": moded(0o4755, "1"), "l": link("x"), "gone": file("g"), "d": dir(0o755), "root": file("r")}
	will := files{"a": moded(0o4755, "2"), "l": link("y"), "d": dir(0o755), "d/new": file("n"), "d/made": dir(0o755), "d/made/deep": file("d"), "root": file("s")}
	r := newRig(t, was)
	give(t, r)
	require.NoError(t, os.Lchown(r.path("root"), 0, 7))
	require.NoError(t, os.Chmod(r.path("a"), 0o755|os.ModeSetuid))
	for _, way := range [][2]files{{was, will}, {will, was}} {
		_, err := r.move(owned(steps(way[0], way[1]), nobody))
		require.NoError(t, err)
		require.Equal(t, way[1], r.state())
		for p := range way[1] {
			st, err := os.Lstat(r.path(p))
			require.NoError(t, err)
			own := st.Sys().(*syscall.Stat_t)
			want := fmt.Sprint(nobody, nobody)
			if p == "root" {
				want = fmt.Sprint(0, 7)
			}
			require.Equal(t, want, fmt.Sprint(own.Uid, own.Gid), p)
		}
	}
}

func TestImmutableFilesAreRefused(t *testing.T) {
	was := files{"a": file("1"), "b": file("2"), "d": dir(0o755), "d/c": file("3")}
	r := newRig(t, was)
	if out, err := exec.Command("chattr", "+i", r.path("a"), r.path("d")).CombinedOutput(); err != nil {
		t.Skipf("chattr: %v: %s", err, out)
	}
	defer exec.Command("chattr", "-i", r.path("a"), r.path("d")).Run()
	_, err := r.move(steps(was, files{"a": file("x"), "b": file("x"), "d": dir(0o755)}))
	require.EqualError(t, err, "a: cannot be changed: operation not permitted; d/c: its directory cannot be changed: operation not permitted (check); nothing was changed")
	require.Equal(t, was, r.state())
	r.clean()
}

// TestAnImmutableRootIsRefused finds it before anything moves, though no entry
// of the root's own can be asked.
func TestAnImmutableRootIsRefused(t *testing.T) {
	was := files{"a": file("1"), "d": dir(0o755), "d/c": file("3")}
	for _, flag := range []string{"i", "a"} {
		r := newRig(t, was)
		if out, err := exec.Command("chattr", "+"+flag, r.path("")).CombinedOutput(); err != nil {
			t.Skipf("chattr: %v: %s", err, out)
		}
		defer exec.Command("chattr", "-"+flag, r.path("")).Run()
		_, err := r.move(steps(was, files{"a": file("x"), "d": dir(0o755), "d/c": file("x")}))
		require.EqualError(t, err, "a: its directory cannot be changed: operation not permitted (check); nothing was changed")
		require.Equal(t, was, r.state())
		// What does not change the root's entries can be done.
		_, err = r.move(steps(files{"d/c": file("3")}, files{"d/c": file("x")}))
		require.NoError(t, err)
		r.clean()
	}
}

func TestAttributesAndLists(t *testing.T) {
	r := newRig(t, files{"a": file("1"), "b": file("2")})
	root := r.open("tree")
	defer root.Close()
	stat := func(name string) disk.Info {
		is, err := root.Stat(name)
		require.NoError(t, err)
		return is
	}
	if err := root.SetXattr("a", stat("a"), disk.Xattr{Name: "user.note", Value: []byte("keep\x00me")}); err != nil {
		t.Skip("no attributes here: ", err)
	}
	// user:bin:rw, in the kernel's form; its mask is the mode's group bits.
	acl := "\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x06\x00\x02\x00\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x06\x00\xff\xff\xff\xff\x20\x00\x04\x00\xff\xff\xff\xff"
	hasACL := root.SetXattr("b", stat("b"), disk.Xattr{Name: "system.posix_acl_access", Value: []byte(acl)}) == nil
	mode := stat("b").Mode
	list := steps(files{"a": file("1"), "b": moded(mode, "2")}, files{"a": moded(0o640, "x"), "b": moded(mode, "y")})
	if hasACL {
		list[1].To.Owner = tree.Owner{GID: disk.NoGroup, Known: true}
	}
	out, err := r.move(list)
	require.NoError(t, err)
	require.Empty(t, out.Notes)
	got, err := root.Xattrs("a")
	require.NoError(t, err)
	require.Equal(t, []disk.Xattr{{Name: "user.note", Value: []byte("keep\x00me")}}, got)
	if hasACL {
		got, err = root.Xattrs("b")
		require.NoError(t, err)
		require.Equal(t, []disk.Xattr{{Name: "system.posix_acl_access", Value: []byte(acl)}}, got)
	}
}

// TestAnotherDevice stages beside the target, where .decree/tmp is on another device.
func TestAnotherDevice(t *testing.T) {
	for name, mount := range map[string]bool{"tmp elsewhere": false, "bind mount": true} {
		t.Run(name, func(t *testing.T) {
			was, will := before.with(nil), after.with(nil)
			r := newRig(t, before)
			if !mount {
				useOtherTmp(t, r)
			} else if err := unix.Mount(r.path("d"), r.path("d"), "", unix.MS_BIND, ""); err != nil {
				t.Skip("no mount: ", err)
			} else {
				t.Cleanup(func() { _ = unix.Unmount(r.path("d"), unix.MNT_DETACH) })
			}
			_, err := r.move(steps(was, will))
			require.NoError(t, err)
			require.Equal(t, will, r.state())
			r.clean()
			for n := 0; ; n++ {
				fired := false
				r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true, Torn: 3})
				_, _ = r.move(steps(will, was))
				r.wrap = nil
				if !fired {
					break
				}
				_, out, err := r.recover()
				require.NoError(t, err, n)
				for _, o := range out {
					require.Empty(t, o.Left)
				}
				r.clean()
				if oldOrNew(r, will, was) == "new" {
					was, will = will, was
				}
			}
			require.Equal(t, was, r.state())
		})
	}
}

// TestSlotsBehindALink has somebody put a link in the place of a directory that holds slots, after a death:
// the transaction is settled all the same, and what stays of it is named.
func TestSlotsBehindALink(t *testing.T) {
	was := files{"d": dir(0o755), "d/a": file("1"), "d/b": file("2")}
	named := 0
	for n := 0; ; n++ {
		fired := false
		r := newRig(t, was)
		useOtherTmp(t, r)
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
		_, _ = r.move(steps(was, files{"d": dir(0o755), "d/a": file("one"), "d/b": file("two")}))
		r.wrap = nil
		if !fired {
			break
		}
		require.NoError(t, os.Rename(r.path("d"), r.path("e")))
		require.NoError(t, os.Symlink("e", r.path("d")))
		_, out, err := r.recover()
		require.NoError(t, err, "step %d", n)
		r.clean()
		slots, err := filepath.Glob(r.path("e/" + besidePrefix + "*"))
		require.NoError(t, err)
		if len(out) > 0 && len(slots) > 0 {
			named++
			require.Contains(t, strings.Join(out[0].Notes, "\n"), besidePrefix+"t1-", "step %d", n)
		}
	}
	require.Greater(t, named, 3)
}

// TestFlushedWhole sees that a move of many steps flushes the file system and no file, unless something
// of it is on another one: a directory that is made there, or a mode that changes.
func TestFlushedWhole(t *testing.T) {
	for name, there := range map[string]files{
		"all on one":                nil,
		"a directory on another":    {"d/made": dir(0o700)},
		"a mode changes on another": {"d/f": moded(0o600, "f")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, files{"d": dir(0o755)})
			r.many = 1
			if err := unix.Mount("none", r.path("d"), "tmpfs", 0, ""); err != nil {
				t.Skip("no mount: ", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(r.path("d"), unix.MNT_DETACH) })
			require.NoError(t, os.WriteFile(r.path("d/f"), []byte("f"), 0o644))
			was := files{"a": file("old"), "d/f": file("f")}
			require.NoError(t, os.WriteFile(r.path("a"), []byte("old"), 0o644))
			root, err := disk.OS.OpenRoot(r.path(""))
			require.NoError(t, err)
			defer root.Close()
			if root.SyncAll() == nil {
				t.Skip("a file system that is not flushed whole")
			}
			count := map[string]int{}
			r.wrap = func(dirs ...disk.Dir) []disk.Dir {
				return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
					count[s.Op]++
					return disktest.Action{}
				}, dirs...)
			}
			_, err = r.move(steps(was, was.with(files{"a": file("new"), "b": file("made")}).with(there)))
			require.NoError(t, err)
			if there == nil {
				require.Equal(t, 2, count["SyncAll"], "before the journal, and before it says done")
				require.Equal(t, 1, count["FileSync"], "the journal")
				return
			}
			require.Zero(t, count["SyncAll"])
			require.Greater(t, count["FileSync"], 2)
		})
	}
}

// otherDisks are directories of which one is on another file system than the tests' tree.
var otherDisks = []string{"/dev/shm", "/var/tmp", "/tmp"}

// useOtherTmp puts .decree/tmp on one of otherDisks.
func useOtherTmp(t *testing.T, r *rig) {
	var here, there unix.Stat_t
	require.NoError(t, unix.Stat(r.path("."), &here))
	at := slices.IndexFunc(otherDisks, func(dir string) bool { return unix.Stat(dir, &there) == nil && there.Dev != here.Dev })
	if at < 0 {
		t.Skip("no second file system")
	}
	other, err := os.MkdirTemp(otherDisks[at], "decree-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(other) })
	require.NoError(t, os.Remove(r.path(".decree/tmp")))
	require.NoError(t, os.Symlink(other, r.path(".decree/tmp")))
}

// TestDeathWhileAFileIsOpenedForAMoment dies at every step of a move of files
// that their owner may not read: the mode that lets us read them does not stay.
func TestDeathWhileAFileIsOpenedForAMoment(t *testing.T) {
	was := files{"closes": file("1"), "mode": file("m"), "gone": file("g")}
	will := files{"closes": moded(0o200, "2"), "mode": moded(0o100, "m"), "made": moded(0, "n")}
	opened := 0
	for n := 0; ; n++ {
		fired := false
		r := newRig(t, was)
		give(t, r)
		asUser(t, func() {
			r.wrap = failAt(n, &fired, anyStep, disktest.Action{Die: true})
			_, _ = r.move(steps(was, will))
			r.wrap = nil
			for _, f := range []tree.Path{"closes", "mode", "made"} {
				if st, err := os.Stat(r.path(f)); err == nil && st.Mode().Perm()&^0o400 == os.FileMode(will[f].mode) && st.Mode().Perm() != os.FileMode(will[f].mode) {
					opened++
				}
			}
			_, out, err := r.recover()
			require.NoError(t, err)
			for _, o := range out {
				require.Empty(t, o.Left, "step %d", n)
			}
		})
		oldOrNew(r, was, will)
		r.clean()
		if !fired {
			break
		}
	}
	if os.Geteuid() == 0 {
		require.Positive(t, opened, "a death at the moment that this is about")
	}
}

// owned makes all files with set-user-ID in steps the user's.
func owned(steps []Step, id uint32) []Step {
	for i := range steps {
		for _, e := range [...]*tree.Entry{steps[i].From, steps[i].To} {
			if e.Special() {
				e.Owner = tree.Owner{UID: id, GID: id, Known: true}
			}
		}
	}
	return steps
}

// TestRights asks, as a user and as root, who may be given a file that runs with
// its owner's rights.
func TestRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r := newRig(t, files{"now": moded(0o755, "n")})
	give(t, r)
	plan := func(id uint32) []Step {
		return owned(steps(files{"now": moded(0o755, "n")}, files{"now": moded(0o4755, "n"), "back": moded(0o6755, "b"), "plain": file("p")}), id)
	}
	rights := func(list []Step) map[tree.Path]string {
		tree, _, done := r.tree()
		defer done()
		out, err := tree.Rights(list)
		require.NoError(t, err)
		r.clean()
		return out
	}
	asUser(t, func() {
		require.Empty(t, rights(plan(nobody)))
		list := plan(0)
		require.Equal(t, map[tree.Path]string{
			"back": "mode is 755 instead of 6755: it cannot be given to its owner 0:0",
			"now":  "mode is 755 instead of 4755: its owner is 65534:65534 now, and was 0:0",
		}, rights(list))
		for _, s := range list {
			require.False(t, s.To.Special())
		}
		_, err := r.move(list)
		require.NoError(t, err)
	})
	require.Equal(t, map[tree.Path]string{"now": "mode is 755 instead of 4755: its owner is 65534:65534 now, and was 0:0"}, rights(plan(0)))
	list := plan(nobody)
	for _, s := range list {
		s.To.Owner = tree.Owner{}
	}
	require.Len(t, rights(list), 2, "an old record does not know whose they were")
}

// TestRightsOfGroup: what a file's group alone may do is given to that group, or to
// nobody; and what an access control list says, to nobody where that list is gone.
func TestRightsOfGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	r := newRig(t, files{"listed": moded(0o660, "l")})
	give(t, r)
	acl := "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x06\x00\xd2\x04\x00\x00" +
		"\x04\x00\x00\x00\xff\xff\xff\xff" + "\x10\x00\x06\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
	if err := unix.Setxattr(r.path("listed"), disk.ACL, []byte(acl), 0); err != nil {
		t.Skip("no access control lists: ", err)
	}
	have, err := Open(r.open("tree"), Options{}).Look("listed")
	require.NoError(t, err)
	require.Equal(t, tree.Owner{UID: nobody, GID: disk.NoGroup, Known: true}, have.Owner)
	group := func(gid uint32) []Step {
		list := steps(files{"listed": moded(0o660, "l")}, files{"listed": moded(0o660, "m"), "new": moded(0o640, "n")})
		for _, s := range list {
			s.To.Owner = tree.Owner{UID: nobody, GID: gid, Known: true}
		}
		return list
	}
	rights := func(list []Step) map[tree.Path]string {
		tree, _, done := r.tree()
		defer done()
		out, err := tree.Rights(list)
		require.NoError(t, err)
		r.clean()
		return out
	}
	require.Empty(t, rights(group(1234)), "root may give it")
	list := group(disk.NoGroup)
	require.Equal(t, map[tree.Path]string{"new": "mode is 600 instead of 640: its access control list is lost"}, rights(list))
	asUser(t, func() {
		require.Equal(t, map[tree.Path]string{
			"listed": "mode is 600 instead of 660: it cannot be given to its group 1234",
			"new":    "mode is 600 instead of 640: it cannot be given to its group 1234",
		}, rights(group(1234)))
		_, err := r.move(group(1234))
		require.ErrorContains(t, err, "of another group", "a journal or a plan that was not asked about")
	})
	_, err = r.move(list)
	require.NoError(t, err)
	kept, err := disk.HasACL(r.open("tree"), "listed")
	require.NoError(t, err)
	require.True(t, kept)
	_, err = r.move(steps(files{"new": moded(0o600, "n")}, files{}))
	require.NoError(t, err)
	_, err = r.move(group(1234)[1:])
	require.NoError(t, err)
	var st unix.Stat_t
	require.NoError(t, unix.Stat(r.path("new"), &st))
	require.Equal(t, []uint32{0o640, 1234}, []uint32{st.Mode & 0o7777, st.Gid})
}

// TestSwappedBeforeItIsGivenAway: whoever owns the tree can rename a file of root's that lies there over
// any other, at any moment of a move by root; it must not become that user's.
func TestSwappedBeforeItIsGivenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	was := files{"a": moded(0o755, "1"), "l": link("x"), "gone": file("g")}
	will := files{"a": moded(0o755, "2"), "l": link("y"), "d": dir(0o755), "d/new": file("n"), "d/l": link("z")}
	// user:nobody:rw, which the new file gets from the old one.
	list := "\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x06\x00\xfe\xff\x00\x00" +
		"\x04\x00\x05\x00\xff\xff\xff\xff\x10\x00\x05\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff"
	owners := 0
	for n := 0; ; n++ {
		r := newRig(t, was)
		give(t, r)
		if err := unix.Setxattr(r.path("a"), disk.ACL, []byte(list), 0); err != nil {
			t.Log("no access control lists: ", err)
		}
		require.NoError(t, os.Chown(r.path(".decree/tmp"), nobody, nobody))
		var secret *os.File
		i := 0
		r.wrap = func(dirs ...disk.Dir) []disk.Dir {
			return disktest.InjectDirs(func(s disktest.Step) disktest.Action {
				if !strings.HasSuffix(s.Op, "Chown") && s.Op != "Chmod" && s.Op != "FileChmod" && s.Op != "SetXattr" {
					return disktest.Action{}
				}
				if i++; i-1 == n {
					require.NoError(t, os.WriteFile(r.path("secret"), []byte("root's"), 0o600))
					var err error
					secret, err = os.Open(r.path("secret"))
					require.NoError(t, err)
					t.Cleanup(func() { secret.Close() })
					_ = os.Remove(s.Path)
					require.NoError(t, os.Rename(r.path("secret"), s.Path), s.Op)
				}
				if strings.HasSuffix(s.Op, "Chown") {
					owners++
				}
				return disktest.Action{}
			}, dirs...)
		}
		_, _ = r.move(steps(was, will))
		if secret == nil {
			break
		}
		st, err := secret.Stat()
		require.NoError(t, err)
		require.Zero(t, st.Sys().(*syscall.Stat_t).Uid, "step %d", n)
		require.Equal(t, fs.FileMode(0o600), st.Mode(), "step %d", n)
	}
	require.Greater(t, owners, 10)
}

// TestCapabilitiesStayBehind: file capabilities were given to a content, and no other gets them.
func TestCapabilitiesStayBehind(t *testing.T) {
	was, will := files{"a": moded(0o755, "trusted")}, files{"a": moded(0o755, "another's")}
	r := newRig(t, was)
	root := r.open("tree")
	defer root.Close()
	// CAP_NET_BIND_SERVICE, permitted and effective, in the kernel's form of version 2.
	value := []byte("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	is, err := root.Stat("a")
	require.NoError(t, err)
	if err := root.SetXattr("a", is, disk.Xattr{Name: disk.Capability, Value: value}); err != nil {
		t.Skip("no file capabilities here: ", err)
	}
	out, err := r.move(steps(was, will))
	require.NoError(t, err)
	require.Equal(t, []string{"a: its file capabilities were another content's, and are gone"}, out.Notes)
	list, err := root.Xattrs("a")
	require.NoError(t, err)
	require.Empty(t, list)
	require.Equal(t, will, r.state())
}

// TestRootDiesInAUsersTree: what root has begun in a user's tree this user's recovery comes to the end with, wherever root's
// process has died.
func TestRootDiesInAUsersTree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can work in another user's tree")
	}
	was := files{"a": file("1"), "b": file("2"), "d": dir(0o755), "d/x": file("x"), "gone": dir(0o755), "gone/g": file("g"), "k": link("a")}
	will := files{"a": file("one"), "d": dir(0o700), "d/x": file("ex"), "d/y": file("y"), "k": link("b"), "n": file("n")}
	deaths := 0
	for n := 0; ; n++ {
		r := newRig(t, was)
		give(t, r)
		fired := false
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
		_, _ = r.move(steps(was, will))
		if !fired {
			break
		}
		r.wrap = nil
		give(t, &rig{top: filepath.Join(r.top, "txn")}) // a store's are its owner's
		asUser(t, func() {
			_, _, err := r.recover()
			require.NoError(t, err, "step %d", n)
			r.clean()
		})
		oldOrNew(r, was, will)
		deaths++
	}
	require.Greater(t, deaths, 20)
}

// TestDirectoriesMadeBeforeADeath: wherever decree dies in a directory that gives its group and a list to what is made in it, root's recovery leaves
// no new directory with that list, or as root's in a user's tree, and takes none for another's.
func TestDirectoriesMadeBeforeADeath(t *testing.T) {
	was := files{"p": dir(0o2775), "p/x": file("x"), "p/gone": dir(0o700), "p/old": dir(0o755), "p/old/f": file("f")}
	will := files{"p": dir(0o2775), "p/x": dir(0o755), "p/x/y": file("y"), "p/new": dir(0o750), "p/new/in": dir(0o2755), "p/old": file("f")}
	acl := "\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff\x02\x00\x07\x00\x02\x00\x00\x00\x04\x00\x05\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff"
	deaths := 0
	for n := 0; ; n++ {
		r := newRig(t, was)
		give(t, r)
		require.NoError(t, os.Chmod(r.path("p"), os.ModeSetgid|0o775))
		if err := unix.Setxattr(r.path("p"), "system.posix_acl_default", []byte(acl), 0); err != nil {
			t.Skip("no access control lists here: ", err)
		}
		fired := false
		r.wrap = failAt(n, &fired, writes, disktest.Action{Die: true})
		_, _ = r.move(steps(was, will))
		if !fired {
			break
		}
		r.wrap = nil
		_, _, err := r.recover()
		require.NoError(t, err, "step %d", n)
		r.clean()
		if oldOrNew(r, was, will) == "new" {
			for _, made := range []tree.Path{"p/x", "p/new", "p/new/in"} {
				for _, list := range []string{disk.ACL, "system.posix_acl_default"} {
					_, err := unix.Getxattr(r.path(made), list, nil)
					require.ErrorIs(t, err, unix.ENODATA, "step %d: %s", n, made)
				}
				if info, err := os.Stat(r.path(made)); os.Geteuid() == 0 && err == nil {
					require.Equal(t, uint32(nobody), info.Sys().(*syscall.Stat_t).Uid, "step %d: %s", n, made)
				}
			}
		}
		deaths++
	}
	require.Greater(t, deaths, 20)
}
