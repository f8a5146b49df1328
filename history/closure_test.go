package history

import (
	"encoding/json"
	"fmt"
	"testing"

	"decree/tree"

	"github.com/stretchr/testify/require"
)

// An open record needs its trees and what is noted in it, and what these are made of. What
// only looks like a tree or a diff is taken as it is.
func TestClosureOfAnOpenRecord(t *testing.T) {
	w := newWorld(t)
	before := w.keep(tree.Item{Path: "d/a", Entry: file("one")})
	after := w.keep(tree.Item{Path: "d/a", Entry: file("two")})
	left := tree.Sum([]byte("of an attempt"))
	put := func(text string) tree.Hash {
		sum, err := w.shelf.PutBytes([]byte(text))
		require.NoError(t, err)
		return sum
	}
	diff := put(fmt.Sprintf("# decree changes 1\n# decree: {\"path\":\"b\",\"op\":\"create\",\"new\":{\"mode\":\"644\",\"size\":13,\"sha256\":\"%s\"},\"binary\":true,\"stored\":true}\n", left))
	own := put("# decree changes 1\n# decree: nothing\n")
	r := w.draft()
	r.Before, r.Status = before, StatusOpen
	end := *r
	end.After = after
	ending, err := json.Marshal(map[string]any{"record": &end, "files": map[string]tree.Hash{"attempts/1/changes.diff": diff}})
	require.NoError(t, err)
	noted, err := json.Marshal([]map[string]any{{"path": "inbox/x.diff", "sha256": own}})
	require.NoError(t, err)
	require.NoError(t, w.Begin(&Opened{Record: r, Rules: []Rule{{".gitignore", tree.Sum([]byte("rules"))}},
		Extra: map[string]json.RawMessage{"ending": ending, "own": noted}}))

	got := map[tree.Hash]bool{}
	require.NoError(t, w.Closure(r.ID, Once(), func(p *Part) error {
		require.Equal(t, r.ID, p.Record)
		got[p.Object] = true
		return p.Err
	}))
	for name, sum := range map[string]tree.Hash{
		"before": before, "after": after, "a content of one": file("one").SHA256, "of the other": file("two").SHA256,
		"a diff": diff, "what it names": left, "a file": own, "rules": tree.Sum([]byte("rules")),
	} {
		require.True(t, got[sum], name)
	}
	needed, err := w.needed(nil)
	require.NoError(t, err)
	require.Subset(t, needed, map[tree.Hash]bool{before: true, after: true, left: true})

	delete(w.shelf.objects, after)
	_, err = w.needed(nil)
	require.ErrorIs(t, err, ErrNotKept, "it is not known what else is needed")
}
