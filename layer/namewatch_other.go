//go:build !linux

package layer

import "decree/disk"

// nameWatch is none here.
type nameWatch struct{}

func watchNames(disk.Dir) *nameWatch { return nil }

func (*nameWatch) untouched(string) bool { return false }

func (*nameWatch) stop() {}
