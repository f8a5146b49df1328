//go:build growth

package cmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurnsBars makes the table of docs/performance.md about turns: TURN_EVENTS events of an agent
// over TURN_EVENTS/50 turns that change three files each, in a copy of GROWTH_TREE.
func TestTurnsBars(t *testing.T) {
	events, err := strconv.Atoi(os.Getenv("TURN_EVENTS"))
	require.NoError(t, err)
	p := newProving(t, nil)
	require.NoError(t, os.CopyFS(p.root, os.DirFS(os.Getenv("GROWTH_TREE"))))
	p.write(".git/HEAD", "")
	p.must("checkpoint")
	p.write(".decree/config.yml", "retention: {turn: all}\n")
	timed := func(do func()) time.Duration {
		began := time.Now()
		do()
		return time.Since(began)
	}
	call := func(event, payload string) time.Duration {
		return timed(func() { require.Empty(t, p.hook("codex", event, payload)) })
	}
	const perTurn = 50 // a prompt, 48 of tools, an answer
	turns := events / perTurn
	at := map[string][]time.Duration{}
	store := func() (size int64) {
		require.NoError(t, filepath.WalkDir(p.base, func(path string, d fs.DirEntry, err error) error {
			if path == p.root {
				return fs.SkipDir
			}
			if info, ierr := d.Info(); err == nil && ierr == nil && info.Mode().IsRegular() {
				size += info.Size()
			}
			return nil
		}))
		return size
	}
	before := store()
	for n := range turns {
		at["checkpoint"] = append(at["checkpoint"], timed(func() { p.must("-q", "checkpoint") }))
		at["prompt"] = append(at["prompt"], call("UserPromptSubmit", fmt.Sprintf(`{"session_id":"s","prompt":"turn %d"}`, n)))
		for i := range perTurn - 2 {
			at["tool"] = append(at["tool"], call("PostToolUse", `{"session_id":"s","tool_name":"apply_patch","tool_input":{"command":"*** Update File: f\n"}}`))
			if i < 3 {
				p.write(fmt.Sprintf("f%d", i), fmt.Sprintln("turn", n))
			}
		}
		at["answer"] = append(at["answer"], call("Stop", `{"session_id":"s"}`))
	}
	t.Logf("%d events over %d turns, %d bytes a turn outside of the tree", events, turns, (store()-before)/int64(turns))
	median := func(d []time.Duration) time.Duration {
		return slices.Sorted(slices.Values(d))[len(d)/2].Round(100 * time.Microsecond)
	}
	for _, what := range []string{"checkpoint", "prompt", "tool", "answer"} {
		part := max(1, len(at[what])/10)
		t.Logf("%-10s the first tenth %v, the last %v", what, median(at[what][:part]), median(at[what][len(at[what])-part:]))
	}
	for _, what := range []string{"undo", "redo"} {
		var took []time.Duration
		for range min(5, turns) {
			took = append(took, timed(func() { p.must("-q", what) }))
		}
		t.Logf("%-10s %v", what, median(took))
	}
}
