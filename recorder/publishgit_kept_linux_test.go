package recorder

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/history"
)

const commitAs = "git -c user.name=n -c user.email=e commit -q -m "

// gitHome gives git no settings but those of a test.
func gitHome(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

// layerDir is the directory of the only layer that there is; "" where there is none.
func (b *isolatedBench) layerDir() string {
	b.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(b.base, "store", "*", "layers", "2*"))
	require.NoError(b.t, err)
	if len(dirs) == 0 {
		return ""
	}
	require.Len(b.t, dirs, 1)
	return dirs[0]
}

// waits says whether the only draft that there is waits.
func (b *isolatedBench) waits() bool {
	b.t.Helper()
	return len(with(b.bench, func(r *Recorder) ([]*history.Record, error) { return r.WaitingDrafts() })) == 1
}

// TestPublishGitKeepsTheLayer: what a publish cannot bring of a .git is nowhere but in the
// layer, which therefore stays, and is named.
func TestPublishGitKeepsTheLayer(t *testing.T) {
	const repo = "git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; "
	for name, c := range map[string]struct{ before, run, named string }{
		"a repository of the run's own": {"echo a >a", "git init -q; echo b >b; git add b; " + commitAs + "x", ": .git;"},
		"one in the place of a file":    {"echo 'gitdir: /nowhere' >.git", "rm .git; git init -q; echo b >b; git add b; " + commitAs + "x", ": .git;"},
		"a nested one":                  {repo, "mkdir n; cd n; git init -q; echo b >b; git add b; " + commitAs + "x", ": n/.git;"},
		"a commit in a nested one":      {repo + "mkdir n; cd n; " + repo, "cd n; echo b >b; git add b; " + commitAs + "x", ": n/.git;"},
		"a commit in a submodule":       {repo + "mkdir .git/modules; git init -q --separate-git-dir .git/modules/m m; echo 'gitdir: ../.git/modules/m' >m/.git", "cd m; echo b >b; git add b; " + commitAs + "x", ": .git/modules;"},
		"large files":                   {repo, "echo b >b; mkdir -p .git/lfs/objects; echo x >.git/lfs/objects/x", ": .git/lfs;"},
		"a reftable":                    {repo, "echo b >b; mkdir .git/reftable; echo x >.git/reftable/tables.list", ": .git/reftable;"},
	} {
		t.Run(name, func(t *testing.T) {
			gitHome(t)
			b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
			b.sh(b.root, c.before)
			b.isolated(c.run)
			for _, withGit := range []bool{false, true} {
				res := with(b.bench, func(r *Recorder) (*MoveResult, error) {
					return r.Publish(context.Background(), PublishOptions{WithGit: withGit})
				})
				assert.Contains(t, strings.Join(res.Notes, "\n"), c.named)
				require.True(t, b.waits())
				require.NotEmpty(t, b.layerDir())
			}
		})
	}
}

// TestPublishGitShallow: commits whose parents only the layer knows to be cut off are not brought.
func TestPublishGitShallow(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.sh(b.base, "git init -q -b main other; cd other; git config user.name n; git config user.email e; git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2")
	with(b.bench, func(r *Recorder) ([]Discarded, error) {
		return r.Discard(context.Background(), DiscardOptions{Yes: true})
	})
	b.isolated("echo c >c; git fetch -q --depth 1 file://" + b.base + "/other main:refs/heads/got")
	before := b.git("for-each-ref")
	r := b.open()
	_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
	require.ErrorContains(t, err, "shallow")
	require.NoError(t, r.Close())
	assert.Equal(t, before, b.git("for-each-ref"))
	require.NoError(t, b.publish())
	require.True(t, b.waits())
	require.NotEmpty(t, b.layerDir())
}
