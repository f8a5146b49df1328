package queue

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASignalHidesNoError: of two jobs one ended with the signal and the other with an error: that one is told.
func TestASignalHidesNoError(t *testing.T) {
	full := errors.New("no space left on device")
	for _, errs := range [][2]error{{full, context.Canceled}, {context.Canceled, full}} {
		require.Equal(t, full, joinErrors(errs[0], errs[1]))
	}
	require.Equal(t, context.Canceled, joinErrors(context.Canceled, nil))
	require.Equal(t, context.Canceled, joinErrors(nil, context.Canceled))
	require.NoError(t, joinErrors(nil, nil))
	other := errors.New("another")
	require.ErrorIs(t, joinErrors(full, other), full)
	require.ErrorIs(t, joinErrors(full, other), other)
}
