package layer_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer"
)

// TestAsAnotherUser runs the tests in which rights matter as a user without any.
func TestAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests are run by one now")
	}
	const user = 60001
	base := t.TempDir()
	for dir := base; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	copyTo(t, os.Args[0], base+"/layer.test")
	require.NoError(t, os.Mkdir(base+"/tmp", 0o700))
	require.NoError(t, os.Chown(base+"/tmp", user, user))
	c := exec.Command(base+"/layer.test", "-test.v", "-test.run", "Kinds/overlay|NoChange|HardLinks|LeftOut|OddRoots|EnterAgain|TryLeaves|Collect|Nested|DefaultACL")
	c.Dir, c.Env = base+"/tmp", append(os.Environ(), "TMPDIR="+base+"/tmp", "HOME="+base+"/tmp")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "SKIP") {
			t.Log(line)
		}
	}
}

func copyTo(t *testing.T, from, to string) {
	r, err := os.Open(from)
	require.NoError(t, err)
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(w, r)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

// TestRefuses: a mount below the root is named; in the place of another user's root
// nobody could write.
func TestRefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount, and give away")
	}
	s := newSite(t)
	at := filepath.Join(s.root, "a b")
	require.NoError(t, os.Mkdir(at, 0o755))
	if err := syscall.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Skip("no mounts here: ", err)
	}
	defer func() { require.NoError(t, syscall.Unmount(at, 0)) }()
	var no *layer.Refusal
	require.ErrorAs(t, s.place.TryOverlay(), &no)
	assert.Equal(t, "something is mounted below the root, at "+at, no.Reason)

	other := newSite(t)
	require.NoError(t, os.Chown(other.root, 60001, 60001))
	require.ErrorAs(t, other.place.TryOverlay(), &no)
	assert.Contains(t, no.Reason, "belongs to another user")
}

// TestOnOtherDisks makes layers on file systems that share blocks, and on those that do
// not; and over tmpfs.
func TestOnOtherDisks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	for kind, shares := range map[string]bool{"btrfs": true, "xfs": true, "tmpfs": false, "ext4": false} {
		t.Run(kind, func(t *testing.T) {
			at := mounted(t, kind, "")
			s := newSiteAt(t, at, "root")
			sh(t, s.root, "mkdir d; head -c 300000 /dev/zero | tr '\\0' x >d/big; echo a >a; : >empty")
			err := s.place.TryClone()
			if !shares {
				var no *layer.Refusal
				require.ErrorAs(t, err, &no)
				_, err := s.place.Make("two", layer.Clone, layer.CloneOptions{})
				assert.ErrorContains(t, err, "its content cannot be shared with the layer")
				names, err := s.place.Names()
				require.NoError(t, err)
				assert.Empty(t, names)
			} else {
				require.NoError(t, err)
				s.settle()
				l, err := s.place.Make("two", layer.Clone, layer.CloneOptions{})
				require.NoError(t, err)
				defer l.Close()
				assert.Equal(t, listed(t, s.root), listed(t, l.Workspace()))
				s.run(l, "echo b >>a; rm d/big")
				got, _ := s.changes(l, layer.ChangeOptions{})
				assert.Len(t, got, 2)
			}
			l := s.make("one", layer.Overlay)
			s.run(l, "echo b >>a; rm d/big; mkdir new")
			got, _ := s.changes(l, layer.ChangeOptions{})
			assert.Len(t, got, 3)
			assert.NotContains(t, strings.Join(got, "\n"), " ?")
		})
	}
}

// TestDefaultACL: what is made in the layer gets the mode that it would get in the root.
func TestDefaultACL(t *testing.T) {
	acl := []byte{2, 0, 0, 0} // of the file system's format: version; then tag, rights and no id
	for _, e := range [][2]byte{{0x01, 7}, {0x04, 4}, {0x20, 0}} {
		acl = append(acl, e[0], 0, e[1], 0, 0xff, 0xff, 0xff, 0xff)
	}
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "mkdir d")
		for _, dir := range []string{s.root, s.root + "/d"} {
			if err := syscall.Setxattr(dir, "system.posix_acl_default", acl, 0); err != nil {
				t.Skip("no ACLs here: ", err)
			}
		}
		l := s.make("one", how)
		assert.Equal(t, "640\n640\n", s.run(l, "umask 0; : >new; : >d/new; stat -c %a new d/new"), how)
	}
}

// TestFullDisk: a layer on another file system than the root, which it fills: the command
// sees it, what was written is there, and the root's own clock says what is settled.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	small := mounted(t, "tmpfs", ",size=1m")
	s := newSite(t)
	sh(t, s.root, "mkdir -p .decree/tmp; echo f >f; echo g >g")
	s.settle()
	defer func(own *layer.Place) { s.place = own }(s.place)
	for _, clocks := range [][]disk.Dir{nil, {s.open(filepath.Join(s.root, ".decree/tmp"))}} {
		s.place = &layer.Place{Dir: s.open(small), Root: s.open(s.root), Clocks: clocks}
		l := s.make("one", layer.Overlay)
		out := s.run(l, "rm g; head -c 4000000 /dev/zero >big || echo \"status $?\"; echo more >>f || echo full")
		assert.Contains(t, out, "No space left on device")
		assert.Contains(t, out, "status 1\n")
		var got []string
		_, err := l.Changes(t.Context(), layer.ChangeOptions{}, func(c *layer.Change) error {
			ok, err := c.Settled()
			assert.Equal(t, clocks != nil, ok)
			got = append(got, string(c.Path))
			return err
		})
		require.NoError(t, err)
		assert.Contains(t, got, "big")
		assert.Contains(t, got, "g")
		l.Close()
		require.NoError(t, s.place.Remove("one"))
		left, err := s.place.Names()
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	b, err := os.ReadFile(s.root + "/f")
	require.NoError(t, err)
	assert.Equal(t, "f\n", string(b))
}

// mounted is a file system of its own, of a kind that the machine can make.
func mounted(t *testing.T, kind, options string) string {
	t.Helper()
	at := t.TempDir()
	args := []string{"-t", "tmpfs", "-o", "rw" + options, "none", at}
	if kind != "tmpfs" {
		mkfs, err := exec.LookPath("mkfs." + kind)
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip(err)
		}
		image := filepath.Join(t.TempDir(), "image")
		require.NoError(t, os.WriteFile(image, nil, 0o600))
		require.NoError(t, os.Truncate(image, 400<<20))
		out, err := exec.Command(mkfs, image).CombinedOutput()
		require.NoError(t, err, "%s", out)
		args = []string{"-o", "loop", image, at}
	}
	if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
		t.Skipf("no mounts here: %s", out)
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", at).Run()) })
	return at
}
