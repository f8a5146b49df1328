package recorder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/history"
	"decree/tree"
)

// gitBench is a bench whose tree is a repository, with a home for git's own settings.
type gitBench struct {
	*bench
	home string
}

func newGitBench(t *testing.T) *gitBench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	g := &gitBench{bench: newBench(t)}
	g.home = filepath.Join(g.base, "home")
	require.NoError(t, os.Mkdir(g.home, 0o755))
	g.git("init", "-q", "-b", "main")
	return g
}

func (g *gitBench) git(args ...string) string {
	g.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@h"}, args...)...)
	c.Dir, c.Env = g.root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.home}
	out, err := c.CombinedOutput()
	require.NoError(g.t, err, "%v: %s", args, out)
	return string(out)
}

func (g *gitBench) write(path, data string) {
	g.t.Helper()
	require.NoError(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(g.t, os.WriteFile(path, []byte(data), 0o644))
}

// sees is the tree's files as decree sees them.
func (g *gitBench) sees() (files []string) {
	g.t.Helper()
	r := g.open()
	defer r.Close()
	res, err := r.captureToCompare(context.Background())
	require.NoError(g.t, err)
	defer res.Close()
	for it, err := range res.Entries() {
		require.NoError(g.t, err)
		if it.Entry.Type != tree.Dir {
			files = append(files, string(it.Path))
		}
	}
	return files
}

// gitSees is the same as git sees them.
func (g *gitBench) gitSees() []string {
	out := g.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var files []string
	for _, f := range strings.Split(out, "\x00") {
		if f != "" && !strings.HasPrefix(f, ".decree/") {
			files = append(files, f)
		}
	}
	slices.Sort(files)
	return files
}

// TestGitExcludes compares with git: rules in the tree, in info/exclude and in the user's
// global file, wherever a config puts that.
func TestGitExcludes(t *testing.T) {
	g := newGitBench(t)
	rng := rand.New(rand.NewPCG(seedOf(t, 7), 0))
	names := []string{"a", "b", "c.o", "d.txt", "e"}
	dirs := []string{"", "a", "b", "a/b", "e", "e/a"}
	for _, dir := range dirs {
		for _, name := range names {
			if path := filepath.Join(dir, name); !slices.Contains(dirs, path) {
				g.write(filepath.Join(g.root, path), "x")
			}
		}
	}
	rule := func() string {
		return []string{"", "!", "/", "!/", "a/", "**/", "# "}[rng.IntN(7)] + []string{"a", "b", "*.o", "d.*", "e", "e/a", "*"}[rng.IntN(7)] + []string{"", "", "/"}[rng.IntN(3)]
	}
	rules := func() string {
		var b strings.Builder
		for range rng.IntN(4) {
			b.WriteString(rule() + "\n")
		}
		return b.String()
	}
	usual, mine := filepath.Join(g.home, ".config", "git", "ignore"), filepath.Join(g.home, "my rules")
	settings := []struct{ config, home string }{
		{"", ""}, {"", "[core]\n\texcludesFile = ~/my rules\n"}, {"", "[Core]\n excludesfile = \"~/my rules\" ; mine\n"},
		{"[core]\n\texcludesfile = " + mine + "\n", "[core]\n\texcludesFile = /nowhere\n"}, {"", "[core]\n\texcludesFile =\n"},
		{"", "[alias]\n\tx = \"!f() { echo \\\"a\\\"; }; f\"\n"},
	}
	config, err := os.ReadFile(filepath.Join(g.root, ".git", "config"))
	require.NoError(t, err)
	differ := 0
	for i := range 60 {
		s := settings[i%len(settings)]
		g.write(filepath.Join(g.root, ".git", "config"), string(config)+s.config)
		g.write(filepath.Join(g.home, ".gitconfig"), s.home)
		own, global, other := rules(), rules(), rules()
		g.write(filepath.Join(g.root, ".git", "info", "exclude"), own)
		g.write(mine, global)
		g.write(usual, other)
		g.write(filepath.Join(g.root, ".gitignore"), rules())
		g.write(filepath.Join(g.root, "a", ".gitignore"), rules())
		want := g.gitSees()
		require.Equal(t, want, g.sees(), "info/exclude %q, my rules %q, the usual %q, %+v", own, global, other, s)
		g.write(filepath.Join(g.root, ".decree", "config.yml"), "capture:\n  git_excludes: false\n")
		if !slices.Equal(want, g.sees()) {
			differ++
		}
		require.NoError(t, os.Remove(filepath.Join(g.root, ".decree", "config.yml")))
	}
	require.Greater(t, differ, 10, "they must matter")
}

// TestGitExcludesInAWorktree: info/exclude is the repository's, whose .git lies elsewhere.
func TestGitExcludesInAWorktree(t *testing.T) {
	g := newGitBench(t)
	g.write(filepath.Join(g.root, "f"), "x")
	g.git("add", "f")
	g.git("commit", "-qm", "first")
	g.git("worktree", "add", "-q", filepath.Join(g.base, "wt"))
	g.write(filepath.Join(g.root, ".git", "info", "exclude"), "*.o\n")
	g.root = filepath.Join(g.base, "wt")
	g.write(filepath.Join(g.root, "x.o"), "x")
	g.write(filepath.Join(g.root, "y"), "y")
	require.Equal(t, []string{"f", "y"}, g.gitSees())
	require.Equal(t, []string{"f", "y"}, g.sees())
}

// TestGitExcludesAreFrozen: a command that changes them hides nothing from its record and
// deletes nothing that they left out; between records the change is none of the tree's.
func TestGitExcludesAreFrozen(t *testing.T) {
	g := newGitBench(t)
	exclude := filepath.Join(g.root, ".git", "info", "exclude")
	g.write(exclude, "*.log\n")
	g.write(filepath.Join(g.home, ".config", "git", "ignore"), "*~\n")
	for _, name := range []string{"a", "x.log", "b~"} {
		g.write(filepath.Join(g.root, name), name)
	}
	res := runTelling(&sweep{bench: g.bench, t: t}, `printf 'a\n' >.git/info/exclude; echo more >>a; echo more >>x.log; exit 1`)
	require.Equal(t, history.StatusReverted, res.Record.Status, res.Notes)
	require.Equal(t, "a", text(t, filepath.Join(g.root, "a")))
	require.Equal(t, "x.logmore\n", text(t, filepath.Join(g.root, "x.log")))
	require.Equal(t, "b~", text(t, filepath.Join(g.root, "b~")))
	require.Len(t, res.Changes, 1)
	rec := with(g.bench, func(r *Recorder) (*history.Record, error) {
		return r.Checkpoint(context.Background(), CheckpointOptions{})
	})
	if o, has := rec.Outside(); has {
		data, _ := os.ReadFile(filepath.Join(g.root, ".decree", "runs", rec.ID, "outside.diff"))
		require.Fail(t, "only the rules changed", "%+v\n%s", o, data)
	}
}

// TestGitExcludeThatCannotBeRead is an error, not a rule less.
func TestGitExcludeThatCannotBeRead(t *testing.T) {
	g := newGitBench(t)
	g.write(filepath.Join(g.root, ".git", "info", "exclude"), strings.Repeat("x", 2<<20))
	r := g.open()
	defer r.Close()
	_, err := r.captureToCompare(context.Background())
	require.ErrorContains(t, err, ".git/info/exclude")
	require.NoError(t, os.RemoveAll(filepath.Join(g.root, ".git", "info", "exclude")))
	g.write(filepath.Join(g.home, ".gitconfig"), "[core\nexcludesFile = x\n")
	_, err = r.captureToCompare(context.Background())
	require.ErrorContains(t, err, ".gitconfig")
	require.Contains(t, fmt.Sprint(err), "git's own excludes")
}

// TestGitHeadMoved is told in a run's notes: the branch, the commits, packed refs, a
// detached HEAD, a worktree.
func TestGitHeadMoved(t *testing.T) {
	g := newGitBench(t)
	env := "export HOME='" + g.home + "' GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u@h GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u@h; "
	notes := func(script string) string {
		t.Helper()
		return strings.Join(runTelling(&sweep{bench: g.bench, t: t}, env+script).Notes, "\n")
	}
	const commit = "git commit -q --allow-empty -m x; "
	require.Equal(t, "HEAD moved on main, 1 commit; .git is not taken back", notes(commit))
	require.Empty(t, notes("git status >/dev/null; git gc -q --prune=now"))
	require.FileExists(t, filepath.Join(g.root, ".git", "packed-refs"))
	require.Equal(t, "HEAD moved main -> feat, 2 commits; .git is not taken back", notes("git checkout -qb feat; "+commit+commit+"exit 1"))
	require.Equal(t, "HEAD moved feat -> main; .git is not taken back", notes("git checkout -q main"))
	hash := strings.TrimSpace(g.git("rev-parse", "feat"))
	require.Equal(t, "HEAD moved main -> "+hash[:7]+"; .git is not taken back", notes("git checkout -q "+hash))
	require.Contains(t, notes(commit), "HEAD moved "+hash[:7]+" -> ")
	g.git("worktree", "add", "-qb", "wt", filepath.Join(g.base, "wt"))
	g.root = filepath.Join(g.base, "wt")
	require.Equal(t, "HEAD moved on wt, 1 commit; .git is not taken back", notes(commit))
	require.Equal(t, "HEAD moved wt -> other; .git is not taken back", notes("git pack-refs --all; git checkout -qb other"))
}

// TestGitUnderWay is told in a run's notes with the way out, which works: what git began and did not end over files that
// are put back is finished by the next commit otherwise, as if it had them.
func TestGitUnderWay(t *testing.T) {
	g := newGitBench(t)
	env := "export HOME='" + g.home + "' GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u@h GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u@h GIT_EDITOR=true; exec >/dev/null 2>&1; "
	notes := func(script string) string {
		t.Helper()
		return strings.Join(runTelling(&sweep{bench: g.bench, t: t}, env+script).Notes, "\n")
	}
	notes("echo i >f; git add .; git commit -qm i; git checkout -qb o; echo o >f; echo n >n; git add .; git commit -qm o; git checkout -q main; for m in m l; do echo $m >f; git commit -qam $m; done")
	for script, said := range map[string]string{
		"git merge o":          "a merge is under way, which 'git merge --abort' ends",
		"git cherry-pick o":    "a cherry-pick is under way, which 'git cherry-pick --abort' ends",
		"git revert HEAD^":     "a revert is under way, which 'git revert --abort' ends",
		"git rebase o":         "a rebase is under way, which 'git rebase --abort' ends",
		"git rebase --apply o": "a rebase is under way, which 'git rebase --abort' ends",
		"git format-patch --stdout o^..o >.git/p; git am .git/p": "git am is under way, which 'git am --abort' ends",
		"git bisect start; exit 1":                               "a bisect is under way, which 'git bisect reset' ends",
	} {
		before := g.git("rev-parse", "HEAD")
		told := notes(script)
		require.Contains(t, told, said+"; .git is not taken back", script)
		require.NotContains(t, notes("echo x >x; exit 1"), "under way", "it was before this run: %s", script)
		g.git(strings.Fields(strings.SplitN(said, "'", 3)[1])[1:]...)
		require.Equal(t, before, g.git("rev-parse", "HEAD"), script)
		require.Empty(t, g.git("status", "--porcelain"), script)
	}
}

// TestNewGitIsNamed: of a clone, or a submodule in a directory that was there, a put-back leaves the .git, at which the same
// command fails from then on; with it gone the command can be run again. One that was there before is not named.
func TestNewGitIsNamed(t *testing.T) {
	g := newGitBench(t)
	g.git("init", "-q", "old")
	g.write(filepath.Join(g.root, "old", "f"), "f\n")
	require.NoError(t, os.Mkdir(filepath.Join(g.root, "sub"), 0o755))
	run := func(script string) *RunResult { return runTelling(&sweep{bench: g.bench, t: t}, script) }
	const work = "echo f >>old/f; echo 'gitdir: ../.git' >sub/.git; echo l >sub/lib; mkdir -p vendor/x/.git; echo h >vendor/x/.git/HEAD; echo l >vendor/x/lib; "
	named := func(res *RunResult) (said []string) {
		for _, note := range res.Notes {
			if strings.Contains(note, ".git is not taken back") {
				said = append(said, note)
			}
		}
		return said
	}
	require.Empty(t, named(run(work+"rm -r vendor/x/.git sub/.git; exit 1")), "gone again")
	res := run(work + "exit 1")
	require.Equal(t, history.StatusReverted, res.Record.Status)
	require.Equal(t, []string{"came with the command, and stays, as .git is not taken back: sub/.git, vendor/x/.git; if the command made it, delete it before that is run again"}, named(res))
	require.Empty(t, named(run("echo f >>old/f; exit 1")), "it was there before")
}
