package recorder

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"decree/layer"
	"decree/project"
)

// TestRefusedCloneIsNotAdvised: where a clone was tried too, nobody is sent to try one.
func TestRefusedCloneIsNotAdvised(t *testing.T) {
	overlay := &layer.Refusal{Mechanism: layer.Overlay, Reason: "another's root", Advice: "run decree as its owner" + layer.OrClone}
	clone := &layer.Refusal{Mechanism: layer.Clone, Reason: "no shared blocks", Advice: "--copy makes a full copy"}
	var e *project.Error
	require.ErrorAs(t, cannotIsolate(overlay, clone), &e)
	assert.Equal(t, "run decree as its owner; or --copy makes a full copy", e.Advice)
}
