//go:build !linux && !darwin

package layer

import (
	"errors"

	"decree/disk"
)

// share returns errors.ErrUnsupported.
func share(disk.File, disk.Dir, string) (made disk.Info, err error) {
	return made, errors.ErrUnsupported
}

// cloneWhole is nil: no call clones a whole directory.
var cloneWhole func(from, to string) error
