package disk

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// TestChangeTimesOfKinds: FAT keeps none, and of FUSE and SMB, which may show the time of the last write in
// its place, it is not taken for granted.
func TestChangeTimesOfKinds(t *testing.T) {
	for kind, want := range map[int64]FileSystem{
		unix.EXT4_SUPER_MAGIC:  {ChangeTimes: true, Steady: true, MoveTimes: true},
		unix.XFS_SUPER_MAGIC:   {ChangeTimes: true, Steady: true},
		unix.NFS_SUPER_MAGIC:   {ChangeTimes: true},
		unix.MSDOS_SUPER_MAGIC: {},
		unix.FUSE_SUPER_MAGIC:  {TryTimes: true},
		unix.CIFS_SUPER_MAGIC:  {TryTimes: true},
		unix.SMB2_SUPER_MAGIC:  {TryTimes: true},
	} {
		out := FileSystem{ChangeTimes: true}
		out.ofKind(kind)
		assert.Equal(t, want, out, "%#x", kind)
	}
}
