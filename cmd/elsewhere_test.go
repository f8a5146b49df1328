package cmd

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestElsewhere holds that what other programs call a command leads to one of decree's.
func TestElsewhere(t *testing.T) {
	verbs := (&session{}).verbs()
	for name, there := range elsewhere {
		assert.Nil(t, find(verbs, name), "%s is a command of decree's own", name)
		verb, _, _ := strings.Cut(there, " ")
		assert.NotNil(t, find(verbs, verb), there)
	}
}
