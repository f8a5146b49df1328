package planner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/project"
)

// Of several marked hunks each must be in the plan: one that is not would be left out, unsaid.
func TestEachMarkedHunkIsFound(t *testing.T) {
	recorded := [][]lineRange{{{3, 4}}, {{9, 10}}}
	both := Mark{Path: "f", Hunks: []int{1, 2}}
	found, err := chosen(both, recorded, map[int][]lineRange{1: {{3, 4}}, 2: {{9, 10}}})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, found)
	for _, there := range []map[int][]lineRange{{1: {{3, 4}}}, {1: {{3, 4}}, 2: {{20, 21}}}} {
		_, err = chosen(both, recorded, there)
		assert.Equal(t, project.Refused, project.KindOf(err))
		assert.ErrorContains(t, err, "not all of the marked hunks of f are in the files as they are")
	}
	_, err = chosen(Mark{Path: "f", Hunks: []int{0, 1}}, recorded, map[int][]lineRange{1: {{3, 4}}})
	assert.ErrorContains(t, err, "not all of the marked hunks", "the mode is as it was already")
}
