package gate

import "syscall"

// program is this program's file, also where it was deleted or replaced meanwhile.
func program() (string, error) { return "/proc/self/exe", nil }

func pair() ([2]int, error) {
	return syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
}
