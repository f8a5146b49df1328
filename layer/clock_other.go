//go:build !linux

package layer

// ahead is not known here: a clock that was set back goes unseen.
var ahead = func() int64 { return 0 }
