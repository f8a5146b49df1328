package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRelease(t *testing.T) {
	for in, want := range map[string][2]int{
		"6.1.0-18-amd64": {6, 1}, "5.8.0": {5, 8}, "5.4.0-1.el8": {5, 4}, "4.19": {4, 19}, "6.10-rc1": {6, 10}, "5.15+": {5, 15},
	} {
		major, minor, err := release(in)
		require.NoError(t, err, in)
		require.Equal(t, want, [2]int{major, minor}, in)
	}
	for _, in := range []string{"", "x.y", "6", "6.", ".8"} {
		_, _, err := release(in)
		require.Error(t, err, in)
	}
}
