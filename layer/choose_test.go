//go:build linux || darwin

package layer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer/overlay"
	"decree/runner/userns"
	"decree/tree"
)

func placeOf(t *testing.T) *Place {
	base := t.TempDir()
	require.NoError(t, os.Mkdir(base+"/root", 0o755))
	require.NoError(t, os.Mkdir(base+"/layers", 0o700))
	p := &Place{Boot: "this"}
	var err error
	p.Root, err = disk.OS.OpenRoot(base + "/root")
	require.NoError(t, err)
	p.Dir, err = disk.OS.OpenRoot(base + "/layers")
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Root.Close(); _ = p.Dir.Close() })
	return p
}

// TestScratchIsNoLayer: while something is tried, its directory is not among those that a
// recovery looks at; what a death has left of it is.
func TestScratchIsNoLayer(t *testing.T) {
	p := placeOf(t)
	require.NoError(t, p.Dir.Mkdir(scratchMark+"dead", 0o700))
	require.NoError(t, p.inScratch(func(disk.Dir) error {
		names, err := p.Names()
		assert.Equal(t, []string{scratchMark + "dead"}, names)
		return err
	}))
	names, err := p.Names()
	require.NoError(t, err)
	assert.Equal(t, []string{scratchMark + "dead"}, names)
}

// TestRemembers: a success is remembered for this boot and these devices, and earlier
// boots are forgotten; a failure is never remembered.
func TestRemembers(t *testing.T) {
	p := placeOf(t)
	key, err := p.key(Overlay)
	require.NoError(t, err)
	other, err := p.key(Clone)
	require.NoError(t, err)
	assert.False(t, p.remembered(key))
	p.remember(key)
	p.remember(other)
	assert.True(t, p.remembered(key))
	assert.True(t, p.remembered(other))
	p.Boot = "that"
	later, err := p.key(Overlay)
	require.NoError(t, err)
	assert.False(t, p.remembered(later))
	p.remember(later)
	b, err := os.ReadFile(filepath.Join(p.Dir.Path(), worksName))
	require.NoError(t, err)
	assert.Equal(t, later, string(b))
	p.Boot = ""
	assert.False(t, p.remembered(later))
}

// TestPlaceInTheRoot: no layer is made in what it is a layer of, whatever links lead there.
func TestPlaceInTheRoot(t *testing.T) {
	p := placeOf(t)
	in := p.Root.Path() + "/.decree/store"
	require.NoError(t, os.MkdirAll(in, 0o700))
	require.NoError(t, os.Symlink(in, filepath.Dir(p.Root.Path())+"/link"))
	var err error
	p.Dir, err = disk.OS.OpenRoot(filepath.Dir(p.Root.Path()) + "/link")
	require.NoError(t, err)
	_, making := p.Make("one", Clone, CloneOptions{Copy: true})
	for _, err := range []error{p.TryOverlay(), p.TryClone(), making} {
		var no *Refusal
		require.ErrorAs(t, err, &no)
		assert.Contains(t, no.Reason, "lies in the root itself")
	}
	left, err := p.Dir.List()
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestTryLeavesNothing, whatever came of it.
func TestTryLeavesNothing(t *testing.T) {
	p := placeOf(t)
	p.Boot = ""
	for _, try := range []func() error{p.TryOverlay, p.TryClone} {
		err := try()
		var no *Refusal
		if err != nil {
			require.ErrorAs(t, err, &no)
			t.Log(no)
		}
		for _, d := range []disk.Dir{p.Dir, p.Root} {
			left, err := d.List()
			require.NoError(t, err)
			assert.Empty(t, left)
		}
	}
}

// TestExplains: what lies below the root goes before the settings that forbid an overlay.
func TestExplains(t *testing.T) {
	for _, c := range []struct {
		policy         userns.Policy
		mounts         []overlay.Mounted
		err            error
		reason, advice string
	}{
		{userns.Policy{AppArmor: true}, nil, syscall.EACCES, "AppArmor", "'decree doctor'"},
		{userns.Policy{Filtered: true}, []overlay.Mounted{{At: "/root/mnt"}}, syscall.EINVAL, "mounted below the root, at /root/mnt", "unmount"},
		{userns.Policy{}, nil, errors.ErrUnsupported, "the system has no overlays", ""},
		{userns.Policy{}, nil, syscall.EINVAL, "the system refuses it", ""},
	} {
		r := explain(c.policy, c.mounts, c.err)
		assert.Contains(t, r.Error(), c.reason)
		assert.Contains(t, r.Error(), c.err.Error())
		assert.ErrorIs(t, r, c.err)
		if c.advice == "" {
			assert.Empty(t, r.Advice)
		}
		assert.Contains(t, r.Advice, c.advice)
	}
}

// TestCloneWhole stands in for the call of a system that clones whole directories.
func TestCloneWhole(t *testing.T) {
	was := cloneWhole
	defer func() { cloneWhole = was }()
	for _, supported := range []bool{true, false} {
		p := placeOf(t)
		root := p.Root.Path()
		require.NoError(t, os.MkdirAll(root+"/a/b", 0o755))
		require.NoError(t, os.WriteFile(root+"/a/b/f", []byte("f"), 0o644))
		called := false
		cloneWhole = func(from, to string) error {
			called = true
			if !supported {
				return errors.ErrUnsupported
			}
			return os.CopyFS(to, os.DirFS(from))
		}
		l, err := p.Make("one", Clone, CloneOptions{Copy: true})
		require.NoError(t, err)
		defer l.Close()
		assert.True(t, called)
		names, err := os.ReadFile(filepath.Join(l.Path(), namesName))
		require.NoError(t, err)
		assert.Regexp(t, "^[0-9]+ a\x00[0-9]+ a/b\x00[0-9]+ a/b/f\x00$", string(names))
		require.NoError(t, os.Remove(filepath.Join(l.Workspace(), "a/b/f")))
		var got []string
		_, err = l.Changes(t.Context(), ChangeOptions{}, func(c *Change) error { got = append(got, string(c.Path)); return nil })
		require.NoError(t, err)
		assert.Equal(t, []string{"a/b/f"}, got)
	}
}

// TestClockSetBack: what was written since a clock was set back has old change times: nothing
// in the root has a base then, and of a clone all is compared.
func TestClockSetBack(t *testing.T) {
	was := ahead
	defer func() { ahead = was }()
	now := int64(1e18)
	ahead = func() int64 { return now }
	p := placeOf(t)
	for _, f := range []string{"f", "g"} {
		require.NoError(t, os.WriteFile(filepath.Join(p.Root.Path(), f), []byte("1"), 0o644))
	}
	first, err := disk.Stamp(p.Dir)
	require.NoError(t, err)
	for in := first; in.Ctime <= first.Ctime+2*int64(disk.FineTick); {
		in, err = disk.Stamp(p.Dir)
		require.NoError(t, err)
	}
	l, err := p.Make("one", Clone, CloneOptions{Copy: true})
	require.NoError(t, err)
	l.Close()
	l, err = p.Open("one")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, os.WriteFile(filepath.Join(l.Workspace(), "f"), []byte("2"), 0o644))
	l.facts.Cloned = 1 << 62 // as if the clock had been later
	known := ChangeOptions{Known: func(tree.Path) (*tree.Entry, bool) { return nil, true }}
	settled := func() (out []string) {
		_, err = l.Changes(t.Context(), known, func(c *Change) error {
			ok, err := c.Settled()
			_, was := c.was()
			out = append(out, fmt.Sprint(c.Path, ok, was))
			return err
		})
		require.NoError(t, err)
		return out
	}
	now -= int64(time.Second)
	assert.Equal(t, []string{"ffalse false"}, settled()[:1])
	now += int64(2 * time.Second)
	l.facts.Cloned = 1
	assert.Equal(t, []string{"ftrue true"}, settled())
}
