//go:build unix

package disk

import "golang.org/x/sys/unix"

// OpenLimit returns how many files this process may have open at once.
func OpenLimit() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 256 // the smallest that systems give
	}
	return int(min(uint64(lim.Cur), 1<<20))
}
