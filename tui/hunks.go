package tui

import (
	"context"

	"decree/planner"
)

// planMarked plans with what is marked in a record's diff, where the operation is about that record.
func (e *engine) planMarked(ctx context.Context, q planner.Request, chosen marks) (*planner.Planned, error) {
	if q.Operation != "undo" && q.Operation != "redo" && q.Operation != "discard" {
		q.Marks = chosen.requested()
	}
	q.OfRecord = choosesHunks(q.Operation) && q.HasHunks()
	if !choosesHunks(q.Operation) {
		for i := range q.Marks {
			q.Marks[i].Hunks = nil
		}
	}
	return e.plans.Plan(ctx, q)
}

// choosesHunks says whether an operation asks about hunks.
func choosesHunks(operation string) bool {
	return operation == "revert" || operation == "apply" || operation == "publish"
}
