//go:build real

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRealIsolated works over a copy of the Go sources in layers: the tree is compared with
// its first state after everything that is not a publish, and after each publish is taken back.
func TestRealIsolated(t *testing.T) {
	if !canOverlay() {
		t.Skip("overlays cannot be mounted here")
	}
	r := newRealTree(t)
	r.git("init", "-q")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "the sources")
	r.first = treeOf(t, r.dir)
	r.records(0, "checkpoint", "--yes")
	t.Logf("| in isolation | created/modified/deleted | lines | run | publish | revert of it |")
	for _, story := range []struct {
		name string
		tell func()
	}{
		{"a rewrite of every file", r.isolatedRewrite},
		{"a build", r.isolatedBuild},
		{"everything deleted", r.isolatedDeletion},
		{"an agent that commits", r.isolatedCommits},
		{"four at once", r.isolatedFour},
	} {
		t.Run(story.name, func(t *testing.T) { r.t = t; story.tell() })
	}
}

func (r *realTree) git(args ...string) {
	r.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "gc.auto=0"}, args...)...)
	c.Dir, c.Env = r.dir, append(os.Environ(), "HOME="+r.home)
	out, err := c.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
}

// records runs decree and asks for its exit code.
func (r *realTree) records(code int, args ...string) string {
	r.t.Helper()
	got, out := r.decree(args...)
	require.Equal(r.t, code, got, "%v\n%s", args, out)
	return out
}

func (r *realTree) unchanged() {
	r.t.Helper()
	sameTree(r.t, r.first, treeOf(r.t, r.dir))
}

// isolated runs a script in a layer, and compares: nothing of the tree may change.
func (r *realTree) isolated(code int, name, script string) time.Duration {
	r.t.Helper()
	r.records(code, "run", "--isolated", "--name", name, "--", "sh", "-c", script)
	run := r.elapsed
	r.unchanged()
	return run
}

// published brings a draft into the tree, says what that took, and takes it back.
func (r *realTree) published(name string, run time.Duration) {
	r.t.Helper()
	r.records(0, "publish", "--yes", name)
	publish := r.elapsed
	rec := r.last()
	require.NotEqual(r.t, r.first, treeOf(r.t, r.dir))
	r.records(0, "revert", "--yes", "last")
	back := r.elapsed
	r.unchanged()
	r.t.Logf("| %s | %d/%d/%d | +%d -%d | %.2f s | %.2f s | %.2f s |", r.t.Name(), rec.Changes.Created, rec.Changes.Modified,
		rec.Changes.Deleted, rec.Changes.Added, rec.Changes.Removed, run.Seconds(), publish.Seconds(), back.Seconds())
	r.records(0, "discard", "--yes", name)
}

func (r *realTree) isolatedRewrite() {
	run := r.isolated(0, "rewrite", rewriteScript)
	r.published("rewrite", run)
}

// isolatedBuild builds all packages over the layer; what a build leaves in its cache is
// outside the root, and stays.
func (r *realTree) isolatedBuild() {
	goroot := strings.TrimSpace(r.sh(r.dir, "go env GOROOT"))
	r.sh(filepath.Dir(r.dir), "ln -s '"+goroot+"/pkg' '"+goroot+"/bin' '"+goroot+"/VERSION' .") // the sources know where they are built
	run := r.isolated(0, "build", `echo '// built' >>fmt/print.go && export GOROOT="$(dirname "$PWD")" && go build ./... && go vet ./fmt`)
	r.published("build", run)
	require.DirExists(r.t, filepath.Join(r.home, "cache"))
}

func (r *realTree) isolatedDeletion() {
	r.isolated(1, "nothing", `rm -rf -- * .[!.]*; ls -A | grep -v '^\.decree$' && exit 2; exit 1`)
	r.published("nothing", r.elapsed)
}

// isolatedCommits is what an agent does: edits, and commits of its own.
func (r *realTree) isolatedCommits() {
	head := r.sh(r.dir, "cat .git/HEAD .git/refs/heads/*")
	run := r.isolated(0, "agent", `set -e
git config user.name agent; git config user.email agent@example.org; git config gc.auto 0
echo '// one' >>fmt/print.go; git commit -qam one
git rm -q strings/builder.go; mkdir agent; echo new >agent/notes; git add -A; git commit -qm two
test "$(git rev-list --count HEAD)" = 3`)
	r.published("agent", run)
	require.Equal(r.t, head, r.sh(r.dir, "cat .git/HEAD .git/refs/heads/*"))
}

// isolatedFour lets four commands work at once. The first two change the same file in other places:
// the second is refused when the first is published, and merged.
func (r *realTree) isolatedFour() {
	scripts := []string{
		`sed -i '1s|^|// the first\n|' fmt/print.go; echo a >first.new`,
		`echo '// the second' >>fmt/print.go; rm -r unicode`,
		`find strings -name '*.go' | xargs sed -i 's/return/return /'`,
		`chmod 755 io/io.go; ln -s io.go io/link`,
	}
	var wg sync.WaitGroup
	for i, script := range scripts {
		wg.Go(func() {
			c := exec.Command(r.bin, "run", "--isolated", "--name", fmt.Sprint("four.", i+1), "--", "sh", "-c", script)
			c.Dir, c.Env = r.dir, r.env
			out, err := c.CombinedOutput()
			if err != nil {
				r.t.Errorf("%s: %v\n%s", script, err, out)
			}
		})
	}
	wg.Wait()
	r.unchanged()

	first := r.publish("four.1")
	one := treeOf(r.t, r.dir)
	require.Contains(r.t, r.records(4, "publish", "four.2"), "fmt/print.go")
	sameTree(r.t, one, treeOf(r.t, r.dir))
	second := r.publish("--merge", "four.2")
	text, err := os.ReadFile(filepath.Join(r.dir, "fmt/print.go"))
	require.NoError(r.t, err)
	require.True(r.t, strings.HasPrefix(string(text), "// the first\n") && strings.HasSuffix(string(text), "// the second\n"))
	require.NoDirExists(r.t, filepath.Join(r.dir, "unicode"))
	two := treeOf(r.t, r.dir)
	third, fourth := r.publish("four.3"), r.publish("four.4")

	r.records(0, "revert", fourth, third)
	sameTree(r.t, two, treeOf(r.t, r.dir))
	r.records(0, "revert", second)
	sameTree(r.t, one, treeOf(r.t, r.dir))
	r.records(0, "revert", first)
	r.unchanged()
	require.Equal(r.t, 4, strings.Count(r.records(0, "drafts"), "four."))
	r.records(0, "discard", "--yes", "four.1", "four.2", "four.3", "four.4")
	r.records(0, "doctor")
}

// publish returns the id of the record that it makes.
func (r *realTree) publish(args ...string) string {
	r.t.Helper()
	r.records(0, append([]string{"publish"}, args...)...)
	return r.last().ID
}
