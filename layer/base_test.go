//go:build linux || darwin

package layer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/layer"
)

// TestBase: whatever the user does while the run works, at the path or at a directory
// above it, what the root then has does not count as what the run began with, for who opens the
// layer anew, as after a death; and what he does elsewhere changes nothing for it.
func TestBase(t *testing.T) {
	const run = `echo run >d/e/f; rm d/e/gone; echo n >d/e/new; echo z >z`
	unsettled := map[string][]string{ // a script of the user's, and the files that have no base then
		`true`:              nil,
		`cat d/e/f; ls d/e`: nil, // reading is no edit
		`echo u >other/u`:   nil,
		`echo u >>other/o`:  nil,
		`echo u >>d/e/f`:    {"d/e/f"},
		`cp -p d/e/f o; echo u >d/e/f; cat o >d/e/f; touch -r o d/e/f; rm o`: {"d/e/f", "d/e/gone", "d/e/new", "z"}, // edited and edited back
		`chmod 600 d/e/f; chmod 644 d/e/f`:                                   {"d/e/f"},
		`touch -d 2001-01-01 d/e/f`:                                          {"d/e/f"},
		`cp -p d/e/f d/e/g; mv d/e/g d/e/f`:                                  {"d/e/f", "d/e/gone", "d/e/new"},
		`rm d/e/gone`:                                                        {"d/e/f", "d/e/new"}, // both deleted it: nothing is left to do
		`mv d/e d/x; cp -a d/x d/e`:                                          {"d/e/f", "d/e/gone", "d/e/new"},
		`mv d/e d/x; mv d/x d/e`:                                             {"d/e/f", "d/e/gone", "d/e/new"},
		`mv d x; mv x d`:                                                     {"d/e/f", "d/e/gone", "d/e/new", "z"},
		`echo u >d/e/new`:                                                    {"d/e/f", "d/e/gone", "d/e/new"},
		`echo u >d/e/new; rm d/e/new`:                                        {"d/e/f", "d/e/gone", "d/e/new"},
		`echo '*.x' >>d/.gitignore`:                                          {"d/e/f", "d/e/gone", "d/e/new"},
		`chmod 750 d`:                                                        {"d/e/f", "d/e/gone", "d/e/new"},
		`chmod 750 d/e/`:                                                     {"d/e/f", "d/e/gone", "d/e/new"},
		`mkdir q; rmdir q`:                                                   {"d/e/f", "d/e/gone", "d/e/new", "z"},
		`echo u >/dev/null; echo u >z`:                                       {"d/e/f", "d/e/gone", "d/e/new", "z"},
		`ln d/e/f other/link`:                                                {"d/e/f"}, // somebody can write by the other name
		`rm -r d/e; ln -s ../other d/e`:                                      {"d/e/f", "d/e/new"},
		`rm -r d`:                                                            {"d/e/f", "d/e/new", "z"},
	}
	// A clone knows that it never had an ignore file where the root still has none.
	ofClone := map[string][]string{
		`cp -p d/e/f o; echo u >d/e/f; cat o >d/e/f; touch -r o d/e/f; rm o`: {"d/e/f", "z"},
		`cp -p d/e/f d/e/g; mv d/e/g d/e/f`:                                  {"d/e/f", "d/e/new"},
		`rm d/e/gone`:                                                        {"d/e/new"},
		`echo u >d/e/new`:                                                    {"d/e/new"},
		`echo u >d/e/new; rm d/e/new`:                                        {"d/e/new"},
		`chmod 750 d`:                                                        {},
		`chmod 750 d/e/`:                                                     {"d/e/new"},
		`mkdir q; rmdir q`:                                                   {"z"},
		`echo u >/dev/null; echo u >z`:                                       {"z"},
	}
	for _, how := range mechanisms {
		for user, want := range unsettled {
			if less, is := ofClone[user]; is && how == layer.Clone {
				want = less
			}
			s := newSite(t)
			sh(t, s.root, "mkdir -p d/e other; echo f >d/e/f; echo g >d/e/gone; echo o >other/o; echo '*.y' >d/.gitignore")
			l := s.make("one", how)
			s.run(l, run)
			sh(t, s.root, user)
			assert.ElementsMatch(t, want, unsettledFiles(t, s.anew(l), layer.ChangeOptions{}), "%s: %s", how, user)
		}
	}
}

// anew is a layer as another process opens it.
func (s *site) anew(l *layer.Layer) *layer.Layer {
	s.t.Helper()
	l.Close()
	l, err := s.place.Open(filepath.Base(l.Path()))
	require.NoError(s.t, err)
	s.t.Cleanup(l.Close)
	return l
}

// unsettledFiles are the paths of the changes that are not settled, without directories.
func unsettledFiles(t *testing.T, l *layer.Layer, o layer.ChangeOptions) (out []string) {
	t.Helper()
	_, err := l.Changes(t.Context(), o, func(c *layer.Change) error {
		ok, err := c.Settled()
		file := func(in *disk.Info) bool { return in == nil || in.Kind != disk.Directory }
		if !ok && file(c.Before) && file(c.After) {
			out = append(out, string(c.Path))
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// TestBaseWhileRead: an edit between the look and the question is seen.
func TestBaseWhileRead(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "echo f >f")
	l := s.make("one", layer.Clone)
	s.run(l, "echo run >f")
	_, err := l.Changes(t.Context(), layer.ChangeOptions{}, func(c *layer.Change) error {
		ok, err := c.Settled()
		require.NoError(t, err)
		assert.True(t, ok)
		require.NoError(t, os.WriteFile(filepath.Join(s.root, "f"), []byte("u\n"), 0o644))
		ok, err = c.Settled()
		assert.False(t, ok)
		return err
	})
	require.NoError(t, err)
}

// TestBaseAfterTheShell: a file that was made in the root right before, as by the shell for
// the output, does not leave the rest without a base.
func TestBaseAfterTheShell(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "echo f >f")
	s.settle()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "out"), nil, 0o644))
	l, err := s.place.Make("one", layer.Clone, layer.CloneOptions{Copy: true})
	require.NoError(t, err)
	defer l.Close()
	s.run(l, "echo run >f; echo new >new; echo run >out")
	got, _ := s.changes(l, layer.ChangeOptions{})
	assert.Equal(t, []string{`f: file 644 "f\n" -> file 644 "run\n"`, `new: none -> file 644 "new\n"`, `out: file 644 "" -> file 644 "run\n"`}, got)
}

// TestBaseIsYoung: what was written right before the layer was made does not count, nor
// does anything where no clock of the root's file system can be read.
func TestBaseIsYoung(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, ": >f")
	s.settle()
	require.NoError(t, os.WriteFile(filepath.Join(s.root, "f"), []byte("f\n"), 0o644))
	l, err := s.place.Make("one", layer.Clone, layer.CloneOptions{Copy: true})
	require.NoError(t, err)
	defer l.Close()
	s.run(l, "rm f")
	got, _ := s.changes(l, layer.ChangeOptions{})
	assert.Equal(t, []string{`f: file 644 "f\n" -> none ?`}, got)
}

// TestBaseOfEntered: what a command first touches in a layer that is entered again it found
// as the root was then. What the run had touched is judged by the beginning of that; what is
// changed while the command works has no base; who opens the layer anew knows less, never more.
func TestBaseOfEntered(t *testing.T) {
	s := newSite(t)
	sh(t, s.root, "mkdir -p d/e gone q; echo a >a; echo same >same; echo x >d/x; echo y >d/y; echo g >gone/g; echo r >q/r")
	l := s.make("one", layer.Overlay)
	s.run(l, "echo run >>a; cp same o; cat o >same; rm o; rm -r gone; mkdir gone; echo run >d/run; mv q/r q/s")
	sh(t, s.root, "echo mine >>same; echo mine >m; mv m d/y; echo mine >new; echo mine >gone/mine")
	s.settle()
	require.NoError(t, l.Enter())
	is, err := l.Entered()
	require.NoError(t, err)
	assert.True(t, is)
	s.run(l, "echo again >>a; echo again >>d/x; echo again >>d/y; echo again >d/e/n; rm new; echo again >gone/g; echo again >>q/s; echo again >z; test ! -e gone/mine")
	sh(t, s.root, "echo late >>d/x")
	settled := func() (yes, no []string) {
		_, err := l.Changes(t.Context(), layer.ChangeOptions{}, func(c *layer.Change) error {
			ok, err := c.Settled()
			if ok {
				yes = append(yes, string(c.Path))
			} else {
				no = append(no, string(c.Path))
			}
			return err
		})
		require.NoError(t, err)
		return yes, no
	}
	yes, no := settled()
	assert.Equal(t, []string{"a", "d/e/n", "d/y", "new", "q/r", "q/s", "z"}, yes)
	assert.Equal(t, []string{"d/run", "d/x", "gone/g", "gone/mine", "same"}, no)

	l.Close()
	l, err = s.place.Open("one")
	require.NoError(t, err)
	defer l.Close()
	yes, _ = settled()
	assert.Empty(t, yes)
	require.NoError(t, l.Leave())
	is, err = l.Entered()
	require.NoError(t, err)
	assert.False(t, is)
	require.NoError(t, l.Leave())
}
