package runner

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// readersFiles are the files that processes of this process group whose standard input is one of pipes have open for writing.
func readersFiles(pipes map[File]bool) (files []File) {
	for _, pid := range groupOf(unix.Getpgrp()) {
		var in unix.Stat_t
		if pid != os.Getpid() && unix.Stat(procFile(pid, "fd/0"), &in) == nil && pipes[File{uint64(in.Dev), in.Ino}] {
			files = append(files, writtenBy(pid, func(_ File, mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFREG })...)
		}
	}
	return files
}

// groupOf lists the processes of a process group.
func groupOf(pgid int) (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if of, err := unix.Getpgid(pid); err == nil && of == pgid {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
