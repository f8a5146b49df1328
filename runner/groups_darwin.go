package runner

import (
	"os"
)

// groups lists the process groups that make up the group: itself, and the one in
// the foreground of the command's terminal.
func groups(pgid int, _ uint64, tty *os.File) []int {
	if tty == nil {
		return []int{pgid}
	}
	if front, err := foregroundGroup(tty); err == nil && front > 1 && front != pgid && front != ownGroup() {
		return []int{pgid, front}
	}
	return []int{pgid}
}

// stopped cannot be asked for; the report of the stop is believed.
func stopped(int) bool { return true }

// find finds none: the search needs what only Linux tells.
func (outsiders) find() []Process { return nil }

func heldLink(*os.File) string { return "" }
