//go:build unix

package capture

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// moment waits until what is written from now on is told from what was written before, and
// returns the moment between the two.
func (s *site) moment() int64 {
	first, err := disk.Stamp(s.req.CacheDir)
	require.NoError(s.t, err)
	for {
		in, err := disk.Stamp(s.req.CacheDir)
		require.NoError(s.t, err)
		if in.Ctime > first.Ctime+int64(disk.FineTick) {
			return in.Ctime
		}
	}
}

func (s *site) sh(script string) {
	s.t.Helper()
	c := exec.Command("sh", "-euc", script)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	require.NoError(s.t, err, "%s", out)
}

// TestSightings: what was edited before the moment, between the moment and the look, and
// after the look; and what is then known of the moment.
func TestSightings(t *testing.T) {
	as := map[tree.Path]string{"a": "1", "d": "dir 755", "d/b": "2", "d/e": "dir 755", "d/e/c": "3", "d/l": "link b", "new": "none", "d/new": "none", "d/new/x": "none", "d/e/new": "none", "a/x": "none", "ign": "?", "out/o": "?", "d/ign": "none"}
	for _, c := range []struct {
		name, before, early, late string
		want                      map[tree.Path]string // beside as
		moves                     bool                 // only where the file system's MoveTimes
	}{
		{name: "nothing"},
		{name: "all of it later", late: `echo x >a; echo x >d/b; mv d/e x; mkdir d/e; echo y >d/e/c; touch d/new; rm d/l; chmod 700 d`},
		{name: "a file of the cache edited before", before: `echo x >a`, want: map[tree.Path]string{"a": "?", "a/x": "?"}},
		{name: "a file edited during", early: `echo x >a`, want: map[tree.Path]string{"a": "?", "a/x": "?"}},
		{name: "edited before, and back during", before: `cp -p d/b ../b; echo x >d/b`, early: `cp -p ../b d/b`, want: map[tree.Path]string{"d/b": "?"}},
		{name: "replaced before", before: `cp -p d/b d/bb; mv d/bb d/b`, want: map[tree.Path]string{"d/b": "?"}},
		{name: "made before", before: `echo x >d/new`, late: `rm d/new`, want: map[tree.Path]string{"d/new": "?", "d/new/x": "?"}},
		{name: "deleted before", before: `rm d/b`, late: `echo 2 >d/b`, want: map[tree.Path]string{"d/b": "none"}},
		{name: "a directory deleted before", before: `rm -r d/e`, late: `mkdir d/e; echo 3 >d/e/c`, want: map[tree.Path]string{"d/e": "none", "d/e/c": "none"}},
		{name: "a name given during", early: `echo x >d/x`, want: map[tree.Path]string{
			"d": "?", "d/b": "?", "d/e": "?", "d/e/c": "?", "d/e/new": "?", "d/l": "?", "d/new": "?", "d/new/x": "?", "d/ign": "?"}},
		{name: "a name given during in the root", early: `: >x; rm x`, want: map[tree.Path]string{"a": "?", "new": "?", "a/x": "?"}, moves: true},
		{name: "a directory moved before, and back during", before: `mv d x; cp -a x d`, early: `rm -r d; mv x d`, want: map[tree.Path]string{
			"a": "?", "d": "?", "d/b": "?", "d/e": "?", "d/e/c": "?", "d/e/new": "?", "d/l": "?", "d/new": "?", "d/new/x": "?", "d/ign": "?", "new": "?", "a/x": "?"}},
		{name: "a mode before", before: `chmod 700 d/e; chmod 600 a`, late: `chmod 755 d/e`, want: map[tree.Path]string{"d/e": "dir 700", "a": "?", "a/x": "?"}},
		{name: "another kind before", before: `rm a d/b d/l; mkdir a; ln -s x d/b; echo x >d/l`, want: map[tree.Path]string{"a": "?", "a/x": "none", "d/b": "?", "d/l": "?"}},
		{name: "directories made before", before: `mkdir -p d/made/deep; echo x >d/made/deep/f`, late: `echo y >d/made/deep/y; rm d/made/deep/f; mkdir d/made/more`, want: map[tree.Path]string{
			"d/made": "?", "d/made/deep": "?", "d/made/deep/f": "?", "d/made/deep/y": "none", "d/made/more": "none", "d/made/more/x": "none", "d/made/deep/f/x": "?"}},
		{name: "a name given during in a directory made before", before: `mkdir -p d/made/deep`, early: `echo x >d/made/x`, want: map[tree.Path]string{
			"d/made": "?", "d/made/x": "?", "d/made/y": "?", "d/made/deep": "?", "d/made/deep/x": "?"}},
		{name: "a directory made during", early: `mkdir out/made`, want: map[tree.Path]string{"out/made": "?", "out/made/x": "?"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWalks(t, func(t *testing.T, s *site) {
				if c.moves && !s.req.Root.FileSystem().MoveTimes {
					t.Skip("what is moved keeps its change time here")
				}
				s.sh(`mkdir -p d/e out; printf 1 >a; printf 2 >d/b; printf 3 >d/e/c; ln -s b d/l; printf 'ign\nout/\n' >.gitignore; echo i >ign; echo o >out/o`)
				s.req.start = always
				require.NoError(t, s.capture().Commit())
				s.sh(c.before)
				sights, err := OpenSightings(s.req.Root, s.req.CacheDir)
				require.NoError(t, err)
				defer sights.Close()
				before := s.moment()
				s.sh(c.early)
				require.NoError(t, sights.Look(t.Context(), before))
				s.sh(c.late)
				require.NoError(t, sights.Look(t.Context(), before)) // takes nothing away
				want := map[tree.Path]string{}
				for p, what := range as {
					want[p] = what
				}
				for p, what := range c.want {
					want[p] = what
				}
				assert.Equal(t, want, s.seen(sights, want))
			})
		})
	}
}

// seen is what is known of paths.
func (s *site) seen(sights *Sightings, paths map[tree.Path]string) map[tree.Path]string {
	out := map[tree.Path]string{}
	for p := range paths {
		was, known := sights.Was(p)
		switch {
		case !known:
			out[p] = "?"
		case was == nil:
			out[p] = "none"
		case was.Type == tree.Dir:
			out[p] = "dir 755"
			if was.Mode != 0o755 {
				out[p] = "dir 700"
			}
		case was.Type == tree.Symlink:
			out[p] = "link " + was.Target
		default:
			b, err := s.store.get(was.SHA256)
			require.NoError(s.t, err)
			out[p] = string(b)
		}
	}
	return out
}

// TestSightingsOfNothing: with a damaged cache, without a moment, and when it is ended before it
// begins, nothing is known; without a cache the names alone.
func TestSightingsOfNothing(t *testing.T) {
	s := newSite(t)
	s.write("d/a", "1")
	nothing := map[tree.Path]string{"": "?", "d": "?", "d/a": "?", "d/b": "?", "b": "?"}
	look := func(ctx context.Context, before int64) map[tree.Path]string {
		sights, err := OpenSightings(s.req.Root, s.req.CacheDir)
		require.NoError(t, err)
		defer sights.Close()
		require.NoError(t, sights.Look(ctx, before))
		return s.seen(sights, nothing)
	}
	before := s.moment()
	assert.Equal(t, map[tree.Path]string{"": "?", "d": "?", "d/a": "?", "d/b": "none", "b": "none"}, look(t.Context(), before))
	s.req.start = always
	require.NoError(t, s.capture().Commit())
	assert.Equal(t, nothing, look(t.Context(), 0))
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Equal(t, nothing, look(ended, before))
	assert.NotEqual(t, nothing, look(t.Context(), before))

	fake := &fakeDisk{refuse: map[string]error{"d/a?": syscall.EIO}}
	sights, err := OpenSightings(fake.wrap(s.req.Root), s.req.CacheDir)
	require.NoError(t, err)
	defer sights.Close()
	require.ErrorIs(t, sights.Look(t.Context(), before), syscall.EIO)
	fake.refuse["d/a?"] = syscall.EACCES
	require.NoError(t, sights.Look(t.Context(), before))
	assert.Equal(t, map[tree.Path]string{"": "dir 755", "d": "dir 755", "d/a": "?", "d/b": "none", "b": "none"}, s.seen(sights, nothing))

	b, err := os.ReadFile(s.cache + "/cache")
	require.NoError(t, err)
	b[headSize+hFiles] ^= 1
	require.NoError(t, os.WriteFile(s.cache+"/cache", b, 0o600))
	assert.Equal(t, nothing, look(t.Context(), before))
}

// TestRecall: the cache of a capture right before the moment tells by itself, whatever came later.
func TestRecall(t *testing.T) {
	bothWalks(t, func(t *testing.T, s *site) {
		s.sh(`mkdir -p d/e out; printf 1 >a; printf 2 >d/b; printf 3 >d/e/c; ln -s b d/l; printf 'ign\nout/\n' >.gitignore; echo i >ign; echo o >out/o`)
		require.NoError(t, s.capture().Commit())
		sights, err := OpenSightings(s.req.Root, s.req.CacheDir)
		require.NoError(t, err)
		defer sights.Close()
		sights.Recall()
		s.sh(`echo x >a; rm -r d; echo new >new`)
		require.NoError(t, sights.Look(t.Context(), s.moment()))
		want := map[tree.Path]string{"a": "1", "d": "dir 755", "d/b": "2", "d/e": "dir 755", "d/e/c": "3", "d/l": "link b", "new": "none", "d/new": "none", "d/new/x": "none", "d/e/new": "none", "a/x": "none",
			"d/l/x": "none", "ign": "?", "out": "?", "out/o": "?"}
		assert.Equal(t, want, s.seen(sights, want))
	})
}
