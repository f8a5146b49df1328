package layer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"decree/layer"
	"decree/tree"
)

// TestBaseBesideOthers: what the user does to the names of a directory says nothing of the
// old files in it, where the file system changes the change time of whatever is moved;
// the names that are not there, and what is in a directory that may have been put in the
// place of another, count as before. Who made the layer knows of each name in the root itself whether it was touched.
func TestBaseBesideOthers(t *testing.T) {
	e := []string{"d/e/f", "d/e/gone", "d/e/new"}
	all := append(slices.Clone(e), "z")
	unsettled := map[string][]string{ // a script of the user's, and what has no base then
		`true`:                        nil,
		`echo u >d/e/user`:            {"d/e/new"},
		`echo u >u`:                   {"z"},
		`echo u >u; echo u >d/u`:      append(slices.Clone(e), "z"),
		`echo u >d/u; echo u >d/e/u`:  e,
		`echo u >u; echo u >d/e/user`: {"d/e/new", "z"},
		`mv d/e/gone d/e/back; mv d/e/back d/e/gone`: {"d/e/gone", "d/e/new"},
		`ln d/e/f d/e/link; rm d/e/link`:             {"d/e/f", "d/e/new"},
		`mv d/e d/x; mv d/x d/e`:                     e,
		`mv d x; mv x d`:                             all,
		`cp -a d/e d/x; rm -r d/e; mv d/x d/e`:       e,
		`exchange d/e/f d/e/gone`:                    e,
		`exchange d other/d`:                         all,
		`exchange d/e other/d/e`:                     e,
		`exchange d/e/f other/d/e/f`:                 {"d/e/f", "d/e/new"},
		`mv other/d/e/f d/e/f`:                       {"d/e/f", "d/e/new"},
		`rm y; mv other/d/e/f y`:                     {"y", "z"},
		`mv d/e x; mv other/d/e d/e`:                 append(slices.Clone(e), "z"),
	}
	unsettledInTheRoot := map[string][]string{ // where who made the layer knows more
		`echo u >u`:                   nil,
		`echo u >u; echo u >d/u`:      nil,
		`echo u >u; echo u >d/e/user`: {"d/e/new"},
		`mv d x; mv x d`:              e,
		`exchange d other/d`:          e,
		`rm y; mv other/d/e/f y`:      {"y"},
		`mv d/e x; mv other/d/e d/e`:  e,
	}
	rules := func(path tree.Path) (*tree.Entry, bool) { return nil, strings.HasSuffix(string(path), "ignore") }
	for _, kind := range []string{"", "ext4", "tmpfs", "btrfs", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			base := t.TempDir()
			if kind != "" {
				if os.Geteuid() != 0 {
					t.Skip("only root can mount")
				}
				base = mounted(t, kind, "")
			}
			for user, want := range unsettled {
				at, err := os.MkdirTemp(base, "")
				require.NoError(t, err)
				s := newSiteAt(t, at, "root")
				sh(t, s.root, "for at in d other/d; do mkdir -p $at/e; echo f >$at/e/f; echo g >$at/e/gone; done; echo y >y")
				l := s.make("one", layer.Overlay)
				s.run(l, "echo run >d/e/f; rm d/e/gone; echo n >d/e/new; echo z >z; echo run >y")
				if names, ok := strings.CutPrefix(user, "exchange "); ok {
					a, b, _ := strings.Cut(names, " ")
					require.NoError(t, unix.Renameat2(unix.AT_FDCWD, s.root+"/"+a, unix.AT_FDCWD, s.root+"/"+b, unix.RENAME_EXCHANGE))
				} else {
					sh(t, s.root, user)
				}
				watched, whole := unsettledInTheRoot[user]
				if !whole {
					watched = want
				}
				o := layer.ChangeOptions{Known: rules}
				byMaker, byAnother := unsettledFiles(t, l, o), unsettledFiles(t, s.anew(l), o)
				if s.place.Root.FileSystem().MoveTimes {
					assert.ElementsMatch(t, watched, byMaker, user)
					assert.ElementsMatch(t, want, byAnother, user)
				} else {
					assert.Subset(t, byMaker, watched, user)
					assert.Subset(t, byAnother, want, user)
				}
			}
		})
	}
}

// TestBaseInABusyRoot: files that another program makes and removes in the root all the time, before the run and beside it,
// leave all but their own names with a base, the ignore files that are not there among them.
func TestBaseInABusyRoot(t *testing.T) {
	const busy = `for n in 1 2 3; do : >journal; rm journal; echo c >c.tmp; mv c.tmp config; done`
	for _, how := range mechanisms {
		s := newSite(t)
		sh(t, s.root, "mkdir -p d/e; echo f >d/e/f; echo y >y; echo c >config")
		l := s.make("one", how)
		sh(t, s.root, busy)
		s.run(l, "echo run >d/e/f; echo n >d/e/new; echo z >z; rm y; echo run >config; echo run >journal")
		sh(t, s.root, busy)
		assert.ElementsMatch(t, []string{"config", "journal"}, unsettledFiles(t, l, layer.ChangeOptions{}), "%s", how)
		byAnother := []string{"config", "journal", "d/e/f", "d/e/new", "y", "z"}
		if how == layer.Clone { // it never had an ignore file
			byAnother = []string{"config", "journal", "z"}
		}
		assert.ElementsMatch(t, byAnother, unsettledFiles(t, s.anew(l), layer.ChangeOptions{}), "%s", how)
	}
}

// TestBaseInAVeryBusyRoot: where more was done than the system tells, or than is remembered, nothing of the root counts as untouched.
func TestBaseInAVeryBusyRoot(t *testing.T) {
	s := newSite(t)
	l := s.make("one", layer.Clone)
	s.run(l, "echo z >z")
	touch := func(name string) {
		require.NoError(t, os.WriteFile(filepath.Join(s.root, name), nil, 0o600))
		require.NoError(t, os.Remove(filepath.Join(s.root, name)))
	}
	for range 1000 {
		touch("journal")
	}
	assert.Empty(t, unsettledFiles(t, l, layer.ChangeOptions{}))
	for n := range 40_000 {
		touch("journal" + strconv.Itoa(n))
	}
	assert.Equal(t, []string{"z"}, unsettledFiles(t, l, layer.ChangeOptions{}))
}

// TestBaseInASubvolume: a subvolume of a btrfs has a device of its own and the clock of the rest.
// What was put in its place meanwhile, a snapshot with its old times, is no base.
func TestBaseInASubvolume(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	rules := func(path tree.Path) (*tree.Entry, bool) { return nil, strings.HasSuffix(string(path), "ignore") }
	other, base := mounted(t, "btrfs", ""), mounted(t, "btrfs", "")
	all := []string{"sub/d/f", "sub/d/new", "sub/gone", "z"} // a name of the top was another's, so also "z"
	for user, want := range map[string][]string{
		`true`:                 nil,
		`echo u >>sub/d/f`:     {"sub/d/f"},
		`echo u >sub/user`:     nil,
		`mv sub x; mv x sub`:   all,
		`mv sub x; mv old sub`: all,
	} {
		at, err := os.MkdirTemp(base, "")
		require.NoError(t, err)
		s := newSiteAt(t, at, "root")
		sh(t, s.root, "btrfs -q subvolume create sub; mkdir sub/d; echo f >sub/d/f; echo g >sub/gone; btrfs -q subvolume snapshot sub old")
		l := s.make("one", layer.Overlay)
		s.run(l, "echo run >sub/d/f; rm sub/gone; echo n >sub/d/new; echo z >z")
		sh(t, s.root, user)
		assert.ElementsMatch(t, want, unsettledFiles(t, s.anew(l), layer.ChangeOptions{Known: rules}), user)
		id := s.open(s.root + "/sub").FileSystem().ID
		assert.Equal(t, s.place.Root.FileSystem().ID, id)
		assert.NotEqual(t, s.open(other).FileSystem().ID, id)
	}
}

// TestExchangedInAClone: what changes places in a clone is a change, also where that leaves the
// change times as they were.
func TestExchangedInAClone(t *testing.T) {
	for _, kind := range []string{"xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("only root can mount")
			}
			s := newSiteAt(t, mounted(t, kind, ""), "root")
			sh(t, s.root, "mkdir -p a b d/e; echo 1 >a/f; echo 2 >b/f; echo 3 >d/f; echo 4 >d/g; echo 5 >d/e/h")
			s.settle()
			l, err := s.place.Make("one", layer.Clone, layer.CloneOptions{})
			require.NoError(t, err)
			defer l.Close()
			at := l.Workspace() + "/"
			for _, pair := range [][2]string{{"a", "b"}, {"d/f", "d/g"}} {
				require.NoError(t, unix.Renameat2(unix.AT_FDCWD, at+pair[0], unix.AT_FDCWD, at+pair[1], unix.RENAME_EXCHANGE))
			}
			got, _ := s.changes(l, layer.ChangeOptions{})
			assert.Equal(t, []string{
				`a/f: file 644 "1\n" -> file 644 "2\n"`, `b/f: file 644 "2\n" -> file 644 "1\n"`,
				`d/f: file 644 "3\n" -> file 644 "4\n"`, `d/g: file 644 "4\n" -> file 644 "3\n"`,
			}, got)
		})
	}
}
