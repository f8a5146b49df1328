package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
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

// TestModeAdvice: what of the user's own keeps him out is named, the directory before what is in it.
func TestModeAdvice(t *testing.T) {
	at := t.TempDir()
	require.NoError(t, os.Mkdir(at+"/d", 0o700))
	require.NoError(t, os.WriteFile(at+"/d/f", nil, 0o600))
	denied := &fs.PathError{Op: "open", Path: at + "/d/f", Err: syscall.EACCES}
	require.Empty(t, ModeAdvice(denied), "its mode is not the cause")
	require.NoError(t, os.Chmod(at+"/d/f", 0o200))
	require.Equal(t, "it is yours, and its mode, 200, keeps you out: 'chmod u+rwX "+at+"/d/f'", ModeAdvice(fmt.Errorf("record: %w", denied)))
	require.NoError(t, os.Chmod(at+"/d", 0))
	require.Contains(t, ModeAdvice(denied), "its mode, 0, keeps you out: 'chmod u+rwX "+at+"/d'")
	require.Empty(t, ModeAdvice(&fs.PathError{Op: "open", Path: at + "/d/f", Err: syscall.EIO}))
	require.NoError(t, os.Chmod(at+"/d", 0o500))
	require.NoError(t, os.Chmod(at+"/d/f", 0o600))
	require.Empty(t, ModeAdvice(denied), "a directory need not be written for a file in it to be opened")
	require.NoError(t, os.Chmod(at, 0o500))
	require.Empty(t, ModeAdvice(&fs.PathError{Op: "open", Path: at + "/d/f", Err: syscall.EACCES}), "nor one further up")
	require.NoError(t, os.Chmod(at, 0o700))
	require.Contains(t, ModeAdvice(&fs.PathError{Op: "mkdir", Path: at + "/d/n", Err: syscall.EACCES}), "its mode, 500, keeps you out: 'chmod u+rwX "+at+"/d'")
	require.Contains(t, ModeAdvice(&fs.PathError{Op: "remove", Path: at + "/d/f", Err: syscall.EACCES}), "its mode, 500, keeps you out")
	require.NoError(t, os.Chmod(at+"/d", 0o700))
}

// TestModeAdviceIsTyped: a shell takes the hint's path for the one that is meant.
func TestModeAdviceIsTyped(t *testing.T) {
	at := t.TempDir() + "/My Data"
	require.NoError(t, os.WriteFile(at, nil, 0o200))
	require.Contains(t, ModeAdvice(&fs.PathError{Op: "open", Path: at, Err: syscall.EACCES}), "'chmod u+rwX '"+at+"''")
}

// TestStoreShut: of a store that is there and does not open it is said what keeps the user out, and only of another's that it is another's.
func TestStoreShut(t *testing.T) {
	at := filepath.Join(t.TempDir(), "store")
	p := &Project{Site: Site{Disk: disk.OS, Root: "/tree"}}
	require.NoError(t, os.Mkdir(at, 0o700))
	denied := &fs.PathError{Op: "open", Path: at, Err: syscall.EACCES}
	require.ErrorContains(t, p.storeShut(at, denied), "you may not read it")
	require.NoError(t, os.Chmod(at, 0o100))
	var e *Error
	require.ErrorAs(t, p.storeShut(at, denied), &e)
	require.NotContains(t, e.Error(), "you may not read it")
	require.Equal(t, "it is yours, and its mode, 100, keeps you out: 'chmod u+rwX "+at+"'", e.Advice)
	for _, other := range []error{syscall.ENOTDIR, syscall.ELOOP} {
		require.ErrorAs(t, p.storeShut(at, &fs.PathError{Op: "open", Path: at, Err: other}), &e)
		require.Contains(t, e.Msg, "something else is in the place")
		require.NotEmpty(t, e.Advice)
	}
	broken := &fs.PathError{Op: "open", Path: at, Err: syscall.EIO}
	require.Equal(t, error(broken), p.storeShut(at, broken))
}
