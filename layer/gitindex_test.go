//go:build linux || darwin

package layer_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"decree/layer"
)

// TestStagedInAnIndex: an index that git has written anew when it only read is no work of the run; one that stages something else is, in
// each version of the format and by either hash.
func TestStagedInAnIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	for _, format := range []string{"sha1", "sha256"} {
		for _, version := range []string{"2", "3", "4"} {
			s := newSite(t)
			sh(t, s.root, "git init -q --object-format="+format+" -b main; git config user.name n; git config user.email e; mkdir d; echo a >a; echo b >d/b; echo c >d/c; git add .; git commit -q -m first; echo n >n; "+
				"git update-index --index-version "+version+"; [ "+version+" != 3 ] || git update-index --skip-worktree d/c; git add -N n")
			for script, files := range map[string]int{
				"touch a d/b; git status; git update-index --refresh || true": 0,
				"git rm -q --cached a":                                     1,
				"git rm -q -r --cached .":                                  1,
				"git mv a e":                                               1,
				"git update-index --chmod=+x d/b":                          1,
				"git update-index --assume-unchanged d/b":                  1,
				"git rm -q --cached a; git add a":                          0,
				"git update-index --index-version 2; git status":           0,
				"git rm -q --cached a; git update-index --split-index":     1, // the other file
				"rm .git/index; git read-tree HEAD; git update-index -q a": 1, // n is not intended any more
			} {
				l := s.make("one", layer.Clone)
				s.run(l, script)
				_, tally := s.changes(l, layer.ChangeOptions{})
				assert.Equal(t, files, tally.Git, "%s, version %s: %s", format, version, script)
				l.Close()
				assert.NoError(t, s.place.Remove("one"))
			}
		}
	}
	s := newSite(t) // what cannot be read is passed over, as before
	sh(t, s.root, "mkdir .git; echo nonsense >.git/index")
	l := s.make("one", layer.Clone)
	assert.NoError(t, os.WriteFile(l.Workspace()+"/.git/index", []byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"), 0o600))
	_, tally := s.changes(l, layer.ChangeOptions{})
	assert.Zero(t, tally.Git)
}
