//go:build unix

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// realStories are told of each client that can be in them.
var realStories = []struct {
	name string
	tell func(*testing.T, realAgent)
}{
	{"tools", storyTools},
	{"parallel", storyParallel},
	{"error 500", func(t *testing.T, a realAgent) { storyModelError(t, a, 500, true) }},
	{"error 429", func(t *testing.T, a realAgent) { storyModelError(t, a, 429, false) }},
	{"SIGINT", func(t *testing.T, a realAgent) { storyInterrupt(t, a, syscall.SIGINT) }},
	{"SIGTERM", func(t *testing.T, a realAgent) { storyInterrupt(t, a, syscall.SIGTERM) }},
	{"SIGKILL", func(t *testing.T, a realAgent) { storyInterrupt(t, a, syscall.SIGKILL) }},
	{"resume", func(t *testing.T, a realAgent) { storyResume(t, a, false) }},
	{"resume after SIGKILL", func(t *testing.T, a realAgent) { storyResume(t, a, true) }},
	{"continued", storyContinued},
	{"two", storyTwo},
	{"large", storyLarge},
	{"missing", storyMissing},
	{"read-only", storyReadOnly},
	{"mcp", storyMCP},
	{"acp", storyACP},
}

// walked says that undo brings the tree back as it was, and redo as it is.
func (b *realBench) walked(before map[string]string) {
	b.Helper()
	after := b.files()
	b.decree("undo", "--yes")
	assert.Equal(b, before, b.files(), "after undo")
	b.decree("redo", "--yes")
	assert.Equal(b, after, b.files(), "after redo")
}

// A prompt, a file written and edited by tools, others made and deleted by a command: one turn.
func storyTools(t *testing.T, a realAgent) {
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{text: "I write a file.", calls: []modelCall{{path: "hello.txt", content: "hello\nworld\n"}}},
		{calls: []modelCall{{path: "hello.txt", old: "world\n", content: "all\n"}}},
		{calls: []modelCall{{command: "mkdir -p sub && echo made by shell > sub/shell.txt && rm old.txt"}}},
		{text: "All done."},
	}})
	before := b.files()
	b.prompt("do it")
	require.Equal(t, map[string]string{"hello.txt": "hello\nall\n", "sub/shell.txt": "made by shell\n"}, b.files(), "the model's script was followed")

	turn := b.turn()
	assert.Equal(t, "event", turn.EndedBy)
	assert.Equal(t, 2, turn.Changes.Created)
	assert.Equal(t, 1, turn.Changes.Deleted, "also what the shell deleted")
	said, shown := b.decree("turns"), b.decree("show", "turn-1")
	assert.Regexp(t, `turn-1 .*answered`, said)
	if !a.secretive {
		assert.Regexp(t, `turn-1 .*do it`, said)
		assert.Regexp(t, `(?m)^ *prompt .*do it`, shown)
	}
	assert.Regexp(t, `(?m)^ *resume .*`+turn.Actor.Session, shown)
	b.walked(before)
}

// Two tools at once, and one that fails, belong to the turn like all others.
func storyParallel(t *testing.T, a realAgent) {
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{calls: []modelCall{{command: "echo a > a.txt"}, {command: "echo b > b.txt"}, {path: "c.txt", content: "c\n"}}},
		{calls: []modelCall{{command: "echo d > d.txt; exit 3"}}},
		{text: "All done."},
	}})
	before := b.files()
	b.prompt("do it")
	require.Len(t, b.files(), 5, "the model's script was followed")
	turn := b.turn()
	assert.Equal(t, "event", turn.EndedBy)
	assert.Equal(t, 4, turn.Changes.Created)
	b.walked(before)
}

// The model fails once, or for ever: what the agent did before, and after, is its turn. One that
// does not give up by itself is interrupted.
func storyModelError(t *testing.T, a realAgent, status int, stays bool) {
	turns := []modelTurn{{calls: []modelCall{{path: "a.txt", content: "a\n"}}}, {status: status}}
	if !stays {
		turns = append(turns, modelTurn{calls: []modelCall{{path: "b.txt", content: "b\n"}}})
	}
	b := newRealBench(t, a, modelScript{"", turns})
	before := b.files()
	s := b.start("do it")
	for range 3 {
		select {
		case <-b.model.failed:
		case err := <-s.ended:
			s.ended <- err
		}
	}
	if stays {
		_ = syscall.Kill(-s.Process.Pid, syscall.SIGINT)
	}
	<-s.ended
	require.Contains(t, b.files(), "a.txt", "%s", &s.said)
	created := len(b.files()) - len(before)
	b.walked(before)
	assert.Equal(t, created, b.turn().Changes.Created)
}

// The agent is ended in the midst of a command: with or without a last event, what it had done
// by then is a turn.
func storyInterrupt(t *testing.T, a realAgent, sig syscall.Signal) {
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{calls: []modelCall{{path: "hello.txt", content: "hello\n"}}},
		{calls: []modelCall{{command: "echo half > half.txt; rm old.txt; echo begun > ../begun; sleep 60"}}},
	}})
	begun := b.pipe("begun")
	before := b.files()
	s := b.start("do it")
	b.told(s, begun)
	b.signal(s, sig)

	b.walked(before)
	assert.Equal(t, 2, b.turn().Changes.Created)
}

// A session is gone on with: two turns of one session. The first has ended without a word if the agent was killed.
func storyResume(t *testing.T, a realAgent, killed bool) {
	first := []modelTurn{{calls: []modelCall{{path: "a.txt", content: "a\n"}}}}
	if killed {
		first = append(first, modelTurn{calls: []modelCall{{command: "echo begun > ../begun; sleep 60"}}})
	}
	b := newRealBench(t, a, modelScript{"the first task", first},
		modelScript{"the second task", []modelTurn{{calls: []modelCall{{path: "b.txt", content: "b\n"}}}}})
	begun, ended := b.pipe("begun"), "answered"
	before := b.files()
	s := b.start("the first task")
	if killed {
		ended = "ended without a word"
		b.told(s, begun)
		b.signal(s, syscall.SIGKILL)
	} else {
		require.NoError(t, <-s.ended, "%s", &s.said)
	}
	session := b.turn().Actor.Session
	between := b.files()
	b.resumed(session, "the second task")

	turns := b.turns()
	require.Len(t, turns, 2)
	assert.Equal(t, session, turns[0].Actor.Session)
	assert.Equal(t, session, turns[1].Actor.Session)
	said := b.decree("turns")
	assert.Regexp(t, `turn-1 .*`+ended, said)
	assert.Regexp(t, `turn-2 .*answered`, said)
	assert.Equal(t, 1, turns[0].Changes.Created)
	assert.Equal(t, 1, turns[1].Changes.Created)
	b.walked(between)
	b.decree("undo", "2", "--yes")
	assert.Equal(t, before, b.files())
}

// The user undoes while the agent works: that closes its turn, and what the agent does after
// that is a turn that continues it.
func storyContinued(t *testing.T, a realAgent) {
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{calls: []modelCall{{path: "a.txt", content: "a\n"}}},
		{calls: []modelCall{{command: "echo begun > ../begun; cat ../go; echo late > late.txt"}}},
		{text: "All done."},
	}})
	begun, on := b.pipe("begun"), b.pipe("go")
	before := b.files()
	s := b.start("do it")
	b.told(s, begun)
	b.decree("undo", "--yes")
	assert.Equal(t, before, b.files())
	require.NoError(t, os.WriteFile(on, nil, 0))
	require.NoError(t, <-s.ended, "%s", &s.said)

	turns := b.turns()
	require.Len(t, turns, 2)
	assert.Equal(t, turns[1].ID, turns[0].Continues)
	assert.Equal(t, 1, turns[0].Changes.Created)
	assert.Regexp(t, `(?m)^ *continues +`+turns[1].ID, b.decree("show", "turn-2"))
	b.walked(before)
}

// Two sessions at once in one tree: what only one has named is its own, and stays when the other is
// taken back. What their commands did may be of both, and needs --force.
func storyTwo(t *testing.T, a realAgent) {
	asked, meet := make(chan struct{}), make(chan struct{})
	alpha, beta := func() { meet <- struct{}{} }, func() { <-meet }
	turns := func(name string, first, meets func()) []modelTurn {
		return []modelTurn{
			{before: first, calls: []modelCall{{path: name + ".txt", content: name + "\n"}}},
			{calls: []modelCall{{command: "echo " + name + " > " + name + "-shell.txt"}}},
			{before: meets, text: "All done."},
		}
	}
	b := newRealBench(t, a, modelScript{"work on alpha", turns("a", func() { close(asked); alpha() }, alpha)},
		modelScript{"work on beta", turns("b", beta, beta)})
	before := b.files()
	first := b.start("work on alpha")
	select {
	case <-asked: // two that start at once may be in each other's way
	case err := <-first.ended:
		t.Fatalf("%s ended by itself: %v\n%s", a.name, err, &first.said)
	}
	second := b.start("work on beta")
	require.NoError(t, <-first.ended, "%s", &first.said)
	require.NoError(t, <-second.ended, "%s", &second.said)
	after := b.files()
	require.Len(t, after, 5)

	both := b.turns()
	require.Len(t, both, 2)
	assert.NotEqual(t, both[0].Actor.Session, both[1].Actor.Session)
	if !strings.HasPrefix(b.decree("diff", "--name-only", both[0].ID), "a-shell.txt\na.txt\n") {
		slices.Reverse(both)
	}
	ofAlpha, ofBeta := both[0], both[1]
	assert.Equal(t, "a-shell.txt\na.txt\nb-shell.txt\n", b.decree("diff", "--name-only", ofAlpha.ID))
	assert.Equal(t, "a-shell.txt\nb-shell.txt\nb.txt\n", b.decree("diff", "--name-only", ofBeta.ID))
	assert.Equal(t, []string{ofBeta.ID}, ofAlpha.Overlaps)
	assert.Equal(t, []string{ofAlpha.ID}, ofBeta.Overlaps)
	assert.Contains(t, b.refused("revert", "--yes", ofAlpha.ID), "a-shell.txt")
	assert.Equal(t, after, b.files(), "a refused operation changed nothing")
	b.decree("revert", "--yes", "--exclude", "a-shell.txt", "--exclude", "b-shell.txt", ofAlpha.ID)
	delete(after, "a.txt")
	assert.Equal(t, after, b.files(), "the other's stay")
	b.decree("revert", "--yes", "--force", ofBeta.ID)
	assert.Equal(t, before, b.files())
}

// Where decree is gone and its hooks are not, the agent works on.
func storyMissing(t *testing.T, a realAgent) {
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{calls: []modelCall{{path: "a.txt", content: "a\n"}}},
		{calls: []modelCall{{command: "echo b > b.txt"}}},
		{text: "All done."},
	}})
	program := filepath.Join(b.dir, "bin", "decree")
	require.NoError(t, os.Rename(program, program+".gone"))
	b.prompt("do it")
	require.NoError(t, os.Rename(program+".gone", program))
	assert.Equal(t, map[string]string{"old.txt": "old\n", "a.txt": "a\n", "b.txt": "b\n"}, b.files())
	assert.NoDirExists(t, filepath.Join(b.root, ".decree"))
}

// The first capture of a large tree does not hold the agent up: what does not fit the hook's
// deadline goes on beside it, and turns are recorded after that.
func storyLarge(t *testing.T, a realAgent) {
	b := newRealBench(t, a,
		modelScript{"the first task", []modelTurn{{calls: []modelCall{{path: "made-first.txt", content: "a\n"}}}}},
		modelScript{"the second task", []modelTurn{{calls: []modelCall{{path: "made-second.txt", content: "b\n"}}}}},
	)
	b.root = largeTree(t)
	b.model.root = b.root
	b.prompt("the first task")
	require.FileExists(t, filepath.Join(b.root, "made-first.txt"))
	out, err := b.command(filepath.Join(b.dir, "bin", "decree"), "turns").CombinedOutput()
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "turn-1") {
		t.Log("the first capture was done within the hook's deadline")
	} else {
		t.Log("the first capture went on in the background")
		assert.Contains(t, string(out), "the tree is being recorded for the first time, which goes on in the background")
	}
	b.decree("checkpoint", "--wait", "5m")
	b.prompt("the second task")
	assert.Regexp(t, `turn-\d .*answered .* 1 path \+1`, b.decree("turns"))
	b.decree("undo", "--yes")
	assert.NoFileExists(t, filepath.Join(b.root, "made-second.txt"))
	assert.FileExists(t, filepath.Join(b.root, "made-first.txt"))
}

// largeTree makes a tree of 85,000 files, or of what $DECREE_LARGE has, for all clients in turn.
func largeTree(t *testing.T) string {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o755))
	if from := os.Getenv("DECREE_LARGE"); from != "" {
		require.NoError(t, exec.Command("cp", "-a", "--reflink=auto", from+"/.", root).Run())
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".decree")))
		return root
	}
	filler := strings.Repeat("one line of many\n", 120)
	for n := range 85_000 {
		dir := filepath.Join(root, fmt.Sprintf("d%03d", n/100))
		if n%100 == 0 {
			require.NoError(t, os.Mkdir(dir, 0o755))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%02d", n%100)), []byte(fmt.Sprintln(n)+filler), 0o644))
	}
	return root
}

// Where the store cannot be written, the agent works on, and decree says why nothing is recorded. What it
// did then is found as soon as it can be.
func storyReadOnly(t *testing.T, a realAgent) {
	b := newRealBench(t, a,
		modelScript{"the first task", []modelTurn{{calls: []modelCall{{path: "a.txt", content: "a\n"}}}}},
		modelScript{"the second task", []modelTurn{{calls: []modelCall{{path: "b.txt", content: "b\n"}}}}},
	)
	b.prompt("the first task")
	writable := readOnly(t, filepath.Join(b.home, ".local", "share", "decree"))
	b.prompt("the second task")
	require.FileExists(t, filepath.Join(b.root, "b.txt"))
	said, _ := b.command(filepath.Join(b.dir, "bin", "decree"), "doctor").CombinedOutput()
	assert.Contains(t, string(said), "read-only")
	b.turn()
	writable()
	b.decree("checkpoint")
	assert.Contains(t, b.decree("diff", "--edits", "--name-only", "last"), "b.txt")
}

// readOnly has nobody write below dir until writable is called.
func readOnly(t *testing.T, dir string) (writable func()) {
	if os.Geteuid() != 0 {
		require.NoError(t, exec.Command("chmod", "-R", "a-w", dir).Run())
		return func() { require.NoError(t, exec.Command("chmod", "-R", "u+w", dir).Run()) }
	}
	for _, words := range [][]string{{"--bind", dir, dir}, {"-o", "remount,bind,ro", dir}} {
		if out, err := exec.Command("mount", words...).CombinedOutput(); err != nil {
			t.Skipf("root needs a mount: %s", out)
		}
	}
	var once sync.Once
	writable = func() { once.Do(func() { _ = exec.Command("umount", "-l", dir).Run() }) }
	t.Cleanup(writable)
	return writable
}

// The agent reads decree's records by its own tools, plans an undo and performs it, which the user can take back.
func storyMCP(t *testing.T, a realAgent) {
	if a.mcp == "" {
		t.Skip("it does not speak the Model Context Protocol")
	}
	const planned = `"plan\\*" *: *\\*"([0-9a-f]+)`
	with := func(name, value string) func([]byte) map[string]any {
		return func([]byte) map[string]any { return map[string]any{name: value} }
	}
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{calls: []modelCall{{path: "hello.txt", content: "hello\n"}}},
		{text: "All done."},
		{calls: []modelCall{{tool: "history", arguments: func([]byte) map[string]any { return map[string]any{} }}}},
		{calls: []modelCall{{tool: "plan", arguments: with("operation", "undo")}}},
		{calls: []modelCall{{tool: "perform", arguments: func(conversation []byte) map[string]any {
			assert.Contains(t, string(conversation), "turn-1", "the history says it")
			id := regexp.MustCompile(planned).FindSubmatch(conversation)
			if !assert.NotNil(t, id, "%s", conversation) {
				return nil
			}
			return map[string]any{"plan": string(id[1])}
		}}}},
		{text: "All done."},
	}})
	b.configure(a.mcp)
	b.decree("agents", "install", a.name)
	before := b.files()
	b.prompt("the first task")
	after := b.files()
	said := b.prompt("take that back")
	require.Equal(t, before, b.files(), "the agent has undone it: %s", said)

	turns := b.turns()
	require.Len(t, turns, 2)
	assert.Regexp(t, `turn-1 .*undone`, b.decree("turns"))
	b.decree("redo", "--yes")
	assert.Equal(t, after, b.files(), "the agent's undo is one like all others")
	b.decree("undo", "--yes")
	assert.Equal(t, before, b.files())
}
