//go:build unix

package cmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storyACP drives a real client as an editor does, through decree acp and with its hooks beside:
// each prompt is one turn, also one that is cancelled in the midst of a command, and no byte is another.
func storyACP(t *testing.T, a realAgent) {
	if a.acp == nil {
		t.Skip("it does not speak the Agent Client Protocol by itself")
	}
	b := newRealBench(t, a, modelScript{"", []modelTurn{
		{text: "I write a file.", calls: []modelCall{{path: "hello.txt", content: "hello\nworld\n"}}},
		{calls: []modelCall{{command: "mkdir -p sub && echo made by shell > sub/shell.txt && rm old.txt"}}},
		{text: "All done."},
		{calls: []modelCall{{command: "echo half > half.txt; sleep 60"}}},
	}})
	// What the agent gets and gives is kept on its side of decree.
	tap := fmt.Sprintf("tee %[1]s/got | \"$0\" \"$@\" | tee %[1]s/given", b.dir)
	c := b.command(filepath.Join(b.dir, "bin", "decree"),
		append([]string{"acp", "--name", a.name, "--", "sh", "-c", tap, a.line[0]}, a.acp...)...)
	var said bytes.Buffer
	c.Stderr = &said
	e := &editor{T: t}
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	e.to, e.from = io.MultiWriter(in, &e.sent), bufio.NewReader(io.TeeReader(out, &e.got))
	require.NoError(t, c.Start())

	e.ask(1, "initialize", `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false}}}`, nil)
	id := e.ask(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, b.root), nil).SessionID
	prompt := func(text string) string {
		return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)
	}
	assert.Equal(t, "end_turn", e.ask(3, "session/prompt", prompt("do it"), nil).StopReason, "%s", &said)
	cancelled := false
	stopped := e.ask(4, "session/prompt", prompt("do more"), func(kind string) {
		if kind == "tool_call" && !cancelled {
			cancelled = true
			e.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, id))
		}
	}).StopReason
	assert.Equal(t, "cancelled", stopped)
	in.Close()
	_, _ = io.Copy(io.Discard, e.from)
	_ = c.Wait() // its status is the shell's

	assert.NotContains(t, said.String(), "not recorded")
	for name, want := range map[string]*bytes.Buffer{"got": &e.sent, "given": &e.got} {
		assert.Equal(t, want.String(), b.do("cat", filepath.Join(b.dir, name)), name)
	}
	turns := b.turns()
	require.Len(t, turns, 2, "one prompt, one turn")
	assert.Equal(t, "do more", turns[0].Prompt)
	assert.Equal(t, "do it", turns[1].Prompt)
	assert.Equal(t, 2, turns[1].Changes.Created)
	assert.Equal(t, 1, turns[1].Changes.Deleted)
	changed := 0 // the command that was cancelled may not have begun
	for _, turn := range turns {
		if turn.Changes.Created > 0 {
			changed++
		}
	}
	b.decree("undo", strconv.Itoa(changed), "--yes")
	assert.NoFileExists(t, filepath.Join(b.root, "hello.txt"))
	assert.FileExists(t, filepath.Join(b.root, "old.txt"))
}

// editor is the other end of the protocol. It permits everything.
type editor struct {
	*testing.T
	to        io.Writer
	from      *bufio.Reader
	sent, got bytes.Buffer
}

// answer is what the tests want to know of a result.
type answer struct{ SessionID, StopReason string }

func (e *editor) send(line string) {
	_, err := io.WriteString(e.to, line+"\n")
	require.NoError(e, err)
}

// ask sends a request and returns its answer; happened, unless nil, is called with the kind of each
// update before it.
func (e *editor) ask(id int, method, params string, happened func(kind string)) answer {
	e.Helper()
	e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	for {
		line, err := e.from.ReadBytes('\n')
		require.NoError(e, err, "%s\n%s", method, &e.got)
		var m struct {
			ID     json.RawMessage
			Method string
			Error  json.RawMessage
			Result answer
			Params struct {
				Update  struct{ SessionUpdate string }
				Options []struct{ OptionID, Kind string }
			}
		}
		_ = json.Unmarshal(line, &m) // a result of another shape is not asked for
		switch {
		case m.Method == "session/request_permission":
			option := ""
			for _, o := range m.Params.Options {
				if o.Kind == "allow_once" {
					option = o.OptionID
				}
			}
			e.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, m.ID, option))
		case m.Method == "session/update" && happened != nil:
			happened(m.Params.Update.SessionUpdate)
		case m.Method == "" && string(m.ID) == fmt.Sprint(id):
			require.Empty(e, m.Error, "%s", line)
			return m.Result
		}
	}
}
