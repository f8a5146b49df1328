package recorder

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/project"
)

// otherBoot has the layer be one of another boot.
func (b *isolatedBench) otherBoot() {
	b.t.Helper()
	name := filepath.Join(b.layerDir(), "layer.json")
	text, err := os.ReadFile(name)
	require.NoError(b.t, err)
	var facts map[string]any
	require.NoError(b.t, json.Unmarshal(text, &facts))
	facts["boot"] = "another boot"
	text, err = json.Marshal(facts)
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(name, text, 0o600))
}

// TestPublishGitTorn: what a power failure has left of a layer's .git comes into no repository, and
// a ref without a value is not taken for a deleted one.
func TestPublishGitTorn(t *testing.T) {
	const object = "$(git rev-parse new | sed 's,^..,.git/objects/&/,')"
	const blob = "$(git rev-parse new:b | sed 's,^..,.git/objects/&/,')"
	for name, c := range map[string]struct {
		tear  string
		other bool // it is seen by the boot alone
	}{
		"an empty object":            {"chmod u+w " + object + "; : >" + object, false},
		"an object of zeros":         {"chmod u+w " + blob + "; n=$(stat -c %s " + blob + "); head -c $n /dev/zero >" + blob, false},
		"a missing object":           {"rm " + blob, true},
		"a cut pack":                 {"git gc -q; chmod u+w .git/objects/pack/*.pack; truncate -s -5 .git/objects/pack/*.pack", false},
		"a cut index of a pack":      {"git gc -q; chmod u+w .git/objects/pack/*.idx; truncate -s -5 .git/objects/pack/*.idx", false},
		"an empty ref":               {": >.git/refs/heads/main", false},
		"a ref of zeros":             {"head -c 41 /dev/zero >.git/refs/heads/main", false},
		"a ref that is a link":       {"rm .git/refs/heads/main; ln -s new .git/refs/heads/main", false},
		"empty packed refs":          {": >.git/packed-refs", false},
		"packed refs that are cut":   {"truncate -s -5 .git/packed-refs", false},
		"packed refs with zeros":     {"head -c 40 /dev/zero >>.git/packed-refs", false},
		"an empty HEAD":              {": >.git/HEAD", false},
		"a HEAD that leaves refs":    {"echo ref: refs/heads/../../../x >.git/HEAD", false},
		"a ref that leaves refs":     {"echo ref: refs/heads/../../../x >.git/refs/heads/main", false},
		"a missing pack of all else": {"git gc -q; rm -f .git/objects/pack/*", true},
	} {
		t.Run(name, func(t *testing.T) {
			b := commitBench(t, IsolatedOptions{Copy: true})
			b.sh(filepath.Join(b.layerDir(), "clone/tree"), c.tear)
			if c.other {
				b.otherBoot()
			}
			before := b.git("for-each-ref")
			r := b.open()
			_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
			require.NoError(t, r.Close())
			require.Error(t, err)
			assert.Equal(t, before, b.git("for-each-ref"))
			assert.Equal(t, "refs/heads/main", b.git("symbolic-ref", "HEAD"))
			b.sh(b.root, "git fsck --full --strict 2>&1 | grep -v dangling | (! grep .)")
			require.True(t, b.waits())
			require.NoError(t, b.publish(), "the files are in the store")
			require.True(t, b.waits())
			require.NotEmpty(t, b.layerDir())
		})
	}
}

// TestPublishGitAfterAnotherBoot: what is sound is brought. A ref that the layer lacks may be one
// that the machine forgot, and is left alone.
func TestPublishGitAfterAnotherBoot(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.otherBoot()
	res := with(b.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Publish(context.Background(), PublishOptions{WithGit: true})
	})
	assert.Contains(t, strings.Join(res.Notes, "\n"), "not deleted: refs/heads/old")
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"))
	assert.Equal(t, "first", b.git("log", "--format=%s", "old"))
	assert.Empty(t, b.git("fsck", "--full", "--strict"))
}

// TestPublishGitTornOnItsWay: an object of the tree that a publish has brought in another boot, and which died before it
// brought what that names, does not hide that the layer has lost it since.
func TestPublishGitTornOnItsWay(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	top := filepath.Join(b.layerDir(), "clone/tree")
	b.sh(top, "o=objects/$(git rev-parse new | sed 's,^..,&/,'); mkdir -p "+b.root+"/.git/$(dirname $o); cp .git/$o "+b.root+"/.git/$o; rm $(git rev-parse new:b | sed 's,^..,.git/objects/&/,')")
	b.otherBoot()
	r := b.open()
	_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
	require.NoError(t, r.Close())
	require.ErrorIs(t, err, errGitMissing)
	assert.Equal(t, "first", b.git("log", "--format=%s"))
}

// TestPublishGitAfterAPrune: a commit whose parent the tree's repository has pruned since is not brought. The layer of a
// copy has the parent, and stays; when that was fetched from there, all is brought.
func TestPublishGitAfterAPrune(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.publishGit()
	b.isolated(`git checkout -q -b third; echo c >c; git add c; git commit -q -m third`)
	b.sh(b.root, "git reset -q --hard HEAD~1; git branch -q -f main HEAD; git tag -d v2 >/dev/null; git reflog expire --expire=now --all; rm -f .git/ORIG_HEAD; git gc -q --prune=now")
	r := b.open()
	_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
	require.NoError(t, r.Close())
	require.ErrorIs(t, err, errGitMissing)
	assert.Contains(t, project.HintOf(err), "git fetch")
	assert.Empty(t, b.git("fsck", "--full", "--strict"))
	require.NotEmpty(t, b.layerDir())
	b.sh(b.root, "git fetch -q "+filepath.Join(b.layerDir(), "clone/tree")+" third")
	b.publishGit()
	assert.Equal(t, "third\nsecond\nfirst", b.git("log", "--format=%s"))
}

// TestPublishGitPartialClone: an object that a partial clone lacks by right is not missed after another boot.
func TestPublishGitPartialClone(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.sh(filepath.Join(b.layerDir(), "clone/tree"), "rm $(git rev-parse new:b | sed 's,^..,.git/objects/&/,')")
	b.sh(b.root, "git repack -q -a -d; for p in .git/objects/pack/*.pack; do : >${p%.pack}.promisor; done")
	b.otherBoot()
	b.publishGit()
	assert.Equal(t, "refs/heads/new", b.git("symbolic-ref", "HEAD"))
}
