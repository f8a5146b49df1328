package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"decree/planner"
	"decree/tree"
)

// TestAStalePlanOfMarksIsNotDoneAsAWhole: where the files changed while a plan of what was marked was looked at, no plan of more
// than that takes its place, for which the same key would do.
func TestAStalePlanOfMarksIsNotDoneAsAWhole(t *testing.T) {
	m := &model{engine: &engine{Options: Options{Location: time.UTC, Now: time.Now}}, styles: newStyles(true), sheet: &sheet{}}
	request := planner.Request{Operation: "revert", Marks: []planner.Mark{{Path: tree.Path("f")}}}
	m.planned(plannedMsg{request, nil, &planner.StaleError{New: &planner.Planned{}}})
	require.Nil(t, m.sheet)
	require.Contains(t, m.toast, "nothing was done")
}
