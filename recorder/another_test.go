package recorder

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/project"
	"decree/worktree"
)

// TestWayOutBesideAnothersFiles: a move that is refused since a path is another user's, as what a container made, names what helps.
func TestWayOutBesideAnothersFiles(t *testing.T) {
	refused := func(reason string) string {
		return project.HintOf(moveError(&worktree.Error{Phase: "check", RolledBack: true,
			Err: &worktree.ConflictError{Conflicts: []worktree.Conflict{{Path: "build/o", Reason: reason}}}}))
	}
	require.Contains(t, refused("its directory belongs to another user and cannot be written"), "build/o, or its directory, is another user's")
	require.Empty(t, refused("edited since"))
}
