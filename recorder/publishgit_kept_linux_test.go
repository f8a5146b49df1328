package recorder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
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
		"a repository of the run's own":    {"echo a >a", "git init -q; echo b >b; git add b; " + commitAs + "x", ": .git;"},
		"one in the place of a file":       {"echo 'gitdir: /nowhere' >.git", "rm .git; git init -q; echo b >b; git add b; " + commitAs + "x", ": .git;"},
		"a nested one":                     {repo, "mkdir n; cd n; git init -q; echo b >b; git add b; " + commitAs + "x", ": n/.git;"},
		"a commit in a nested one":         {repo + "mkdir n; cd n; " + repo, "cd n; echo b >b; git add b; " + commitAs + "x", ": n/.git;"},
		"a commit in a submodule":          {repo + "mkdir .git/modules; git init -q --separate-git-dir .git/modules/m m; echo 'gitdir: ../.git/modules/m' >m/.git", "cd m; echo b >b; git add b; " + commitAs + "x", ": .git/modules;"},
		"large files":                      {repo, "echo b >b; mkdir -p .git/lfs/objects; echo x >.git/lfs/objects/x", ": .git/lfs;"},
		"no repository":                    {repo, "echo b >b; rm -r .git", ": .git;"},
		"a merge under way":                {repo + "git checkout -q -b f; git commit -q --allow-empty -m f; git checkout -q main", "git merge -q --no-commit --no-ff f; echo b >b", ": .git/MERGE_HEAD, .git/MERGE_MODE, .git/MERGE_MSG;"},
		"a merge that is ended":            {repo + "git checkout -q -b f; git commit -q --allow-empty -m f; git checkout -q main; git merge -q --no-commit --no-ff f", "git merge --quit; git config a.b c; echo b >b", ": .git/MERGE_HEAD (deleted), .git/MERGE_MODE (deleted), .git/MERGE_MSG (deleted);"},
		"a cherry-pick under way":          {repo + "git checkout -q -b f; echo f >a; git commit -q -a -m f; git checkout -q main; echo m >a; git commit -q -a -m m", "! git cherry-pick f 2>/dev/null; echo b >b", ": .git/CHERRY_PICK_HEAD, .git/MERGE_MSG;"},
		"a revert under way":               {repo + "echo b >a; git commit -q -a -m 2; echo c >a; git commit -q -a -m 3", "! git revert HEAD~1 2>/dev/null; echo b >b", ": .git/MERGE_MSG, .git/REVERT_HEAD;"},
		"a squashed merge":                 {repo + "git checkout -q -b f; echo f >f; git add f; git commit -q -m f; git checkout -q main", "git merge -q --squash f >/dev/null", ": .git/SQUASH_MSG;"},
		"a stash in another's place":       {repo + "echo w1 >a; git stash -q; echo w2 >a", "git stash drop -q; git stash -q; echo b >b", ": .git/refs/stash;"},
		"the upper stash dropped":          {repo + "echo w1 >a; git stash -q; echo w2 >a; git stash -q", "git stash drop -q; echo b >b", ": .git/refs/stash;"},
		"the lower stash dropped":          {repo + "echo w1 >a; git stash -q; echo w2 >a; git stash -q", "git stash drop -q stash@{1}; echo b >b", ": .git/refs/stash;"},
		"objects that lie elsewhere":       {repo, "git clone -q . ../o; (cd ../o; git config user.name n; git config user.email e; git commit -q --allow-empty -m o); echo $PWD/../o/.git/objects >.git/objects/info/alternates; git reset -q --hard $(git -C ../o rev-parse HEAD); echo b >b", ": .git;"},
		"a file in the repository's place": {repo, "mv .git ../g; echo 'gitdir: ../g' >.git; echo b >b", ": .git;"},
		"files that git does not know":     {repo, "echo x >.git/objects/mine; echo x >.git/NOTE; echo b >b", ": .git/NOTE, .git/objects/mine;"},
		"objects behind a link":            {repo, "mv .git/objects ../objects; ln -s $PWD/../objects .git/objects; echo b >b", ": .git;"},
		"a reftable":                       {repo, "echo b >b; mkdir .git/reftable; echo x >.git/reftable/tables.list", ": .git/reftable;"},
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
				assert.NotContains(t, strings.ReplaceAll(strings.Join(res.Notes, "\n"), ".git/refs/stash", ""), "refs/")
				require.True(t, b.waits())
				require.NotEmpty(t, b.layerDir())
			}
		})
	}
}

// TestPublishGitMergeIsEnded: a merge that stayed in the layer is ended there, and comes as one.
func TestPublishGitMergeIsEnded(t *testing.T) {
	gitHome(t)
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.root, "git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; git checkout -q -b f; echo f >f; git add f; git commit -q -m f; git checkout -q main")
	b.isolated("git merge -q --no-commit --no-ff f")
	b.publishGit()
	require.True(t, b.waits())
	b.sh(filepath.Join(b.layerDir(), "clone/tree"), "git commit -q -m merged")
	b.publishGit()
	assert.Equal(t, b.git("rev-parse", "f"), b.git("rev-parse", "main^2"))
	assert.Empty(t, b.git("status", "--porcelain"))
	require.Empty(t, b.layerDir())
}

// TestPublishGitStashes: what the run has stashed comes where the stashes before it are still there.
func TestPublishGitStashes(t *testing.T) {
	gitHome(t)
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.root, "git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; echo w1 >a; git stash -q")
	b.isolated("echo w2 >a; git stash -q; echo b >b")
	b.publishGit()
	require.Empty(t, b.layerDir())
	assert.Equal(t, "w2", b.git("show", "stash@{0}:a"))
	assert.Equal(t, "w1", b.git("show", "stash@{1}:a"))
	b.isolated("git stash clear; echo c >c")
	b.publishGit()
	require.Empty(t, b.layerDir())
	assert.Empty(t, b.git("stash", "list"))
}

// TestPublishGitStashesDie: a process that died between a stash and its log has left nothing half.
func TestPublishGitStashesDie(t *testing.T) {
	gitHome(t)
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.root, "git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; echo w1 >a; git stash -q")
	b.isolated("echo w2 >a; git stash -q; echo b >b")
	s := &sweep{bench: b.bench, t: t}
	died := false
	require.Error(t, s.try(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		died = died || s.Write && strings.Contains(s.Path, "/.git/logs/refs/")
		return disktest.Action{Die: died}
	}), func(r *Recorder) error {
		_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
		return err
	}))
	require.True(t, died)
	b.recovers()
	assert.Equal(t, "w2", b.git("show", "stash@{0}:a"))
	assert.Equal(t, "w1", b.git("show", "stash@{1}:a"))
}

// TestPublishGitNamesLogs: where the log of a branch tells of other moves than the tree's, it stays behind, and is named.
func TestPublishGitNamesLogs(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.sh(b.root, "git commit -q --allow-empty -m mine; git reset -q --soft HEAD~1")
	res := with(b.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Publish(context.Background(), PublishOptions{WithGit: true})
	})
	assert.Contains(t, strings.Join(res.Notes, "\n"), "not published of .git: logs/HEAD")
}

// TestPublishGitSplitIndex: an index whose larger part lies in another file is not brought without it.
func TestPublishGitSplitIndex(t *testing.T) {
	gitHome(t)
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.root, "git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first")
	b.isolated("echo b >b; git update-index --split-index; git add b; git commit -q -m second")
	b.publishGit()
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s"))
	b.git("status")
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

// TestPublishGitUnshallow: a run that has fetched all parents into the draft of a shallow clone is published once the tree has them too,
// as the refusal tells.
func TestPublishGitUnshallow(t *testing.T) {
	gitHome(t)
	b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
	b.sh(b.base, "git init -q -b main other; cd other; git config user.name n; git config user.email e; git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2")
	b.sh(b.root, "git init -q -b main; git config user.name n; git config user.email e; git remote add origin file://"+b.base+"/other; git fetch -q --depth 1 origin main; git reset -q --hard FETCH_HEAD")
	b.isolated("git fetch -q --unshallow origin main; echo c >c; git add c; git commit -q -m inrun")
	r := b.open()
	_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
	require.ErrorContains(t, err, "shallow")
	require.Contains(t, project.HintOf(err), "into the tree first: 'git fetch --unshallow' there")
	require.NoError(t, r.Close())
	b.sh(b.root, "git fetch -q --unshallow origin main")
	b.publishGit()
	require.Equal(t, "inrun\n2\n1", b.git("log", "--format=%s"))
}

// diesBeforeRefs publishes with git, and dies when the record's line is written and no ref moved
// but a deleted one.
func (b *isolatedBench) diesBeforeRefs() {
	b.t.Helper()
	s := &sweep{bench: b.bench, t: b.t}
	died := false
	err := s.try(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		died = died || s.Write && strings.HasSuffix(s.Path, "/.git/refs/heads/new.decree.lock")
		return disktest.Action{Die: died}
	}), func(r *Recorder) error {
		_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
		return err
	})
	require.Error(b.t, err)
	require.True(b.t, died)
}

// recovers has a recovery do what is to be done, and returns what it says.
func (b *isolatedBench) recovers() string {
	b.t.Helper()
	var said []string
	for _, done := range with(b.bench, func(r *Recorder) ([]Recovered, error) { return r.Recover(context.Background(), false) }) {
		said = append(said, done.What)
	}
	return strings.Join(said, "\n")
}

// TestPublishGitDiesAndAPersonCommits: what has come to a ref since the death is a person's, and
// stays. What the draft had there stays in its layer.
func TestPublishGitDiesAndAPersonCommits(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.diesBeforeRefs()
	b.sh(b.root, "git commit -q --allow-empty -m mine; git tag mine; git checkout -q -b theirs; git pack-refs --all")
	said := b.recovers()
	assert.Contains(t, said, "HEAD of .git is left as it is")
	assert.Contains(t, said, "refs/heads/main of .git is left as it is")
	assert.Equal(t, "mine\nfirst", b.git("log", "--format=%s", "main"))
	assert.Equal(t, "refs/heads/theirs", b.git("symbolic-ref", "HEAD"))
	assert.Equal(t, "refs/heads/main\nrefs/heads/new\nrefs/heads/theirs\nrefs/tags/mine\nrefs/tags/v1\nrefs/tags/v2", b.git("for-each-ref", "--format=%(refname)"))
	assert.Empty(t, b.git("fsck", "--full", "--strict"))
	require.True(t, b.waits())
	require.NotEmpty(t, b.layerDir())
	assert.Empty(t, b.recovers(), "it is said once")
}

// TestPublishGitDiesAndTheLayerIsDamaged: the mark knows where the refs go, so that what the
// layer has by now is in no command's way.
func TestPublishGitDiesAndTheLayerIsDamaged(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.diesBeforeRefs()
	require.NoError(t, os.WriteFile(filepath.Join(b.layerDir(), "clone/tree", ".git", "refs", "heads", "new"), make([]byte, 41), 0o644))
	b.recovers()
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"))
	assert.Equal(t, "refs/heads/new", b.git("symbolic-ref", "HEAD"))
}

// TestPublishGitDiesAndTheMarkIsLost: then nothing is moved, and the draft waits with its layer.
func TestPublishGitDiesAndTheMarkIsLost(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	b.diesBeforeRefs()
	require.NoError(t, os.Truncate(filepath.Join(b.layerDir(), "git"), 0))
	assert.Contains(t, b.recovers(), "publish --with-git")
	assert.Equal(t, "first", b.git("log", "--format=%s"))
	require.True(t, b.waits())
	with(b.bench, func(r *Recorder) (*MoveResult, error) {
		return r.Publish(context.Background(), PublishOptions{WithGit: true})
	})
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"))
	require.Empty(t, b.layerDir())
}

// TestPublishGitFlushesDirectories: a ref must not outlive a power failure that takes what it names.
func TestPublishGitFlushesDirectories(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	made := map[string]bool{}
	s := &sweep{bench: b.bench, t: t}
	require.NoError(t, s.try(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		dir := filepath.Dir(s.Path)
		switch {
		case s.Op == "Mkdir" && strings.HasSuffix(dir, "/.git/objects"):
			made[dir] = true
		case s.Op == "Sync":
			delete(made, s.Path)
		case strings.Contains(s.Path, "/.git/refs/"):
			assert.Empty(t, made, "not flushed when refs are moved")
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
		return err
	}))
}

// TestPublishGitRefused: a publish of commits alone that fails while it captures the tree is not
// finished by the next command.
func TestPublishGitRefused(t *testing.T) {
	b := commitBench(t, IsolatedOptions{Copy: true})
	require.NoError(t, b.publish())
	ctx, cancel := context.WithCancel(context.Background())
	brought := false
	s := &sweep{bench: b.bench, t: t}
	err := s.try(disktest.Inject(disk.OS, func(s disktest.Step) disktest.Action {
		brought = brought || s.Write && strings.Contains(s.Path, "/.git/objects/")
		if brought && s.Path == b.root+"/b" {
			cancel()
		}
		return disktest.Action{}
	}), func(r *Recorder) error {
		_, err := r.Publish(ctx, PublishOptions{WithGit: true})
		return err
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, b.recovers())
	assert.Equal(t, "first", b.git("log", "--format=%s"))
	require.True(t, b.waits())
	b.publishGit()
	assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"))
}
