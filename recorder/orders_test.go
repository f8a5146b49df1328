package recorder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk/disktest"
	"decree/history"
	"decree/project"
	"decree/tree"
)

// orders are all orders of what two sessions do, n things each, each in its own order: "abba".
func orders(n int) (all []string) {
	var grow func(so string)
	grow = func(so string) {
		if len(so) == 2*n {
			all = append(all, so)
		}
		for _, who := range []string{"a", "b"} {
			if strings.Count(so, who) < n {
				grow(so + who)
			}
		}
	}
	grow("")
	return all
}

// What each of the two does, one after the other: its prompt, the beginning of an edit of a
// file that both edit, the edit itself and one of a file of its own, the end of the edit, its answer.
const (
	doesPrompt = iota
	doesBegin
	doesEdit
	doesEnd
	doesStop
	thingsToDo
)

// inOrder is one order: where in it each thing is, by session.
type inOrder struct {
	*agents
	at  map[string][]int
	ids map[string]string
}

// toolTells has a session's edit tool tell of a path, before its work or after it.
func (o *inOrder) toolTells(who, path string, after bool) {
	o.t.Helper()
	e := event(who, 7)
	r := o.open()
	defer r.Close()
	require.NoError(o.t, r.project.NoteAgentReport(project.AgentReport{Agent: e.Agent, Session: who, Process: e.Process, Tool: "edit", After: after, Paths: [][]byte{[]byte(path)}}))
}

func (o *inOrder) do(who string, thing int) {
	o.t.Helper()
	switch thing {
	case doesPrompt:
		o.ids[who] = o.prompt(event(who, 7), "work of "+who).ID
	case doesBegin:
		o.toolTells(who, "both", false)
	case doesEdit:
		o.write("both", "by "+who+"\n")
		o.toolTells(who, who, false)
		o.write(who, "by "+who+"\n")
		o.toolTells(who, who, true)
	case doesEnd:
		o.toolTells(who, "both", true)
	case doesStop:
		require.NotNil(o.t, o.end(event(who, 7)))
	}
}

// overlap says whether both were at work at a time.
func (o *inOrder) overlap() bool {
	return o.at["a"][doesPrompt] < o.at["b"][doesStop] && o.at["b"][doesPrompt] < o.at["a"][doesStop]
}

// met says whether another's edit of the file that both edit was under way in who's turn.
func (o *inOrder) met(who, other string) bool {
	return o.at[other][doesBegin] < o.at[who][doesStop] && o.at[other][doesEnd] > o.at[who][doesPrompt]
}

func (o *inOrder) judge(who, other string) {
	o.t.Helper()
	rec := o.now(o.ids[who])
	var overlaps []string
	if o.overlap() {
		overlaps = []string{o.ids[other]}
	}
	require.Equal(o.t, overlaps, rec.Turn.Overlaps, who)
	require.Equal(o.t, []tree.Path{tree.Path(who), "both"}, o.changed(rec.ID), who)
	var shared []tree.Path
	if o.met(who, other) {
		shared = []tree.Path{"both"}
	}
	require.Equal(o.t, shared, o.sharedIn(rec.ID), who)
	require.Empty(o.t, o.found(rec.ID), who)

	was := o.tree()
	_, err := o.reverting(MoveOptions{Refs: []string{rec.ID}})
	if shared != nil {
		require.ErrorAs(o.t, err, new(*ConflictError), "what is shared needs --force")
		require.Equal(o.t, was, o.tree())
	} else if err == nil {
		o.revert("last")
	}
	res, err := o.reverting(MoveOptions{Refs: []string{rec.ID}, Exclude: []tree.Path{"both"}})
	require.NoError(o.t, err)
	require.Equal(o.t, history.StatusSucceeded, res.Record.Status)
	is := o.tree()
	require.NotEqual(o.t, was[who], is[who])
	is[who] = was[who]
	require.Equal(o.t, was, is, "the other's files, byte for byte")
	o.revert("last")
	require.Equal(o.t, was, o.tree())
}

func (o *inOrder) tree() map[string]string { return snapshot(o.t, o.root) }

func (o *inOrder) reverting(m MoveOptions) (*MoveResult, error) {
	r := o.open()
	defer r.Close()
	return r.Revert(context.Background(), m)
}

// TestTwoSessionsInAllOrders: two sessions that edit the same file and one of their own, in all
// 252 orders, or a part of them in the usual form.
func TestTwoSessionsInAllOrders(t *testing.T) {
	all := orders(thingsToDo)
	require.Len(t, all, 252)
	for i, order := range all {
		if i%disktest.Stride(3) > 0 {
			continue
		}
		t.Run(order, func(t *testing.T) {
			o := &inOrder{agents: newAgents(t), at: map[string][]int{}, ids: map[string]string{}}
			for _, f := range []string{"a", "b", "both"} {
				o.write(f, "one\n")
			}
			o.checkpoint()
			for i, who := range strings.Split(order, "") {
				o.do(who, len(o.at[who]))
				o.at[who] = append(o.at[who], i)
			}
			for _, who := range slices.Sorted(slices.Values([]string{"a", "b"})) {
				o.judge(who, fmt.Sprintf("%c", 'a'+'b'-who[0]))
			}
			o.requireSound()
		})
	}
}
