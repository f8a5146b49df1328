package recorder

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// publishGit publishes the only draft with git, and returns its notes.
func (b *isolatedBench) publishGit() string {
	b.t.Helper()
	res := with(b.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Publish(context.Background(), PublishOptions{WithGit: true})
	})
	return strings.Join(res.Notes, "\n")
}

// TestPublishGitRefInTheWay: where a ref cannot be moved, git's present commit, what it has staged and the logs of these stay
// those of the tree, and the layer stays; when nothing is in the way any more the rest comes.
func TestPublishGitRefInTheWay(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.sh(b.root, "git branch new/er")
	log := b.git("reflog", "HEAD")
	said := b.publishGit()
	assert.Contains(t, said, "refs/heads/new of .git is left as it is")
	assert.Contains(t, said, "HEAD of .git is left as it is: not all other refs could be moved")
	assert.Equal(t, "refs/heads/main", b.git("symbolic-ref", "HEAD"))
	assert.Equal(t, "first", b.git("log", "--format=%s"))
	assert.Equal(t, "?? b", b.git("status", "--porcelain"), "nothing is staged that the person has not staged")
	assert.Equal(t, log, b.git("reflog", "HEAD"))
	require.True(t, b.waits())
	require.NotEmpty(t, b.layerDir())

	b.sh(b.root, "git branch -D -q new/er")
	b.publishGit()
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"))
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "main"))
	assert.Equal(t, "refs/heads/new", b.git("symbolic-ref", "HEAD"))
	require.Empty(t, b.layerDir())
}

// TestPublishGitRenamedBranches: a branch can take the place of a directory of another one's name, and the
// other way round, whether it is packed or not; git then works with what is there.
func TestPublishGitRenamedBranches(t *testing.T) {
	for name, c := range map[string]struct{ before, run, branches string }{
		"to the directory":           {"git branch feature/x", "git branch -m feature/x feature", "feature main"},
		"to the directory, packed":   {"git branch feature/x; git pack-refs --all", "git branch -m feature/x feature", "feature main"},
		"deeper":                     {"git branch a/b/c", "git branch -m a/b/c a", "a main"},
		"from the directory":         {"git branch feature", "git branch -m feature feature/x", "feature/x main"},
		"the present one":            {":", "git branch -m main main/x", "main/x"},
		"the present one, elsewhere": {":", "git branch -m main other", "other"},
		"deleted alone":              {"git branch feature/x", "git branch -D -q feature/x", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			b := commitBench(t, IsolatedOptions{Copy: true})
			with(b.bench, func(r *Recorder) ([]Discarded, error) {
				return r.Discard(context.Background(), DiscardOptions{Yes: true})
			})
			b.sh(b.root, "git branch -D -q old; "+c.before)
			b.isolated("echo b >b; git add b; git commit -q -m second; " + c.run)
			b.publishGit()
			assert.Equal(t, c.branches, strings.ReplaceAll(b.git("branch", "--format=%(refname:short)"), "\n", " "))
			b.sh(b.root, "find .git/refs/heads/* .git/logs/refs/heads/* -type d -empty 2>/dev/null | (! grep .)")
			assert.Empty(t, b.git("status", "--porcelain"))
			b.sh(b.root, "for b in "+c.branches+"; do git checkout -q $b; git commit -q --allow-empty -m more; done")
			assert.Empty(t, b.git("fsck", "--full", "--strict"))
			require.Empty(t, b.layerDir())
		})
	}
}
