package ignorefile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The differential test: random trees with nested ignore files, each path's
// verdict compared with git's. DECREE_LONG=1 asks for 20,000 trees.
const (
	shortTrees = 1_000
	longTrees  = 20_000
	batchTrees = 500 // trees in one repository, asked in one call
)

// gitCase is one random tree.
type gitCase struct {
	dirs  []string // "" first, parents before children
	files []string
	rules tree
}

// answer is what decided about a path: the ignore file, or "", and its line.
type answer struct {
	source string
	line   int
	negate bool
}

func (a answer) String() string {
	if a.source == "" {
		return "no rule"
	}
	return fmt.Sprintf("%s:%d (negated: %t)", a.source, a.line, a.negate)
}

func TestMatchAsGit(t *testing.T) {
	requireGit(t)
	trees := shortTrees
	if os.Getenv("DECREE_LONG") == "1" {
		trees = longTrees
	}
	for _, style := range []struct {
		name   string
		random func(*rand.Rand) gitCase
		share  int // of the trees, in parts of 10
	}{
		{"adversarial", adversarialCase, 6},
		{"mutated", mutatedCase, 4},
	} {
		t.Run(style.name, func(t *testing.T) {
			paths, decided := 0, 0
			for first := 0; first < trees*style.share/10; first += batchTrees {
				var cases []gitCase
				for i := first; i < min(first+batchTrees, trees*style.share/10); i++ {
					cases = append(cases, style.random(rand.New(rand.NewPCG(2, uint64(i)))))
				}
				p, d := compareWithGit(t, cases)
				paths, decided = paths+p, decided+d
			}
			t.Logf("%d trees, %d paths, %d of them decided by a rule", trees*style.share/10, paths, decided)
			require.Greater(t, decided, paths/10, "rules that match nothing test nothing")
		})
	}
}

// TestMatchCasesAsGit holds the table of rules with their reasons to what git does.
func TestMatchCasesAsGit(t *testing.T) {
	requireGit(t)
	var cases []gitCase
	for _, m := range matchCases {
		if gitErrs(m.rules) {
			continue
		}
		c := gitCase{dirs: []string{""}, rules: tree{"": {m.rules, ""}}}
		path, isDir := strings.CutSuffix(m.path, "/")
		for i := range len(path) {
			if path[i] == '/' {
				c.dirs = append(c.dirs, path[:i])
			}
		}
		if isDir {
			c.dirs = append(c.dirs, path)
		} else {
			c.files = []string{path}
		}
		cases = append(cases, c)
	}
	compareWithGit(t, cases)
}

// TestClassesAsGit asks about every byte.
func TestClassesAsGit(t *testing.T) {
	requireGit(t)
	var cases []gitCase
	for _, class := range strings.Fields("alnum alpha blank cntrl digit graph lower print punct space upper xdigit other ALPHA") {
		for _, rule := range []string{"[[:" + class + ":]]", "[![:" + class + ":]]", "[x[:" + class + ":]-\xff]"} {
			c := gitCase{dirs: []string{""}, rules: tree{"": {rule, ""}}}
			for b := 1; b < 256; b++ {
				if b != '/' && b != '.' {
					c.files = append(c.files, string([]byte{byte(b)}))
				}
			}
			cases = append(cases, c)
		}
	}
	compareWithGit(t, cases)
}

// requireGit skips the test without git, and where the file system does not take
// every byte in a name.
func requireGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to compare with")
	}
	if runtime.GOOS != "linux" {
		t.Skip("names of any bytes need Linux")
	}
}

// compareWithGit fails the test at the first paths that git decides otherwise. It
// returns the number of paths and of those some rule decided about.
func compareWithGit(t *testing.T, cases []gitCase) (paths, decided int) {
	t.Helper()
	want := askGit(t, cases)
	wrong := 0
	for i, c := range cases {
		ask := func(path string, isDir bool) {
			v, _, err := c.rules.explain(path, isDir)
			require.NoError(t, err)
			var got answer
			if v.Rule != nil {
				got = answer{v.Rule.Source(), v.Rule.Line(), !v.Ignored}
			}
			require.Equal(t, got.source != "" && !got.negate, v.Ignored)
			paths++
			if got.source != "" {
				decided++
			}
			if git := want[i][path]; got != git && wrong < 10 {
				wrong++
				t.Errorf("tree %d, %q (directory: %t):\n  got %v\n  git %v\n%s", i, path, isDir, got, git, c)
			}
		}
		for _, d := range c.dirs[1:] {
			ask(d, true)
		}
		for _, f := range c.files {
			ask(f, false)
		}
	}
	if wrong > 0 {
		t.FailNow()
	}
	return paths, decided
}

func (c gitCase) String() string {
	var b strings.Builder
	for _, d := range c.dirs {
		if r := c.rules[d]; r != [2]string{} {
			fmt.Fprintf(&b, "  in %q: .gitignore %q, .decreeignore %q\n", d, r[0], r[1])
		}
	}
	return b.String()
}

// askGit makes the trees in one repository and returns git's answers for all
// paths of each. Git knows no .decreeignore: its copy of each .gitignore has the
// other file's lines at the end.
func askGit(t *testing.T, cases []gitCase) []map[string]answer {
	t.Helper()
	root := t.TempDir()
	runGit(t, root, nil, "init", "-q", "--template=")
	var stdin bytes.Buffer
	for i, c := range cases {
		top := caseDir(i)
		for _, d := range c.dirs {
			require.NoError(t, os.Mkdir(filepath.Join(root, top, d), 0o755))
			writeForGit(t, filepath.Join(root, top, d), c.rules[d])
			if d != "" {
				stdin.WriteString(top + "/" + d + "\x00")
			}
		}
		for _, f := range c.files {
			require.NoError(t, os.WriteFile(filepath.Join(root, top, f), nil, 0o644))
			stdin.WriteString(top + "/" + f + "\x00")
		}
	}
	out := runGit(t, root, &stdin, "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin")
	require.NoError(t, os.RemoveAll(root))

	answers := make([]map[string]answer, len(cases))
	for i := range answers {
		answers[i] = map[string]answer{}
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Zero(t, len(fields)%4, "source, line, pattern, path")
	for ; len(fields) > 0; fields = fields[4:] {
		top, path, _ := strings.Cut(fields[3], "/")
		i, err := strconv.Atoi(top[1:])
		require.NoError(t, err)
		answers[i][path] = gitAnswer(t, cases[i], fields)
	}
	return answers
}

func caseDir(i int) string { return "t" + strconv.Itoa(i) }

func writeForGit(t *testing.T, dir string, rules [2]string) {
	t.Helper()
	content := rules[0]
	if rules[1] != "" {
		content += "\n" + strings.TrimPrefix(rules[1], "\xef\xbb\xbf")
	}
	if content != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(content), 0o644))
	}
}

// gitAnswer reads the source, line and pattern of git's answer, and finds the
// line's place before the two files were joined.
func gitAnswer(t *testing.T, c gitCase, fields []string) answer {
	t.Helper()
	if fields[0] == "" {
		return answer{}
	}
	_, source, _ := strings.Cut(fields[0], "/")
	line, err := strconv.Atoi(fields[1])
	require.NoError(t, err)
	dir := strings.TrimSuffix(strings.TrimSuffix(source, ".gitignore"), "/")
	if own := strings.Count(c.rules[dir][0], "\n") + 1; line > own {
		line -= own
		source = strings.TrimSuffix(source, ".gitignore") + ".decreeignore"
	}
	return answer{source, line, strings.HasPrefix(fields[2], "!")}
}

func runGit(t *testing.T, dir string, stdin *bytes.Buffer, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+filepath.Join(dir, ".git"), "GIT_WORK_TREE="+dir)
	if stdin != nil {
		cmd.Stdin = stdin
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// check-ignore exits with 1 when nothing is ignored.
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		require.NoError(t, err, "git %v: %s", args, stderr.String())
	}
	return out
}
