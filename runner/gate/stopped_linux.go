package gate

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stoppedPause is how often it is looked whether a process that is to become a command is stopped. Most are commands long before.
const stoppedPause = 100 * time.Millisecond

// keepAwake has the processes go on that this one has made, and that are stopped before they became commands, until end is called. A Ctrl-Z in that
// moment stops the new process alone where it has a group of its own already, and what continues this one does not reach it: both would wait for ever.
func keepAwake() (end func()) {
	done := make(chan struct{})
	go func() {
		for tick := time.NewTicker(stoppedPause); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				wakeStopped()
			}
		}
	}()
	return func() { close(done) }
}

// wakeStopped continues the children that are stopped and execute this very program, as a command does not.
func wakeStopped() {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		pids, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(pids)) {
			exe, err := os.Stat("/proc/" + pid + "/exe")
			number, nerr := strconv.Atoi(pid)
			if err == nil && nerr == nil && os.SameFile(own, exe) && isStopped(pid) {
				_ = syscall.Kill(number, syscall.SIGCONT)
			}
		}
	}
}

// isStopped reads the state of a process: the letter behind its name, which is in parentheses.
func isStopped(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T"))
}
