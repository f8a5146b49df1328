//go:build unix

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/recorder"
)

// bench is a tree, a server of its records, and a client of that.
type bench struct {
	*testing.T
	root   string
	clock  time.Time
	client *mcp.ClientSession
	disk   disk.Disk
}

func (b *bench) options() recorder.ReaderOptions {
	return recorder.ReaderOptions{
		Disk:  b.disk,
		Where: project.Where{RootFlag: b.root, Cwd: b.root, Home: b.root + "-home", StoreEnv: b.root + "-store"},
		Clock: func() time.Time { b.clock = b.clock.Add(time.Second); return b.clock }, Location: time.UTC,
	}
}

func (b *bench) open(ctx context.Context, create bool) (*recorder.Recorder, error) {
	return recorder.Open(ctx, recorder.Options{ReaderOptions: b.options(), Create: true, Existing: !create, Actor: history.Actor{User: "u", Host: "h"}})
}

func newBench(t *testing.T, allowWrite bool) *bench {
	b := &bench{T: t, root: filepath.Join(t.TempDir(), "tree"), clock: time.Date(2026, 11, 21, 7, 1, 59, 0, time.UTC), disk: disk.OS}
	require.NoError(t, os.Mkdir(b.root, 0o755))
	server, done := New(Options{
		Read: func() (*recorder.Reader, error) { return recorder.OpenReader(b.options()) }, Change: b.open, AllowWrite: allowWrite, Version: "test",
		Resolve: func(rec *recorder.Reader, ref string) (recorder.Point, error) {
			found, err := rec.History().Resolve(ref, time.UTC)
			if err != nil {
				return recorder.Point{}, err
			}
			r, err := rec.History().Get(found.ID)
			return recorder.Point{Record: r, After: found.Side == history.After}, err
		},
	})
	ctx := context.Background()
	here, there := mcp.NewInMemoryTransports()
	session, err := server.Connect(ctx, here, nil)
	require.NoError(t, err)
	b.client, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, there, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.client.Close())
		assert.NoError(t, session.Wait())
		assert.NoError(t, done())
	})
	return b
}

func (b *bench) put(name, text string) {
	b.Helper()
	require.NoError(b, os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644))
}

func (b *bench) text(name string) string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, name))
	require.NoError(b, err)
	return string(text)
}

// say calls a tool, and returns its text and whether it is an error.
func (b *bench) say(tool string, arguments map[string]any) (string, bool) {
	b.Helper()
	res, err := b.client.CallTool(context.Background(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(b, err)
	require.Len(b, res.Content, 1)
	return res.Content[0].(*mcp.TextContent).Text, res.IsError
}

type object = map[string]any

// call is say for what succeeds.
func (b *bench) call(tool string, arguments map[string]any) object {
	b.Helper()
	text, failed := b.say(tool, arguments)
	require.False(b, failed, "%s", text)
	var out object
	require.NoError(b, json.Unmarshal([]byte(text), &out))
	return out
}

// refused is the error of what does not.
func (b *bench) refused(tool string, arguments map[string]any) object {
	b.Helper()
	text, failed := b.say(tool, arguments)
	require.True(b, failed, "%s", text)
	var out struct{ Error object }
	require.NoError(b, json.Unmarshal([]byte(text), &out))
	return out.Error
}

// scene makes three records: a checkpoint, one after edits, and a restore to the first.
func (b *bench) scene() (first, second, restore string) {
	b.Helper()
	b.put("a.txt", "one\ntwo\n")
	b.put("b.txt", "b\n")
	first = b.call("checkpoint", object{"description": "the first"})["id"].(string)
	b.put("a.txt", "one\n2\n")
	second = b.call("checkpoint", nil)["id"].(string)
	plan := b.call("plan", object{"operation": "restore", "ref": first})
	restore = b.call("perform", object{"plan": plan["plan"]})["record"].(object)["id"].(string)
	return first, second, restore
}

// What the tools say of themselves, with and without the right to change.
func TestTools(t *testing.T) {
	for _, allow := range []bool{false, true} {
		b := newBench(t, allow)
		list, err := b.client.ListTools(context.Background(), nil)
		require.NoError(t, err)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			assert.Equal(t, tool.Name != "checkpoint" && tool.Name != "perform", tool.Annotations.ReadOnlyHint, tool.Name)
			if tool.Name == "checkpoint" || tool.Name == "perform" {
				assert.Equal(t, tool.Name == "perform", *tool.Annotations.DestructiveHint, tool.Name)
			}
		}
		want := []string{"blame", "checkpoint", "diff", "history", "plan", "show"}
		if allow {
			want = []string{"blame", "checkpoint", "diff", "history", "perform", "plan", "show"}
		}
		assert.Equal(t, want, names)
		has, err := json.Marshal(b.client.InitializeResult().Capabilities)
		require.NoError(t, err)
		assert.JSONEq(t, `{"tools":{}}`, string(has), "nothing else is offered")
	}
}

// Where nothing is recorded yet, looking says so, and a checkpoint begins.
func TestNoProjectYet(t *testing.T) {
	b := newBench(t, false)
	assert.Contains(t, b.refused("history", nil)["message"], "no decree project")
	b.put("a.txt", "a\n")
	assert.Equal(t, "manual", b.call("checkpoint", nil)["reason"])
	assert.Len(t, b.call("history", nil)["records"], 1)
}

func TestLook(t *testing.T) {
	b := newBench(t, true)
	first, second, restore := b.scene()

	page := b.call("history", object{"limit": 2})
	assert.Equal(t, []string{restore, second}, ids(page))
	page = b.call("history", object{"limit": 2, "cursor": page["next_cursor"]})
	assert.Equal(t, []string{first}, ids(page))
	assert.NotContains(t, page, "next_cursor")
	page = b.call("history", object{"paths": []string{"a.txt"}})
	assert.Len(t, page["records"], 2, "the restore, and the edit")
	assert.Equal(t, restore, page["records"].([]any)[0].(object)["id"])
	assert.Contains(t, b.refused("history", object{"cursor": "nothing"})["hint"], "without a cursor")

	assert.Equal(t, "the first", b.call("show", object{"ref": first})["description"])
	files := b.call("show", object{"ref": second, "paths": []string{"a.txt", b.root + "/b.txt"}})["files"].([]any)
	assert.Equal(t, "one\n2\n", files[0].(object)["text"])
	assert.Equal(t, "b\n", files[1].(object)["text"])

	diff := b.call("diff", nil)["diff"].(string)
	assert.Contains(t, diff, "-2\n+two\n")
	assert.Contains(t, b.call("diff", object{"refs": []string{first, second}})["diff"], "-two\n+2\n")
	b.put("a.txt", "one\nthree\n")
	assert.Contains(t, b.call("diff", object{"refs": []string{first, "now"}})["diff"], "-two\n+three\n")
	assert.NotContains(t, b.call("diff", object{"ref": "last", "paths": []string{"b.txt"}})["diff"], "two")

	lines := b.call("blame", object{"paths": []string{"a.txt"}})["lines"].([]any)
	require.Len(t, lines, 2)
	assert.Equal(t, "three", lines[1].(object)["text"])
	page = b.call("blame", object{"paths": []string{"a.txt"}, "limit": 1, "cursor": "1"})
	assert.Equal(t, float64(2), page["lines"].([]any)[0].(object)["line"])

	for _, path := range []string{"../x", "/etc/passwd", "", "a\x00b"} {
		assert.Equal(t, float64(project.Usage), b.refused("history", object{"paths": []string{path}})["exit_code"], "%q", path)
	}
}

func ids(page object) []string {
	var out []string
	for _, r := range page["records"].([]any) {
		out = append(out, r.(object)["id"].(string))
	}
	return out
}

// What is long comes in parts, which together are the whole.
func TestPages(t *testing.T) {
	b := newBench(t, true)
	b.put("a.txt", "")
	first := b.call("checkpoint", nil)["id"]
	long := strings.Repeat("a line of é and more\n", 10000)
	b.put("a.txt", long)
	second := b.call("checkpoint", nil)["id"]
	var whole strings.Builder
	for cursor, n := "", 0; ; n++ {
		require.Less(t, n, 100)
		part := b.call("diff", object{"refs": []any{first, second}, "cursor": cursor})
		assert.LessOrEqual(t, len(part["diff"].(string)), maxText)
		whole.WriteString(part["diff"].(string))
		if part["next_cursor"] == nil {
			break
		}
		cursor = part["next_cursor"].(string)
	}
	assert.Equal(t, 10000, strings.Count(whole.String(), "\n+a line of é and more"))
	file := b.call("show", object{"ref": second, "paths": []string{"a.txt"}})["files"].([]any)[0].(object)
	assert.Equal(t, true, file["cut"])
	assert.True(t, strings.HasPrefix(long, file["text"].(string)))
	page := b.call("blame", object{"paths": []string{"a.txt"}, "limit": 5000})
	assert.Len(t, page["lines"], 1000)
	assert.Equal(t, "1000", page["next_cursor"])
}

// What a terminal would obey is escaped in every text that comes back.
func TestControlCharactersAreEscaped(t *testing.T) {
	b := newBench(t, false)
	b.put("a\x1b]0;x\x07.txt", "\x1b[2J\u009b31m\u202e\n")
	b.call("checkpoint", object{"description": "\x1b[31mred\u009b"})
	for tool, arguments := range map[string]object{
		"history": nil, "show": nil, "diff": {"refs": []string{"last", "now"}}, "blame": {"paths": []string{"a\x1b]0;x\x07.txt"}},
	} {
		text, _ := b.say(tool, arguments)
		assert.NotContains(t, text, "\x1b", tool)
		assert.NotContains(t, text, "\u009b", tool)
		assert.NotContains(t, text, "\u202e", tool)
	}
}

// A plan changes nothing; it is done once, and only if nothing has changed since.
func TestPlanAndPerform(t *testing.T) {
	b := newBench(t, true)
	_, _, restore := b.scene()
	assert.Equal(t, "one\ntwo\n", b.text("a.txt"))
	plan := b.call("plan", object{"operation": "revert", "ref": "last"})
	assert.Equal(t, "one\ntwo\n", b.text("a.txt"), "a plan changes nothing")
	assert.Equal(t, true, plan["dry_run"])
	assert.Equal(t, "a.txt", plan["paths"].([]any)[0].(object)["path"])

	// One of its paths was edited: refused, and the file stays.
	b.put("a.txt", "mine\n")
	fault := b.refused("perform", object{"plan": plan["plan"]})
	assert.Equal(t, float64(project.Refused), fault["exit_code"])
	assert.Equal(t, "mine\n", b.text("a.txt"))
	b.put("a.txt", "one\ntwo\n")

	// There is a newer record: refused.
	b.call("checkpoint", nil)
	fault = b.refused("perform", object{"plan": plan["plan"]})
	assert.Contains(t, fault["message"], "no longer what the plan saw; nothing was changed")

	plan = b.call("plan", object{"operation": "revert", "ref": restore})
	done := b.call("perform", object{"plan": plan["plan"]})
	assert.Equal(t, "one\n2\n", b.text("a.txt"))
	assert.Equal(t, "revert", done["record"].(object)["reason"])
	fault = b.refused("perform", object{"plan": plan["plan"]})
	assert.Contains(t, fault["message"], "nothing was changed", "a plan is done once")

	// An undo takes the newest change that stands, here the revert, and a redo brings it again.
	for _, step := range []struct{ operation, left string }{{"undo", "one\ntwo\n"}, {"redo", "one\n2\n"}} {
		plan = b.call("plan", object{"operation": step.operation})
		b.call("perform", object{"plan": plan["plan"]})
		assert.Equal(t, step.left, b.text("a.txt"), step.operation)
	}

	for _, arguments := range []object{
		{"operation": "undo", "ref": "last"}, {"operation": "revert", "ref": "last", "limit": 2}, {"operation": "undo", "limit": -1},
		{"operation": "erase", "ref": "last"}, {"operation": "revert"}, {"operation": "restore"},
		{"operation": "restore", "ref": "last", "refs": []string{"last"}}, {"operation": "revert", "ref": "last", "paths": []string{".."}},
	} {
		assert.Equal(t, float64(project.Usage), b.refused("plan", arguments)["exit_code"], "%v", arguments)
	}
	assert.Equal(t, float64(project.NotFound), b.refused("plan", object{"operation": "revert", "ref": "nothing"})["exit_code"])
	assert.Equal(t, float64(project.NotFound), b.refused("perform", object{"plan": "nothing"})["exit_code"])
}

// A plan of many paths comes in parts, which together have each once; what is performed, or refused, says how many more there are.
func TestPlansInParts(t *testing.T) {
	b := newBench(t, true)
	b.put("a.txt", "a\n")
	first := b.call("checkpoint", nil)["id"]
	const files = 2*mostSteps + 50
	for i := range files {
		b.put(fmt.Sprintf("f%03d", i), "x\n")
	}
	b.call("checkpoint", nil)
	plan := b.call("plan", object{"operation": "restore", "ref": first})
	seen := map[string]int{}
	for part := plan; ; {
		require.LessOrEqual(t, len(part["paths"].([]any)), mostSteps)
		for _, step := range part["paths"].([]any) {
			seen[step.(object)["path"].(string)]++
		}
		require.Equal(t, float64(files), part["deleted"], "the counts are of all")
		if part["next_cursor"] == nil {
			require.NotContains(t, part, "more_paths")
			break
		}
		require.Equal(t, float64(files-len(seen)), part["more_paths"])
		require.Less(t, len(seen), files)
		part = b.call("plan", object{"plan": plan["plan"], "cursor": part["next_cursor"]})
		require.Equal(t, plan["plan"], part["plan"])
	}
	require.Len(t, seen, files)
	for name, n := range seen {
		require.Equal(t, 1, n, name)
	}
	for _, arguments := range []object{{"plan": plan["plan"], "operation": "undo"}, {"operation": "undo", "cursor": "1"}, {"plan": plan["plan"], "cursor": "x"}, {}} {
		assert.Equal(t, float64(project.Usage), b.refused("plan", arguments)["exit_code"], "%v", arguments)
	}

	done := b.call("perform", object{"plan": plan["plan"]})
	require.Len(t, done["paths"], mostSteps)
	require.Equal(t, float64(files-mostSteps), done["more_paths"])
	require.NotContains(t, done, "next_cursor")
	assert.Contains(t, b.refused("plan", object{"plan": plan["plan"], "cursor": "100"})["hint"], "call plan again")

	b.call("perform", object{"plan": b.call("plan", object{"operation": "undo"})["plan"]})
	for i := range files {
		b.put(fmt.Sprintf("f%03d", i), "edited\n")
	}
	b.call("checkpoint", nil)
	fault := b.refused("plan", object{"operation": "revert", "ref": done["record"].(object)["id"]})
	require.Len(t, fault["paths"], mostSteps)
	require.Equal(t, float64(files-mostSteps), fault["more_paths"])
}

// A restore overwrites whatever differs: what was edited after its plan is not lost.
func TestPerformSeesAnEditSince(t *testing.T) {
	b := newBench(t, true)
	first, _, _ := b.scene()
	b.put("a.txt", "other\n")
	plan := b.call("plan", object{"operation": "restore", "ref": first})
	b.put("b.txt", "edited since the plan\n")
	assert.Contains(t, b.refused("perform", object{"plan": plan["plan"]})["hint"], "call plan again")
	assert.Equal(t, "other\n", b.text("a.txt"))
	assert.Equal(t, "edited since the plan\n", b.text("b.txt"))
}

// What another process records just before the lock is taken is newer than what the plan saw.
func TestRecordedJustBeforeAPerform(t *testing.T) {
	b := newBench(t, true)
	b.scene()
	plan := b.call("plan", object{"operation": "revert", "ref": "last"})
	recorded := false
	b.disk = disktest.Inject(disk.OS, func(st disktest.Step) disktest.Action {
		if st.Op == "TryLock" && !recorded {
			recorded, b.disk = true, disk.OS
			other, err := b.open(context.Background(), false)
			require.NoError(t, err)
			defer other.Close()
			_, err = other.Checkpoint(context.Background(), recorder.CheckpointOptions{})
			require.NoError(t, err)
		}
		return disktest.Action{}
	})
	assert.Contains(t, b.refused("perform", object{"plan": plan["plan"]})["hint"], "call plan again")
	require.True(t, recorded)
	assert.Equal(t, "one\ntwo\n", b.text("a.txt"))
}
