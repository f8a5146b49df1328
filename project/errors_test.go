package project

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStateIsAField(t *testing.T) {
	cause := errors.New("a: it says that nothing was changed")
	require.Empty(t, StateOf(cause), "a text is no state")

	err := Unmoved(&Error{Kind: Integrity, Err: cause, Advice: "look"})
	require.EqualError(t, err, "a: it says that nothing was changed; nothing was changed")
	require.Equal(t, Unchanged, StateOf(fmt.Errorf("outer: %w", err)))
	require.Equal(t, Integrity, KindOf(err))
	require.Equal(t, "look", HintOf(err))
	require.Same(t, err, Unmoved(err), "a state is said once")

	err = &Error{Msg: "outer", Err: &Error{Msg: "inner", State: NotStarted}}
	require.Equal(t, NotStarted, StateOf(err), "the one below counts where there is none above")
	require.EqualError(t, err, "outer: inner; the command was not started")
	require.NoError(t, Unmoved(nil))
}

func TestAsks(t *testing.T) {
	require.True(t, Asks(fmt.Errorf("outer: %w", &Error{Kind: Refused, Asks: true})))
	require.False(t, Asks(&Error{Kind: Refused, Advice: "or say --yes"}), "a hint is no question")
	require.False(t, Asks(nil))
}

// TestUnmapped: the kernel's words for a user without a number say nothing to anybody; the advice does.
func TestUnmapped(t *testing.T) {
	err := fmt.Errorf("not put back: %w", &fs.PathError{Op: "rename", Path: "/tree/a", Err: syscall.EOVERFLOW})
	require.Contains(t, RightsAdvice(err), "has no number in this container or mount: work outside of it")
	require.Empty(t, UnmappedAdvice(&fs.PathError{Op: "rename", Path: "/tree/a", Err: syscall.EACCES}))
}
