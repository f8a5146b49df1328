package cmd

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed testdata/demo
var demoProject embed.FS

// demoStep is one thing that was done on the demo project.
type demoStep struct {
	ago   time.Duration
	files map[string]string // written by hand
	line  []string          // of decree
	input string            // its stdin
	code  int               // its exit status
}

// demo makes a project in a temporary directory, with a history of two days, and has the session
// work on it. done removes it.
func (s *session) demo() (done func(), err error) {
	dir, err := os.MkdirTemp("", "decree-demo-")
	if err != nil {
		return nil, err
	}
	remove := func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	root := filepath.Join(dir, "tally")
	if err := writeDemo(root); err != nil {
		return nil, err
	}
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer nothing.Close()
	env := s.env
	env.Cwd, env.Stdin, env.Stdout = root, nothing, nothing
	env.Environ = append(slices.DeleteFunc(slices.Clone(env.Environ), func(v string) bool {
		return strings.HasPrefix(v, "DECREE_") || strings.HasPrefix(v, "XDG_")
	}), "HOME="+dir, "DECREE_STORE="+filepath.Join(dir, "store"), "LC_ALL=C")
	now := env.Now()
	for i, step := range demoSteps {
		if err := s.demoStep(env, now.Add(-step.ago), dir, step); err != nil {
			return nil, fmt.Errorf("the demo's history cannot be made: step %d: %w", i+1, err)
		}
	}
	env.Stdin, env.Stdout = s.env.Stdin, s.env.Stdout
	s.env, s.global.root = env, root
	return remove, nil
}

// demoStep does one step as if it were at another time. What it says on stderr is the error's.
func (s *session) demoStep(env Env, at time.Time, dir string, step demoStep) error {
	for name, text := range step.files {
		if err := os.WriteFile(filepath.Join(env.Cwd, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if step.line == nil {
		return nil
	}
	began := time.Now()
	env.Now = func() time.Time { return at.Add(time.Since(began)) }
	env.Args = step.line
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		return err
	}
	defer said.Close()
	env.Stderr = said
	if step.input != "" {
		name := filepath.Join(dir, "input")
		if err := os.WriteFile(name, []byte(step.input), 0o600); err != nil {
			return err
		}
		if env.Stdin, err = os.Open(name); err != nil {
			return err
		}
		defer env.Stdin.Close()
	}
	if code := Main(env); code != step.code {
		text, _ := os.ReadFile(said.Name())
		return fmt.Errorf("%s: exit status %d: %s", strings.Join(step.line, " "), code, oneLine(strings.TrimSpace(string(text))))
	}
	return nil
}

// writeDemo writes the project that was embedded. Its go.mod has another name there: of its own it
// would keep the directory out. It is a project from the beginning, lest one above it is taken for its root.
func writeDemo(root string) error {
	const from = "testdata/demo"
	if err := os.MkdirAll(filepath.Join(root, ".decree"), 0o755); err != nil {
		return err
	}
	return fs.WalkDir(demoProject, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(root, strings.TrimSuffix(strings.TrimPrefix(name, from), ".txt"))
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := demoProject.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
}

// sh is a line that a shell does.
func sh(flags, line string) []string {
	return append(append([]string{"run"}, strings.Fields(flags)...), "--", "sh", "-c", line)
}

// demoAgent is an event of a coding agent's session.
func demoAgent(event, more string) (line []string, input string) {
	return []string{"hook", "claude", event}, `{"session_id":"5f0c2a7e-demo","hook_event_name":"` + event + `"` + more + `}`
}

// agentStep is one of these as a step.
func agentStep(ago time.Duration, event, more string) demoStep {
	line, input := demoAgent(event, more)
	return demoStep{ago: ago, line: line, input: input}
}

// edited is a step of the agent's: it writes a file, and says so.
func edited(ago time.Duration, name, text string) []demoStep {
	fields := `,"tool_name":"Write","tool_input":{"file_path":"` + name + `"}`
	after := agentStep(ago, "PostToolUse", fields)
	after.files = map[string]string{name: text}
	return []demoStep{agentStep(ago, "PreToolUse", fields), after}
}

const (
	demoConfig = "# The demo's drafts wait, and yet everything can be tried.\ndrafts:\n  block: false\n"
	demoUsage  = "# Usage\n\n    tally -top 5 < book.txt\n\nWords are counted whatever the case of their letters.\n"
	demoTest   = `package words

import (
	"strings"
	"testing"
)

func TestNothing(t *testing.T) {
	got, err := Tally(strings.NewReader(""))
	if err != nil || len(got) != 0 {
		t.Fatalf("%v, %v", got, err)
	}
}
`
	demoStop = "package words\n\n// Stop are words that say nothing.\nvar Stop = map[string]bool{\"the\": true, \"a\": true, \"of\": true, \"and\": true}\n"
	demoTodo = "- a flag for stop words\n- read files, too\n"
)

// demoSteps are two days of work: a checkpoint, runs that succeed and fail, an agent's session, edits
// by hand, a race, a draft, and some things taken back.
var demoSteps = slices.Concat(
	[]demoStep{
		{ago: 50 * time.Hour, files: map[string]string{".decreeignore": "*.log\n"}, line: []string{"checkpoint", "-d", "The project as it came", "--label", "start"}},
		{ago: 49 * time.Hour, files: map[string]string{".decree/config.yml": demoConfig}, line: sh("-d Generate", `printf '\033[1mgenerate\033[0m words/list.go\n'; printf 'package words\n\n// Version is that of the list.\nconst Version = 1\n' >words/list.go; printf '\033[32mok\033[0m  1 file\n'`)},
		{ago: 48 * time.Hour, line: sh("", `sed 's/Tally/Count/g' words/tally.go >t && mv t words/tally.go; sed 's/Tally/Count/g' main.go >t && mv t main.go; echo "renamed Tally to Count in 2 files"`)},
		{ago: 47 * time.Hour, line: []string{"revert", "last"}},
		{ago: 30 * time.Hour, line: sh("", `rm -r docs; echo oops >words/tally.go; printf 'words/tally.go:1:1: \033[31mexpected package\033[0m, found oops\n' >&2; exit 1`), code: 1},
		{ago: 27 * time.Hour, files: map[string]string{"docs/usage.md": demoUsage, "TODO.md": demoTodo}, line: []string{"checkpoint", "-d", "Before the agent"}},
		agentStep(9*time.Hour, "SessionStart", `,"source":"startup","model":"opus"`),
		agentStep(9*time.Hour-time.Minute, "UserPromptSubmit", `,"prompt":"Write a test for empty input."`),
	},
	edited(9*time.Hour-2*time.Minute, "words/empty_test.go", demoTest),
	[]demoStep{
		agentStep(9*time.Hour-3*time.Minute, "Stop", ""),
		agentStep(8*time.Hour+40*time.Minute, "UserPromptSubmit", `,"prompt":"Leave out words that say nothing: the, a, of. Put the list into a file of its own, and mention it in the usage."`),
	},
	edited(8*time.Hour+38*time.Minute, "words/stop.go", demoStop),
	edited(8*time.Hour+37*time.Minute, "docs/usage.md", demoUsage+"Words that say nothing, such as *the*, are left out.\n"),
	edited(8*time.Hour+36*time.Minute, "words/list.go", "package words\n\n// Version is that of the list.\nconst Version = 2\n"),
	[]demoStep{
		agentStep(8*time.Hour+35*time.Minute, "Stop", ""),
		{ago: 8*time.Hour + 10*time.Minute, files: map[string]string{"TODO.md": "- read files, too\n"}, line: []string{"checkpoint", "-d", "The agent is done"}},
		{ago: 3 * time.Hour, line: []string{"race", "-n", "3", "--copy", "--clone", "--name", "greet", "-d", "Say more in the usage", "--judge", "grep -q tally docs/usage.md", "--", "sh", "-c", demoRace}},
		{ago: 2 * time.Hour, line: sh("--isolated --copy --clone --name tidy -d Tidy", `sed 's/print the most/print only the most/' main.go >t && mv t main.go; rm TODO.md; echo "tidied up"`)},
		{ago: 90 * time.Minute, line: []string{"send", "-m", "read-files", "Have tally read the files that are its arguments."}},
		{ago: 80 * time.Minute, line: []string{"send", "-m", "colours", "Print the counts in colour."}},
		{ago: 70 * time.Minute, line: []string{"inbox", "cancel", "colours"}},
		{ago: 60 * time.Minute, line: sh("-d Format", `printf '// Package words counts words.\npackage words\n' >words/doc.go; mkdir -p words/data; i=1; while [ $i -le 12 ]; do echo "word $i" >words/data/$i.txt; i=$((i+1)); done; echo "13 files"`)},
		{ago: 40 * time.Minute, line: []string{"restore", "--yes", "last"}},
		{ago: 20 * time.Minute, line: []string{"undo"}},
		{ago: 5 * time.Minute, files: map[string]string{"TODO.md": "- read files, too\n- a man page\n"}, line: []string{"checkpoint", "--reason", "auto"}},
	},
)

// demoRace is what the three candidates do, each in its own way.
const demoRace = `case $DECREE_CANDIDATE in
1) printf '\nSee also wc(1).\n' >>docs/usage.md;;
2) printf '# Usage\n\n    tally [-top N] < FILE\n\nPrints the N most frequent words.\n' >docs/usage.md; echo "package main" >doc.go;;
3) echo nothing >docs/usage.md;;
esac
echo "candidate $DECREE_CANDIDATE is done"`
