package project

import (
	"testing"

	"github.com/stretchr/testify/require"

	"decree/disk"
	"decree/tree"
)

// TestIntoHasAnyPath: a target's path need not be valid UTF-8, and what an earlier decree has written is read.
func TestIntoHasAnyPath(t *testing.T) {
	for _, from := range []string{"/mnt/usb", "/mnt/My \"disk\"\n", "/mnt/\xff\xfe"} {
		root := t.TempDir()
		require.NoError(t, BeginInto(disk.OS, root, Into{Generation: "g", From: tree.Text(from)}))
		in, err := ReadInto(disk.OS, root)
		require.NoError(t, err)
		require.Equal(t, from, string(in.From))
		write(t, root+"/.decree/"+IntoFile, `{"version":1,"from":"/mnt/a\\b"}`)
		in, err = ReadInto(disk.OS, root)
		require.NoError(t, err)
		require.Equal(t, `/mnt/a\b`, string(in.From))
	}
}
