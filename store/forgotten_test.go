package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
)

// TestForgottenThatCannotBeRead: a list that is longer than what is read is not written.
func TestForgottenThatCannotBeRead(t *testing.T) {
	dir, err := disk.OS.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	l, err := ReadForgotten(dir)
	require.NoError(t, err)
	l.Contents[Hash{1}] = Forgetting{Path: "short"}
	require.NoError(t, WriteForgotten(dir, l))
	l.Contents[Hash{2}] = Forgetting{Path: strings.Repeat("a", maxForgotten)}
	require.ErrorContains(t, WriteForgotten(dir, l), "could not be read again")
	l, err = ReadForgotten(dir)
	require.NoError(t, err)
	require.Len(t, l.Contents, 1)
}
