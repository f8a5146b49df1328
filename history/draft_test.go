package history

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/jsonread"
	"decree/tree"
)

// TestDraftRecord reads what is written of an isolated run: no trees, no count of files.
func TestDraftRecord(t *testing.T) {
	r := fullRecord()
	r.Isolated, r.Files, r.Before, r.After = "overlay", 0, tree.Hash{}, tree.Hash{}
	r.Draft = &Draft{Name: "try", State: DraftPartly, By: []string{r.ID}, NoBase: []tree.Path{"a\nb", "c"}, Git: 3}
	r.Judge = &Judgement{Command: "go test ./...", ExitCode: 1}
	data := r.JSON(nil)
	for _, want := range []string{`"files": null`, `"before": null`, `"after": null`, `"isolated": "overlay"`} {
		assert.Contains(t, string(data), want)
	}
	back, err := ParseRecord(data)
	require.NoError(t, err)
	assert.Equal(t, r.Draft, back.Draft)
	assert.Equal(t, r.Judge, back.Judge)
	assert.Equal(t, data, back.JSON(nil))
	assert.True(t, back.Partial())
	assert.Empty(t, observations(back))
}

// TestDraftEffect folds what lines of the log say of a draft: its name and its paths
// without a base stay.
func TestDraftEffect(t *testing.T) {
	first := &effect{id: "2020010100000000-0", draft: &Draft{State: DraftPartly, By: []string{"2020010100000000-1"}}}
	second := &effect{id: first.id, draft: &Draft{State: DraftWaiting}}
	l := &line{record: &Record{ID: first.id, Draft: &Draft{Name: "try", State: DraftWaiting, NoBase: []tree.Path{"p"}, Git: 2}}, files: map[string]tree.Hash{}}
	require.NoError(t, first.apply(l))
	assert.Equal(t, &Draft{Name: "try", State: DraftPartly, By: []string{"2020010100000000-1"}, NoBase: []tree.Path{"p"}, Git: 2}, l.record.Draft)
	require.NoError(t, first.with(second).apply(l))
	assert.Equal(t, &Draft{Name: "try", State: DraftWaiting, NoBase: []tree.Path{"p"}, Git: 2}, l.record.Draft)

	var back []*effect
	text := append(append([]byte(`{"effects":[`), first.append(nil)...), "]}"...)
	require.NoError(t, jsonread.Object(text, func(_ string, v *jsonread.Value) error {
		back = effectsOf(v)
		return v.Err()
	}))
	assert.Equal(t, []*effect{first}, back)
}

// TestRenewDraft gives a draft another diff: the record says what that one holds, by the log
// and in its run directory, also for who reads it anew, and needs its contents alone.
func TestRenewDraft(t *testing.T) {
	w := newWorld(t)
	put := func(text string) tree.Hash {
		sum, err := w.shelf.PutBytes([]byte(text))
		require.NoError(t, err)
		return sum
	}
	diff := func(name string, e tree.Entry) tree.Hash {
		return put(fmt.Sprintf("# decree changes 1\n# decree: {\"path\":%q,\"op\":\"create\",\"new\":{\"mode\":\"644\",\"size\":%d,\"sha256\":\"%s\"},\"binary\":true,\"stored\":true}\nBinary files /dev/null and b/%[1]s differ\n", name, e.Size, e.SHA256))
	}
	r := w.draft()
	r.Status, r.Isolated, r.Files, r.Before, r.After = StatusSucceeded, "overlay", 0, tree.Hash{}, tree.Hash{}
	r.Draft = &Draft{Name: "try", State: DraftPartly, By: []string{"2020010100000000-1"}, NoBase: []tree.Path{"x"}}
	r.DiffSHA256 = diff("a", file("one"))
	require.NoError(t, w.End(Closing{Record: r, Files: map[string]tree.Hash{ChangesFile: r.DiffSHA256}}))

	renewed := *r
	renewed.Draft = &Draft{State: DraftWaiting, NoBase: []tree.Path{"b"}, Git: 3}
	renewed.Changes, renewed.Bytes, renewed.Unrecorded = Changes{Created: 7}, 9, []tree.Path{"u"}
	sum := diff("b", file("two"))
	for range 2 { // as after a death
		require.NoError(t, w.RenewDraft(&renewed, sum))
		w.reopen()
		got, err := w.Get(r.ID)
		require.NoError(t, err)
		assert.Equal(t, &Draft{Name: "try", State: DraftWaiting, NoBase: []tree.Path{"b"}, Git: 3}, got.Draft)
		assert.Equal(t, Changes{Created: 7}, got.Changes)
		assert.Equal(t, sum, got.DiffSHA256)
		assert.Equal(t, []tree.Path{"u"}, got.Unrecorded)
		assert.Equal(t, string(got.JSON(nil)), w.read(w.path("runs", r.ID, "run.json")))
		assert.Contains(t, w.read(w.path("runs", r.ID, ChangesFile)), `"path":"b"`)
		needed, err := w.needed(nil)
		require.NoError(t, err)
		assert.True(t, needed[file("two").SHA256])
		assert.False(t, needed[file("one").SHA256])
	}
	require.NoError(t, w.SetDrafts([]string{r.ID}, DraftDiscarded))
	w.reopen()
	got, err := w.Get(r.ID)
	require.NoError(t, err)
	assert.Equal(t, Changes{Created: 7}, got.Changes, "what becomes of it later changes nothing of that")
	assert.Equal(t, []tree.Path{"b"}, got.Draft.NoBase)
}
