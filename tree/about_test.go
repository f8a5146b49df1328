package tree

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestErrorNamesThePathOnce(t *testing.T) {
	cause := errors.New("is gone")
	err := At("a\n", At("a\n", cause))
	assert.EqualError(t, err, `"a\n": is gone`)
	assert.ErrorIs(t, err, cause)
	assert.Equal(t, "is gone", Because(err))
	assert.Equal(t, `no longer stored: "a\n": is gone`, Because(fmt.Errorf("no longer stored: %w", err)))
	assert.Equal(t, "is gone", Because(cause))
	assert.NoError(t, At("a", nil))
}
