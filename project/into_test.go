package project

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestIntoHasAnyPath: a target's path need not be valid UTF-8, and what an earlier decree has written is read.
func TestIntoHasAnyPath(t *testing.T) {
	for _, from := range []string{"/mnt/usb", "/mnt/My \"disk\"\n", "/mnt/\xff\xfe"} {
		root := t.TempDir()
		require.NoError(t, BeginInto(disk.OS, root, Into{Generation: "g", From: tree.Text(from)}, nil))
		in, err := ReadInto(disk.OS, root)
		require.NoError(t, err)
		require.Equal(t, from, string(in.From))
		write(t, root+"/.decree/"+IntoFile, `{"version":1,"from":"/mnt/a\\b"}`)
		in, err = ReadInto(disk.OS, root)
		require.NoError(t, err)
		require.Equal(t, `/mnt/a\b`, string(in.From))
	}
}

// TestOneRestoreBegins: of two restores into one directory the second finds that the first was faster, and writes nothing over what that goes on by.
func TestOneRestoreBegins(t *testing.T) {
	root := t.TempDir()
	first, second := Into{Generation: "first"}, Into{Generation: "second"}
	require.NoError(t, BeginInto(disk.OS, root, first, nil))
	require.ErrorIs(t, BeginInto(disk.OS, root, second, nil), fs.ErrExist)
	in, err := ReadInto(disk.OS, root)
	require.NoError(t, err)
	require.Equal(t, "first", in.Generation)
	require.NoError(t, BeginInto(disk.OS, root, second, in), "who goes on with it may do so with another generation")
	in, err = ReadInto(disk.OS, root)
	require.NoError(t, err)
	require.Equal(t, "second", in.Generation)
}
