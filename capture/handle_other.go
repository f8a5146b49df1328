//go:build !linux || !(amd64 || arm64)

package capture

import "decree/disk"

// fastHandle returns nil: only the portable walk serves here.
func fastHandle(disk.Dir) handle { return nil }
