package history

import (
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
	r.Draft = &Draft{Name: "try", State: DraftPartly, By: []string{r.ID}, NoBase: []string{"a\nb", "c"}, Git: 3}
	data := r.JSON(nil)
	for _, want := range []string{`"files": null`, `"before": null`, `"after": null`, `"isolated": "overlay"`} {
		assert.Contains(t, string(data), want)
	}
	back, err := ParseRecord(data)
	require.NoError(t, err)
	assert.Equal(t, r.Draft, back.Draft)
	assert.Equal(t, data, back.JSON(nil))
	assert.True(t, back.Partial())
	assert.Empty(t, observations(back))
}

// TestDraftEffect folds what lines of the log say of a draft: its name and its paths
// without a base stay.
func TestDraftEffect(t *testing.T) {
	first := &effect{id: "2020010100000000-0", draft: &Draft{State: DraftPartly, By: []string{"2020010100000000-1"}}}
	second := &effect{id: first.id, draft: &Draft{State: DraftWaiting}}
	l := &line{record: &Record{ID: first.id, Draft: &Draft{Name: "try", State: DraftWaiting, NoBase: []string{"p"}, Git: 2}}, files: map[string]tree.Hash{}}
	require.NoError(t, first.apply(l))
	assert.Equal(t, &Draft{Name: "try", State: DraftPartly, By: []string{"2020010100000000-1"}, NoBase: []string{"p"}, Git: 2}, l.record.Draft)
	require.NoError(t, first.with(second).apply(l))
	assert.Equal(t, &Draft{Name: "try", State: DraftWaiting, NoBase: []string{"p"}, Git: 2}, l.record.Draft)

	var back []*effect
	text := append(append([]byte(`{"effects":[`), first.append(nil)...), "]}"...)
	require.NoError(t, jsonread.Object(text, func(_ string, v *jsonread.Value) error {
		back = effectsOf(v)
		return v.Err()
	}))
	assert.Equal(t, []*effect{first}, back)
}
