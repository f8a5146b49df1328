package recorder

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
)

// commitBench has a draft that made a commit, a tag and a branch, and deleted a packed one.
func commitBench(t *testing.T, how IsolatedOptions) *isolatedBench {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	b := &isolatedBench{newBench(t), how}
	b.sh(b.root, `git init -q -b main; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; git branch old; git tag -a -m v1 v1; git pack-refs --all`)
	b.isolated(`echo b >b; git add b; git commit -q -m second; git tag v2; git branch -q -D old; git checkout -q -b new`)
	return b
}

func (b *isolatedBench) git(args ...string) string {
	b.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = b.root
	out, err := c.CombinedOutput()
	require.NoError(b.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// TestPublishGitDies ends the process at steps of a publish with git: the next command
// finishes it, or the draft waits and can be published again. Then git finds everything.
func TestPublishGitDies(t *testing.T) {
	var steps []disktest.Step
	b := commitBench(t, IsolatedOptions{Copy: true})
	publish := func(b *isolatedBench, hook func(disktest.Step) disktest.Action) error {
		s := &sweep{bench: b.bench, t: t}
		return s.try(disktest.Inject(disk.OS, hook), func(r *Recorder) error {
			_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
			return err
		})
	}
	require.NoError(t, publish(b, func(s disktest.Step) disktest.Action {
		steps = append(steps, s)
		return disktest.Action{}
	}))
	var deaths []int
	const others = 60
	for i, s := range steps {
		if s.Write && (strings.Contains(s.Path, "/.git/") || i%others == 0 || strings.Contains(s.Path, "records.jsonl")) {
			deaths = append(deaths, s.N)
		}
	}
	t.Log(len(deaths), "deaths among", len(steps), "steps")
	every := disktest.Stride(6)
	for i := 0; i < len(deaths); i += every {
		b := commitBench(t, IsolatedOptions{Copy: true})
		at := deaths[i]
		err := publish(b, func(s disktest.Step) disktest.Action { return disktest.Action{Die: s.N == at} })
		r := b.open()
		_, rerr := r.Recover(context.Background(), false)
		require.NoError(t, rerr)
		waiting, werr := r.WaitingDrafts()
		require.NoError(t, werr)
		if len(waiting) > 0 {
			require.Error(t, err)
			assert.Equal(t, "first", b.git("log", "--format=%s"), "step %d: %v", at, steps[at])
			_, err := r.Publish(context.Background(), PublishOptions{WithGit: true})
			require.NoError(t, err, "step %d: %v", at, steps[at])
		}
		require.NoError(t, r.Close())
		assert.Equal(t, "second\nfirst", b.git("log", "--format=%s", "new"), "step %d: %v", at, steps[at])
		assert.Equal(t, "refs/heads/new", b.git("symbolic-ref", "HEAD"))
		assert.Equal(t, "refs/heads/main\nrefs/heads/new\nrefs/tags/v1\nrefs/tags/v2", b.git("for-each-ref", "--format=%(refname)"), "step %d: %v", at, steps[at])
		assert.Empty(t, b.git("status", "--porcelain"), "step %d: %v", at, steps[at])
		assert.Empty(t, b.git("fsck", "--full", "--strict"), "step %d: %v", at, steps[at])
		locks, err := filepath.Glob(b.root + "/.git/*.lock")
		require.NoError(t, err)
		assert.Empty(t, locks, "step %d: %v", at, steps[at])
	}
}

// TestPublishGitShared: what a publish makes and replaces in a .git that a group shares the group can write, and what it makes in
// one that nobody else may enter nobody else can read.
func TestPublishGitShared(t *testing.T) {
	for mode, want := range map[string][3]string{"group": {"2775", "664", "444"}, "0600": {"700", "600", "400"}, "umask": {"755", "644", "444"}} {
		t.Run(mode, func(t *testing.T) {
			gitHome(t)
			b := &isolatedBench{newBench(t), IsolatedOptions{Copy: true}}
			b.sh(b.root, `umask 022; git init -q -b main --shared=`+mode+`; git config user.name n; git config user.email e; echo a >a; git add a; git commit -q -m first; [ `+mode+` != 0600 ] || chmod -R go= .git`)
			b.isolated(`for i in 1 2 3 4 5 6 7 8 9; do echo $i >b; git add b; git commit -q -m $i; done; git branch new/er`)
			with(b.bench, func(r *Recorder) (*MoveResult, error) {
				return r.Publish(context.Background(), PublishOptions{WithGit: true})
			})
			for i, find := range []string{"-type d -path '*/objects/??' -o -type d -path '*/refs/heads*'", "-name main -o -name er -o -name index -o -name HEAD -path '*/logs/*'", "-type f -path '*/objects/??/*'"} {
				c := exec.Command("sh", "-c", "find .git "+find+" | xargs stat -c %a | sort -u")
				c.Dir = b.root
				out, err := c.Output()
				require.NoError(t, err)
				assert.Equal(t, want[i], strings.TrimSpace(string(out)), find)
			}
		})
	}
}
